/** Metrics of the Deployment controller. */

/** Reductions that the closed gate holds back, at each sync. */
export const REDUCTIONS_HELD = 'workload_held';
