/** The counts of one run of local mode. They are stored: the bill can be computed again without the run. */

export type FunctionTaken = {
  readonly invocations: number;
  /** On the machine that measured, each invocation rounded up to one millisecond. */
  readonly billedMs: number;
  /** CPU time on that machine; other processes do not lengthen it. */
  readonly cpuMs: number;
};

/** Counted resources: sums, or sums per second or per item after a division. */
export interface Taken {
  /** Requests to the HTTP API; requests to function URLs are not billed. */
  readonly httpRequests: number;
  readonly answeredBytes: number;
  readonly schedulerInvocations: number;
  /** Queue messages. Each is received and deleted. */
  readonly messages: number;
  readonly streamRecords: number;
  readonly logBytes: number;
  /** By function name. */
  readonly functions: Readonly<Record<string, FunctionTaken>>;
  readonly tables: Readonly<Record<string, { readonly readUnits: number; readonly writeUnits: number }>>;
}

/** Fixed resources of an account, used or not, from the template. */
export interface Standing {
  readonly memoryMegabytes: Readonly<Record<string, number>>;
  /** Queues that Lambda polls. */
  readonly polledQueues: number;
  /** Queues with a maximum concurrency at their source: they keep all pollers, however few messages arrive. */
  readonly limitedQueues: number;
  readonly customerKeys: number;
  /** Metrics that alarms evaluate; an alarm over three counts as three. */
  readonly alarmMetrics: number;
  readonly compositeAlarms: number;
  readonly dashboards: number;
  readonly scalingTargets: number;
}

export interface Window {
  readonly seconds: number;
  readonly taken: Taken;
}

export interface Measurement {
  /** YYYY-MM-DD */
  readonly measuredOn: string;
  readonly machine: string;
  readonly tickSeconds: number;
  readonly standing: Standing;
  /** Zones of the fleets. */
  readonly zones: number;
  readonly metrics: {
    /** Custom metrics that a cluster without nodes emits in every hour. */
    readonly fixed: number;
    /** Additional metrics per zone. */
    readonly perZone: number;
    /** Emitted in the first minutes of each quarter of a day, whether or not the measured time contained them. */
    readonly quarterly: number;
  };
  /** Averages. */
  readonly bytes: { readonly healthRow: number; readonly node: number; readonly pod: number };
  /** No nodes, no requests. */
  readonly idle: Window;
  /** Fleets of different size that only send heartbeats. */
  readonly fleets: readonly (Window & { readonly nodes: number; readonly beats: number })[];
  /** Batches of heartbeats, as relays send them, of two sizes: ascending. Absent: not measured. */
  readonly batches?: readonly { readonly items: number; readonly taken: Taken }[];
  /** The cost of one operation, beyond the background load. */
  readonly each: {
    /** A status post in which only heartbeat times changed. */
    readonly statusPost: Taken;
    /** A node that lists its only pod. */
    readonly podList: Taken;
    /** A pod from its creation on a node to its deletion, including the work of object-stream and the machine. */
    readonly podLife: Taken;
    /** One second of an idle watch. */
    readonly watchSecond: Taken;
  };
}

export const NOTHING: Taken = {
  httpRequests: 0,
  answeredBytes: 0,
  schedulerInvocations: 0,
  messages: 0,
  streamRecords: 0,
  logBytes: 0,
  functions: {},
  tables: {},
};

type Group = Readonly<Record<string, Readonly<Record<string, number>>>>;

function combinedGroup(one: Group, other: Group, weight: number): Group {
  const names = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries(
    [...names].map((name) => {
      const fields = new Set([...Object.keys(one[name] ?? {}), ...Object.keys(other[name] ?? {})]);
      return [
        name,
        Object.fromEntries(
          [...fields].map((field) => [field, (one[name]?.[field] ?? 0) + weight * (other[name]?.[field] ?? 0)]),
        ),
      ];
    }),
  );
}

/** One fleet, and several times another one. */
export const plus = (one: Taken, other: Taken, weight = 1): Taken => ({
  httpRequests: one.httpRequests + weight * other.httpRequests,
  answeredBytes: one.answeredBytes + weight * other.answeredBytes,
  schedulerInvocations: one.schedulerInvocations + weight * other.schedulerInvocations,
  messages: one.messages + weight * other.messages,
  streamRecords: one.streamRecords + weight * other.streamRecords,
  logBytes: one.logBytes + weight * other.logBytes,
  functions: combinedGroup(one.functions, other.functions, weight) as Taken['functions'],
  tables: combinedGroup(one.tables, other.tables, weight) as Taken['tables'],
});

export const times = (one: Taken, factor: number): Taken => plus(NOTHING, one, factor);

/** The difference of two inexact counts may be below zero. */
export const notNegative = (taken: Taken): Taken => {
  const floored = (group: Group): Group =>
    Object.fromEntries(
      Object.entries(group).map(([name, fields]) => [
        name,
        Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, Math.max(0, value)])),
      ]),
    );
  return {
    httpRequests: Math.max(0, taken.httpRequests),
    answeredBytes: Math.max(0, taken.answeredBytes),
    schedulerInvocations: Math.max(0, taken.schedulerInvocations),
    messages: Math.max(0, taken.messages),
    streamRecords: Math.max(0, taken.streamRecords),
    logBytes: Math.max(0, taken.logBytes),
    functions: floored(taken.functions) as Taken['functions'],
    tables: floored(taken.tables) as Taken['tables'],
  };
};
