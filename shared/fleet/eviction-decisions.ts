/** Decision records of pod-evictor: when a pod is evicted, and why an eviction is moved, held or cancelled. */
import {
  aboutPod,
  type DecisionAct,
  type DraftOf,
  fullPolicy,
  gateOf,
  NOTHING,
  policyPart,
  type RecordedPolicy,
  type ReplayRules,
  recordedGate,
} from '../decisions/decision-record.ts';
import { defined } from '../defined.ts';
import { rfc3339 } from '../kubernetes/rfc3339.ts';
import {
  decidePodEvictions,
  type EvictablePod,
  type EvictionTimer,
  type PodEvictionDecision,
} from './eviction.rule.ts';
import type { NodeSigns } from './eviction-time.rule.ts';
import type { GateReason, GateVerdict } from './gate.ts';
import type { NoExecuteTaint } from './nodes/taint.ts';
import type { Policy } from './policy.ts';

interface PodEvictorInputs {
  /** decidePodEvictions for one pod. */
  readonly podEviction: {
    readonly nodeName: string;
    /** Absent: the Node does not exist. */
    readonly taints?: readonly NoExecuteTaint[] | undefined;
    /** Absent: the pod does not exist. */
    readonly pod?: EvictablePod | undefined;
    readonly timer?: EvictionTimer | undefined;
    readonly gate: readonly GateReason[];
    readonly freshSinceMs: number;
    /** Absent: there was none. */
    readonly totalDisruption?: boolean | undefined;
    /** Only with a pod that has an `offlineStopMs`. */
    readonly signs?: NodeSigns | undefined;
    readonly policy: RecordedPolicy;
  };
}

export type PodEvictorDraft = DraftOf<PodEvictorInputs>;

const ACTS: Readonly<Record<PodEvictionDecision['kind'], DecisionAct>> = {
  schedule: 'PodEvictionSet',
  move: 'PodEvictionMoved',
  cancel: 'PodEvictionCancelled',
  drop: 'PodEvictionCancelled',
  hold: 'PodEvictionHeld',
  delete: 'PodDeleted',
  remove: 'PodRemoved',
  leave: 'PodLeftToSite',
};

export function podEvictionDraft(
  decision: PodEvictionDecision,
  world: {
    readonly nodeName: string;
    readonly taints: readonly NoExecuteTaint[] | undefined;
    readonly pod: EvictablePod | undefined;
    readonly timer: EvictionTimer | undefined;
    readonly gate: GateVerdict;
    readonly freshSinceMs: number;
    readonly totalDisruption?: boolean | undefined;
    readonly signs?: NodeSigns | undefined;
  },
  nowMs: number,
  policy: Policy,
): PodEvictorDraft {
  const atMs = 'atMs' in decision ? decision.atMs : undefined;
  const { nodeName, taints, pod, timer, gate, freshSinceMs, totalDisruption } = world;
  const signs = pod?.offlineStopMs === undefined ? undefined : world.signs;
  const isDone = decision.kind === 'delete' || decision.kind === 'remove';
  const what = pod?.terminating === true ? 'removal' : 'eviction';
  const eviction = isDone
    ? `, ${what} was due at ${rfc3339(timer?.atMs ?? nowMs)}`
    : atMs === undefined
      ? ''
      : `, ${what} due at ${rfc3339(atMs)}`;
  return {
    act: ACTS[decision.kind],
    about: aboutPod(decision),
    atMs: nowMs,
    reason: `node ${nodeName}: ${decision.reason}${eviction}`,
    rule: 'podEviction',
    inputs: {
      nodeName,
      ...defined({ taints, pod, timer, signs, totalDisruption }),
      gate: recordedGate(gate),
      freshSinceMs,
      policy: policyPart(policy, 'nodeMonitorGracePeriodSeconds'),
    },
    outcome: { kind: decision.kind, why: decision.reason, ...defined({ atMs }) },
  };
}

export const podEvictorReplay: ReplayRules<PodEvictorInputs> = {
  podEviction({ nodeName, taints, pod, timer, gate, freshSinceMs, totalDisruption, signs, policy }, { about, atMs }) {
    const decisions = decidePodEvictions(
      {
        nodeName,
        taints: taints?.map((taint) => ({ ...taint, addedAtMs: taint.addedAtMs })),
        pods: pod === undefined ? [] : [{ ...pod, nodeName: pod.nodeName, boundAtMs: pod.boundAtMs }],
        timers: timer === undefined ? [] : [timer],
        gate: gateOf(gate),
        freshSinceMs,
        totalDisruption,
        signs,
      },
      atMs,
      fullPolicy(policy),
    );
    const decided = decisions.find(({ podUid }) => podUid === about.uid);
    if (decided === undefined) return NOTHING;
    return { kind: decided.kind, why: decided.reason, ...('atMs' in decided ? { atMs: decided.atMs } : {}) };
  },
};
