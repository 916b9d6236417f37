import { expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { ListRequest, ObjectStore } from '../../shared/store/object-store.ts';
import { controlledFleet } from '../../test/support/controlled-fleet.ts';
import { knownSelectors, listObjects, spacedCounts } from './object-lists.ts';

/** Pages of one object each. */
function paged(pages: number) {
  const requests: ListRequest[] = [];
  const objects = {
    async list(request: ListRequest) {
      requests.push(request);
      const object = { metadata: { name: String(requests.length) } } as KubeObject;
      return { objects: [object], ...(requests.length < pages ? { next: `after-${requests.length}` } : {}) };
    },
  } as unknown as ObjectStore;
  return { objects, requests };
}

it('all pages are read, each after the one before', async () => {
  const { objects, requests } = paged(3);
  const found = await listObjects({ objects }, 'pods', 'd');
  expect(found.map(({ metadata }) => metadata.name)).toEqual(['1', '2', '3']);
  expect(requests).toEqual([
    { resource: 'pods', namespace: 'd', limit: 500 },
    { resource: 'pods', namespace: 'd', limit: 500, continueAfter: 'after-1' },
    { resource: 'pods', namespace: 'd', limit: 500, continueAfter: 'after-2' },
  ]);
});

it('at most 200 pages are read', async () => {
  expect(await listObjects(paged(200), 'pods', '')).toHaveLength(200);
  const { objects, requests } = paged(201);
  await expect(listObjects({ objects }, 'pods', '')).rejects.toMatchObject({ retryable: false });
  expect(requests).toHaveLength(200);
});

function world() {
  const lists: ListRequest[] = [];
  const state = { nowMs: 1_000_000, isBroken: false };
  const object = (namespace: string): KubeObject => ({ metadata: { name: 'a', namespace } });
  const objects: Partial<ObjectStore> = {
    async list(request) {
      lists.push(request);
      if (state.isBroken) throw new Error('the table is away');
      return { objects: [object('one'), object('two')] };
    },
  };
  const known = knownSelectors(objects as ObjectStore, { nowMs: () => state.nowMs }, 'services');
  return { known, lists, state };
}

it('objects that select pods are listed once in 30 seconds, for all namespaces', async () => {
  const { known, lists, state } = world();
  expect(await known.in('one')).toEqual([{ metadata: { name: 'a', namespace: 'one' } }]);
  expect(await known.in('three')).toEqual([]);
  state.nowMs += 29_999;
  await known.in('two');
  expect(lists).toHaveLength(1);
  expect(lists[0]).toMatchObject({ resource: 'services' });
  expect(lists[0]?.namespace ?? '').toBe('');
  state.nowMs += 1;
  await known.in('two');
  expect(lists).toHaveLength(2);
});

it('one that was written is listed at once', async () => {
  const { known, lists } = world();
  await known.in('one');
  known.forget();
  await known.in('one');
  expect(lists).toHaveLength(2);
});

it('a list that failed is repeated by the next caller', async () => {
  const { known, lists, state } = world();
  state.isBroken = true;
  await expect(known.in('one')).rejects.toThrow('the table is away');
  state.isBroken = false;
  expect(await known.in('one')).toHaveLength(1);
  expect(lists).toHaveLength(2);
});

const START_MS = 1_000;

function counting() {
  let nowMs = START_MS;
  const counts = spacedCounts({ nowMs: () => nowMs });
  const { objects } = controlledFleet();
  /** A store with so many pods in one page. */
  const having = (pods: number) => ({
    ...objects,
    list: async () => ({ objects: Array.from({ length: pods }, (): KubeObject => ({ metadata: {} })) }),
  });
  return {
    counts,
    advance(ms: number) {
      nowMs += ms;
    },
    /** Reads the pods so many times. */
    count: (name: string, pods: number, times = 1) =>
      counts.run(name, having(pods), async ({ list }) => {
        for (let time = 0; time < times; time += 1) await list({ resource: 'pods', limit: 500 });
      }),
    fail: (name: string, pods: number) =>
      counts.run(name, having(pods), async ({ list }) => {
        await list({ resource: 'pods', limit: 500 });
        throw new Error('no answer');
      }),
  };
}

it.each([
  [5_000, 1, undefined],
  [5_001, 1, 5_001],
  [2_500, 4, 10_000],
  [100_000, 1, 30_000],
])('pauses after a count of %d objects, %d times, for %s ms', async (pods, times, pauseMs) => {
  const { counts, count, advance } = counting();
  expect(counts.pausedUntilMs('a')).toBeUndefined();
  await count('a', pods, times);
  expect(counts.pausedUntilMs('b')).toBeUndefined();
  expect(counts.pausedUntilMs('a')).toBe(pauseMs === undefined ? undefined : START_MS + pauseMs);
  advance((pauseMs ?? 0) - 1);
  expect(counts.pausedUntilMs('a') === undefined).toBe(pauseMs === undefined);
  advance(1);
  expect(counts.pausedUntilMs('a')).toBeUndefined();
});

it('pauses after a count that failed', async () => {
  const { counts, fail } = counting();
  await expect(fail('a', 9_000)).rejects.toThrow('no answer');
  expect(counts.pausedUntilMs('a')).toBe(START_MS + 9_000);
});

it('pauses no longer after a count that became short', async () => {
  const { counts, count } = counting();
  await count('a', 9_000);
  await count('a', 10);
  expect(counts.pausedUntilMs('a')).toBeUndefined();
});

it('remembers a bounded number of counts', async () => {
  const { counts, count } = counting();
  for (let index = 0; index <= 1_000; index += 1) await count(`n${index}`, 5_001);
  expect(counts.pausedUntilMs('n1000')).toBeDefined();
  expect(counts.pausedUntilMs('n0')).toBeUndefined();
});
