/** Decision records of volume-detacher: which volume was detached, and why others were not. */
import {
  aboutNode,
  type DraftOf,
  fullPolicy,
  type NodeIdentity,
  policyPart,
  type RecordedPolicy,
  type ReplayRules,
} from '../../../shared/decisions/decision-record.ts';
import { defined } from '../../../shared/defined.ts';
import type { Policy } from '../../../shared/fleet/policy.ts';
import { type AttachedVolume, type DetachDecision, decideVolumeDetach, type VolumeNode } from './rule.ts';

interface VolumeDetacherInputs {
  /** decideVolumeDetach. */
  readonly volume: {
    readonly volume: AttachedVolume;
    readonly node: VolumeNode;
    readonly doubt?: string | undefined;
    readonly policy: RecordedPolicy;
  };
  /** No rule: the reason is a fact from outside, such as an error of EC2. */
  readonly fact: { readonly volume: string };
}

export type VolumeDetacherDraft = DraftOf<VolumeDetacherInputs>;

interface Situation extends NodeIdentity {
  readonly nowMs: number;
  readonly policy: Policy;
}

export const detachDraft = (
  node: Situation,
  decision: Extract<DetachDecision, { kind: 'detach' | 'refuse' | 'wait' }>,
  question: { readonly volume: AttachedVolume; readonly node: VolumeNode; readonly doubt?: string | undefined },
): VolumeDetacherDraft => {
  const forced = decision.kind === 'detach' && decision.force ? ', force detach' : '';
  return {
    act: decision.kind === 'detach' ? 'VolumeDetached' : 'VolumeKept',
    about: aboutNode(node),
    atMs: node.nowMs,
    reason: `volume ${question.volume.volumeId}: ${decision.reason}${forced}`,
    rule: 'volume',
    inputs: {
      volume: question.volume,
      node: question.node,
      ...defined({ doubt: question.doubt }),
      policy: policyPart(node.policy, 'forceDetachTimeoutSeconds', 'disableForceDetachOnTimeout'),
    },
    outcome: { ...decision },
  };
};

/** A volume stays attached for a reason outside the rule, such as an error of EC2. */
export const volumeKeptDraft = (node: Situation, volume: string, why: string): VolumeDetacherDraft => ({
  act: 'VolumeKept',
  about: aboutNode(node),
  atMs: node.nowMs,
  reason: `volume ${volume}: ${why}`,
  rule: 'fact',
  inputs: { volume },
  outcome: {},
});

export const volumeDetacherReplay: ReplayRules<VolumeDetacherInputs> = {
  volume({ volume, node, doubt, policy }, { atMs }) {
    return { ...decideVolumeDetach({ volume, node, doubt }, atMs, fullPolicy(policy)) };
  },
  fact: (_inputs, { outcome }) => outcome,
};
