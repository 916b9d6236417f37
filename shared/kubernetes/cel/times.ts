/** Timestamps and durations of expressions (cel-spec, doc/langdef.md, "Timestamp" and "Duration" functions). */

import { parseRfc3339, rfc3339 } from '../rfc3339.ts';
import { type Declaration, declare } from './functions.ts';
import { asDuration, asTimestamp, floorDiv } from './standard.ts';
import { CelDuration, CelFailure, CelTimestamp, type CelValue } from './values.ts';

const TIMESTAMP = 'google.protobuf.Timestamp';
const DURATION = 'google.protobuf.Duration';
const SECOND = 1_000_000_000n;

const fractionText = (nanos: bigint): string =>
  nanos === 0n ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;

export function timestampText({ nanos }: CelTimestamp): string {
  const seconds = floorDiv(nanos, SECOND);
  return rfc3339(Number(seconds) * 1_000).replace('Z', `${fractionText(nanos - seconds * SECOND)}Z`);
}

export function parseTimestamp(text: string): CelTimestamp | undefined {
  const [point = '', digits = ''] = /\.(\d{1,9})/.exec(text) ?? [];
  const milliseconds = parseRfc3339(text.replace(point, ''));
  if (milliseconds === undefined) return undefined;
  const seconds = BigInt(milliseconds / 1_000);
  return new CelTimestamp(seconds * SECOND + BigInt(digits.padEnd(9, '0')));
}

/** Seconds with a fraction, such as `90.5s`. */
export function durationText({ nanos }: CelDuration): string {
  const magnitude = nanos < 0n ? -nanos : nanos;
  return `${nanos < 0n ? '-' : ''}${magnitude / SECOND}${fractionText(magnitude % SECOND)}s`;
}

const UNITS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: SECOND,
  m: 60n * SECOND,
  h: 3_600n * SECOND,
};
const WHOLE = /^([+-]?)((?:(?:\d{1,19}(?:\.\d{0,19})?|\.\d{1,19})(?:ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$/;
const PART = /(\d*)(?:\.(\d*))?(ns|us|\u00b5s|\u03bcs|ms|s|m|h)/g;

/** A duration in Go's format, exact to the nanosecond. */
export function parseDuration(text: string): CelDuration | undefined {
  if (/^[+-]?0$/.test(text)) return new CelDuration(0n);
  const match = WHOLE.exec(text);
  if (match === null) return undefined;
  let nanos = 0n;
  for (const [, whole = '', fraction = '', unit = ''] of (match[2] ?? '').matchAll(PART)) {
    const size = UNITS[unit] as bigint;
    nanos += BigInt(whole || '0') * size + (BigInt(fraction || '0') * size) / 10n ** BigInt(fraction.length);
  }
  const signed = asDuration(match[1] === '-' ? -nanos : nanos);
  return signed instanceof CelDuration ? signed : undefined;
}

interface Fields {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  readonly weekday: number;
  readonly dayOfYear: number;
}

const OFFSET = /^([+-]?)(\d{1,2}):(\d{2})$/;

/** Milliseconds to add to UTC. undefined: no such time zone. */
function offsetAt(zone: string, epochMs: number): number | undefined {
  if (zone === '' || zone === 'UTC') return 0;
  const [, sign = '', hours, minutes] = OFFSET.exec(zone) ?? [];
  if (hours !== undefined) return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  if (!/^[A-Za-z][\w+/-]*$/.test(zone)) return undefined;
  try {
    const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
    const name = format.formatToParts(epochMs).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    const [, way = '', h = '0', m = '0', s = '0'] = /^GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(name) ?? [];
    return (way === '-' ? -1 : 1) * ((Number(h) * 60 + Number(m)) * 60 + Number(s)) * 1_000;
  } catch {
    return undefined;
  }
}

const DAY_MS = 86_400_000;

function fieldsOf({ nanos }: CelTimestamp, zone: string): Fields | undefined {
  const epochMs = Number(floorDiv(nanos, 1_000_000n));
  const offset = offsetAt(zone, epochMs);
  if (offset === undefined) return undefined;
  const localMs = epochMs + offset;
  const [year, month, day, hour, minute, second] = rfc3339(localMs)
    .split(/[-T:Z]/, 6)
    .map(Number) as [number, number, number, number, number, number];
  const days = Math.floor(localMs / DAY_MS);
  const newYear = parseRfc3339(`${String(year).padStart(4, '0')}-01-01T00:00:00Z`) ?? 0;
  const weekday = (((days + 4) % 7) + 7) % 7;
  return { year, month, day, hour, minute, second, weekday, dayOfYear: days - newYear / DAY_MS };
}

const GETTERS: readonly (readonly [string, (fields: Fields) => number])[] = [
  ['.getFullYear', ({ year }) => year],
  ['.getMonth', ({ month }) => month - 1],
  ['.getDayOfYear', ({ dayOfYear }) => dayOfYear],
  ['.getDate', ({ day }) => day],
  ['.getDayOfMonth', ({ day }) => day - 1],
  ['.getDayOfWeek', ({ weekday }) => weekday],
  ['.getHours', ({ hour }) => hour],
  ['.getMinutes', ({ minute }) => minute],
  ['.getSeconds', ({ second }) => second],
];

function getter(name: string, read: (fields: Fields) => number): Declaration[] {
  const get = (time: CelTimestamp, zone = ''): CelValue => {
    const fields = fieldsOf(time, zone);
    return fields === undefined ? new CelFailure(`unknown time zone ${zone}`) : BigInt(read(fields));
  };
  return [declare(name, `${TIMESTAMP} -> int`, get), declare(name, `${TIMESTAMP},string -> int`, get)];
}

const milliseconds = ({ nanos }: CelTimestamp): bigint => (((nanos / 1_000_000n) % 1_000n) + 1_000n) % 1_000n;

const durationPart = (name: string, unit: bigint): Declaration =>
  declare(name, `${DURATION} -> int`, ({ nanos }: CelDuration) => nanos / unit);

export const timeFunctions: readonly Declaration[] = [
  ...GETTERS.flatMap(([name, read]) => getter(name, read)),
  declare('.getMilliseconds', `${TIMESTAMP} -> int`, milliseconds),
  declare('.getMilliseconds', `${TIMESTAMP},string -> int`, milliseconds),
  durationPart('.getHours', 3_600n * SECOND),
  durationPart('.getMinutes', 60n * SECOND),
  durationPart('.getSeconds', SECOND),
  declare('.getMilliseconds', `${DURATION} -> int`, ({ nanos }: CelDuration) => (nanos / 1_000_000n) % 1_000n),
  declare('timestamp', `${TIMESTAMP} -> ${TIMESTAMP}`, (value: CelValue) => value),
  declare('timestamp', `int -> ${TIMESTAMP}`, (seconds: bigint) => asTimestamp(seconds * SECOND)),
  declare(
    'timestamp',
    `string -> ${TIMESTAMP}`,
    (text: string) => parseTimestamp(text) ?? new CelFailure(`invalid timestamp: ${JSON.stringify(text)}`),
  ),
  declare('duration', `${DURATION} -> ${DURATION}`, (value: CelValue) => value),
  declare('duration', `int -> ${DURATION}`, asDuration),
  declare(
    'duration',
    `string -> ${DURATION}`,
    (text: string) => parseDuration(text) ?? new CelFailure(`time: invalid duration ${JSON.stringify(text)}`),
  ),
  declare('string', `${TIMESTAMP} -> string`, timestampText),
  declare('string', `${DURATION} -> string`, durationText),
];
