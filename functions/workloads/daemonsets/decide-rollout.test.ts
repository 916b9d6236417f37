import { describe, expect, it } from 'vitest';
import type { DaemonSetSpec } from '../../../shared/kinds/types.ts';
import { placementOf } from './placement.rule.ts';
import { chosenBy, decideRollout } from './rollout.rule.ts';
import type { DaemonPod } from './rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const pod = (target: string, more: Partial<DaemonPod> = {}): DaemonPod => ({
  namespace: 'd',
  name: `old-${target}`,
  uid: `u-${target}`,
  resourceVersion: '1',
  labels: {},
  nodeName: target,
  phase: 'Running',
  ready: true,
  readyChangedAtMs: 0,
  createdAtMs: 0,
  isDeleting: false,
  isSingle: false,
  deletionCost: 0,
  restartsMax: 0,
  target,
  isUpdated: false,
  ...more,
});
const updated = (target: string, more: Partial<DaemonPod> = {}) =>
  pod(target, { name: `new-${target}`, isUpdated: true, ...more });
const names = (count: number) => Array.from({ length: count }, (_, index) => `n${index}`);

function rollout(rollingUpdate: object, pods: readonly DaemonPod[], nodes: readonly string[] = names(4)) {
  const spec = { updateStrategy: { type: 'RollingUpdate', rollingUpdate } } as unknown as DaemonSetSpec;
  const { remove, create } = decideRollout(spec, {
    rules: { placement: placementOf(), minReadySeconds: 10, allowsSurge: false },
    nodes: nodes.map((name) => ({ name, labels: {}, taints: [] })),
    pods,
    backoffs: { generation: 1, nodes: {} },
    isHeld: false,
    nowMs: NOW_MS,
  });
  return { remove: chosenBy(remove), create: chosenBy(create), of: { remove, create } };
}

it('a choice has all that is free, and as many candidates as the limit leaves', () => {
  const choice = { limit: 3, taken: 1, free: ['f'], candidates: ['a', 'b', 'c'] };
  expect(chosenBy(choice)).toEqual(['f', 'a', 'b']);
  expect(chosenBy({ ...choice, taken: 3 })).toEqual(['f']);
  expect(chosenBy({ ...choice, taken: 9 })).toEqual(['f']);
});

describe('a rolling update without surge', () => {
  const all = names(4);

  it('deletes as many available old pods as may be unavailable', () => {
    expect(
      rollout(
        { maxUnavailable: 2 },
        all.map((name) => pod(name)),
      ),
    ).toMatchObject({ remove: ['old-n0', 'old-n1'], create: [] });
    expect(
      rollout(
        {},
        all.map((name) => pod(name)),
      ).remove,
    ).toEqual(['old-n0']);
    expect(
      rollout(
        { maxUnavailable: '50%' },
        all.map((name) => pod(name)),
      ).remove,
    ).toHaveLength(2);
  });

  it('deletes every old pod that is not available', () => {
    const pods = [pod('n0', { ready: false }), pod('n1', { readyChangedAtMs: NOW_MS - 5_000 }), pod('n2'), pod('n3')];
    expect(rollout({ maxUnavailable: 1 }, pods).remove).toEqual(['old-n0', 'old-n1', 'old-n2']);
  });

  it('counts nodes without a pod, with a new one that is not available, and with several', () => {
    const limit = { maxUnavailable: 1 };
    expect(rollout(limit, [pod('n0'), pod('n1'), pod('n2')]).remove).toEqual([]);
    expect(rollout(limit, [pod('n0'), pod('n1'), pod('n2'), updated('n3', { ready: false })]).remove).toEqual([]);
    expect(rollout(limit, [pod('n0'), pod('n1'), pod('n2'), updated('n3')]).remove).toEqual(['old-n0']);
    expect(rollout(limit, [pod('n0'), pod('n1'), pod('n2'), pod('n3'), updated('n3')]).remove).toEqual([]);
    expect(rollout(limit, [pod('n0'), pod('n1'), pod('n2'), pod('n3'), pod('n3', { name: 'second' })]).remove).toEqual(
      [],
    );
    expect(rollout(limit, [pod('n0'), pod('n1'), pod('n2'), pod('n3', { isDeleting: true })]).remove).toEqual([]);
  });

  it('also deletes old pods of nodes that are not wanted', () => {
    expect(rollout({ maxUnavailable: 9 }, [pod('n0'), pod('gone')], ['n0']).remove).toEqual(['old-n0', 'old-gone']);
  });

  it('chooses among 250 names at most, and one more than it uses', () => {
    const many = names(600);
    const { of } = rollout(
      { maxUnavailable: 3 },
      many.map((name) => pod(name)),
      many,
    );
    expect([of.remove.limit, of.remove.taken, of.remove.candidates.length]).toEqual([3, 0, 4]);
    expect(
      rollout(
        { maxUnavailable: '100%' },
        many.map((name) => pod(name)),
        many,
      ).remove,
    ).toHaveLength(250);
    expect(
      rollout(
        { maxUnavailable: 1 },
        many.map((name) => pod(name, { ready: false })),
        many,
      ).of.remove.free,
    ).toHaveLength(250);
  });
});

describe('a rolling update with surge', () => {
  const surge = { maxSurge: 2, maxUnavailable: 0 };

  it('creates a second pod on as many nodes as it may, and deletes none', () => {
    expect(
      rollout(
        surge,
        names(4).map((name) => pod(name)),
      ),
    ).toMatchObject({ create: ['n0', 'n1'], remove: [] });
    expect(
      rollout(
        { maxSurge: '25%', maxUnavailable: 0 },
        names(4).map((name) => pod(name)),
      ).create,
    ).toEqual(['n0']);
  });

  it('counts nodes with a new pod that is not available, and with several', () => {
    const pods = [pod('n0'), pod('n1'), pod('n2'), pod('n3')];
    expect(rollout(surge, [...pods, updated('n3', { ready: false })]).create).toEqual(['n0']);
    expect(rollout(surge, [...pods, updated('n3')]).create).toEqual(['n0', 'n1']);
    expect(rollout(surge, [...pods, pod('n3', { name: 'second' })]).create).toEqual(['n0']);
    expect(rollout(surge, [...pods, updated('n2'), updated('n2', { name: 'second' })]).create).toEqual(['n0']);
  });

  it('creates one beside every old pod that is not available, and none without an old pod', () => {
    expect(
      rollout({ maxSurge: 1 }, [pod('n0', { ready: false }), pod('n1', { ready: false }), updated('n2')]).create,
    ).toEqual(['n0', 'n1']);
    expect(rollout(surge, [updated('n0'), updated('n1')]).create).toEqual([]);
  });
});
