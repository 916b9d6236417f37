import { describe, expect, it } from 'vitest';
import type { KubePod, KubePodDisruptionBudget } from '../../shared/kinds/types.ts';
import { formatTime } from '../../shared/kubernetes/time.ts';
import { labelsOfConcern, nextDisruptionEndMs, storedStatus } from './disruption-budgets.rule.ts';

const NOW_MS = 1_000_000;
const NOW = formatTime(NOW_MS);
const labels = { app: 'web' };
const readyPod = (name: string) =>
  ({
    metadata: { name, namespace: 'd', uid: name, labels },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  }) as unknown as KubePod;
const budgetOf = (status: object | undefined, minAvailable = 1) =>
  ({
    metadata: { name: 'b', namespace: 'd', generation: 3 },
    spec: { minAvailable, selector: { matchLabels: labels } },
    ...(status && { status }),
  }) as unknown as KubePodDisruptionBudget;
const statusOf = (status: object | undefined, names: readonly string[], over: object = {}) =>
  storedStatus({ budget: budgetOf(status), pods: names.map(readyPod), expected: undefined, nowMs: NOW_MS, ...over });

describe('the status of a PodDisruptionBudget', () => {
  it('has its counts, and a condition with the time of its change', () => {
    expect(statusOf(undefined, ['a', 'b', 'c'])).toEqual({
      observedGeneration: 3,
      currentHealthy: 3,
      desiredHealthy: 1,
      expectedPods: 3,
      disruptionsAllowed: 2,
      conditions: [
        {
          type: 'DisruptionAllowed',
          status: 'True',
          observedGeneration: 3,
          lastTransitionTime: NOW,
          reason: 'SufficientPods',
          message: '',
        },
      ],
    });
    expect(statusOf(undefined, ['a']).conditions).toMatchObject([{ status: 'False', reason: 'InsufficientPods' }]);
  });

  it('keeps the time of a condition with the same status, other conditions and other fields', () => {
    const other = { type: 'Other', status: 'True' };
    const before = { type: 'DisruptionAllowed', status: 'True', lastTransitionTime: '2020-01-01T00:00:00Z' };
    const stored = { conditions: [before, other], own: 'x' };
    const { conditions, ...rest } = statusOf(stored, ['a', 'b']);
    expect(conditions).toMatchObject([
      other,
      { type: 'DisruptionAllowed', lastTransitionTime: '2020-01-01T00:00:00Z' },
    ]);
    expect(conditions).toHaveLength(2);
    expect(rest).toMatchObject({ own: 'x' });
    expect(statusOf(stored, ['a']).conditions?.[1]).toMatchObject({ status: 'False', lastTransitionTime: NOW });
    const { lastTransitionTime: _none, ...timeless } = before;
    expect(statusOf({ conditions: [timeless] }, ['a', 'b']).conditions?.[0]).toMatchObject({ lastTransitionTime: NOW });
  });

  it('keeps granted evictions of pods that exist, for two minutes', () => {
    const disruptedPods = {
      a: formatTime(NOW_MS - 119_000),
      b: formatTime(NOW_MS - 120_000),
      c: formatTime(NOW_MS + 60_000),
      gone: NOW,
    };
    const status = statusOf({ disruptedPods }, ['a', 'b', 'c']);
    expect(status.disruptedPods).toEqual({ a: disruptedPods.a, c: disruptedPods.c });
    const none = statusOf({ disruptedPods: { gone: NOW } }, ['a']);
    expect(none.disruptedPods ?? {}).toEqual({});
  });

  it('says why its pods could not be counted', () => {
    const expected = { kind: 'failed', message: 'no controller' };
    expect(statusOf(undefined, ['a', 'b'], { expected }).conditions).toMatchObject([
      { status: 'False', reason: 'SyncFailed', message: 'no controller' },
    ]);
  });
});

it('the next granted eviction is forgotten two minutes after its time, one of the future from now on', () => {
  const endOf = (...times: readonly (string | null)[]) =>
    nextDisruptionEndMs({ disruptedPods: Object.fromEntries(times.entries()) } as never, NOW_MS);
  expect(nextDisruptionEndMs({} as never, NOW_MS)).toBeUndefined();
  expect(endOf()).toBeUndefined();
  expect(endOf(NOW, formatTime(NOW_MS - 5_000))).toBe(NOW_MS + 115_000);
  expect(endOf(formatTime(NOW_MS + 60_000))).toBe(NOW_MS + 120_000);
  expect(endOf(null)).toBe(120_000);
  expect(endOf('no time')).toBe(120_000);
});

describe('the budgets that a change concerns', () => {
  const pod = readyPod('a');
  const changed = (metadata: object, status: object = {}) =>
    ({ metadata: { ...pod.metadata, ...metadata }, status: { ...pod.status, ...status } }) as unknown as KubePod;
  const owner = (over: object = {}) => ({ ownerReferences: [{ uid: 'o', controller: true, ...over }] });
  const concerned = (after: KubePod | undefined, before: KubePod | undefined = pod) =>
    labelsOfConcern('pods', before as never, after as never);

  it.each<[string, KubePod]>([
    ['begins to be deleted', changed({ deletionTimestamp: NOW })],
    ['is not Ready', changed({}, { conditions: [{ type: 'Ready', status: 'False' }] })],
    ['has no conditions', changed({}, { conditions: undefined })],
    ['succeeded', changed({}, { phase: 'Succeeded' })],
    ['failed', changed({}, { phase: 'Failed' })],
    ['has an owner', changed(owner())],
  ])('are those of a pod that %s', (_what, after) => {
    expect(concerned(after)).toEqual([labels, labels]);
  });

  it('are those of both owners, and of old and new labels', () => {
    expect(concerned(changed(owner({ controller: false })), changed(owner()))).toHaveLength(2);
    expect(concerned(changed(owner({ uid: 'x' })), changed(owner()))).toHaveLength(2);
    expect(concerned(changed({ labels: { app: 'x' } }))).toEqual([labels, { app: 'x' }]);
    expect(concerned(changed({ labels: undefined }))).toEqual([labels, {}]);
  });

  it('are those of a new and of a removed pod, and none of one that stays', () => {
    expect(labelsOfConcern('pods', undefined, pod)).toEqual([labels]);
    expect(labelsOfConcern('pods', pod, undefined)).toEqual([labels]);
    expect(concerned(changed({ annotations: { a: 'b' } }, { phase: 'Pending' }))).toEqual([]);
  });

  const set = (replicas: number, template: object | undefined = { metadata: { labels } }) =>
    ({ metadata: { name: 's' }, spec: { replicas, template } }) as never;
  it.each(['deployments', 'replicasets', 'replicationcontrollers', 'statefulsets'])(
    'are those of scaled %s',
    (resource) => {
      expect(labelsOfConcern(resource, set(1), set(2))).toEqual([labels]);
      expect(labelsOfConcern(resource, undefined, set(2))).toEqual([labels]);
      expect(labelsOfConcern(resource, set(2), set(2))).toEqual([]);
      expect(labelsOfConcern(resource, set(2), undefined)).toEqual([]);
      expect(labelsOfConcern(resource, set(1), set(2, {}))).toEqual([{}]);
      expect(labelsOfConcern(resource, undefined, { metadata: {}, spec: { replicas: 1 } } as never)).toEqual([{}]);
    },
  );

  it('are none of other kinds', () => {
    expect(labelsOfConcern('jobs', set(1), set(2))).toEqual([]);
  });
});
