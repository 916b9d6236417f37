/** Metrics of evictor. Names are upstream's where it has the metric. */

/** NoExecute taints added under a limiter, by zone; instant swaps are not counted. */
export const EVICTIONS = 'node_collector_evictions_total';
/** Zones in which nodes wait and none was tainted, per tick, by `reason`: rate, gate, totalDisruption, never. */
export const HELD_ZONES = 'node_collector_held_zones';
