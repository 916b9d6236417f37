/**
 * The state of a zone by the Ready status of its counted nodes, and the eviction rate in that state.
 * Source: ComputeZoneState, ReducedQPSFunc and HealthyQPSFunc in
 * pkg/controller/nodelifecycle/node_lifecycle_controller.go.
 */
import type { Policy } from '../policy.ts';

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
