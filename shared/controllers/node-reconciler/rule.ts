/**
 * The taints a Node should carry as soon as anybody changes it: NoSchedule by its conditions; and while Ready is True
 * neither NoExecute taints of ours nor those set on EC2's word.
 */

import type { NodeCondition, Taint } from '../../domain/kubernetes.ts';
import { readyStatusOf } from '../../domain/nodes/conditions.ts';
import { liftNoExecute, reconcileNoSchedule } from '../../domain/nodes/node-taints.ts';
import type { TaintList } from '../../domain/nodes/taint.ts';
import { liftCloudTaints } from '../cloud-node/watch-list.rule.ts';

/** undefined when they are so already. */
export function reconciledTaints(node: {
  readonly taints: TaintList;
  readonly conditions: readonly NodeCondition[] | undefined;
  readonly unschedulable: boolean;
}): Taint[] | undefined {
  const scheduling = reconcileNoSchedule(node);
  const lifted = readyStatusOf(node.conditions) === 'True' ? liftForReady(scheduling ?? node.taints) : undefined;
  return lifted ?? scheduling;
}

/** Ready says more than EC2: the node is back, whatever its instance was a moment ago. */
function liftForReady(taints: TaintList): Taint[] | undefined {
  const lifted = liftNoExecute(taints);
  return liftCloudTaints(lifted ?? taints) ?? lifted;
}
