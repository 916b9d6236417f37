/**
 * Taints and labels that follow from the rest of a Node. Any change of the Node applies them, in one write:
 *   - the taints of its conditions (shared/fleet/nodes/node-taints.ts);
 *   - labels under their old and new names;
 *   - the profile that its labels select. The API stores it with each write; a controller may have changed a label;
 *   - the time of a NoExecute taint that an older version stored without it. The API sets this time in the write that
 *     adds the taint.
 * A Node without such a change is not written. So the stream record of our own write causes no further write.
 */
import { withTaints } from '../../shared/fleet/nodes/change-node.ts';
import { withProfile } from '../../shared/fleet/nodes/node-digest.ts';
import { stampedTaints, TAINT_UNINITIALIZED } from '../../shared/fleet/nodes/taint.ts';
import { reconciledTaints } from '../../shared/fleet/nodes/taint-decisions.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';

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

/**
 * Labels that exist under an old and a new name.
 * The two controllers copy in opposite directions: OS and architecture from the stable label to the beta one, topology
 * and instance type from the beta label to the stable one.
 * Source: reconcileNodeLabels in pkg/controller/nodelifecycle/node_lifecycle_controller.go and in
 * staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go.
 */
type Labels = Readonly<Record<string, string>> | undefined;
interface Copy {
  readonly from: string;
  readonly to: string;
}

const OS_ARCH: readonly Copy[] = [
  { from: 'kubernetes.io/os', to: 'beta.kubernetes.io/os' },
  { from: 'kubernetes.io/arch', to: 'beta.kubernetes.io/arch' },
];

const TOPOLOGY: readonly Copy[] = [
  { from: 'failure-domain.beta.kubernetes.io/zone', to: 'topology.kubernetes.io/zone' },
  { from: 'failure-domain.beta.kubernetes.io/region', to: 'topology.kubernetes.io/region' },
  { from: 'beta.kubernetes.io/instance-type', to: 'node.kubernetes.io/instance-type' },
];

function copied(labels: Labels, copies: readonly Copy[]): Record<string, string> | undefined {
  const changes: Record<string, string> = {};
  for (const { from, to } of copies) {
    const value = labels?.[from];
    if (value !== undefined && labels?.[to] !== value) changes[to] = value;
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** Labels to set on any node; undefined if there are none. */
export const osArchLabels = (labels: Labels): Record<string, string> | undefined => copied(labels, OS_ARCH);

/** Labels to set on a node that EC2 has initialised (no uninitialized taint); undefined if there are none. */
export const topologyLabels = (labels: Labels): Record<string, string> | undefined => copied(labels, TOPOLOGY);
