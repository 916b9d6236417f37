import { beforeEach, expect, it } from 'vitest';
import { COUNTERS, type NodeHealth } from '../../shared/fleet/nodes/health.ts';
import {
  describeNode,
  flapsChanged,
  forgetNode,
  markUnknown,
  type NodeDigest,
  podsChanged,
  podsMarked,
  scanHealth,
} from '../../shared/fleet/nodes/health-store.ts';
import {
  type LeaseChange,
  leaseMergePatch,
  leaseOf,
  leaseReplacement,
} from '../../shared/kinds/leases/lease-record.ts';
import { type LeaseStore, leaseStore } from '../../shared/kinds/leases/lease-store.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { type ItemStore, itemBytes } from '../../shared/store/item-store.ts';
import { describeOnStores } from './stores.ts';

const T0 = 1_795_197_000_000;
const UID = 'c1b0a7de-5f0e-4a5e-9a57-2b8f6d7e9f01';
let count = 0;

const aDigest = (change: Partial<NodeDigest> = {}): NodeDigest => ({
  uid: UID,
  zone: 'eu-central-1/eu-central-1a',
  ready: 'True',
  excluded: false,
  suspect: false,
  noExecute: { notReady: false, unreachable: false },
  createdAtMs: T0,
  ...change,
});

/** A digest that changes. */
const described = (nodeName: string, digest: NodeDigest) => describeNode(nodeName, digest, { isNew: false });

const NO_TAINTS = { notReady: false, unreachable: false };
const FLAPS = Uint8Array.of(1, 2, 3, 4, 5, 6, 7);
const aMark = { nowMs: T0 + 60_000, noExecute: NO_TAINTS, podsToMark: false };

const aLease = (name: string, spec: object = {}, metadata: object = {}): KubeObject => ({
  metadata: {
    name,
    namespace: 'kube-node-lease',
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid: UID }],
    ...metadata,
  },
  spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: '2026-11-20T17:50:26.123456Z', ...spec },
});

const change = (lease: KubeObject): LeaseChange => {
  const result = leaseReplacement(lease);
  if (result.kind !== 'change') throw new Error(result.kind);
  return result.change;
};

describeOnStores('the health store', (fixture) => {
  let store: LeaseStore;
  let name: string;
  beforeEach(() => {
    store = leaseStore(fixture.items());
    count += 1;
    name = `ip-10-0-12-${count}.eu-central-1.compute.internal`;
    fixture.consumed();
  });

  const write = async (...writes: Parameters<ReturnType<typeof fixture.items>['write']>) =>
    (await fixture.items().write(...writes)).kind;
  const create = (lease = aLease(name), nowMs = T0) =>
    store.createLease({ change: change(lease), nowMs, tie: 0.5, uid: 'lease-uid' });
  const seen = async (): Promise<NodeHealth> =>
    (await scanHealth(fixture.items(), { consistent: true })).find((health) => health.nodeName === name)!;

  it('renews a lease by one write unit and answers the whole row', async () => {
    await write(described(name, aDigest({ suspect: true })));
    const created = await create();
    fixture.consumed();
    const outcome = await store.renewLease({
      change: change(aLease(name, { renewTime: '2026-11-20T17:50:36.5Z' })),
      nowMs: T0 + 10_000,
      tie: 0,
      expectedResourceVersion: created.row['v'] as number,
      expectedUid: 'lease-uid',
    });
    expect(fixture.consumed()).toEqual([{ table: 'health', operation: 'UpdateItem', readUnits: 0, writeUnits: 1 }]);
    if (outcome.kind !== 'written') throw new Error(outcome.kind);
    const lease = leaseOf(outcome.row);
    expect(lease?.spec.renewTime).toBe('2026-11-20T17:50:36.500000Z');
    expect(lease?.metadata.resourceVersion).toBe(String((T0 + 10_000) * 1_000));
    expect(lease?.metadata.ownerReferences).toEqual(aLease(name).metadata.ownerReferences);
    expect(outcome.row['s']).toBe(1);
    expect(await seen()).toMatchObject({ suspect: true, renewedAtMs: T0 + 10_000 });
  });

  it('keeps the row of a typical node within 250 bytes', async () => {
    await write(described(name, aDigest({ statusAtMs: T0 })));
    await store.createLease({ change: change(aLease(name)), nowMs: T0, tie: 0, uid: UID });
    const row = await store.getRow(name);
    expect(itemBytes(row!)).toBeLessThanOrEqual(250);
  });

  it('keeps the fattest row below 1 KB', async () => {
    const long = `${'n'.repeat(61)}.`.repeat(4).padEnd(253, 'z');
    const zone = `${'r'.repeat(63)}/${'z'.repeat(63)}`;
    const digest = aDigest({ zone, excluded: true, suspect: true, noExecute: { notReady: true, unreachable: true } });
    await write(described(long, { ...digest, statusAtMs: T0 }));
    await write(
      markUnknown(
        { ...digest, nodeName: long, renewedAtMs: undefined, statusAtMs: T0 },
        { ...aMark, noExecute: digest.noExecute, podsToMark: true },
      ),
    );
    await write(podsChanged(long));
    const spec = { acquireTime: '2026-11-20T17:50:26.123456Z', leaseTransitions: 2_000_000_001 };
    const overhead = JSON.stringify({ labels: { l: '' } }).length;
    const labels = { l: 'x'.repeat(400 - overhead) };
    await store.createLease({ change: change(aLease(long, spec, { labels })), nowMs: T0, tie: 0.999, uid: UID });
    expect(itemBytes((await store.getRow(long))!)).toBeLessThan(1_024);
    await write(forgetNode(long));
  });

  it('answers absent for a lease that is not there, with and without a digest', async () => {
    const renewal = { change: change(aLease(name)), nowMs: T0, tie: 0 };
    expect(await store.renewLease({ ...renewal, expectedResourceVersion: 1 })).toEqual({ kind: 'absent' });
    await write(described(name, aDigest()));
    expect(await store.renewLease({ ...renewal, expectedResourceVersion: 1 })).toEqual({ kind: 'absent' });
    expect(await store.renewLease(renewal)).toEqual({ kind: 'absent' });
    expect(await store.deleteLease(name)).toEqual({ kind: 'absent' });
  });

  it('L8 lets exactly one of many renewals on one version win', async () => {
    const { row } = await create();
    const outcomes = await Promise.all(
      Array.from({ length: 10 }, (_, writer) =>
        store.renewLease({
          change: change(aLease(name, { leaseTransitions: writer })),
          nowMs: T0 + 1,
          tie: writer / 10,
          expectedResourceVersion: row['v'] as number,
        }),
      ),
    );
    expect(outcomes.filter(({ kind }) => kind === 'written')).toHaveLength(1);
    expect(outcomes.filter(({ kind }) => kind === 'conflict')).toHaveLength(9);
  });

  it('refuses another uid', async () => {
    const { row } = await create();
    const outcome = await store.renewLease({
      change: change(aLease(name)),
      nowMs: T0 + 1,
      tie: 0,
      expectedResourceVersion: row['v'] as number,
      expectedUid: 'earlier',
    });
    expect(outcome.kind).toBe('conflict');
  });

  it('renews by a patch without version, also when the stored version is ahead of our clock', async () => {
    await create(aLease(name), T0 + 60_000);
    const patch = leaseMergePatch(name, { spec: { renewTime: '2026-11-20T18:00:00Z' } });
    if (patch.kind !== 'change') throw new Error(patch.kind);
    const outcome = await store.renewLease({ change: patch.change, nowMs: T0, tie: 0 });
    if (outcome.kind !== 'written') throw new Error(outcome.kind);
    expect(outcome.row['v']).toBe((T0 + 60_000) * 1_000 + 501);
    expect(leaseOf(outcome.row)?.spec).toMatchObject({
      renewTime: '2026-11-20T18:00:00.000000Z',
      holderIdentity: name,
    });
  });

  it('counts a renewal that was sent twice as written', async () => {
    await write(described(name, aDigest()));
    const { row } = await create();
    const renewal = {
      change: change(aLease(name)),
      nowMs: T0 + 5,
      tie: 0.25,
      expectedResourceVersion: row['v'] as number,
    };
    expect((await store.renewLease(renewal)).kind).toBe('written');
    expect((await store.renewLease(renewal)).kind).toBe('written');
    expect((await store.renewLease({ ...renewal, tie: 0.75 })).kind).toBe('conflict');
  });

  it('spells the owner out where it is not the Node of the row', async () => {
    const owners = aLease(name).metadata.ownerReferences;
    const { row } = await create();
    expect(leaseOf(row)?.metadata.ownerReferences).toEqual(owners);
    await write(described(name, aDigest({ uid: 'another-node' })));
    const renewal = { change: change(aLease(name)), nowMs: T0 + 1, tie: 0 };
    const outcome = await store.renewLease({ ...renewal, expectedResourceVersion: row['v'] as number });
    if (outcome.kind !== 'written') throw new Error(outcome.kind);
    expect(leaseOf(outcome.row)?.metadata.ownerReferences).toEqual(owners);
    expect(outcome.row['o']).toBeUndefined();
  });

  it('creates a lease once, beside a digest or alone', async () => {
    expect((await create()).kind).toBe('written');
    const again = await store.createLease({ change: change(aLease(name)), nowMs: T0, tie: 0, uid: 'other' });
    expect(again.kind).toBe('conflict');
    expect(await seen()).toBeUndefined();
    await write(described(name, aDigest()));
    expect((await seen()).uid).toBe(UID);
    expect((await create()).kind).toBe('written'); // the echo of our own create
  });

  it('deletes a lease and keeps the digest and the last receipt', async () => {
    const { row } = await create();
    expect((await store.deleteLease(name, { resourceVersion: 1 })).kind).toBe('conflict');
    await write(described(name, aDigest()));
    expect((await store.deleteLease(name, { uid: 'other' })).kind).toBe('conflict');
    const outcome = await store.deleteLease(name, { resourceVersion: row['v'] as number, uid: 'lease-uid' });
    expect(outcome.kind).toBe('written');
    expect(leaseOf((await store.getRow(name))!)).toBeUndefined();
    expect(await seen()).toMatchObject({ uid: UID, renewedAtMs: T0 });
  });

  it('leaves nothing of a lease deleted without a Node', async () => {
    await create();
    expect((await store.deleteLease(name)).kind).toBe('written');
    expect(await store.getRow(name)).toBeUndefined();
  });

  it('describes a node, and describes it again', async () => {
    await write(
      described(name, aDigest({ statusAtMs: T0 + 5, noExecute: { notReady: true, unreachable: true }, zone: '' })),
    );
    expect(await seen()).toEqual({
      ...aDigest(),
      nodeName: name,
      zone: '',
      noExecute: { notReady: true, unreachable: true },
      renewedAtMs: undefined,
      statusAtMs: T0 + 5,
      markedAtMs: undefined,
      podsToMark: false,
    });
    const { ready: _, ...rest } = aDigest({ excluded: true, suspect: true });
    await write(described(name, { ...rest, ready: undefined }));
    expect(await seen()).toEqual({
      ...rest,
      nodeName: name,
      ready: undefined,
      renewedAtMs: undefined,
      statusAtMs: T0 + 5,
      markedAtMs: undefined,
      podsToMark: false,
    });
  });

  it('does not count the beats of the earlier node for a re-created one', async () => {
    await create(aLease(name), T0 - 1);
    await write(described(name, aDigest()));
    expect((await seen()).renewedAtMs).toBeUndefined();
    expect(await write(markUnknown(await seen(), aMark))).toBe('written');
  });

  it('marks a node Unknown that was silent since it was seen', async () => {
    await write(described(name, aDigest({ statusAtMs: T0 })));
    await create();
    const noExecute = { notReady: false, unreachable: true };
    expect(await write(markUnknown(await seen(), { ...aMark, noExecute, podsToMark: true }))).toBe('written');
    expect(await seen()).toMatchObject({
      ready: 'Unknown',
      suspect: true,
      noExecute,
      markedAtMs: aMark.nowMs,
      podsToMark: true,
    });
  });

  it('keeps the mark while nothing but us speaks of the node, and ends it with a status post', async () => {
    await write(described(name, aDigest()));
    await write(markUnknown(await seen(), { ...aMark, podsToMark: true }));
    await write(described(name, aDigest({ ready: 'Unknown', suspect: true })));
    expect(await seen()).toMatchObject({ markedAtMs: aMark.nowMs, podsToMark: true });
    await write(described(name, aDigest({ ready: 'False', suspect: true, statusAtMs: T0 + 70_000 })));
    expect(await seen()).not.toHaveProperty('markedAtMs');
    expect(await seen()).toMatchObject({ podsToMark: true });
    await write(described(name, aDigest({ ready: 'True' })));
    expect((await seen()).podsToMark).toBe(false);
  });

  it('forgets that pods are to be marked once, and only for the Node it was said of', async () => {
    await write(described(name, aDigest()));
    await write(markUnknown(await seen(), { ...aMark, podsToMark: true }));
    expect(await write(podsMarked(name, 'another'))).toBe('refused');
    expect(await write(podsMarked(name, UID))).toBe('written');
    expect((await seen()).podsToMark).toBe(false);
    expect(await write(podsMarked(name, UID))).toBe('refused');
  });

  it('D2 a new Node inherits nothing of an earlier one with its name', async () => {
    await write(described(name, aDigest({ statusAtMs: T0 })));
    await write(markUnknown(await seen(), { ...aMark, podsToMark: true, flaps: FLAPS }));
    await write(describeNode(name, aDigest({ uid: 'new', ready: 'Unknown' }), { isNew: true }));
    expect(await seen()).toMatchObject({ uid: 'new', podsToMark: false });
    for (const name of ['flaps', 'statusAtMs', 'markedAtMs']) expect(await seen()).not.toHaveProperty(name);
  });

  it('keeps the marks of a node through its posts, and changes them only as they were seen', async () => {
    await write(described(name, aDigest()));
    await write(markUnknown(await seen(), { ...aMark, flaps: FLAPS }));
    await write(described(name, aDigest({ statusAtMs: T0 + 70_000 })));
    const health = await seen();
    expect(health.flaps).toEqual(FLAPS);
    const next = Uint8Array.of(7, 6, 5, 4, 3, 2, 1);
    expect(await write(flapsChanged(health, next))).toBe('written');
    expect(await write(flapsChanged(health, undefined))).toBe('refused');
    expect(await write(markUnknown(health, aMark))).toBe('refused');
    expect(await write(flapsChanged({ ...(await seen()), uid: 'another' }, undefined))).toBe('refused');
    expect(await write(flapsChanged(await seen(), undefined))).toBe('written');
    expect(await seen()).not.toHaveProperty('flaps');
  });

  it.each([
    ['a beat', () => store.renewLease({ change: change(aLease(name)), nowMs: T0 + 1, tie: 0 })],
    ['a first status post', () => write(described(name, aDigest({ statusAtMs: T0 + 1 })))],
    ['a new Node of that name', () => write(described(name, aDigest({ uid: 'new' })))],
    ['its deletion', () => write(forgetNode(name))],
  ])('does not mark a node after %s in between', async (_, meanwhile) => {
    await write(described(name, aDigest()));
    await create();
    const health = await seen();
    await meanwhile();
    expect(await write(markUnknown(health, aMark))).toBe('refused');
  });

  it('forgets a node with its lease', async () => {
    await write(described(name, aDigest()));
    await create();
    await write(forgetNode(name));
    expect(await store.getRow(name)).toBeUndefined();
  });

  it('reports to a beat that the pods of its node changed', async () => {
    expect(await write(podsChanged(name))).toBe('refused');
    await create();
    expect(COUNTERS.podsVersion.of((await store.getRow(name))!)).toBeUndefined();
    expect(await write(podsChanged(name))).toBe('written');
    expect(await write(podsChanged(name))).toBe('written');
    expect(COUNTERS.podsVersion.of((await store.getRow(name))!)).toBe(2);
  });

  it('lists leases in name order over all shards, page by page', async () => {
    const prefix = `page-${count}-`;
    const names = Array.from({ length: 45 }, (_, index) => `${prefix}${String(index).padStart(2, '0')}`);
    await Promise.all(names.map((node) => create(aLease(node))));
    const listed: string[] = [];
    let after = prefix;
    for (let page = 0; page < 10; page += 1) {
      const { rows, next } = await store.listLeases({ limit: 10, continueAfter: after });
      listed.push(...rows.map((row) => row['sk'] as string));
      if (next === undefined || !next.startsWith(prefix)) break;
      after = next;
    }
    expect(listed.filter((node) => node.startsWith(prefix))).toEqual(names);
  });

  it.each([undefined, 0, 3, 2_001, 20_000, 1_000_000])(
    'scans every Node once, whatever was expected: %s rows',
    async (rowsExpected) => {
      const names = Array.from({ length: 70 }, (_, index) => `all-${rowsExpected}-${index}`);
      for (const node of names) await write(described(node, aDigest()));
      await create(aLease(`all-${rowsExpected}-lease`));
      const found = await scanHealth(fixture.items(), { consistent: true, rowsExpected });
      const ours = found.map(({ nodeName }) => nodeName).filter((node) => node.startsWith(`all-${rowsExpected}-`));
      expect(ours.sort()).toEqual([...names].sort());
    },
  );

  it('scans a small fleet by one request, and a large one by many', async () => {
    let requests = 0;
    const items = fixture.items();
    const counted: ItemStore = {
      ...items,
      scan: (request) => {
        requests += 1;
        return items.scan(request);
      },
    };
    const requestsFor = async (rowsExpected: number | undefined): Promise<number> => {
      requests = 0;
      await scanHealth(counted, { consistent: false, rowsExpected });
      return requests;
    };
    fixture.consumed();
    expect(await requestsFor(0)).toBe(1);
    expect(fixture.consumed()).toMatchObject([{ table: 'health', operation: 'Scan', writeUnits: 0 }]);
    expect(await requestsFor(2_000)).toBe(1);
    expect(await requestsFor(10_000)).toBe(5);
    expect(await requestsFor(100_000)).toBe(32);
    expect(await requestsFor(undefined)).toBe(32);
  });

  it('fails a scan whole when one segment cannot be read', async () => {
    const items = fixture.items();
    const broken: ItemStore = {
      ...items,
      scan: (request) => (request.segment === 17 ? Promise.reject(new Error('unreachable')) : items.scan(request)),
    };
    await expect(scanHealth(broken, { consistent: false })).rejects.toThrow('unreachable');
  });

  it('continues after an empty page', async () => {
    const items = fixture.items();
    const emptyFirst: ItemStore = {
      ...items,
      scan: (request) =>
        request.after === undefined
          ? Promise.resolve({ items: [], next: { pk: 's00', sk: '-' } })
          : items.scan({ table: request.table, segment: 0, segments: 1, consistent: true }),
    };
    await write(described(`after-${count}`, aDigest()));
    const found = await scanHealth(emptyFirst, { consistent: true, rowsExpected: 1 });
    expect(found.map(({ nodeName }) => nodeName)).toContain(`after-${count}`);
  });

  it('reads by one segment as many pages as by 32, and gives up at a table without an end', async () => {
    let pages = 0;
    const paged = (pagesThere: number): ItemStore => ({
      ...fixture.items(),
      scan: async () => {
        pages += 1;
        return { items: [], ...(pages < pagesThere ? { next: { pk: 's00', sk: '-' } } : {}) };
      },
    });
    expect(await scanHealth(paged(32 * 64), { consistent: true, rowsExpected: 1 })).toEqual([]);
    pages = 0;
    await expect(scanHealth(paged(Infinity), { consistent: true, rowsExpected: 1 })).rejects.toThrow('more pages');
    expect(pages).toBe(32 * 64);
  });
});
