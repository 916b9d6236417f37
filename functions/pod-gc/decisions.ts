/** Decision records of pod garbage collection: which pod was removed, and why. */
import {
  aboutPod,
  type DraftOf,
  fullPolicy,
  NOTHING,
  policyPart,
  type RecordedPolicy,
  type ReplayRules,
} from '../../shared/decisions/decision-record.ts';
import { defined } from '../../shared/defined.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import {
  type CollectableNode,
  type CollectablePod,
  type PodRemoval,
  podRemovals,
} from '../../shared/kinds/pods/collection.rule.ts';

interface PodGcInputs {
  /** podRemovals for one pod. */
  readonly podGc: {
    readonly pod: CollectablePod;
    /** Absent: the rule does not need it for this reason. */
    readonly node?: CollectableNode | 'missing' | undefined;
    /** Terminated pods besides this one. */
    readonly othersEnded: number;
    readonly policy: RecordedPolicy;
  };
}

export type PodGcDraft = DraftOf<PodGcInputs>;

const REASONS: Readonly<Record<PodRemoval['reason'], string>> = {
  terminated: 'the pod has terminated, and terminated pods exceed the limit',
  'out-of-service': 'the pod is terminating, and its node is out of service',
  orphaned: 'its node no longer exists',
  unscheduled: 'the pod is terminating and was never scheduled',
};

export function podGcDraft(
  removal: PodRemoval,
  world: { readonly pod: CollectablePod; readonly node: CollectableNode | undefined; readonly othersEnded: number },
  nowMs: number,
  policy: Policy,
): PodGcDraft {
  const { reason } = removal;
  const node: CollectableNode | 'missing' | undefined =
    reason === 'orphaned' ? 'missing' : reason === 'out-of-service' ? world.node : undefined;
  return {
    act: 'PodCollected',
    about: aboutPod(removal),
    atMs: nowMs,
    reason: `${REASONS[reason]}${world.pod.nodeName === undefined ? '' : ` (${world.pod.nodeName})`}`,
    rule: 'podGc',
    inputs: {
      pod: world.pod,
      ...defined({ node }),
      othersEnded: reason === 'terminated' ? world.othersEnded : 0,
      policy: policyPart(policy, 'terminatedPodGcThreshold'),
    },
    outcome: { remove: reason, steps: removal.steps.map(({ kind }) => kind) },
  };
}

/** Restores the optional fields of a recorded pod as undefined members. */
const recordedPod = (pod: CollectablePod): CollectablePod => ({ ...pod, nodeName: pod.nodeName, phase: pod.phase });

export const podGcReplay: ReplayRules<PodGcInputs> = {
  podGc({ pod, node, othersEnded, policy }) {
    const other = (index: number): CollectablePod => ({
      namespace: pod.namespace,
      name: pod.name,
      uid: `other-${index}`,
      nodeName: undefined,
      phase: 'Succeeded',
      reason: undefined,
      createdAtMs: Number.MAX_SAFE_INTEGER,
      terminating: false,
    });
    const removal = podRemovals(
      {
        pods: [recordedPod(pod), ...Array.from({ length: othersEnded }, (_, index) => other(index))],
        nodes: node === undefined || node === 'missing' ? [] : [{ ...node, ready: node.ready }],
        missing: new Set(node === 'missing' ? [pod.nodeName ?? ''] : []),
      },
      fullPolicy(policy),
    ).find(({ podUid }) => podUid === pod.uid);
    return removal === undefined ? NOTHING : { remove: removal.reason, steps: removal.steps.map(({ kind }) => kind) };
  },
};
