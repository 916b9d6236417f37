import { expect, it } from 'vitest';
import { replayed } from '../../../test/support/replayed.ts';
import { awaitedText, podAwaitedDraft, statefulPodsDraft, statefulSetReplay } from './decisions.ts';
import type { OrdinalPod, StatefulRules } from './rule.ts';

const NOW_MS = 100_000;
const set = { metadata: { namespace: 'd', name: 'db', uid: 'u' } };
const ABOUT = { kind: 'StatefulSet', namespace: 'd', name: 'db', uid: 'u' };
const rules: StatefulRules = {
  replicas: 3,
  start: 0,
  isParallel: true,
  rollingUpdate: { partition: 0 },
  currentRevision: 'r1',
  updateRevision: 'r2',
};
const pod = (ordinal: number, revision = 'r2'): OrdinalPod => ({
  ordinal,
  revision,
  state: 'available',
  isDeleting: false,
});

it.each<[Parameters<typeof statefulPodsDraft>[1], readonly OrdinalPod[], readonly number[], string, string]>([
  ['create', [pod(1)], [0, 2], 'PodsCreated', 'created db-0, db-2: missing, and nothing before it is waited for'],
  ['create', [pod(1)], [2], 'PodsCreated', 'created db-2: missing, and nothing before it is waited for'],
  ['remove', [pod(0), pod(1), pod(2), pod(4)], [4], 'PodsDeleted', 'deleted db-4: it ended, or is not wanted'],
  ['replace', [pod(0), pod(1), pod(2, 'r1')], [2], 'PodsDeleted', 'deleted db-2: it has an old revision'],
])('the record of a transaction that has to %s pods replays (%j)', (step, pods, ordinals, act, reason) => {
  const names = ordinals.map((ordinal) => `db-${ordinal}`);
  const draft = statefulPodsDraft(set, step, { rules, pods }, { ordinals, names }, NOW_MS);
  expect(draft).toEqual({
    act,
    about: ABOUT,
    atMs: NOW_MS,
    reason,
    rule: 'statefulPods',
    inputs: { rules, pods, of: ordinals },
    outcome: { [step]: ordinals },
  });
  expect(replayed(draft, statefulSetReplay)).toEqual(draft.outcome);
});

it('a record does not replay if its rule decides otherwise now', () => {
  const draft = statefulPodsDraft(set, 'remove', { rules, pods: [pod(0)] }, { ordinals: [0], names: ['db-0'] }, NOW_MS);
  expect(replayed(draft, statefulSetReplay)).toEqual({ remove: [] });
});

it('the record of a pod that is waited for has its place', () => {
  const awaited = { name: 'db-0', uid: 'p', nodeName: 'n' };
  expect(podAwaitedDraft(set, awaited, NOW_MS)).toEqual({
    act: 'StatefulPodAwaited',
    about: ABOUT,
    atMs: NOW_MS,
    reason: awaitedText(awaited),
    rule: 'fact',
    inputs: { pod: 'db-0', uid: 'p', nodeName: 'n' },
    outcome: {},
  });
  expect(awaitedText(awaited)).toContain('Pod db-0 is being deleted, and node n is silent');
});
