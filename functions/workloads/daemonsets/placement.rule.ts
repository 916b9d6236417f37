/**
 * Which nodes run a pod of a DaemonSet, and the pod for one node. Pure.
 *
 * Capacity, ports, spec.unschedulable and readiness do not matter: the scheduler binds the pod. Sources:
 * pkg/controller/daemon/daemon_controller.go (NodeShouldRunDaemonPod),
 * pkg/controller/daemon/util/daemonset_util.go.
 */

import { PLANNED_SILENCE_TAINT } from '../../../shared/fleet/nodes/planned-silence.ts';
import {
  TAINT_DISK_PRESSURE,
  TAINT_MEMORY_PRESSURE,
  TAINT_NETWORK_UNAVAILABLE,
  TAINT_NOT_READY,
  TAINT_PID_PRESSURE,
  TAINT_UNREACHABLE,
  TAINT_UNSCHEDULABLE,
} from '../../../shared/fleet/nodes/taint.ts';
import { FLAPPING_TAINT_KEY } from '../../../shared/fleet/silences/flapping.ts';
import type { KubeNode, KubePod, NodeSelectorTerm, PodSpec, PodTemplateSpec } from '../../../shared/kinds/types.ts';
import type { Taint, Toleration } from '../../../shared/kubernetes/kubernetes.ts';
import { matchesNodeAffinity, toleratesTaints } from '../../../shared/scheduling/node-match.rule.ts';

const NAME_FIELD = 'metadata.name';

/** The part of a template that decides on which nodes its pods run. */
export interface Placement {
  /** '': any node. */
  readonly nodeName: string;
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Absent: no required node affinity. */
  readonly nodeTerms?: readonly NodeSelectorTerm[];
  readonly tolerations: readonly Toleration[];
}

export interface DaemonNode {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
}

export const daemonNodeOf = ({ metadata, spec }: KubeNode): DaemonNode => ({
  name: metadata.name ?? '',
  labels: metadata.labels ?? {},
  taints: spec?.taints ?? [],
});

const exists = (key: string, effect: 'NoSchedule' | 'NoExecute'): Toleration => ({ key, operator: 'Exists', effect });

/**
 * Those of upstream, and of our own taints that prevent new pods, for the reason of `unschedulable`: a machine in use
 * needs its daemons. Otherwise a rollout would delete the pod of such a node and create no other one.
 */
const DAEMON_TOLERATIONS: readonly Toleration[] = [
  exists(TAINT_NOT_READY, 'NoExecute'),
  exists(TAINT_UNREACHABLE, 'NoExecute'),
  exists(TAINT_DISK_PRESSURE, 'NoSchedule'),
  exists(TAINT_MEMORY_PRESSURE, 'NoSchedule'),
  exists(TAINT_PID_PRESSURE, 'NoSchedule'),
  exists(TAINT_UNSCHEDULABLE, 'NoSchedule'),
  exists(PLANNED_SILENCE_TAINT.key, 'NoSchedule'),
  exists(FLAPPING_TAINT_KEY, 'NoSchedule'),
];

/** An equal entry of the user, apart from its seconds, is replaced. */
function daemonTolerations({ tolerations = [], hostNetwork }: PodSpec): readonly Toleration[] {
  const added = hostNetwork
    ? [...DAEMON_TOLERATIONS, exists(TAINT_NETWORK_UNAVAILABLE, 'NoSchedule')]
    : DAEMON_TOLERATIONS;
  const isReplaced = (own: Toleration): boolean =>
    added.some(
      ({ key, effect }) =>
        own.key === key && own.effect === effect && own.operator === 'Exists' && (own.value ?? '') === '',
    );
  return [...tolerations.filter((own) => !isReplaced(own)), ...added];
}

export function placementOf(spec: PodSpec = {}): Placement {
  const nodeTerms =
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? undefined;
  return {
    nodeName: spec.nodeName ?? '',
    nodeSelector: spec.nodeSelector ?? {},
    ...(nodeTerms === undefined ? {} : { nodeTerms }),
    tolerations: daemonTolerations(spec),
  };
}

export interface Verdict {
  /** A pod is created if there is none. */
  readonly runs: boolean;
  /** A pod that is there stays. */
  readonly stays: boolean;
}

export function verdictFor(placement: Placement, node: DaemonNode): Verdict {
  const { nodeName, nodeSelector, nodeTerms, tolerations } = placement;
  const isSelected =
    (nodeName === '' || nodeName === node.name) && matchesNodeAffinity({ nodeSelector, nodeTerms }, node);
  if (!isSelected) return { runs: false, stays: false };
  if (toleratesTaints({ tolerations }, node)) return { runs: true, stays: true };
  const evicting = node.taints.filter(({ effect }) => effect === 'NoExecute');
  return { runs: false, stays: toleratesTaints({ tolerations }, { taints: evicting }) };
}

/** The template of the pods, without a node. */
export function daemonTemplate(
  template: PodTemplateSpec = {},
  labels: Readonly<Record<string, string>>,
): PodTemplateSpec {
  const { metadata = {}, spec = {} } = template;
  return {
    metadata: { ...metadata, labels: { ...metadata.labels, ...labels } },
    spec: { ...spec, tolerations: [...daemonTolerations(spec)] },
  };
}

/** For one node: its required node affinity is replaced by the name of the node. */
export function templateForNode(template: PodTemplateSpec, nodeName: string): PodTemplateSpec {
  const { spec = {} } = template;
  const { nodeAffinity } = spec.affinity ?? {};
  const term = { matchFields: [{ key: NAME_FIELD, operator: 'In' as const, values: [nodeName] }] };
  return {
    ...template,
    spec: {
      ...spec,
      affinity: {
        ...spec.affinity,
        nodeAffinity: {
          ...nodeAffinity,
          requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] },
        },
      },
    },
  };
}

/** The node of a pod: the one it is bound to, or the one its affinity names. Undefined: neither. */
export function targetNodeOf({ spec = {} }: KubePod): string | undefined {
  if (spec.nodeName !== undefined && spec.nodeName !== '') return spec.nodeName;
  const terms = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  for (const { matchFields = [] } of terms) {
    const named = matchFields.find(({ key, operator }) => key === NAME_FIELD && operator === 'In');
    if (named?.values?.length === 1) return named.values[0];
  }
  return undefined;
}
