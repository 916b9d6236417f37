/** Decision records of the Deployment controller: what it did to its ReplicaSets. */
import {
  aboutWorkload,
  type DraftOf,
  type RecordedWorkload,
  type ReplayRules,
} from '../../../shared/decisions/decision-record.ts';
import { type Fenceposts, newSetSize, type Resize, reduceOldSets, type SizedSet } from './replica-sets.rule.ts';

interface DeploymentInputs {
  /** A rolling update: the new ReplicaSet first, then the old ones. */
  readonly rollingSizes: {
    readonly newSet: SizedSet;
    readonly oldSets: readonly SizedSet[];
    readonly replicas: number;
    readonly fenceposts: Fenceposts;
    readonly step: 'new' | 'old';
  };
  /** No rule of its own: a change of spec.replicas, a Recreate, a created or deleted ReplicaSet. */
  readonly fact: object;
}

export type DeploymentDraft = DraftOf<DeploymentInputs>;

export const resizeText = ({ name, from, to, step }: Resize): string => `${name} from ${from} to ${to} (${step})`;

export const setsScaledDraft = (
  deployment: RecordedWorkload,
  resizes: readonly Resize[],
  inputs: DeploymentInputs['rollingSizes'] | undefined,
  nowMs: number,
): DeploymentDraft => {
  const common = {
    act: 'ReplicaSetsScaled' as const,
    about: aboutWorkload('Deployment', deployment),
    atMs: nowMs,
    reason: `scaled ${resizes.map(resizeText).join(', ')}`,
  };
  return inputs === undefined
    ? { ...common, rule: 'fact', inputs: { resizes }, outcome: {} }
    : { ...common, rule: 'rollingSizes', inputs, outcome: { sizes: resizes.map(({ name, to }) => [name, to]) } };
};

export const setCreatedDraft = (
  deployment: RecordedWorkload,
  name: string,
  size: number,
  nowMs: number,
): DeploymentDraft => ({
  act: 'ReplicaSetMade',
  about: aboutWorkload('Deployment', deployment),
  atMs: nowMs,
  reason: `the pod template has no ReplicaSet: created ${name} with ${size} pods`,
  rule: 'fact',
  inputs: { name, size },
  outcome: {},
});

export const deploymentReplay: Pick<ReplayRules<DeploymentInputs>, 'rollingSizes'> = {
  rollingSizes({ newSet, oldSets, replicas, fenceposts, step }) {
    if (step === 'new') {
      return { sizes: [[newSet.name, newSetSize(newSet.size, [newSet, ...oldSets], replicas, fenceposts)]] };
    }
    const last = new Map(reduceOldSets(newSet, oldSets, replicas, fenceposts).map(({ name, to }) => [name, to]));
    return { sizes: [...last] };
  },
};
