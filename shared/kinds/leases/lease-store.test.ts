import { expect, it } from 'vitest';
import { confirmStatus, describeNode, readHeartbeatTimes } from '../../fleet/nodes/health-store.ts';
import type { ItemUpdater } from '../../store/item-store.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';
import type { KubeObject } from '../types.ts';
import {
  type LeaseChange,
  type LeaseChangeResult,
  leaseMergePatch,
  leaseOf,
  leaseReplacement,
} from './lease-record.ts';
import { leaseStore, renewLease } from './lease-store.ts';

const T0 = Date.UTC(2026, 0, 1);
/** Versions of one millisecond. */
const VERSIONS_PER_MS = 1_000;
const NODE_UID = 'node-uid';
const LEASE_UID = 'lease-uid';

const aLease = (spec: object = {}): KubeObject => ({
  metadata: {
    name: 'n1',
    namespace: 'kube-node-lease',
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: NODE_UID }],
  },
  spec: { holderIdentity: 'n1', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00Z', ...spec },
});

function changeOf(result: LeaseChangeResult): LeaseChange {
  if (result.kind !== 'change') throw new Error(result.kind);
  return result.change;
}

const replacement = (spec: object = {}) => changeOf(leaseReplacement(aLease(spec)));
const patch = (spec: object) => changeOf(leaseMergePatch('n1', { spec }));

/** A Node and its Lease, created at T0 with the lowest version of that millisecond. */
async function leased(spec: object = {}, labels?: Record<string, string>) {
  const items = memoryItemStore();
  const digest = {
    uid: NODE_UID,
    zone: 'r/a',
    ready: 'True',
    excluded: false,
    suspect: false,
    createdAtMs: T0,
  } as const;
  await items.write(
    describeNode('n1', { ...digest, noExecute: { notReady: false, unreachable: false } }, { isNew: true }),
  );
  const store = leaseStore(items);
  const lease = aLease(spec);
  if (labels !== undefined) lease.metadata.labels = labels;
  await store.createLease({ change: changeOf(leaseReplacement(lease)), nowMs: T0, tie: 0, uid: LEASE_UID });
  return store;
}

it('two renewals in one millisecond get different versions', async () => {
  const store = await leased();
  const first = await store.renewLease({ change: patch({}), nowMs: T0 + 1, tie: 0.2509 });
  const second = await store.renewLease({ change: patch({}), nowMs: T0 + 1, tie: 0.75 });
  expect([first, second].map((outcome) => outcome.kind === 'written' && outcome.row['v'])).toEqual([
    (T0 + 1) * VERSIONS_PER_MS + 250,
    (T0 + 1) * VERSIONS_PER_MS + 750,
  ]);
});

it('a renewal of a version ahead of the clock gets the next version', async () => {
  const store = await leased();
  const outcome = await store.renewLease({
    change: patch({}),
    nowMs: T0 - 60_000,
    tie: 0,
    expectedResourceVersion: T0 * VERSIONS_PER_MS,
  });
  expect(outcome).toMatchObject({ kind: 'written', row: { v: T0 * VERSIONS_PER_MS + 1 } });
});

it('a renewal without a version conflicts with a Lease of another uid', async () => {
  const store = await leased();
  const outcome = await store.renewLease({ change: patch({}), nowMs: T0 + 1, tie: 0, expectedUid: 'earlier' });
  expect(outcome).toMatchObject({ kind: 'conflict', row: { i: LEASE_UID, v: T0 * VERSIONS_PER_MS } });
});

it('a renewal that removes a field is distinguished from one that kept it', async () => {
  const store = await leased({ acquireTime: '2025-12-31T00:00:00Z' });
  const renewTime = '2026-01-01T00:00:10Z';
  const one = { nowMs: T0 + 10_000, tie: 0.5 };
  await store.renewLease({ ...one, change: patch({ renewTime }) });
  const outcome = await store.renewLease({ ...one, change: patch({ renewTime, acquireTime: null }) });
  if (outcome.kind !== 'written') throw new Error(outcome.kind);
  expect(outcome.row['v']).toBe((T0 + 10_000) * VERSIONS_PER_MS + 501);
  expect(leaseOf(outcome.row)?.spec).not.toHaveProperty('acquireTime');
});

it('a replacement that only meets a higher version keeps the owner as a flag', async () => {
  const store = await leased();
  const outcome = await store.renewLease({ change: replacement(), nowMs: T0 - 60_000, tie: 0 });
  if (outcome.kind !== 'written') throw new Error(outcome.kind);
  expect(outcome.row).toMatchObject({ o: 1, v: T0 * VERSIONS_PER_MS + 1 });
  expect(outcome.row).not.toHaveProperty('x');
  expect(leaseOf(outcome.row)?.metadata.ownerReferences).toEqual(aLease().metadata.ownerReferences);
});

it('a replacement for another Node writes its owner out, and the version may be ahead as well', async () => {
  const store = await leased();
  const ours = aLease();
  const owner = { ...ours.metadata.ownerReferences![0]!, uid: 'earlier-node' };
  const change = changeOf(leaseReplacement({ ...ours, metadata: { ...ours.metadata, ownerReferences: [owner] } }));
  const outcome = await store.renewLease({ change, nowMs: T0 - 60_000, tie: 0 });
  if (outcome.kind !== 'written') throw new Error(outcome.kind);
  expect(outcome.row).not.toHaveProperty('o');
  expect(leaseOf(outcome.row)?.metadata.ownerReferences).toEqual([owner]);
});

it('a renewal ends with a retryable fault when the Lease changes before each attempt', async () => {
  let attempts = 0;
  const changing: ItemUpdater = {
    async write() {
      attempts += 1;
      return { kind: 'refused', current: { pk: 's01', sk: 'n1', i: LEASE_UID, v: (T0 + attempts) * VERSIONS_PER_MS } };
    },
  };
  await expect(renewLease(changing, { change: patch({}), nowMs: T0, tie: 0 })).rejects.toMatchObject({
    name: 'StoreFault',
    code: 'throttled',
    retryable: true,
  });
  expect(attempts).toBe(8);
});

it('six renewals without a version at once are all written, as those of our probes through two ways', async () => {
  const store = await leased();
  const items = memoryItemStore();
  const row = (await store.getRow('n1'))!;
  await items.write({ kind: 'put', key: { table: 'health', pk: String(row.pk), sk: String(row.sk) }, item: row });
  // All of a round were sent before the first of them is written: the last one is refused five times.
  let waiting: (() => void)[] = [];
  const inTurn: ItemUpdater = {
    async write(write, options) {
      await new Promise<void>((resolve) => waiting.push(resolve));
      return items.write(write, options);
    },
  };
  const renewals = Array.from({ length: 6 }, (_, index) =>
    renewLease(inTurn, { change: patch({ renewTime: `2026-01-01T00:00:0${index}Z` }), nowMs: T0 + 1, tie: 0.5 }),
  );
  const all = Promise.all(renewals);
  for (let turns = 0; turns < 60; turns += 1) {
    const round = waiting;
    waiting = [];
    for (const wake of round) wake();
    for (let ticks = 0; ticks < 20; ticks += 1) await Promise.resolve();
  }
  expect((await all).map(({ kind }) => kind)).toEqual(Array(6).fill('written'));
});

it('a renewal without a version that arrives late leaves the receipt time of a later one', async () => {
  const store = await leased();
  await store.renewLease({ change: patch({}), nowMs: T0 + 300_000, tie: 0 });
  const late = await store.renewLease({ change: patch({}), nowMs: T0 + 10_000, tie: 0 });
  expect(late).toMatchObject({ kind: 'written', row: { r: T0 + 300_000, v: (T0 + 300_000) * VERSIONS_PER_MS + 1 } });
});

it('the removal of a Lease leaves no attribute of it in the row of its Node', async () => {
  const rare = { holderIdentity: 'other', acquireTime: '2025-12-31T00:00:00Z', leaseTransitions: 3 };
  const store = await leased(rare, { a: 'b' });
  const digest = ['b', 'pk', 'r', 'sk', 'u', 'y', 'z'];
  const lease = ['a', 'c', 'd', 'h', 'i', 'n', 'o', 't', 'v', 'x'];
  expect(Object.keys((await store.getRow('n1'))!).sort()).toEqual([...digest, ...lease].sort());
  expect((await store.deleteLease('n1')).kind).toBe('written');
  expect(Object.keys((await store.getRow('n1'))!).sort()).toEqual(digest);
});

it.each([1, 32, 33, 100])(
  'heartbeat times of %i nodes are read by name, whether row by row or as a range',
  async (count) => {
    const items = memoryItemStore();
    const names = Array.from({ length: count }, (_, index) => `n${String(index).padStart(3, '0')}`);
    const digest = { zone: 'r/a', ready: 'True', excluded: false, suspect: false, createdAtMs: T0 } as const;
    const noExecute = { notReady: false, unreachable: false };
    for (const name of [...names, 'n0005', 'zz']) {
      await items.write(describeNode(name, { ...digest, uid: name, noExecute }, { isNew: true }));
      if (name === 'n000' && count > 1) continue;
      const times = { fromSeconds: 7, toSeconds: 7 + name.length };
      const outcome = await items.write(confirmStatus(name, { uid: name, nowMs: T0, times }));
      expect(outcome.kind).toBe('written');
    }
    const found = await readHeartbeatTimes(items, names, { consistent: true });
    const expected = count > 1 ? names.slice(1) : names;
    expect([...found.keys()].filter((name) => names.includes(name)).sort()).toEqual(expected);
    expect(found.get(expected[0]!)).toEqual({ fromSeconds: 7, toSeconds: 11 });
  },
);
