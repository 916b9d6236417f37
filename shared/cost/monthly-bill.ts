/**
 * The bill that `npm run cost` computes, as a function of the fleet: on demand, at list prices of US East, heartbeats
 * through the HTTP API, without pods. Every item of the bill is in one of the four numbers. They follow from the
 * recorded measurement (test/cdk/documented-figures.test.ts): up to 1,000 nodes the difference is below 0.1 %, and
 * above 300 million requests per month this is more than the bill.
 */
const DOLLARS_PER_MONTH = {
  /** Without nodes: ticks, functions, alarms, dashboard, and ten watches per day that a client left. */
  empty: 12.998,
  /** Metrics and logs. */
  zone: 1.4643,
  /** Status posts, lists of pods, connections, storage, and one failure per month. */
  node: 0.028696,
  /** One heartbeat per second. */
  beatPerSecond: 5.0403,
} as const;

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

export const billItems = ({ nodes, zones, beatsPerSecond }: BilledFleet): readonly BillItem[] => [
  { item: 'Empty cluster, with alarms and dashboard', dollarsPerMonth: DOLLARS_PER_MONTH.empty },
  { item: 'Metrics and logs of the zones', dollarsPerMonth: zones * DOLLARS_PER_MONTH.zone },
  { item: 'Status posts, lists and connections of the nodes', dollarsPerMonth: nodes * DOLLARS_PER_MONTH.node },
  { item: 'Heartbeats', dollarsPerMonth: beatsPerSecond * DOLLARS_PER_MONTH.beatPerSecond },
];
