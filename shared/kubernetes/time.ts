/**
 * Times as Kubernetes writes them: RFC 3339 in UTC, whole seconds (metav1.Time) or six digits (metav1.MicroTime).
 * Reading is tolerant: clients send seconds, `.000Z` or an offset.
 */
const RFC3339 = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?(?:[Zz]|([+-])(\d{2}):(\d{2}))$/;

/** The first and the last second that four digits of a year can write. */
const EPOCH_SECONDS_MIN = Date.parse('0000-01-01T00:00:00Z') / 1_000;
const EPOCH_SECONDS_MAX = Date.parse('9999-12-31T23:59:59Z') / 1_000;
/** The limit for a zone offset, as Go reads it. */
const OFFSET_HOURS_MAX = 24;
const OFFSET_MINUTES_MAX = 59;

interface Instant {
  readonly epochSeconds: number;
  /** Within the second. */
  readonly micros: number;
}

/** The form of most times. Two parts in place of eleven. */
const IN_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{6})?Z$/;

function parseInstant(text: string): Instant | undefined {
  if (IN_UTC.test(text)) {
    const epochMs = Date.parse(`${text.slice(0, 19)}Z`);
    if (Number.isNaN(epochMs) || new Date(epochMs).getUTCDate() !== Number(text.slice(8, 10))) return undefined;
    return { epochSeconds: epochMs / 1_000, micros: text.length === 20 ? 0 : Number(text.slice(20, 26)) };
  }
  const match = RFC3339.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction, sign, offsetHours, offsetMinutes] = match;
  const local = `${year}-${month}-${day}T${hour}:${minute}:${second}`;
  const localMs = Date.parse(`${local}Z`);
  // Date.parse carries over what does not exist, such as 31 February or 24:00, to another day.
  if (Number.isNaN(localMs) || new Date(localMs).getUTCDate() !== Number(day)) return undefined;
  if (Number(offsetHours ?? 0) > OFFSET_HOURS_MAX || Number(offsetMinutes ?? 0) > OFFSET_MINUTES_MAX) return undefined;
  const offsetSeconds = sign === undefined ? 0 : (Number(offsetHours) * 60 + Number(offsetMinutes)) * 60;
  const epochSeconds = localMs / 1_000 - (sign === '-' ? -offsetSeconds : offsetSeconds);
  // An offset may lead out of the years that four digits can write.
  if (epochSeconds < EPOCH_SECONDS_MIN || epochSeconds > EPOCH_SECONDS_MAX) return undefined;
  return { epochSeconds, micros: fraction === undefined ? 0 : Number(fraction.padEnd(6, '0').slice(0, 6)) };
}

/** Milliseconds since the epoch; undefined when the text is no RFC 3339 time. */
export function parseTimeMs(text: string | null | undefined): number | undefined {
  if (text === undefined || text === null) return undefined;
  const instant = parseInstant(text);
  return instant === undefined ? undefined : instant.epochSeconds * 1_000 + Math.floor(instant.micros / 1_000);
}

const secondsText = (epochSeconds: number): string => new Date(epochSeconds * 1_000).toISOString().slice(0, 19);

/** In the years 0000 to 9999: no client reads others, and a time may be computed from a count that a client chose. */
const withinCalendar = (epochSeconds: number): number =>
  Math.min(EPOCH_SECONDS_MAX, Math.max(EPOCH_SECONDS_MIN, epochSeconds));

/** `2001-02-03T04:05:06Z`; what is below a second is cut, what is beyond the calendar is its first or last second. */
export const formatTime = (epochMs: number): string => `${secondsText(withinCalendar(Math.floor(epochMs / 1_000)))}Z`;

/** `2001-02-03T04:05:06.789000Z` */
export function formatMicroTime(epochMs: number): string {
  const epochSeconds = withinCalendar(Math.floor(epochMs / 1_000));
  const micros = Math.min(999_999, Math.max(0, Math.floor((epochMs - epochSeconds * 1_000) * 1_000)));
  return `${secondsText(epochSeconds)}.${String(micros).padStart(6, '0')}Z`;
}

const CANONICAL_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/;

/** The same time in the format of metav1.Time. A text that is no time is returned unchanged. */
export function canonicalTime(text: string): string {
  if (CANONICAL_TIME.test(text)) return text;
  const instant = parseInstant(text);
  return instant === undefined ? text : `${secondsText(instant.epochSeconds)}Z`;
}

/** The same time in the format of metav1.MicroTime. A text that is no time is returned unchanged. */
export function canonicalMicroTime(text: string): string {
  const instant = parseInstant(text);
  if (instant === undefined) return text;
  return `${secondsText(instant.epochSeconds)}.${String(instant.micros).padStart(6, '0')}Z`;
}

/** 68 years: the largest duration of 32 bits, which is what clients of Kubernetes can count on. */
export const SECONDS_MAX = 2 ** 31 - 1;

/**
 * A duration that somebody wrote into an object, as a number that can become a time. The API refuses absurd ones, but
 * what was stored before it did stays stored, and a time beyond the calendar cannot be written at all.
 *
 * @returns whole seconds from 0 to SECONDS_MAX; undefined for what is no number. Infinity counts as the largest
 */
export function boundedSeconds(stored: unknown): number | undefined {
  if (typeof stored !== 'number' || Number.isNaN(stored)) return undefined;
  return Math.min(Math.max(0, stored), SECONDS_MAX);
}
