import type { Measurement } from './measurement.ts';

export type RecordedOutcome =
  | { readonly kind: 'measurement'; readonly measurement: Measurement }
  /** Each begins with the name of its field. */
  | { readonly kind: 'invalid'; readonly faults: readonly string[] };

type Check = (value: unknown, path: string) => string[];

const number: Check = (value, path) =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? [] : [`${path}: must be a number, 0 or more`];
const text: Check = (value, path) => (typeof value === 'string' && value !== '' ? [] : [`${path}: must be text`]);
const fields =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value, path) =>
    isRecord(value)
      ? Object.entries(checks).flatMap(([name, check]) => check(value[name], path === '' ? name : `${path}.${name}`))
      : [`${path}: must be an object`];
const each =
  (check: Check): Check =>
  (value, path) =>
    isRecord(value)
      ? Object.entries(value).flatMap(([name, item]) => check(item, `${path}.${name}`))
      : [`${path}: must be an object`];
const some =
  (check: Check): Check =>
  (value, path) =>
    Array.isArray(value) && value.length > 0
      ? value.flatMap((item, index) => check(item, `${path}[${index}]`))
      : [`${path}: must be a list of one at least`];

const optional =
  (check: Check): Check =>
  (value, path) =>
    value === undefined ? [] : check(value, path);

const taken = fields({
  httpRequests: number,
  answeredBytes: number,
  schedulerInvocations: number,
  messages: number,
  streamRecords: number,
  logBytes: number,
  functions: each(fields({ invocations: number, billedMs: number, cpuMs: number })),
  tables: each(fields({ readUnits: number, writeUnits: number })),
});

const check = fields({
  measuredOn: text,
  machine: text,
  tickSeconds: number,
  zones: number,
  standing: fields({
    memoryMegabytes: each(number),
    polledQueues: number,
    limitedQueues: number,
    customerKeys: number,
    alarmMetrics: number,
    compositeAlarms: number,
    dashboards: number,
    scalingTargets: number,
  }),
  metrics: fields({ fixed: number, perZone: number, quarterly: number }),
  bytes: fields({ healthRow: number, node: number, pod: number }),
  idle: fields({ seconds: number, taken }),
  fleets: some(fields({ nodes: number, beats: number, seconds: number, taken })),
  batches: optional(some(fields({ items: number, taken }))),
  each: fields({ statusPost: taken, podList: taken, podLife: taken, watchSecond: taken }),
});

/** Reads a recorded measurement. A fault names its field. */
export function readMeasurement(value: unknown): RecordedOutcome {
  const faults = check(value, '');
  return faults.length > 0 ? { kind: 'invalid', faults } : { kind: 'measurement', measurement: value as Measurement };
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
