/** Which functions a tick of node-monitor wakes, because they have work. */
import { cloudNodeHasWork } from './cloud-node/reconcile.ts';
import { evictorHasWork } from './evictor/reconcile.ts';
import type { WorkChecks } from './framework/wake-up.ts';
import { podGcHasWork } from './pod-gc/reconcile.ts';
import { schedulerHasWork } from './scheduler/reconcile.ts';
import { workloadsHaveWork } from './workloads/reconcile.ts';

/** A controller without a check is only swept. */
export const workChecks: WorkChecks = {
  evictor: evictorHasWork,
  'cloud-node': cloudNodeHasWork,
  'pod-gc': podGcHasWork,
  scheduler: schedulerHasWork,
  workloads: workloadsHaveWork,
};
