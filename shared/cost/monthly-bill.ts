/**
 * The bill that `npm run cost` computes, as a function of the fleet: on demand, at list prices of US East, heartbeats
 * through the HTTP API, without pods. Every item of the bill is in one of these numbers. They follow from the recorded
 * measurement: test/cdk/documented-figures.test.ts allows a difference of 0.1 %, up to 100,000 nodes.
 */
const DOLLARS_PER_MONTH = {
  /** Without nodes: ticks, functions, alarms, dashboard, and ten watches per day that a client left. */
  empty: 13.0307,
  /** Metrics and logs. */
  zone: 1.4643,
  /** Status posts, lists of pods, connections, storage, and one failure per month. */
  node: 0.028696,
  /** One heartbeat per second. */
  beatPerSecond: 5.0403,
} as const;

/** Requests at the HTTP API. */
const MILLIONS_PER_MONTH = { empty: 0.46, node: 0.01028, beatPerSecond: 2.628 } as const;
/** The HTTP API costs less above this number of requests. */
const FIRST_TIER_MILLIONS = 300;
const LESS_DOLLARS_PER_MILLION = 0.1;

export interface BilledFleet {
  readonly nodes: number;
  readonly zones: number;
  /** Of all nodes together. */
  readonly beatsPerSecond: number;
}

export interface BillItem {
  readonly item: string;
  readonly dollarsPerMonth: number;
}

export function billItems({ nodes, zones, beatsPerSecond }: BilledFleet): readonly BillItem[] {
  const millions =
    MILLIONS_PER_MONTH.empty +
    nodes * MILLIONS_PER_MONTH.node +
    beatsPerSecond * MILLIONS_PER_MONTH.beatPerSecond -
    FIRST_TIER_MILLIONS;
  const items = [
    { item: 'Empty cluster, with alarms and dashboard', dollarsPerMonth: DOLLARS_PER_MONTH.empty },
    { item: 'Metrics and logs of the zones', dollarsPerMonth: zones * DOLLARS_PER_MONTH.zone },
    { item: 'Status posts, lists and connections of the nodes', dollarsPerMonth: nodes * DOLLARS_PER_MONTH.node },
    { item: 'Heartbeats', dollarsPerMonth: beatsPerSecond * DOLLARS_PER_MONTH.beatPerSecond },
  ];
  const less = { item: 'Less above 300 million requests', dollarsPerMonth: -millions * LESS_DOLLARS_PER_MILLION };
  return millions > 0 ? [...items, less] : items;
}
