/**
 * Schedules of CronJobs, with the semantics of github.com/robfig/cron v3 (ParseStandard), which upstream uses.
 *
 * Five fields, the descriptors such as `@hourly`, and `@every DURATION`. Day of month and day of week: a field with `*`
 * does not restrict; if both restrict, one of them must match. A schedule matches the local time of its zone. So a time
 * that does not exist on a day does not occur, and one that exists twice occurs twice.
 */

export interface FieldsSchedule {
  readonly kind: 'fields';
  readonly minutes: ReadonlySet<number>;
  readonly hours: ReadonlySet<number>;
  readonly daysOfMonth: ReadonlySet<number>;
  readonly months: ReadonlySet<number>;
  readonly daysOfWeek: ReadonlySet<number>;
  /** Both fields of days restrict: one of them must match. */
  readonly eitherDay: boolean;
}

/** A fixed time after the one before. */
export interface EverySchedule {
  readonly kind: 'every';
  readonly seconds: number;
}

export type CronSchedule = (FieldsSchedule | EverySchedule) & {
  /** The zone of `TZ=` or `CRON_TZ=` in the text. */
  readonly zone?: string;
};

/** The text is no schedule; the message is that of the upstream parser. */
export class CronError extends Error {
  override readonly name = 'CronError';
}

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly names: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];
const BOUNDS: readonly Bounds[] = [
  { min: 0, max: 59, names: [] },
  { min: 0, max: 23, names: [] },
  { min: 1, max: 31, names: [] },
  { min: 1, max: 12, names: MONTHS },
  { min: 0, max: 6, names: DAYS },
];

const DESCRIPTORS: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
};
const EVERY = '@every ';

/** @throws CronError */
export function parseCron(text: string): CronSchedule {
  if (text === '') throw new CronError('empty spec string');
  const zoned = /^(?:CRON_)?TZ=(\S*)\s+(.*)$/s.exec(text);
  if (zoned !== null) {
    const [, zone = '', rest = ''] = zoned;
    if (!isTimeZone(zone)) throw new CronError(`provided bad location ${zone}: unknown time zone ${zone}`);
    return { ...parseCron(rest.trim()), zone };
  }
  if (text.startsWith('@')) return parseDescriptor(text);
  const fields = text.split(/\s+/).filter((each) => each !== '');
  if (fields.length !== BOUNDS.length) {
    throw new CronError(`expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`);
  }
  const [minutes, hours, daysOfMonth, months, daysOfWeek] = fields.map((each, index) =>
    parseField(each, BOUNDS[index]!),
  );
  return {
    kind: 'fields',
    minutes: minutes!.values,
    hours: hours!.values,
    daysOfMonth: daysOfMonth!.values,
    months: months!.values,
    daysOfWeek: daysOfWeek!.values,
    eitherDay: !daysOfMonth!.isStar && !daysOfWeek!.isStar,
  };
}

function parseDescriptor(text: string): CronSchedule {
  const fields = Object.hasOwn(DESCRIPTORS, text) ? DESCRIPTORS[text] : undefined;
  if (fields !== undefined) return parseCron(fields);
  if (!text.startsWith(EVERY)) throw new CronError(`unrecognized descriptor: ${text}`);
  const seconds = durationSeconds(text.slice(EVERY.length));
  if (seconds === undefined) {
    const given = text.slice(EVERY.length);
    throw new CronError(`failed to parse duration ${text}: time: invalid duration "${given}"`);
  }
  return { kind: 'every', seconds: Math.max(1, Math.floor(seconds)) };
}

const UNIT_SECONDS: Readonly<Record<string, number>> = {
  h: 3_600,
  m: 60,
  s: 1,
  ms: 1e-3,
  us: 1e-6,
  µs: 1e-6,
  ns: 1e-9,
};

/** The longest duration of Go: 63 bits of nanoseconds. */
const DURATION_SECONDS_MAX = 2 ** 63 / 1e9;

/** A duration as Go writes it, such as `1h30m`; undefined for any other text. */
function durationSeconds(text: string): number | undefined {
  if (/^[+-]?0$/.test(text)) return 0;
  const sign = text.startsWith('-') ? -1 : 1;
  const body = text.replace(/^[+-]/, '');
  const part = /(\d+(?:\.\d*)?|\.\d+)(h|ms|m|s|us|µs|ns)/y;
  let total = 0;
  let end = 0;
  for (let match = part.exec(body); match !== null; match = part.exec(body)) {
    total += Number(match[1]) * (UNIT_SECONDS[match[2] ?? ''] ?? 0);
    end = part.lastIndex;
  }
  return end === 0 || end !== body.length || total > DURATION_SECONDS_MAX ? undefined : sign * total;
}

interface Field {
  readonly values: ReadonlySet<number>;
  /** It has `*` or `?` without a step. */
  readonly isStar: boolean;
}

function parseField(text: string, bounds: Bounds): Field {
  const values = new Set<number>();
  let isStar = false;
  for (const part of text.split(',')) {
    if (part === '') continue;
    const range = parseRange(part, bounds);
    for (let value = range.start; value <= range.end; value += range.step) values.add(value);
    isStar ||= range.isStar;
  }
  return { values, isStar };
}

function parseRange(text: string, { min, max, names }: Bounds) {
  const [range = '', stepText, ...moreSteps] = text.split('/');
  const [low = '', high, ...moreHyphens] = range.split('-');
  const isAny = low === '*' || low === '?';
  const start = isAny ? min : parseNumber(low, names);
  let end = isAny ? max : start;
  if (!isAny && high !== undefined) {
    end = parseNumber(high, names);
    if (moreHyphens.length > 0) throw new CronError(`too many hyphens: ${text}`);
  }
  if (moreSteps.length > 0) throw new CronError(`too many slashes: ${text}`);
  const step = stepText === undefined ? 1 : parseNumber(stepText, []);
  // `5/15` means `5-59/15`.
  if (stepText !== undefined && high === undefined) end = max;
  if (start < min) throw new CronError(`beginning of range (${start}) below minimum (${min}): ${text}`);
  if (end > max) throw new CronError(`end of range (${end}) above maximum (${max}): ${text}`);
  if (start > end) throw new CronError(`beginning of range (${start}) beyond end of range (${end}): ${text}`);
  if (step === 0) throw new CronError(`step of range should be a positive number: ${text}`);
  return { start, end, step, isStar: isAny && step === 1 };
}

function parseNumber(text: string, names: readonly string[]): number {
  const name = names.indexOf(text.toLowerCase());
  // Months begin with 1, days of the week with 0.
  if (name >= 0) return names === MONTHS ? name + 1 : name;
  if (!/^[+-]?\d{1,18}$/.test(text)) {
    throw new CronError(`failed to parse int from ${text}: strconv.Atoi: parsing "${text}": invalid syntax`);
  }
  const value = Number(text);
  if (value < 0) throw new CronError(`negative number (${value}) not allowed: ${text}`);
  return value;
}

const UTC = 'UTC';
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** A schedule without a time in this many years has none. */
const YEARS_MAX = 5;
/** Months, days and hours that are skipped in one search. */
const STEPS_MAX = 5_000;

export function isTimeZone(name: string): boolean {
  // Offsets such as `+05:30` are zones to ICU, but not to Go.
  if (/^[+-]/.test(name)) return false;
  try {
    return new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/**
 * As upstream accepts a new one: with its letters in upper and lower case. ICU accepts any case, and answers with the
 * name of a link's target: of a link only names in one case alone are known to be wrong.
 */
export function isExactTimeZone(name: string): boolean {
  if (!isTimeZone(name)) return false;
  const resolved = new Intl.DateTimeFormat('en', { timeZone: name }).resolvedOptions().timeZone;
  const lower = name.toLowerCase();
  if (resolved.toLowerCase() === lower) return resolved === name;
  return name !== lower && !(name.includes('/') && name === name.toUpperCase());
}

/**
 * A format has some 40 KB, and one zone has thousands of names: letters in upper and lower case are the same to ICU.
 */
const FORMATS_MAX = 50;
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(zone: string): Intl.DateTimeFormat {
  const found = formats.get(zone);
  if (found !== undefined) return found;
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  if (formats.size >= FORMATS_MAX) formats.clear();
  formats.set(zone, made);
  return made;
}

/** Milliseconds that the local time is ahead of UTC. */
export function zoneOffsetMs(atMs: number, zone: string): number {
  if (zone === UTC) return 0;
  const parts = new Map(
    formatOf(zone)
      .formatToParts(atMs)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const of = (type: Intl.DateTimeFormatPartTypes): number => parts.get(type) ?? 0;
  const local = Date.UTC(of('year'), of('month') - 1, of('day'), of('hour'), of('minute'), of('second'));
  return local - Math.floor(atMs / 1_000) * 1_000;
}

/** First time of the schedule after `afterMs`; undefined: there is none in five years. Epoch milliseconds. */
export function nextTimeMs(schedule: CronSchedule, afterMs: number, zone: string): number | undefined {
  if (schedule.kind === 'every') return Math.floor(afterMs / 1_000) * 1_000 + schedule.seconds * 1_000;
  const place = schedule.zone ?? zone;
  const limitMs = afterMs + YEARS_MAX * 366 * DAY_MS;
  let atMs = (Math.floor(afterMs / MINUTE_MS) + 1) * MINUTE_MS;
  for (let steps = 0; steps < STEPS_MAX && atMs <= limitMs; steps += 1) {
    const local = new Date(atMs + zoneOffsetMs(atMs, place));
    const later = laterThan(schedule, { atMs, local }, (localMs) => instantOf(localMs, place));
    if (later === undefined) return atMs;
    // Where clocks are put back, a computed time may lie before this one.
    atMs = later > atMs ? later : atMs + HOUR_MS;
  }
  return undefined;
}

/**
 * The instant from which the search continues; undefined: the schedule matches this time.
 *
 * @param local its UTC fields are the local ones
 */
function laterThan(
  { minutes, hours, months, ...days }: FieldsSchedule,
  { atMs, local }: { readonly atMs: number; readonly local: Date },
  instant: (localMs: number) => number,
): number | undefined {
  const [year, month, day] = [local.getUTCFullYear(), local.getUTCMonth(), local.getUTCDate()];
  if (!months.has(month + 1)) return instant(Date.UTC(year, month + 1, 1));
  if (!matchesDay(days, local)) return instant(Date.UTC(year, month, day + 1));
  const [hour, minute] = [local.getUTCHours(), local.getUTCMinutes()];
  const next = hours.has(hour) ? [...minutes].filter((each) => each >= minute) : [];
  const wanted = next.length === 0 ? 60 : Math.min(...next);
  if (wanted === minute) return undefined;
  return atMs + (wanted - minute) * MINUTE_MS;
}

function matchesDay(
  { daysOfMonth, daysOfWeek, eitherDay }: Pick<FieldsSchedule, 'daysOfMonth' | 'daysOfWeek' | 'eitherDay'>,
  local: Date,
): boolean {
  const ofMonth = daysOfMonth.has(local.getUTCDate());
  const ofWeek = daysOfWeek.has(local.getUTCDay());
  return eitherDay ? ofMonth || ofWeek : ofMonth && ofWeek;
}

/** The first instant with this local time. If it is skipped that day: when the clocks are put forward. */
function instantOf(localMs: number, zone: string): number {
  const [before, after] = [-DAY_MS, DAY_MS].map((distance) => localMs - zoneOffsetMs(localMs + distance, zone));
  const exact = [before!, after!].filter((atMs) => atMs + zoneOffsetMs(atMs, zone) === localMs);
  return exact.length === 0 ? before! : Math.min(...exact);
}

/**
 * Latest time of the schedule that is after `afterMs` and not after `untilMs`; undefined: none. For `@every` the times
 * are counted from `afterMs`.
 */
export function latestTimeMs(
  schedule: CronSchedule,
  { afterMs, untilMs }: { readonly afterMs: number; readonly untilMs: number },
  zone: string,
): number | undefined {
  const first = nextTimeMs(schedule, afterMs, zone);
  if (first === undefined || first > untilMs) return undefined;
  if (schedule.kind === 'every') {
    const period = schedule.seconds * 1_000;
    return first + Math.floor((untilMs - first) / period) * period;
  }
  // The next time after x is at most untilMs exactly for the x before the latest one: bisect.
  let found = first;
  let [low, high] = [first, untilMs];
  while (high - low > MINUTE_MS) {
    const middle = Math.floor((low + high) / 2);
    const next = nextTimeMs(schedule, middle, zone);
    if (next === undefined || next > untilMs) high = middle;
    else {
      found = next;
      low = Math.max(next, middle);
    }
  }
  const last = nextTimeMs(schedule, low, zone);
  return last !== undefined && last <= untilMs ? last : found;
}
