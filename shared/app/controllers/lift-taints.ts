/** NoExecute taints of ours that are changed or taken off at once, outside any rate. */
import { readyStatusOf } from '../../domain/conditions.ts';
import { liftNoExecute, type NoExecuteKind, swapNoExecute, wantedNoExecute } from '../../domain/node-taints.ts';
import { changeNode, type NodeChangeOutcome, withTaints } from './change-node.ts';
import type { ControllerDependencies } from './dependencies.ts';

interface Target {
  readonly nodeName: string;
  readonly uid: string;
  readonly nowMs: number;
}

/** Takes both off. Because the node is `ready`: only while it is. In total disruption: from any node. */
export const liftTaints = (
  { objects }: Pick<ControllerDependencies, 'objects'>,
  target: Target,
  reason: 'ready' | 'totalDisruption',
): Promise<NodeChangeOutcome> =>
  changeNode(objects, target, (node) => {
    if (reason === 'ready' && readyStatusOf(node.status?.conditions) !== 'True') return undefined;
    const taints = liftNoExecute(node.spec?.taints ?? []);
    return taints === undefined ? undefined : { next: withTaints(node, taints) };
  });

/** Changes the opposite taint for `to`, while the node's Ready status asks for that one. Its time stays. */
export const swapTaints = (
  { objects }: Pick<ControllerDependencies, 'objects'>,
  target: Target,
  to: NoExecuteKind,
): Promise<NodeChangeOutcome> =>
  changeNode(objects, target, (node) => {
    if (wantedNoExecute(readyStatusOf(node.status?.conditions)) !== to) return undefined;
    const taints = swapNoExecute(node.spec?.taints ?? [], to, target.nowMs);
    return taints === undefined ? undefined : { next: withTaints(node, taints) };
  });
