/**
 * NodeUnschedulable and TaintToleration.
 *
 * Source: pkg/scheduler/framework/plugins/nodeunschedulable/node_unschedulable.go,
 * pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go.
 */
import { NODE_RUNTIME, TAINT_UNSCHEDULABLE, tolerates } from '../fleet/nodes/taint.ts';
import type { Taint, Toleration } from '../kubernetes/kubernetes.ts';
import type { Filter, Rejection } from './filter.rule.ts';
import type { SchedulableNode, SchedulablePod } from './world.rule.ts';

const UNSCHEDULABLE: Rejection = {
  plugin: 'NodeUnschedulable',
  reasons: ['node(s) were unschedulable'],
  isResolvable: false,
};
const UNTOLERATED: Rejection = {
  plugin: 'TaintToleration',
  reasons: ['node(s) had untolerated taint(s)'],
  isResolvable: false,
};
/** Our agent keeps pods with images away by this taint. */
const RUNS_PROCESSES: Rejection = {
  ...UNTOLERATED,
  reasons: [`node(s) run processes, not images (untolerated taint ${NODE_RUNTIME})`],
};
const CORDONED: Taint = { key: TAINT_UNSCHEDULABLE, effect: 'NoSchedule' };

const isTolerated = (taint: Readonly<Taint>, tolerations: readonly Toleration[]): boolean =>
  tolerations.some((each) => tolerates(each, taint));

export const toleratesCordon = (pod: Pick<SchedulablePod, 'tolerations'>): boolean =>
  isTolerated(CORDONED, pod.tolerations);

/** Every NoSchedule and NoExecute taint is tolerated; for how long does not matter. */
export const toleratesTaints = (
  { tolerations }: Pick<SchedulablePod, 'tolerations'>,
  { taints }: Pick<SchedulableNode, 'taints'>,
): boolean => taints.every((taint) => taint.effect === 'PreferNoSchedule' || isTolerated(taint, tolerations));

export const unschedulableFilter = (pod: SchedulablePod): Filter => {
  const tolerated = toleratesCordon(pod);
  return ({ node }) => (node.isUnschedulable && !tolerated ? UNSCHEDULABLE : undefined);
};

export const taintFilter =
  (pod: SchedulablePod): Filter =>
  ({ node }) => {
    if (toleratesTaints(pod, node)) return undefined;
    return node.taints.some(({ key }) => key === NODE_RUNTIME) &&
      !pod.tolerations.some(({ key }) => key === NODE_RUNTIME)
      ? RUNS_PROCESSES
      : UNTOLERATED;
  };

/** Number of PreferNoSchedule taints that the pod does not tolerate. */
export function preferNoScheduleTaints(pod: SchedulablePod, { taints }: SchedulableNode): number {
  let count = 0;
  for (const taint of taints) {
    if (taint.effect !== 'PreferNoSchedule') continue;
    const applicable = pod.tolerations.filter(({ effect = '' }) => effect === '' || effect === 'PreferNoSchedule');
    if (!isTolerated(taint, applicable)) count += 1;
  }
  return count;
}
