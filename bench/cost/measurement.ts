/** What was counted in one run of local mode, and is kept so that the arithmetic can be done again without it. */

export type FunctionTaken = {
  readonly invocations: number;
  /** On the machine that measured, each invocation rounded up to a millisecond. */
  readonly billedMs: number;
  /** CPU time there, which others on that machine do not lengthen. */
  readonly cpuMs: number;
};

/** What something took: sums, or sums by second or piece after a division. */
export interface Taken {
  /** Answered by the HTTP API; requests to function URLs are not billed. */
  readonly httpRequests: number;
  readonly answeredBytes: number;
  readonly schedulerInvocations: number;
  /** Queue messages; each is received and deleted. */
  readonly messages: number;
  readonly streamRecords: number;
  readonly logBytes: number;
  /** By name. */
  readonly functions: Readonly<Record<string, FunctionTaken>>;
  readonly tables: Readonly<Record<string, { readonly readUnits: number; readonly writeUnits: number }>>;
}

/** What stands in an account whether it is used or not, read off the template. */
export interface Standing {
  readonly memoryMegabytes: Readonly<Record<string, number>>;
  /** Queues that Lambda polls. */
  readonly polledQueues: number;
  /** Those of them whose source has a maximum concurrency: they keep all their pollers, however little comes. */
  readonly limitedQueues: number;
  readonly customerKeys: number;
  /** Metrics that alarms look at, an alarm over three counting three. */
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
  /** Of the fleets. */
  readonly zones: number;
  readonly metrics: {
    /** Custom metrics told in every hour by a cluster without nodes. */
    readonly fixed: number;
    /** More for each zone. */
    readonly perZone: number;
    /** Told in the first minutes of each quarter of a day, whether or not the measured time met one. */
    readonly quarterly: number;
  };
  /** Averages. */
  readonly bytes: { readonly healthRow: number; readonly node: number; readonly pod: number };
  /** No nodes, nobody asks. */
  readonly idle: Window;
  /** Fleets of different size that beat and do nothing else. */
  readonly fleets: readonly (Window & { readonly nodes: number; readonly beats: number })[];
  /** Of one, beyond what went on meanwhile. */
  readonly each: {
    /** A status post in which only heartbeat times moved. */
    readonly statusPost: Taken;
    /** A node listing its pods, of which it has one. */
    readonly podList: Taken;
    /** A pod from its creation on a node to its end: what object-stream and the machine do with it included. */
    readonly podLife: Taken;
    /** A second of a held watch in which nothing happens. */
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

/** One and so many of another. */
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

/** A difference of two counts that are both a little off may come out below nothing. */
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
