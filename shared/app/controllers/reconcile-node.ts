/**
 * What a Node is to be as soon as anybody changes it: NoSchedule taints by its conditions, labels under their old and new
 * names, and without NoExecute taints of ours once Ready is True. All in one write; on a Node that is so already there is
 * nothing to do, so a controller that sees its own write stops there.
 */
import { readyStatusOf } from '../../domain/conditions.ts';
import { osArchLabels, topologyLabels } from '../../domain/label-sync.ts';
import { liftNoExecute, reconcileNoSchedule } from '../../domain/node-taints.ts';
import { TAINT_UNINITIALIZED } from '../../domain/taint.ts';
import type { KubeNode } from '../../kube/types.ts';
import { withTaints } from './change-node.ts';

/** undefined when the Node is as it should be. */
export function reconciledNode(node: KubeNode): KubeNode | undefined {
  const before = node.spec?.taints ?? [];
  const conditions = node.status?.conditions;
  const scheduling = reconcileNoSchedule({
    taints: before,
    conditions,
    unschedulable: node.spec?.unschedulable === true,
  });
  const lifted = readyStatusOf(conditions) === 'True' ? liftNoExecute(scheduling ?? before) : undefined;
  const taints = lifted ?? scheduling;
  const { labels } = node.metadata;
  // A Node the cloud has yet to initialise gets its topology from there.
  const initialised = !before.some(({ key }) => key === TAINT_UNINITIALIZED);
  const added = { ...osArchLabels(labels), ...(initialised ? topologyLabels(labels) : undefined) };
  const labelled = Object.keys(added).length > 0;
  if (taints === undefined && !labelled) return undefined;
  const next: KubeNode = labelled ? { ...node, metadata: { ...node.metadata, labels: { ...labels, ...added } } } : node;
  return taints === undefined ? next : withTaints(next, taints);
}
