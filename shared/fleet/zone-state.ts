/**
 * The state of a zone by the Ready status of its counted nodes, and the eviction rate in that state; total disruption,
 * in which every zone is disrupted. Source: ComputeZoneState, ReducedQPSFunc and HealthyQPSFunc in
 * pkg/controller/nodelifecycle/node_lifecycle_controller.go.
 */
import { defined } from '../defined.ts';
import { earlierFaults } from './fault-times.ts';
import type { Policy } from './policy.ts';

/** Initial: the zone has a record but was not evaluated yet. */
export type ZoneState = 'Initial' | 'Normal' | 'PartialDisruption' | 'FullDisruption';

/** Nodes of a zone that are not excluded. A node is not ready if its Ready condition is absent or not True. */
export interface ZoneCount {
  readonly ready: number;
  readonly notReady: number;
}

/** A zone with at most this many not-ready nodes is never in PartialDisruption, as upstream. */
const PARTIAL_ABOVE_NOT_READY = 2;

export const zoneSize = (count: ZoneCount): number => count.ready + count.notReady;

export function zoneStateOf(
  count: ZoneCount,
  policy: Pick<Policy, 'unhealthyZoneThreshold'>,
): Exclude<ZoneState, 'Initial'> {
  if (count.ready === 0 && count.notReady > 0) return 'FullDisruption';
  // A product, because a quotient depends on rounding: 0.55 × 20 is exactly 11, but 11 / 20 may be less than 0.55.
  const unhealthyFrom = policy.unhealthyZoneThreshold * zoneSize(count);
  if (count.notReady > PARTIAL_ABOVE_NOT_READY && count.notReady >= unhealthyFrom - 1e-9) return 'PartialDisruption';
  return 'Normal';
}

export type RatePolicy = Pick<
  Policy,
  'nodeEvictionRatePerSecond' | 'secondaryNodeEvictionRatePerSecond' | 'largeClusterSizeThreshold' | 'fullDisruption'
>;

/**
 * NoExecute taints per second in a zone of this state and size, outside total disruption. 0 means never.
 * - Normal, Initial: the normal rate.
 * - PartialDisruption: the secondary rate if the zone counts more nodes than the threshold, never if it is small.
 * - FullDisruption: the normal rate as documented, or never with `fullDisruption: hold` (D10).
 */
export function zoneRatePerSecond(state: ZoneState, size: number, policy: RatePolicy): number {
  switch (state) {
    case 'Initial':
    case 'Normal':
      return policy.nodeEvictionRatePerSecond;
    case 'PartialDisruption':
      return size > policy.largeClusterSizeThreshold ? policy.secondaryNodeEvictionRatePerSecond : 0;
    case 'FullDisruption':
      return policy.fullDisruption === 'hold' ? 0 : policy.nodeEvictionRatePerSecond;
  }
}

/** Metrics of one zone per pass. An empty zone is healthy. */
export interface ZoneMetrics {
  readonly zone: string;
  /** Counted nodes. */
  readonly size: number;
  /** Share of ready nodes. Percent, 0 to 100. */
  readonly healthPercent: number;
  /** Counted nodes that are not ready. */
  readonly unhealthy: number;
}

export const zoneMetricsOf = (zone: string, count: ZoneCount): ZoneMetrics => {
  const size = zoneSize(count);
  return { zone, size, healthPercent: size === 0 ? 100 : (100 * count.ready) / size, unhealthy: count.notReady };
};

/** Metrics over all zones. */
export interface FleetMetrics {
  /** Share of not-ready nodes in the zone where it is largest. Percent, 0 to 100. */
  readonly notReadyShareMaxPercent: number;
  /** Zones in partial or full disruption. */
  readonly disruptedZones: number;
}

export function fleetMetricsOf(
  zones: readonly ZoneMetrics[],
  policy: Pick<Policy, 'unhealthyZoneThreshold'>,
): FleetMetrics {
  let notReadyShareMaxPercent = 0;
  let disruptedZones = 0;
  for (const { size, healthPercent, unhealthy } of zones) {
    notReadyShareMaxPercent = Math.max(notReadyShareMaxPercent, 100 - healthPercent);
    if (zoneStateOf({ ready: size - unhealthy, notReady: unhealthy }, policy) !== 'Normal') disruptedZones += 1;
  }
  return { notReadyShareMaxPercent, disruptedZones };
}

/**
 * Total disruption: every listed zone is in FullDisruption. A fault of the controller is then more likely than a fault
 * of all nodes. It is a stored flag (D12), set when every listed zone is in FullDisruption and cleared when one is not.
 * While it is set, no node is queued, every eviction rate is 0, and our NoExecute taints are removed. When it is
 * cleared, every node has a new full grace period. The limiters start without a token, so nodes that are already
 * Unknown are tainted one by one.
 *
 * A zone is listed when it counts at least one node. Without a listed zone the flag does not change.
 *
 * Source: handleDisruption in pkg/controller/nodelifecycle/node_lifecycle_controller.go, which computes
 * the flag from the zone states of the previous pass and loses it at a restart.
 */
export interface DisruptionRecord {
  readonly total: boolean;
  /** Time of the flag's last change. Epoch milliseconds. */
  readonly sinceMs: number;
  /**
   * End of the last total disruption, when every node got a full grace period; 0 when there was none. Epoch
   * milliseconds.
   */
  readonly freshSinceMs: number;
  /**
   * When the current or the last total disruption began; absent: never. Epoch milliseconds.
   */
  readonly startedAtMs?: number | undefined;
  /** When earlier ones began, newest first; absent: none is known. */
  readonly earlierStartsMs?: readonly number[] | undefined;
}

export const NO_DISRUPTION: DisruptionRecord = Object.freeze({ total: false, sinceMs: 0, freshSinceMs: 0 });

export type DisruptionVerdict = 'unchanged' | 'enter' | 'leave';

/** `listedStates`: state of each zone that counts a node, in any order. */
export function disruptionVerdict(total: boolean, listedStates: Iterable<ZoneState>): DisruptionVerdict {
  let listed = false;
  for (const state of listedStates) {
    listed = true;
    if (state !== 'FullDisruption') return total ? 'leave' : 'unchanged';
  }
  return listed && !total ? 'enter' : 'unchanged';
}

/** The record after a verdict. */
export function applyDisruption(record: DisruptionRecord, verdict: DisruptionVerdict, nowMs: number): DisruptionRecord {
  switch (verdict) {
    case 'unchanged':
      return record;
    case 'enter': {
      const { earlierStartsMs, ...others } = record;
      const known = defined({ earlierStartsMs: earlierFaults(record.startedAtMs, earlierStartsMs, nowMs) });
      return { ...others, total: true, sinceMs: nowMs, startedAtMs: nowMs, ...known };
    }
    case 'leave':
      return { ...record, total: false, sinceMs: nowMs, freshSinceMs: nowMs };
  }
}
