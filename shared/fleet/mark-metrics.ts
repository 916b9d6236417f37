/** Metrics of node-monitor. Names are upstream's where it has the metric. */
/** Nodes, by zone. */
export const ZONE_SIZE = 'node_collector_zone_size';
/** Share of ready nodes, by zone. Percent. */
export const ZONE_HEALTH = 'node_collector_zone_health';
/** Nodes that are not ready, by zone. */
export const UNHEALTHY_NODES = 'node_collector_unhealthy_nodes_in_zone';
/** Nodes with a promise of silence that stands, by zone; absent: none. They are not counted in the zone. */
export const PLANNED_SILENCE_NODES = 'planned_silence_nodes';
/** Nodes with the taint of repeated marks (shared/fleet/silences/flapping.ts), by zone; absent: none. */
export const FLAPPING_NODES = 'flapping_nodes';
/** Nodes in the eviction queue of a zone, by zone; absent: none. */
export const QUEUED_NODES = 'node_collector_queued_nodes_in_zone';
/** Longest time that a node has waited for any limiter; absent: no node waits. Seconds. */
export const QUEUE_AGE_MAX = 'queue_age_seconds_max';
/** Share of nodes not ready in the zone where it is largest. Percent. For alarms, which cannot search for zones. */
export const NOT_READY_SHARE_MAX = 'not_ready_share_max';
/** Heartbeats received, of those that the Ready nodes owe (shared/fleet/nodes/health.ts). Percent. For alarms. */
export const HEARTBEATS_RECEIVED_SHARE = 'heartbeats_received_share';
/** Zones in partial or full disruption. */
export const DISRUPTED_ZONES = 'disrupted_zones';
/** Longest time from a node's last sign of life to its mark, of the nodes marked in a tick. Seconds. */
export const DETECTION_TIME = 'detection_seconds';
/** Nodes without a sign of life for over one heartbeat interval; absent: none. */
export const LATE_NODES = 'late_nodes';
/** Silent nodes that the closed gate kept from being marked; absent: none. */
export const WITHHELD_MARKS = 'withheld_marks';
/** 1 while the gate is closed, 0 for five minutes after; absent: it is open. */
export const GATE_HOLDING = 'gate_holding';
/** 1 in total disruption of a cluster with nodes, 0 for five minutes after; absent: there is none. */
export const TOTAL_DISRUPTION = 'total_disruption';
/** Nodes marked Ready=Unknown in a tick. */
export const MARKED_NODES = 'marked_nodes';
/** Of them, those with a grace period that witnesses shortened; absent: none. */
export const SHORTENED_MARKS = 'marked_nodes_by_witnesses';
/** Estimate, four times a day: heartbeats, status posts and own ticks at list price (shared/cost/running-cost.ts). */
export const COST_DOLLARS_PER_DAY = 'cost_dollars_per_day';
/** Read and write units of the tick that emits the cost. */
export const TICK_UNITS = 'tick_consumed_units';
/** Silent nodes that a tick sent to node-marker; absent: none. */
export const SENT_NODES = 'sent_nodes';
/**
 * Requests that were refused in a minute because their identity is over its limit; absent: none. Also by kind of
 * identity (node, probe or person) in dimension `reason`.
 */
export const REFUSED_REQUESTS = 'refused_requests';
