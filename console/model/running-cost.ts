/** The cost of the cluster as the page knows it. Counts and exclusions: shared/domain/cost/running-cost.ts. */
import { type RunningCostItem, runningCostItems } from '../../shared/domain/cost/running-cost.ts';
import { defaultPolicy } from '../../shared/domain/policy.ts';

/** A row of the table `health`, which a tick reads. */
const ROW_BYTES = 250;
const PAGE_BYTES = 4_096;
/** An eventually consistent read of one page. */
const PAGE_READ_UNITS = 0.5;
/** A held watch (docs/cost.md). Dollars per hour. */
const WATCH_DOLLARS_PER_HOUR = 0.0078;
/** node-monitor claims its slot. */
const TICK_WRITE_UNITS = 1;

/** Between two heartbeats of a node: the default. The API does not serve the policy with its profiles. */
export const ASSUMED_INTERVAL_SECONDS = defaultPolicy.beatIntervalSeconds;

/** Assumes the default intervals of the policy. */
export function costItems(nodes: number, watches: number): readonly RunningCostItem[] {
  return [
    ...runningCostItems({
      nodes,
      beatIntervalSeconds: ASSUMED_INTERVAL_SECONDS,
      periodSeconds: defaultPolicy.nodeMonitorPeriodSeconds,
      tickReadUnits: Math.max(1, Math.ceil((nodes * ROW_BYTES) / PAGE_BYTES)) * PAGE_READ_UNITS,
      tickWriteUnits: TICK_WRITE_UNITS,
    }),
    { item: 'Watches of this page, while it is open', dollarsPerDay: watches * WATCH_DOLLARS_PER_HOUR * 24 },
  ];
}
