/** Metrics of the scheduler, under upstream's names where it has them. Only passes emit them: none at rest. */

/** Pods that wait, by `queue`: active, backoff, unschedulable, gated. At the end of a pass. */
export const PENDING_PODS = 'scheduler_pending_pods';
/** Attempts by `result`: scheduled, unschedulable, error. */
export const SCHEDULE_ATTEMPTS = 'scheduler_schedule_attempts_total';
/** Time from the queue to the node, for each pod that was bound. Seconds. */
export const SCHEDULING_SLI = 'scheduler_pod_scheduling_sli_duration_seconds';
/** Attempts that a pod needed, for each pod that was bound. */
export const POD_SCHEDULING_ATTEMPTS = 'scheduler_pod_scheduling_attempts';
/** Duration of one evaluation of the rules, by `result`: scheduled, unschedulable. Seconds. */
export const ATTEMPT_DURATION = 'scheduler_scheduling_attempt_duration_seconds';
/** Waiting pods that were rejected, by `plugin`. At the end of a pass; absent for plugins that reject none. */
export const UNSCHEDULABLE_PODS = 'scheduler_unschedulable_pods';
export const PREEMPTION_ATTEMPTS = 'scheduler_preemption_attempts_total';
export const PREEMPTION_VICTIMS = 'scheduler_preemption_victims';
/** Age of the pod that has waited longest, gated pods excluded; 0 when none waits. Absent: no pass. Seconds. */
export const OLDEST_PENDING = 'scheduler_oldest_pending_seconds';
/** Bindings that were refused because the cluster had changed, by `cause`: pod, node, order, contention. */
export const COMMIT_REFUSALS = 'scheduler_commit_refusals_total';
/** Duration of a pass. Seconds. */
export const PASS_DURATION = 'scheduler_pass_seconds';
