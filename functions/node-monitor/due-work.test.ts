/** Which functions a tick wakes: by rows that are due, and by nothing else. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { FleetRecords } from '../../shared/fleet/fleet-store.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import type { Item, ItemStore } from '../../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';
import { monitorDependencies } from './dependencies.ts';
import { type WakeUpTick, wakeFunctionsWithWork } from './due-work.ts';

const NOW_MS = 1_800_000_000_000;
const SLOT_MS = NOW_MS - 1_234;
const AT_REST = { queue: [], zones: [{ zone: 'a' }] } as unknown as FleetRecords;

let tables: MemoryItemStore;
let woken: [readonly string[], number][];
beforeEach(async () => {
  tables = memoryItemStore();
  woken = [];
  // pod-gc has swept.
  await row('pod-gc', 'sweep', { due: NOW_MS + 600_000 });
});

const row = (pk: string, sk: string, item: Item = {}) =>
  tables.write({ kind: 'put', key: { table: 'control', pk, sk }, item });
const due = (atMs: number, name: string): string => `${String(atMs).padStart(14, '0')}#${name}`;

async function wake(more: Partial<WakeUpTick> = {}, policy: Partial<Policy> = {}, items: ItemStore = tables) {
  const silent = () => {};
  const common = workDependencies({
    items,
    clock: { nowMs: () => NOW_MS },
    random: { uuid: () => 'u', fraction: () => 0 },
    policy: { ...defaultPolicy, ...policy },
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: silent },
  });
  const waker = {
    async wake(names: readonly string[], atMs: number) {
      woken.push([names, atMs]);
      return [];
    },
  };
  const tick = { nowMs: NOW_MS, slotStartMs: SLOT_MS, slotBeforeStartMs: undefined, records: AT_REST, ...more };
  return wakeFunctionsWithWork(monitorDependencies(common, { waker }), tick);
}

it('without work no function is woken', async () => {
  expect(await wake()).toEqual([]);
  expect(woken).toEqual([]);
});

it('all functions with work are woken at once, for the slot of the tick', async () => {
  await row('cloud', 'n');
  await row('workloads-due', due(NOW_MS, 'sweep'));
  expect(await wake()).toEqual(['cloud-node', 'workloads']);
  expect(woken).toEqual([[['cloud-node', 'workloads'], SLOT_MS]]);
});

describe('evictor', () => {
  it.each([
    ['a node waits', { queue: [{ nodeName: 'n' }], zones: [] }],
    [
      'one zone of several has a recorded hold',
      { queue: [], zones: [{ zone: 'a' }, { zone: 'b', hold: { reason: 'x' } }] },
    ],
  ])('is woken while %s', async (_, records) => {
    expect(await wake({ records: records as unknown as FleetRecords })).toEqual(['evictor']);
  });

  it('is woken when a timer or a retry is due, not a millisecond before', async () => {
    await row('evictions-due', due(NOW_MS + 1, 'n'));
    await row('parked', 'o', { due: NOW_MS + 1 });
    expect(await wake()).toEqual([]);
    await row('evictions-due', due(NOW_MS, 'm'));
    expect(await wake()).toEqual(['evictor']);
  });

  it('is woken when a retry is due', async () => {
    await row('parked', 'o', { due: NOW_MS });
    expect(await wake()).toEqual(['evictor']);
  });
});

describe('pod-gc', () => {
  const PERIOD_MS = defaultPolicy.podGcPeriodSeconds * 1_000;
  const START_MS = Math.floor(NOW_MS / PERIOD_MS) * PERIOD_MS;
  const pod = (name: string) => row('pod-gc', `pod#d/${name}`, { u: name, c: 0, t: 1 });

  it('is woken by the first tick of each of its periods, and by the first tick of all', async () => {
    await row('pod-gc', 'sweep', { due: NOW_MS });
    const woke = async (slotStartMs: number, slotBeforeStartMs: number | undefined) =>
      (await wake({ slotStartMs, slotBeforeStartMs })).includes('pod-gc');
    expect(await woke(START_MS, START_MS - 1)).toBe(true);
    expect(await woke(START_MS, START_MS - 1 - PERIOD_MS)).toBe(true);
    expect(await woke(START_MS + PERIOD_MS - 1, START_MS)).toBe(false);
    expect(await woke(START_MS + 1, undefined)).toBe(true);
  });

  it('is woken for a sweep that is due, not a millisecond before', async () => {
    await row('pod-gc', 'sweep', { due: NOW_MS + 1 });
    expect(await wake()).toEqual([]);
    await row('pod-gc', 'sweep', { due: NOW_MS });
    expect(await wake()).toEqual(['pod-gc']);
  });

  it('is woken for a pod that it may remove, and for a long list without reading it', async () => {
    await pod('p');
    expect(await wake()).toEqual(['pod-gc']);
    await tables.write({ kind: 'delete', key: { table: 'control', pk: 'pod-gc', sk: 'pod#d/p' } });
    let limit: number | undefined;
    const long: ItemStore = {
      ...tables,
      async query(request) {
        if (request.pk !== 'pod-gc') return tables.query(request);
        ({ limit } = request);
        return { ...(await tables.query(request)), next: 'more' };
      },
    };
    expect(await wake({}, {}, long)).toEqual(['pod-gc']);
    expect(limit).toBeGreaterThan(0);
  });
});

describe('the scheduler', () => {
  const turn = (item: Item) => row('scheduler', 'turn', item);

  it.each<[string, Item, boolean]>([
    ['a pass is requested', { wanted: 2, done: 1 }, true],
    ['all requests are served', { wanted: 2, done: 2 }, false],
    ['a pod is due', { wanted: 1, done: 1, due: NOW_MS }, true],
    ['a pod is due later', { wanted: 1, done: 1, due: NOW_MS + 1 }, false],
    ['a pass runs', { wanted: 2, done: 1, busyUntil: NOW_MS + 1 }, false],
    ['the time of a pass is over', { wanted: 2, done: 1, busyUntil: NOW_MS }, true],
  ])('when %s (%j) is woken: %s', async (_, item, expected) => {
    await turn(item);
    expect(await wake()).toEqual(expected ? ['scheduler'] : []);
  });

  it('is not woken while the policy has none', async () => {
    await turn({ wanted: 2, done: 1 });
    expect(await wake({}, { scheduling: 'off' })).toEqual([]);
  });
});

it('workloads is woken when a row is due, not a millisecond before', async () => {
  await row('workloads-due', due(NOW_MS + 1, 'sweep'));
  expect(await wake()).toEqual([]);
  await row('workloads-due', due(NOW_MS, 'daemonSets'));
  expect(await wake()).toEqual(['workloads']);
});

it('a function is woken if its check fails, and no other one is', async () => {
  const failing: ItemStore = {
    ...tables,
    query: (request) => (request.pk === 'cloud' ? Promise.reject(new Error('down')) : tables.query(request)),
  };
  expect(await wake({}, {}, failing)).toEqual(['cloud-node']);
});
