/**
 * The taints that follow from a Node's conditions: NoSchedule taints by condition. While Ready is True, it has neither
 * our NoExecute taints nor the taints that rest on an answer of EC2. Any change of the Node adds and removes them.
 */

import type { NodeCondition, Taint } from '../../kubernetes/kubernetes.ts';
import { liftCloudTaints } from '../instances/watch-list.rule.ts';
import { readyStatusOf } from '../nodes/conditions.ts';
import { liftNoExecute, reconcileNoSchedule } from './node-taints.ts';
import type { TaintList } from './taint.ts';

/** Returns undefined if no taint changes. */
export function reconciledTaints(node: {
  readonly taints: TaintList;
  readonly conditions: readonly NodeCondition[] | undefined;
  readonly unschedulable: boolean;
}): Taint[] | undefined {
  const scheduling = reconcileNoSchedule(node);
  const lifted = readyStatusOf(node.conditions) === 'True' ? liftForReady(scheduling ?? node.taints) : undefined;
  return lifted ?? scheduling;
}

/** A Ready node is alive, even if the last answer of EC2 said otherwise. */
function liftForReady(taints: TaintList): Taint[] | undefined {
  const lifted = liftNoExecute(taints);
  return liftCloudTaints(lifted ?? taints) ?? lifted;
}
