/**
 * Taints and labels that follow from the rest of a Node. Any change of the Node applies them, in one write:
 *   - the taints of rule.ts;
 *   - labels under their old and new names;
 *   - the profile that its labels select. The API stores it with each write; a controller may have changed a label;
 *   - the time of a NoExecute taint that an older version stored without it. The API sets this time in the write that
 *     adds the taint.
 * A Node without such a change is not written. So the stream record of our own write causes no further write.
 */

import { withTaints } from '../../../shared/fleet/nodes/change-node.ts';
import { withProfile } from '../../../shared/fleet/nodes/node-digest.ts';
import type { Policy } from '../../../shared/fleet/policy.ts';
import { reconciledTaints } from '../../../shared/fleet/taints/rule.ts';
import { TAINT_UNINITIALIZED } from '../../../shared/fleet/taints/taint.ts';
import { stampedTaints } from '../../../shared/fleet/taints/taint-times.ts';
import type { KubeNode } from '../../../shared/kinds/types.ts';
import { osArchLabels, topologyLabels } from './label-sync.rule.ts';

/** Returns undefined if the Node needs no change. */
export function reconciledNode(
  node: KubeNode,
  { nowMs, profiles }: { readonly nowMs: number; readonly profiles: Policy['profiles'] },
): KubeNode | undefined {
  const stored = node.spec?.taints ?? [];
  const stamped = stampedTaints(stored, nowMs);
  const before = stamped ?? stored;
  const conditions = node.status?.conditions;
  const reconciled = reconciledTaints({ taints: before, conditions, unschedulable: node.spec?.unschedulable === true });
  const taints = reconciled ?? stamped;
  const { labels } = node.metadata;
  // The topology of a Node that is not yet initialised comes from EC2.
  const initialised = !before.some(({ key }) => key === TAINT_UNINITIALIZED);
  const added = { ...osArchLabels(labels), ...(initialised ? topologyLabels(labels) : undefined) };
  const labelled = Object.keys(added).length > 0;
  const renamed = labelled ? { ...node, metadata: { ...node.metadata, labels: { ...labels, ...added } } } : node;
  const next = withProfile(renamed, profiles);
  if (taints === undefined && next === node) return undefined;
  return taints === undefined ? next : withTaints(next, taints);
}
