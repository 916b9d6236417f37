/** Names of metrics, as upstream's where it has them. Dimensions: the zone, or a state or reason of which there are few. */
export const ZONE_SIZE = 'node_collector_zone_size';
/** Share of ready nodes. Percent. */
export const ZONE_HEALTH = 'node_collector_zone_health';
export const UNHEALTHY_NODES = 'node_collector_unhealthy_nodes_in_zone';
/** NoExecute taints added by the limiter's leave; instant swaps are not counted. */
export const EVICTIONS = 'node_collector_evictions_total';
/** Zones in which nodes wait and none was tainted, at each look of evictor, by `reason`: rate, gate, totalDisruption, never. */
export const HELD_ZONES = 'node_collector_held_zones';
/** Nodes that wait in a zone's queue; absent: none. */
export const QUEUED_NODES = 'node_collector_queued_nodes_in_zone';
export const POD_DELETIONS = 'taint_eviction_controller_pod_deletions_total';
/** From a tick's slot to its work: twice a minute, and by each tick that is over a minute late. */
export const TICK_AGE = 'tick_age_seconds';
/** How long the node has waited that waits longest for any limiter; absent: none waits. Seconds. */
export const QUEUE_AGE_MAX = 'queue_age_seconds_max';
/** Share of nodes not ready in the zone where it is largest. Percent. For alarms, which cannot search for zones. */
export const NOT_READY_SHARE_MAX = 'not_ready_share_max';
/** Zones in partial or full disruption. */
export const DISRUPTED_ZONES = 'disrupted_zones';
/** Silence of the node marked last in a tick: from its last sign of life to Ready=Unknown. Seconds. */
export const DETECTION_TIME = 'detection_seconds';
/** Nodes over one beat interval without a sign of life; absent: none. */
export const LATE_NODES = 'late_nodes';
/** Nodes that would have been marked, had the gate not held; absent: none. */
export const WITHHELD_MARKS = 'withheld_marks';
/** 1 while the gate holds, 0 for some minutes after; absent: it is open. */
export const GATE_HOLDING = 'gate_holding';
/** 1 while every zone is dark, 0 for some minutes after; absent: not so. */
export const TOTAL_DISRUPTION = 'total_disruption';
export const MARKED_NODES = 'marked_nodes';

/** Pod CIDRs, under upstream's names (`cirdset` is theirs) but without its label: usage is that of the fullest set. */
export const CIDR_ALLOCATIONS = 'node_ipam_controller_cidrset_cidrs_allocations_total';
export const CIDR_RELEASES = 'node_ipam_controller_cidrset_cidrs_releases_total';
export const CIDR_USAGE = 'node_ipam_controller_cidrset_usage_cidrs';
export const CIDR_TRIES = 'node_ipam_controller_cidrset_allocation_tries_per_request';
export const CIDR_BLOCKS = 'node_ipam_controller_cirdset_max_cidrs';

/** Nodes that EC2 is asked about: not Ready, or not initialised. */
export const CLOUD_WATCHED = 'cloud_watched_nodes';
/** What it answered, by `state`: an instance's, `notFound`, or why there was no answer (`throttled`, `foreign` …). */
export const CLOUD_ANSWERS = 'cloud_answers_total';
/** Those of them that say nothing of the instance: throttled, denied, timed out …; absent: none. */
export const CLOUD_ANSWERS_FAILED = 'cloud_answers_failed_total';
export const CLOUD_NODE_DELETIONS = 'cloud_node_deletions_total';

/** Pods collected, by `reason` as upstream has it: terminated, out-of-service, orphaned, unscheduled. */
export const POD_GC_REMOVALS = 'pod_gc_collector_force_delete_pods_total';
export const POD_GC_ERRORS = 'pod_gc_collector_force_delete_pod_errors_total';
/** Volumes detached though nobody could say that it is safe, by `reason`: timeout, out-of-service. */
export const FORCED_DETACHES = 'attachdetach_controller_forced_detaches';
/** Volumes that nobody wants and that are not detached, at each pass, by `reason`. */
export const WITHHELD_DETACHES = 'attachdetach_controller_withheld_detaches';

/** Objects that a controller could not write because they are too large, in any function; absent: none. */
export const OBJECTS_NOT_WRITTEN = 'objects_not_written_total';

/** Work on stream records that can never succeed and was given up; ticks do most of it later. Absent: none. */
export const RECORDS_GIVEN_UP = 'stream_records_given_up_total';

/** Events of the cluster that the event bus did not take, after all tries; absent: none. */
export const EVENTS_NOT_SENT = 'events_not_sent_total';
/** Dimension of what is counted for all functions in one metric: alarms are paid by the metric. */
export const ALL_FUNCTIONS = { service: 'all' };

/** An estimate by node-monitor, four times a day: beats, status posts and its own ticks at list price (domain/running-cost.ts). */
export const COST_DOLLARS_PER_DAY = 'cost_dollars_per_day';
/** Read and write units that the tick took which tells the cost. */
export const TICK_UNITS = 'tick_consumed_units';

/** CloudWatch takes no empty dimension value. */
export const zoneDimension = (zone: string): { zone: string } => ({ zone: zone === '' ? '(none)' : zone });
