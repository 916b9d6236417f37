/** Which functions a tick of node-monitor wakes, because they have work. */

import type { WorkChecks } from '../../shared/ticks/wake-up.ts';
import { cloudNodeHasWork } from '../cloud-node/work.ts';
import { evictorHasWork } from '../evictor/work.ts';
import { podGcHasWork } from '../pod-gc/work.ts';
import { schedulerHasWork } from '../scheduler/work.ts';
import { workloadsHaveWork } from '../workloads/work.ts';

/** A controller without a check is only swept. */
export const workChecks: WorkChecks = {
  evictor: evictorHasWork,
  'cloud-node': cloudNodeHasWork,
  'pod-gc': podGcHasWork,
  scheduler: schedulerHasWork,
  workloads: workloadsHaveWork,
};
