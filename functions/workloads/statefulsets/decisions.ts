/** Decision records of the StatefulSet controller. */
import {
  aboutWorkload,
  type DraftOf,
  type RecordedWorkload,
  type ReplayRules,
} from '../../../shared/decisions/decision-record.ts';
import { decideStatefulSet, type OrdinalPod, type StatefulRules } from './rule.ts';

interface StatefulInputs {
  readonly statefulPods: {
    readonly rules: StatefulRules;
    readonly pods: readonly OrdinalPod[];
    /** Ordinals of the transaction. */
    readonly of: readonly number[];
  };
  /** No rule of its own: what a set waits for. */
  readonly fact: object;
}

export type StatefulSetDraft = DraftOf<StatefulInputs>;

const ACTS = { create: 'PodsCreated', remove: 'PodsDeleted', replace: 'PodsDeleted' } as const;
const WHY = {
  create: 'missing, and nothing before it is waited for',
  remove: 'it ended, or is not wanted',
  replace: 'it has an old revision',
} as const;

/** One transaction. */
export const statefulPodsDraft = (
  set: RecordedWorkload,
  step: keyof typeof ACTS,
  inputs: Omit<StatefulInputs['statefulPods'], 'of'>,
  done: { readonly ordinals: readonly number[]; readonly names: readonly string[] },
  nowMs: number,
): StatefulSetDraft => ({
  act: ACTS[step],
  about: aboutWorkload('StatefulSet', set),
  atMs: nowMs,
  reason: `${step === 'create' ? 'created' : 'deleted'} ${done.names.join(', ')}: ${WHY[step]}`,
  rule: 'statefulPods',
  inputs: { ...inputs, of: done.ordinals },
  outcome: { [step]: [...done.ordinals] },
});

/** A pod that is being deleted on a silent node. It may still run, so no other pod may have its name. */
export const podAwaitedDraft = (
  set: RecordedWorkload,
  pod: { readonly name: string; readonly uid: string; readonly nodeName: string },
  nowMs: number,
): StatefulSetDraft => ({
  act: 'StatefulPodAwaited',
  about: aboutWorkload('StatefulSet', set),
  atMs: nowMs,
  reason: awaitedText(pod),
  rule: 'fact',
  inputs: { pod: pod.name, uid: pod.uid, nodeName: pod.nodeName },
  outcome: {},
});

export const awaitedText = ({ name, nodeName }: { readonly name: string; readonly nodeName: string }): string =>
  `Pod ${name} is being deleted, and node ${nodeName} is silent: it may still run. It is replaced when its object is removed`;

export const statefulSetReplay: Pick<ReplayRules<StatefulInputs>, 'statefulPods'> = {
  statefulPods({ rules, pods, of }, { outcome }) {
    const { create, remove, replace } = decideStatefulSet(rules, pods);
    const decided: Readonly<Record<string, readonly number[]>> = {
      create: create.map(({ ordinal }) => ordinal),
      remove,
      replace,
    };
    const [step = ''] = Object.keys(outcome);
    return { [step]: (decided[step] ?? []).filter((ordinal) => of.includes(ordinal)) };
  },
};
