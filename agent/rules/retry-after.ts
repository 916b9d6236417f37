/** The Retry-After header: seconds, or a date by the server's own clock (RFC 9110, 10.2.3). Milliseconds. */
export function retryAfter(text: string | undefined, serverTimeMs: number | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(text)) return Number(text) * 1_000;
  const untilMs = /\d:\d\d GMT\s*$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(untilMs) || serverTimeMs === undefined) return undefined;
  return Math.max(0, untilMs - serverTimeMs);
}
