import { describe, expect, it } from 'vitest';
import { replayed } from '../../../test/support/replayed.ts';
import { podAwaitedDraft, statefulPodsDraft, statefulSetReplay } from './decisions.ts';
import { decideStatefulSet, type OrdinalPod, type PodState, type StatefulRules } from './rule.ts';

const rules = (over: Partial<StatefulRules> = {}): StatefulRules => ({
  replicas: 3,
  start: 0,
  isParallel: false,
  rollingUpdate: { partition: 0 },
  currentRevision: 'old',
  updateRevision: 'new',
  ...over,
});
const pod = (ordinal: number, state: PodState = 'available', over: Partial<OrdinalPod> = {}): OrdinalPod => ({
  ordinal,
  state,
  isDeleting: false,
  revision: 'new',
  ...over,
});
const leaving = (ordinal: number, state: PodState = 'available') => pod(ordinal, state, { isDeleting: true });
const old = (ordinal: number, state: PodState = 'available') => pod(ordinal, state, { revision: 'old' });
const missing = (ordinal: number, revision = 'new') => ({ ordinal, revision });
const NOTHING = { create: [], remove: [], replace: [] };
const all = (make: (ordinal: number) => OrdinalPod) => [0, 1, 2].map((ordinal) => make(ordinal));

describe('in order, a StatefulSet', () => {
  it.each<[string, readonly OrdinalPod[], object]>([
    ['is settled with all pods available', all(pod), NOTHING],
    ['creates the first missing pod', [pod(0)], { ...NOTHING, create: [missing(1)] }],
    ['waits for a pod that is Ready, not available', [pod(0, 'ready'), pod(2)], NOTHING],
    ['waits for a pod that is not Ready', [pod(0, 'unready')], NOTHING],
    ['removes a pod that succeeded or failed', [pod(0, 'ended')], { ...NOTHING, remove: [0] }],
    ['awaits a pod that is being deleted', [leaving(0)], { ...NOTHING, awaits: 0 }],
    ['awaits such a pod that is being deleted', [pod(0), leaving(1, 'ended')], { ...NOTHING, awaits: 1 }],
    ['removes the highest that is not wanted', [...all(pod), pod(3), pod(4)], { ...NOTHING, remove: [4] }],
    ['awaits the highest that is not wanted', [...all(pod), pod(3), leaving(4)], { ...NOTHING, awaits: 4 }],
    [
      'removes the highest if only it is unhealthy',
      [...all(pod), pod(3), pod(4, 'unready')],
      { ...NOTHING, remove: [4] },
    ],
    [
      'removes the highest that is available, whatever is below',
      [...all(pod), pod(3, 'unready'), pod(4)],
      { ...NOTHING, remove: [4] },
    ],
    ['leaves the highest while a lower one is unhealthy', [...all(pod), pod(3, 'unready'), pod(4, 'ready')], NOTHING],
    ['leaves the highest while a lower one is deleted', [...all(pod), leaving(3), pod(4, 'ready')], NOTHING],
    ['replaces nothing before it is reduced', [...all(old), pod(3)], { ...NOTHING, remove: [3] }],
  ])('%s', (_what, pods, decision) => {
    expect(decideStatefulSet(rules(), pods)).toEqual(decision);
  });

  it('starts at its first ordinal, and pods below that are not wanted', () => {
    const decision = decideStatefulSet(rules({ start: 5, replicas: 2 }), [pod(4), pod(5), pod(6)]);
    expect(decision).toEqual({ ...NOTHING, remove: [4] });
    expect(decideStatefulSet(rules({ start: 5, replicas: 2 }), []).create).toEqual([missing(5)]);
  });
});

describe('in parallel, a StatefulSet', () => {
  const parallel = (over: Partial<StatefulRules> = {}) => rules({ isParallel: true, ...over });

  it('creates and removes all at once, and awaits the lowest that is being deleted', () => {
    const pods = [leaving(1), leaving(2), pod(3), leaving(4), pod(5)];
    expect(decideStatefulSet(parallel({ replicas: 4 }), pods)).toEqual({
      create: [missing(0)],
      remove: [5],
      replace: [],
      awaits: 1,
    });
    expect(decideStatefulSet(parallel(), [pod(0, 'ended'), pod(1, 'unready'), pod(2)])).toEqual({
      ...NOTHING,
      remove: [0],
    });
    expect('awaits' in decideStatefulSet(parallel(), all(pod))).toBe(false);
  });

  it('creates 500 pods in one sync', () => {
    const { create } = decideStatefulSet(parallel({ replicas: 2 ** 31 - 1 }), [pod(1)]);
    expect(create).toHaveLength(500);
    expect(create.at(-1)).toEqual(missing(500));
    expect(decideStatefulSet(parallel({ replicas: 500 }), []).create).toHaveLength(500);
  });

  it('creates pods below the partition from the current revision', () => {
    const { create } = decideStatefulSet(parallel({ start: 2, rollingUpdate: { partition: 1 } }), []);
    expect(create).toEqual([missing(2, 'old'), missing(3), missing(4)]);
    const { rollingUpdate: _none, ...onDelete } = parallel();
    expect(decideStatefulSet(onDelete, []).create.map(({ revision }) => revision)).toEqual(['new', 'new', 'new']);
  });
});

describe('a rolling update', () => {
  const replaced = (pods: readonly OrdinalPod[], over: Partial<StatefulRules> = {}) =>
    decideStatefulSet(rules({ isParallel: true, ...over }), pods).replace;

  it('replaces the highest old pod, when those above are healthy', () => {
    expect(replaced(all(old))).toEqual([2]);
    expect(replaced([old(0), old(1), pod(2)])).toEqual([1]);
    expect(replaced([old(0), old(1), pod(2, 'ready')])).toEqual([1]);
    expect(replaced([old(0), old(1), pod(2, 'unready')])).toEqual([]);
    expect(replaced([old(0), old(1), leaving(2)])).toEqual([]);
    expect(replaced([old(0), old(1)])).toEqual([]);
    expect(replaced([old(0), old(1, 'unready'), pod(2)])).toEqual([1]);
    expect(replaced(all(pod))).toEqual([]);
  });

  it('ends at the partition, from the first ordinal on', () => {
    const partition = (start: number, of: number) => ({ start, rollingUpdate: { partition: of } });
    expect(replaced([old(0), old(1), pod(2)], partition(0, 2))).toEqual([]);
    expect(replaced([old(0), old(1), pod(2)], partition(0, 1))).toEqual([1]);
    expect(replaced([old(4), old(5), pod(6)], partition(4, 2))).toEqual([]);
    expect(replaced([old(4), old(5), pod(6)], partition(4, 1))).toEqual([5]);
  });

  it('is none where people delete the pods', () => {
    const { rollingUpdate: _none, ...onDelete } = rules();
    expect(decideStatefulSet(onDelete, all(old)).replace).toEqual([]);
  });

  it.each<[number | string, readonly OrdinalPod[], readonly number[]]>([
    [2, all(old), [2, 1]],
    [9, all(old), [2, 1, 0]],
    [0, all(old), [2]],
    ['67%', all(old), [2, 1]],
    ['10%', all(old), [2]],
    [2, [old(0), old(1), pod(2, 'ready')], [1]],
    [2, [old(0), old(1), leaving(2)], [1]],
    [2, [old(0), old(1)], [1]],
    [1, [old(0), old(1), pod(2, 'unready')], []],
    [3, [old(0), pod(1), { ...leaving(2), revision: 'old' }], [0]],
    [2, [old(0), old(1), old(2), old(7)], [2, 1]],
  ])('with up to %s unavailable replaces as many', (maxUnavailable, pods, ordinals) => {
    expect(replaced(pods, { rollingUpdate: { partition: 0, maxUnavailable } })).toEqual(ordinals);
  });

  it('with several unavailable keeps those below the partition', () => {
    const over = { rollingUpdate: { partition: 1, maxUnavailable: 3 } };
    expect(replaced(all(old), over)).toEqual([2, 1]);
    expect(replaced([old(4), old(5), old(6)], { start: 4, ...over })).toEqual([6, 5]);
  });
});

describe('the record of pods of a StatefulSet', () => {
  const set = { metadata: { namespace: 'db', name: 's', uid: 'u' } };
  const about = { kind: 'StatefulSet', namespace: 'db', name: 's', uid: 'u' };
  const isParallel = true;

  it.each([
    ['create', [], [0, 1, 2], 'PodsCreated', 'created s-0, s-1: missing, and nothing before it is waited for'],
    ['remove', [3, 4].map((n) => pod(n)), [4, 3], 'PodsDeleted', 'deleted s-0, s-1: it ended, or is not wanted'],
    ['replace', all(old), [2], 'PodsDeleted', 'deleted s-0, s-1: it has an old revision'],
  ] as const)('that it should %s has all that the rule read, and replays', (step, pods, ordinals, act, reason) => {
    const inputs = { rules: rules({ isParallel }), pods };
    const done = { ordinals, names: ['s-0', 's-1'] };
    const draft = statefulPodsDraft(set, step, inputs, done, 5_000);
    const outcome = { [step]: ordinals };
    const recorded = { ...inputs, of: ordinals };
    expect(draft).toEqual({ act, about, atMs: 5_000, reason, rule: 'statefulPods', inputs: recorded, outcome });
    expect(replayed(draft, statefulSetReplay)).toEqual(outcome);
    const fewer = { ...draft, inputs: { ...recorded, of: ordinals.slice(0, 1) } } as typeof draft;
    expect(replayed(fewer, statefulSetReplay)).toEqual({ [step]: ordinals.slice(0, 1) });
  });

  it('that is awaited names its node', () => {
    expect(podAwaitedDraft(set, { name: 's-1', uid: 'p', nodeName: 'n' }, 5_000)).toEqual({
      act: 'StatefulPodAwaited',
      about,
      atMs: 5_000,
      reason:
        'Pod s-1 is being deleted, and node n is silent: it may still run. It is replaced when its object is removed',
      rule: 'fact',
      inputs: { pod: 's-1', uid: 'p', nodeName: 'n' },
      outcome: {},
    });
  });
});
