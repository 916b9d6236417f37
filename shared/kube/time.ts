/**
 * Times as Kubernetes writes them: RFC 3339 in UTC, whole seconds (metav1.Time) or six digits (metav1.MicroTime).
 * Reading is tolerant: clients send seconds, `.000Z` or an offset.
 */
const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

interface Instant {
  readonly epochSeconds: number;
  /** Within the second. */
  readonly micros: number;
}

function parseInstant(text: string): Instant | undefined {
  const match = RFC3339.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction, sign, offsetHours, offsetMinutes] = match;
  const utcMs = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  const back = new Date(utcMs);
  // Date.UTC carries over what does not exist, such as 31 February or 25:00.
  if (back.getUTCDate() !== Number(day) || back.getUTCHours() !== Number(hour)) return undefined;
  if (back.getUTCMinutes() !== Number(minute) || back.getUTCMonth() !== Number(month) - 1) return undefined;
  const offsetSeconds = sign === undefined ? 0 : (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60;
  return {
    epochSeconds: utcMs / 1_000 - (sign === '-' ? -offsetSeconds : offsetSeconds),
    micros: fraction === undefined ? 0 : Number(fraction.padEnd(6, '0').slice(0, 6)),
  };
}

/** Milliseconds since the epoch; undefined when the text is no RFC 3339 time. */
export function parseTimeMs(text: string | null | undefined): number | undefined {
  if (text === undefined || text === null) return undefined;
  const instant = parseInstant(text);
  return instant === undefined ? undefined : instant.epochSeconds * 1_000 + Math.floor(instant.micros / 1_000);
}

const secondsText = (epochSeconds: number): string => new Date(epochSeconds * 1_000).toISOString().slice(0, 19);

/** `2001-02-03T04:05:06Z`; what is below a second is cut. */
export const formatTime = (epochMs: number): string => `${secondsText(Math.floor(epochMs / 1_000))}Z`;

/** `2001-02-03T04:05:06.789000Z` */
export function formatMicroTime(epochMs: number): string {
  const epochSeconds = Math.floor(epochMs / 1_000);
  const micros = Math.floor((epochMs - epochSeconds * 1_000) * 1_000);
  return `${secondsText(epochSeconds)}.${String(micros).padStart(6, '0')}Z`;
}

/** The same time as metav1.Time writes it; a text that is no time comes back as it is. */
export function canonicalTime(text: string): string {
  const instant = parseInstant(text);
  return instant === undefined ? text : `${secondsText(instant.epochSeconds)}Z`;
}

/** The same time as metav1.MicroTime writes it; a text that is no time comes back as it is. */
export function canonicalMicroTime(text: string): string {
  const instant = parseInstant(text);
  if (instant === undefined) return text;
  return `${secondsText(instant.epochSeconds)}.${String(instant.micros).padStart(6, '0')}Z`;
}
