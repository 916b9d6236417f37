/**
 * What a Node is to be as soon as anybody changes it: NoSchedule taints by its conditions, labels under their old and new
 * names, and once Ready is True without NoExecute taints of ours and taints set on EC2's word. A NoExecute taint that an
 * older version stored without its time gets it here; the API stamps taints in the write that adds them. All in one write;
 * on a Node that is so already there is nothing to do, so a controller that sees its own write stops there.
 */

import { TAINT_UNINITIALIZED } from '../../domain/nodes/taint.ts';
import { stampedTaints } from '../../domain/nodes/taint-times.ts';
import type { KubeNode } from '../../kube/types.ts';
import { withTaints } from '../framework/change-node.ts';
import { osArchLabels, topologyLabels } from './label-sync.rule.ts';
import { reconciledTaints } from './rule.ts';

/** undefined when the Node is as it should be. */
export function reconciledNode(node: KubeNode, nowMs: number): KubeNode | undefined {
  const stored = node.spec?.taints ?? [];
  const stamped = stampedTaints(stored, nowMs);
  const before = stamped ?? stored;
  const conditions = node.status?.conditions;
  const reconciled = reconciledTaints({ taints: before, conditions, unschedulable: node.spec?.unschedulable === true });
  const taints = reconciled ?? stamped;
  const { labels } = node.metadata;
  // A Node the cloud has yet to initialise gets its topology from there.
  const initialised = !before.some(({ key }) => key === TAINT_UNINITIALIZED);
  const added = { ...osArchLabels(labels), ...(initialised ? topologyLabels(labels) : undefined) };
  const labelled = Object.keys(added).length > 0;
  if (taints === undefined && !labelled) return undefined;
  const next: KubeNode = labelled ? { ...node, metadata: { ...node.metadata, labels: { ...labels, ...added } } } : node;
  return taints === undefined ? next : withTaints(next, taints);
}
