/**
 * Durations in Go's format, as in a KubeletConfiguration and in upstream's messages: `300ms`, `1.5s`, `1m30s`, `1h0m0s`
 * (Go documentation, time.ParseDuration and Duration.String).
 */
const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
};

/** The longest duration in Go: 2^63 - 1 nanoseconds. */
const DURATION_MAX_MS = 9_223_372_036_854;

const WHOLE = /^([+-]?)((?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$/;
const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/g;

/** Milliseconds, possibly with a fraction; undefined if the text is not a Go duration. */
export function parseGoDuration(text: string): number | undefined {
  if (/^[+-]?0$/.test(text)) return 0;
  const match = WHOLE.exec(text);
  if (match === null) return undefined;
  let milliseconds = 0;
  for (const [, number = '', unit = ''] of (match[2] ?? '').matchAll(PART)) {
    milliseconds += Number(number) * (UNIT_MS[unit] ?? 0);
  }
  if (milliseconds > DURATION_MAX_MS) return undefined;
  return match[1] === '-' ? -milliseconds : milliseconds;
}

/** Up to nine digits after the point, without trailing zeros. */
const withoutTrailingZeros = (value: number, digits: number): string =>
  digits === 0 ? String(value) : value.toFixed(digits).replace(/\.?0+$/, '');

/** `0s`, `500ms`, `1.5s`, `1m30s`, `2m0s`, `1h0m0s`. */
export function formatGoDuration(milliseconds: number): string {
  const nanoseconds = Math.round(Math.abs(milliseconds) * 1e6);
  const sign = milliseconds < 0 && nanoseconds > 0 ? '-' : '';
  if (nanoseconds === 0) return '0s';
  if (nanoseconds < 1_000) return `${sign}${nanoseconds}ns`;
  if (nanoseconds < 1_000_000) return `${sign}${withoutTrailingZeros(nanoseconds / 1e3, 3)}µs`;
  if (nanoseconds < 1_000_000_000) return `${sign}${withoutTrailingZeros(nanoseconds / 1e6, 6)}ms`;
  const wholeSeconds = Math.floor(nanoseconds / 1e9);
  const hours = Math.floor(wholeSeconds / 3_600);
  const minutes = Math.floor(wholeSeconds / 60) % 60;
  const seconds = withoutTrailingZeros((wholeSeconds % 60) + (nanoseconds % 1e9) / 1e9, 9);
  if (hours > 0) return `${sign}${hours}h${minutes}m${seconds}s`;
  return minutes > 0 ? `${sign}${minutes}m${seconds}s` : `${sign}${seconds}s`;
}
