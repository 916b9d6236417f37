import { describe, expect, it } from 'vitest';
import type { KubeDaemonSet } from '../../../shared/kinds/types.ts';
import type { Taint } from '../../../shared/kubernetes/kubernetes.ts';
import { type DaemonNode, placementOf } from './placement.rule.ts';
import {
  countsForNode,
  type DaemonPod,
  type DaemonWorld,
  daemonSetStatus,
  decideDaemons,
  decideNode,
  isDaemonSetSettled,
  oldestFirst,
  podsByNode,
} from './rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const placement = placementOf({ nodeSelector: { disk: 'ssd' } } as Parameters<typeof placementOf>[0]);
const rules = { placement, minReadySeconds: 0, allowsSurge: false };
const surging = { ...rules, allowsSurge: true };
const node = (
  name: string,
  labels: DaemonNode['labels'] = { disk: 'ssd' },
  taints: readonly Taint[] = [],
): DaemonNode => ({
  name,
  labels,
  taints,
});
const taint = (key: string, effect: Taint['effect']): Taint => ({ key, effect });
const pod = (name: string, more: Partial<DaemonPod> = {}): DaemonPod => ({
  namespace: 'd',
  name,
  uid: `u-${name}`,
  resourceVersion: '1',
  labels: {},
  nodeName: 'n',
  phase: 'Running',
  ready: true,
  readyChangedAtMs: NOW_MS - 60_000,
  createdAtMs: NOW_MS - 90_000,
  isDeleting: false,
  isSingle: false,
  deletionCost: 0,
  restartsMax: 0,
  target: 'n',
  isUpdated: true,
  ...more,
});
const causes = (removals: readonly { readonly pod: DaemonPod; readonly cause: string }[]) =>
  removals.map((each) => `${each.pod.name} ${each.cause}`);

it('the oldest pod of a node is first, bound ones before others', () => {
  const pods = [
    pod('c'),
    pod('b'),
    pod('young', { createdAtMs: NOW_MS }),
    pod('unbound', { nodeName: '', createdAtMs: 0 }),
    pod('unknown', { createdAtMs: undefined }),
  ];
  for (const order of [pods, pods.toReversed()]) {
    expect(oldestFirst(order).map(({ name }) => name)).toEqual(['unknown', 'b', 'c', 'young', 'unbound']);
  }
});

it.each([
  ['Running', false, true],
  ['Running', true, true],
  ['Failed', false, true],
  ['Failed', true, false],
  ['Succeeded', true, false],
] as const)('a %s pod, deleted: %s, counts for its node: %s', (phase, isDeleting, expected) => {
  expect(countsForNode({ phase, isDeleting })).toBe(expected);
  expect(podsByNode([pod('a', { phase, isDeleting })]).has('n')).toBe(expected);
});

describe('the pods of a node', () => {
  const decide = (pods: readonly DaemonPod[], { of = rules, at = node('n') as DaemonNode | undefined } = {}) => {
    const { creates, remove } = decideNode(of, at, pods, NOW_MS);
    return [creates, causes(remove)];
  };

  it('are one, which is created if there is none', () => {
    expect(decide([])).toEqual([true, []]);
    expect(decide([pod('a')])).toEqual([false, []]);
    expect(decide([pod('a', { isDeleting: true })])).toEqual([false, []]);
    expect(decide([pod('b'), pod('a')])).toEqual([false, ['b surplus']]);
  });

  it('are none on a node that is not selected, or has a NoExecute taint', () => {
    for (const at of [node('n', {}), node('n', { disk: 'ssd' }, [taint('own', 'NoExecute')])]) {
      expect(decide([], { at })).toEqual([false, []]);
      expect(decide([pod('a'), pod('b', { isDeleting: true })], { at })).toEqual([false, ['a unwanted']]);
    }
  });

  it('stay on a node with another taint, and are not created there', () => {
    const at = node('n', { disk: 'ssd' }, [taint('own', 'NoSchedule')]);
    expect(decide([], { at })).toEqual([false, []]);
    expect(decide([pod('a')], { at })).toEqual([false, []]);
    expect(decide([pod('a', { isDeleting: true })], { at, of: surging })).toEqual([false, []]);
  });

  it('that are not bound are deleted with the node', () => {
    const pods = [pod('bound'), pod('unbound', { nodeName: '' }), pod('deleted', { nodeName: '', isDeleting: true })];
    expect(decideNode(rules, undefined, pods, NOW_MS)).toMatchObject({ creates: false });
    expect(causes(decideNode(rules, undefined, pods, NOW_MS).remove)).toEqual(['unbound nodeAbsent']);
  });

  it('that have ended are deleted, and another one is created when they no longer exist', () => {
    const ended = [pod('s', { phase: 'Succeeded' }), pod('f', { phase: 'Failed' })];
    for (const each of [rules, surging]) {
      expect(decide(ended, { of: each })).toEqual([false, ['f failed', 's succeeded']]);
      expect(decide([...ended, pod('a')], { of: each })).toEqual([false, ['f failed', 's succeeded']]);
    }
  });

  it('are one of each template while a surge is allowed', () => {
    const old = pod('old', { isUpdated: false });
    const fresh = pod('fresh', { ready: false });
    expect(decide([old], { of: surging })).toEqual([false, []]);
    expect(decide([old, fresh], { of: surging })).toEqual([false, []]);
    expect(decide([old, fresh, pod('more', { isUpdated: false })], { of: surging })).toEqual([false, ['old surplus']]);
    expect(decide([pod('b'), pod('a')], { of: surging })).toEqual([false, ['b surplus']]);
    expect(decide([pod('a', { isDeleting: true })], { of: surging })).toEqual([true, []]);
  });

  it('lose the old one when the new one is available, or the old one is not Ready', () => {
    const old = pod('old', { isUpdated: false });
    expect(decide([old, pod('fresh')], { of: surging })).toEqual([false, ['old outdated']]);
    expect(decide([{ ...old, ready: false }, pod('fresh', { ready: false })], { of: surging })).toEqual([
      false,
      ['old outdated'],
    ]);
    const patient = { ...surging, minReadySeconds: 60 };
    expect(decide([old, pod('fresh')], { of: patient })).toEqual([false, []]);
    expect(decide([old, pod('fresh', { readyChangedAtMs: NOW_MS - 60_001 })], { of: patient })).toEqual([
      false,
      ['old outdated'],
    ]);
  });
});

describe('a sync of a DaemonSet', () => {
  const world = (more: Partial<DaemonWorld> = {}): DaemonWorld => ({
    rules,
    nodes: [node('n')],
    pods: [],
    backoffs: { generation: 1, nodes: {} },
    isHeld: false,
    nowMs: NOW_MS,
    ...more,
  });

  it('creates and deletes where it has to, also for nodes that do not exist', () => {
    const decision = decideDaemons(
      world({
        nodes: [node('n'), node('m'), node('other', {})],
        pods: [pod('a'), pod('b', { createdAtMs: NOW_MS }), pod('left', { target: 'absent', nodeName: '' })],
      }),
    );
    expect([decision.create, causes(decision.remove), decision.held, decision.lookAgainAtMs]).toEqual([
      ['m'],
      ['b surplus', 'left nodeAbsent'],
      [],
      undefined,
    ]);
  });

  it('creates at most 250 pods, and deletes at most 250', () => {
    const nodes = Array.from({ length: 300 }, (_, index) => node(`n${index}`));
    expect(decideDaemons(world({ nodes })).create).toHaveLength(250);
    const pods = nodes.map(({ name }) => pod(name, { target: name, nodeName: name }));
    const unselected = nodes.map(({ name }) => node(name, {}));
    expect(decideDaemons(world({ nodes: unselected, pods })).remove).toHaveLength(250);
  });

  it('waits longer for each failed pod of a node', () => {
    const pods = [pod('f', { phase: 'Failed' })];
    const first = decideDaemons(world({ pods }));
    expect(causes(first.remove)).toEqual(['f failed']);
    expect(first.backoffs.nodes).toEqual({ n: { atMs: NOW_MS, delayMs: 1_000 } });
    const { backoffs } = first;
    const early = decideDaemons(world({ pods, backoffs, nowMs: NOW_MS + 999 }));
    expect([early.remove, early.lookAgainAtMs, early.backoffs]).toEqual([[], NOW_MS + 1_000, backoffs]);
    const later = decideDaemons(world({ pods, backoffs, nowMs: NOW_MS + 1_000 }));
    expect(later.backoffs.nodes['n']?.delayMs).toBe(2_000);
    const other = decideDaemons(world({ pods: [pod('s', { phase: 'Succeeded' })], backoffs }));
    expect([causes(other.remove), other.backoffs]).toEqual([['s succeeded'], backoffs]);
  });

  it('looks again when the first of several waits ends', () => {
    const nodes = { n: { atMs: NOW_MS, delayMs: 9_000 }, m: { atMs: NOW_MS, delayMs: 4_000 } };
    const pods = [pod('f', { phase: 'Failed' }), pod('g', { phase: 'Failed', target: 'm' })];
    const { lookAgainAtMs } = decideDaemons(
      world({ nodes: [node('n'), node('m')], pods, backoffs: { generation: 1, nodes } }),
    );
    expect(lookAgainAtMs).toBe(NOW_MS + 4_000);
  });

  it('in a hold gives up no pod that only seems superfluous because of us', () => {
    const ours = taint('node.kubernetes.io/other', 'NoExecute');
    const held = (at: DaemonNode, pods: readonly DaemonPod[], of = rules) => {
      const decision = decideDaemons(world({ nodes: [at], pods, isHeld: true, rules: of }));
      return [causes(decision.remove), causes(decision.held)];
    };
    expect(held(node('n', { disk: 'ssd' }, [ours]), [pod('a')])).toEqual([[], ['a unwanted']]);
    expect(held(node('n', { disk: 'ssd' }, [ours, taint('own', 'NoExecute')]), [pod('a')])).toEqual([
      ['a unwanted'],
      [],
    ]);
    expect(held(node('n', {}), [pod('a')])).toEqual([['a unwanted'], []]);
    expect(held(node('n'), [pod('old', { isUpdated: false }), pod('a')], surging)).toEqual([[], ['old outdated']]);
    expect(held(node('n'), [pod('a'), pod('b')])).toEqual([['b surplus'], []]);
    expect(
      causes(decideDaemons(world({ pods: [pod('x', { target: 'absent', nodeName: '' })], isHeld: true })).remove),
    ).toEqual(['x nodeAbsent']);
    const free = decideDaemons(world({ nodes: [node('n', { disk: 'ssd' }, [ours])], pods: [pod('a')] }));
    expect([causes(free.remove), free.held]).toEqual([['a unwanted'], []]);
  });
});

describe('the status of a DaemonSet', () => {
  const set = (status: object = {}, metadata: object = {}, spec: object = {}) =>
    ({ metadata: { name: 'd', generation: 3, ...metadata }, spec, status }) as KubeDaemonSet;
  const nodes = [node('n'), node('m'), node('other', {})];
  const counts = (pods: readonly DaemonPod[], more: Partial<DaemonWorld> = {}, of = set()) =>
    daemonSetStatus(of, { rules, nodes, pods, nowMs: NOW_MS, ...more });

  it('counts the nodes and the oldest pod of each', () => {
    const pods = [
      pod('a'),
      pod('second', { createdAtMs: NOW_MS, ready: false }),
      pod('b', { target: 'm', ready: false, isUpdated: false }),
      pod('c', { target: 'other' }),
    ];
    expect(counts(pods)).toEqual({
      status: {
        currentNumberScheduled: 2,
        numberMisscheduled: 1,
        desiredNumberScheduled: 2,
        numberReady: 1,
        updatedNumberScheduled: 1,
        numberAvailable: 1,
        numberUnavailable: 1,
        observedGeneration: 3,
      },
    });
  });

  it('leaves out zeros, and keeps the number of collisions', () => {
    expect(counts([], {}, set({ collisionCount: 2 }, { generation: undefined }))).toEqual({
      status: {
        currentNumberScheduled: 0,
        numberMisscheduled: 0,
        desiredNumberScheduled: 2,
        numberReady: 0,
        numberUnavailable: 2,
        collisionCount: 2,
      },
    });
  });

  it('is not written while it stays', () => {
    const { status = {} } = counts([pod('a')]);
    expect(counts([pod('a')], {}, set(status))).toEqual({});
    expect(counts([pod('a')], {}, set(status, { generation: 4 })).status?.observedGeneration).toBe(4);
    for (const field of [
      'currentNumberScheduled',
      'numberMisscheduled',
      'desiredNumberScheduled',
      'numberReady',
      'updatedNumberScheduled',
      'numberAvailable',
      'numberUnavailable',
    ]) {
      expect(counts([pod('a')], {}, set({ ...status, [field]: 9 })).status).toEqual(status);
    }
  });

  it('is looked at again when a Ready pod becomes available', () => {
    const patient = { rules: { ...rules, minReadySeconds: 60 } };
    const at = (readyChangedAtMs: number) => counts([pod('a', { readyChangedAtMs })], patient);
    expect(at(NOW_MS - 60_001).lookAgainAtMs).toBeUndefined();
    expect(at(NOW_MS - 60_000)).toMatchObject({ lookAgainAtMs: NOW_MS + 1 });
    expect(at(NOW_MS - 60_000).status?.numberAvailable).toBeUndefined();
    expect(at(NOW_MS - 60_001).status?.numberAvailable).toBe(1);
    const two = counts(
      [pod('a', { readyChangedAtMs: NOW_MS }), pod('b', { readyChangedAtMs: NOW_MS - 1_000, target: 'm' })],
      patient,
    );
    expect(two.lookAgainAtMs).toBe(NOW_MS + 59_001);
    expect(counts([pod('a', { ready: false })], patient).lookAgainAtMs).toBeUndefined();
  });

  const settled = {
    observedGeneration: 3,
    desiredNumberScheduled: 2,
    currentNumberScheduled: 2,
    updatedNumberScheduled: 2,
  };
  it.each<[object, object, boolean]>([
    [{}, {}, true],
    [{ numberMisscheduled: 0 }, {}, true],
    [{ observedGeneration: 2 }, {}, false],
    [{ desiredNumberScheduled: 3 }, {}, false],
    [{ currentNumberScheduled: 1 }, {}, false],
    [{ numberMisscheduled: 1 }, {}, false],
    [{ updatedNumberScheduled: 1 }, {}, false],
    [{ updatedNumberScheduled: undefined }, {}, false],
    [{ updatedNumberScheduled: 1 }, { updateStrategy: { type: 'OnDelete' } }, true],
    [{ updatedNumberScheduled: 1 }, { updateStrategy: { type: 'RollingUpdate' } }, false],
  ])('with %j and %j has nothing left to do: %s', (status, spec, expected) => {
    expect(isDaemonSetSettled(set({ ...settled, ...status }, {}, spec), placement, nodes)).toBe(expected);
  });
});
