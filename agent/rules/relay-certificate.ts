/** The age of the certificate of a relay, for the relay itself and for the doctor. */
const DAY_MS = 86_400_000;
/** Before its end a certificate is reported for this long. Milliseconds. */
const WARN_MS = 30 * DAY_MS;

/** Times in milliseconds since the Unix epoch. */
export function certificateAge(expiresAtMs: number, nowMs: number): 'valid' | 'expiresSoon' | 'expired' {
  if (expiresAtMs <= nowMs) return 'expired';
  return expiresAtMs - nowMs <= WARN_MS ? 'expiresSoon' : 'valid';
}

export const daysLeft = (expiresAtMs: number, nowMs: number): number => Math.floor((expiresAtMs - nowMs) / DAY_MS);
