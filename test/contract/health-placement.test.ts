/** Rows of nodes at two keys, and their move from one to the other while functions read and write them. */
import { beforeEach, describe, expect, it } from 'vitest';
import { moveRows } from '../../scripts/health-shards/move-rows.ts';
import { conflictingStore } from '../../shared/adapters/memory/conflicting-store.ts';
import { memoryItemStore } from '../../shared/adapters/memory/item-store.ts';
import { defined } from '../../shared/domain/defined.ts';
import {
  FORMER_HEALTH_SHARDS,
  HEALTH_SHARD_COUNTS,
  HEALTH_SHARDS,
  type HealthShards,
  otherHealthShards,
} from '../../shared/domain/health-shards.ts';
import type { KubeObject } from '../../shared/kube/types.ts';
import type { Item, ItemStore, TransactWrite, Write } from '../../shared/ports/item-store.ts';
import { placedStore, placedUpdater } from '../../shared/store/health-placement.ts';
import { healthKeyIn, isRow } from '../../shared/store/health-row.ts';
import {
  confirmStatus,
  describeNode,
  forgetNode,
  markUnknown,
  type NodeDigest,
  podsChanged,
  readHealth,
  readHeartbeatTimes,
  scanHealth,
  statusReceived,
} from '../../shared/store/health-store.ts';
import { type LeaseChange, leaseReplacement } from '../../shared/store/lease-record.ts';
import { leaseStore, renewLease } from '../../shared/store/lease-store.ts';
import { seededFraction } from '../../simulation/seeded-random.ts';
import { describeOnStores } from './stores.ts';

const T0 = 1_795_197_000_000;
const UID = 'c1b0a7de-5f0e-4a5e-9a57-2b8f6d7e9f01';

const aDigest = (change: Partial<NodeDigest> = {}): NodeDigest => ({
  uid: UID,
  zone: 'a',
  ready: 'True',
  excluded: false,
  suspect: false,
  noExecute: { notReady: false, unreachable: false },
  createdAtMs: T0,
  ...change,
});

const leaseOfNode = (name: string): KubeObject => ({
  metadata: { name, namespace: 'kube-node-lease' },
  spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: '2026-11-20T17:50:26.123456Z' },
});

function changeOf(name: string): LeaseChange {
  const result = leaseReplacement(leaseOfNode(name));
  if (result.kind !== 'change') throw new Error(result.kind);
  return result.change;
}

const beat = (items: Pick<ItemStore, 'write'>, name: string, nowMs: number) =>
  renewLease(items, { change: changeOf(name), nowMs, tie: 0 });

/** Registers a Node with a Lease, as the functions of a process do. */
async function register(items: ItemStore, name: string, nowMs = T0): Promise<void> {
  const outcome = await items.transact([describeNode(name, aDigest({ statusAtMs: nowMs }), { isNew: true })]);
  if (outcome.kind !== 'written') throw new Error(outcome.kind);
  await leaseStore(items).createLease({ change: changeOf(name), nowMs, tie: 0, uid: `lease-${name}` });
}

const rowAt = (items: ItemStore, shards: HealthShards, name: string): Promise<Item | undefined> =>
  items.get(healthKeyIn(shards, name), { consistent: true });

/** Time passes while the move waits. */
function move(items: ItemStore, to: HealthShards, { atMs = T0 }: { readonly atMs?: number } = {}) {
  let nowMs = atMs;
  return moveRows(items, {
    to,
    rowsPerSecond: 1_000,
    nowMs: () => nowMs,
    pause: async (ms) => {
      nowMs += ms;
    },
    report: () => {},
  });
}

/** Moves rows and keeps the marks: the move is interrupted where it would wait for them. */
async function moveKeepingMarks(items: ItemStore, to: HealthShards): Promise<void> {
  const interrupted = new Error('interrupted');
  const moving = moveRows(items, {
    to,
    rowsPerSecond: Infinity,
    nowMs: () => T0,
    pause: () => Promise.reject(interrupted),
    report: () => {},
  });
  await moving.catch((error: unknown) => {
    if (error !== interrupted) throw error;
  });
}

/** Runs `action` once, before the n-th call of a method. Later calls wait for it. */
function callBefore(
  items: ItemStore,
  method: 'scan' | 'query' | 'write' | 'transact',
  call: number,
  action: () => Promise<void>,
): ItemStore {
  let calls = 0;
  let acting: Promise<void> | undefined;
  return {
    ...items,
    async [method](...args: unknown[]) {
      calls += 1;
      if (calls >= call) {
        acting ??= action();
        await acting;
      }
      return (items[method] as (...all: unknown[]) => Promise<unknown>)(...args);
    },
  } as ItemStore;
}

/** As a table of more than one page, which is listed by its shards. */
const large = (items: ItemStore): ItemStore => ({
  ...items,
  scan: async (request) =>
    request.segments === 1 && request.after === undefined
      ? { items: [], next: { pk: 's00', sk: '' } }
      : items.scan(request),
});

const isApart = (name: string): boolean =>
  healthKeyIn(HEALTH_SHARDS, name).pk !== healthKeyIn(FORMER_HEALTH_SHARDS, name).pk;
let created = 0;
/** Names with two different keys. */
function names(count: number): string[] {
  const found: string[] = [];
  while (found.length < count) {
    created += 1;
    const name = `ip-10-0-12-${created}.eu-central-1.compute.internal`;
    if (isApart(name)) found.push(name);
  }
  return found;
}

describeOnStores('a row of health at one of two keys', (fixture) => {
  let raw: ItemStore;
  let former: ItemStore;
  let current: ItemStore;
  let name: string;
  beforeEach(() => {
    raw = fixture.items();
    former = placedStore(raw, FORMER_HEALTH_SHARDS);
    current = placedStore(raw, HEALTH_SHARDS);
    [name] = names(1) as [string];
  });

  it('costs a heartbeat one write unit at the preferred key, and two at the other one', async () => {
    await register(former, name);
    fixture.consumed();
    expect((await beat(placedUpdater(raw, FORMER_HEALTH_SHARDS), name, T0 + 1)).kind).toBe('written');
    expect(fixture.consumed()).toMatchObject([{ writeUnits: 1, readUnits: 0 }]);
    expect((await beat(placedUpdater(raw, HEALTH_SHARDS), name, T0 + 2)).kind).toBe('written');
    expect(fixture.consumed().reduce((sum, { writeUnits }) => sum + writeUnits, 0)).toBe(2);
    expect(await rowAt(raw, FORMER_HEALTH_SHARDS, name)).toMatchObject({ r: T0 + 2, u: UID });
    expect(await rowAt(raw, HEALTH_SHARDS, name)).toBeUndefined();
  });

  it('is found by every write and read of the functions', async () => {
    await register(former, name);
    expect(await current.write(statusReceived(name, { uid: UID, nowMs: T0 + 5 }))).toMatchObject({ kind: 'written' });
    const times = { fromSeconds: 1, toSeconds: 2 };
    await current.write(confirmStatus(name, { uid: UID, nowMs: T0 + 6, times }));
    await current.write(podsChanged(name));
    await current.transact([describeNode(name, aDigest({ zone: 'b' }), { isNew: false })]);
    const [seen] = (await readHealth(current, [name])).values();
    expect(seen).toMatchObject({ zone: 'b', statusAtMs: T0 + 6, renewedAtMs: T0 });
    const mark = { nowMs: T0 + 60_000, noExecute: { notReady: false, unreachable: true }, podsToMark: true };
    expect(await current.transact([markUnknown(seen!, mark)])).toEqual({ kind: 'written' });
    expect(await current.get(healthKeyIn(HEALTH_SHARDS, name), { consistent: true })).toMatchObject({ p: 1, y: 'U' });
    expect(await readHeartbeatTimes(current, [name], { consistent: true })).toEqual(new Map([[name, times]]));
    expect((await leaseStore(current).deleteLease(name)).kind).toBe('written');
    expect(await rowAt(raw, FORMER_HEALTH_SHARDS, name)).toMatchObject({ u: UID });
    expect(await rowAt(raw, HEALTH_SHARDS, name)).toBeUndefined();
    expect(await current.transact([forgetNode(name)])).toEqual({ kind: 'written' });
    expect(await rowAt(raw, FORMER_HEALTH_SHARDS, name)).toBeUndefined();
  });

  it('refuses a write for its own reason, with the index of the caller', async () => {
    await register(former, name);
    const [seen] = (await readHealth(current, [name])).values();
    await beat(current, name, T0 + 1);
    const other: TransactWrite = { kind: 'put', key: { table: 'control', pk: name, sk: '-' }, item: { n: 1 } };
    const mark = { nowMs: T0 + 60_000, noExecute: { notReady: false, unreachable: false }, podsToMark: false };
    const outcome = await current.transact([other, markUnknown(seen!, mark)]);
    expect(outcome).toMatchObject({ kind: 'refused', failures: [{ index: 1, current: { r: T0 + 1 } }] });
    expect(await raw.get(other.key, { consistent: true })).toBeUndefined();
  });

  it('is created once, whichever key a process prefers', async () => {
    await register(former, name);
    await register(current, name, T0 + 5);
    expect(await rowAt(raw, HEALTH_SHARDS, name)).toBeUndefined();
    expect(await rowAt(raw, FORMER_HEALTH_SHARDS, name)).toMatchObject({ l: T0 + 5 });
    const [leaseFirst] = names(1) as [string];
    const lease = { change: changeOf(leaseFirst), nowMs: T0, tie: 0 };
    expect((await leaseStore(former).createLease({ ...lease, uid: '1' })).kind).toBe('written');
    expect(await leaseStore(current).createLease({ ...lease, uid: '2' })).toMatchObject({ kind: 'conflict' });
    expect(await rowAt(raw, HEALTH_SHARDS, leaseFirst)).toBeUndefined();
  });

  it('is written again after it was lost', async () => {
    const lost = await current.transact([describeNode(name, aDigest(), { isNew: false })]);
    expect(lost).toEqual({ kind: 'written' });
    expect(await rowAt(raw, HEALTH_SHARDS, name)).toMatchObject({ u: UID });
  });

  it('does not appear by a write that needs a row', async () => {
    expect((await beat(current, name, T0)).kind).toBe('absent');
    expect((await current.write(podsChanged(name))).kind).toBe('refused');
    const receipt: Write = statusReceived(name, { uid: UID, nowMs: T0 });
    expect(await current.transact([receipt])).toMatchObject({ kind: 'refused', failures: [{ index: 0 }] });
    for (const shards of [HEALTH_SHARDS, FORMER_HEALTH_SHARDS] as const) {
      expect(await rowAt(raw, shards, name)).toBeUndefined();
    }
  });

  it('keeps every attribute when it is moved, there and back', async () => {
    await register(former, name);
    await former.write(podsChanged(name));
    const stored = await rowAt(raw, FORMER_HEALTH_SHARDS, name);
    expect(await move(raw, HEALTH_SHARDS)).toMatchObject({ kind: 'finished' });
    expect(await rowAt(raw, FORMER_HEALTH_SHARDS, name)).toBeUndefined();
    const moved = await rowAt(raw, HEALTH_SHARDS, name);
    expect(moved).toEqual({ ...stored, pk: moved!.pk });
    expect(await move(raw, HEALTH_SHARDS)).toEqual({ kind: 'finished', moved: 0, marksDeleted: 0 });
    expect(await move(raw, FORMER_HEALTH_SHARDS)).toMatchObject({ kind: 'finished' });
    expect(await rowAt(raw, FORMER_HEALTH_SHARDS, name)).toEqual(stored);
    expect(await rowAt(raw, HEALTH_SHARDS, name)).toBeUndefined();
  });

  it('is followed by a heartbeat that meets the move between its attempts', async () => {
    await register(former, name);
    const meeting = callBefore(raw, 'write', 2, () => moveKeepingMarks(raw, HEALTH_SHARDS));
    expect((await beat(placedUpdater(meeting, HEALTH_SHARDS), name, T0 + 9)).kind).toBe('written');
    expect(await rowAt(raw, HEALTH_SHARDS, name)).toMatchObject({ r: T0 + 9, u: UID });
  });

  it('is followed by a transaction that meets the move between its attempts', async () => {
    await register(former, name);
    const [seen] = (await readHealth(former, [name])).values();
    const meeting = callBefore(raw, 'transact', 2, () => moveKeepingMarks(raw, HEALTH_SHARDS));
    const mark = { nowMs: T0 + 60_000, noExecute: { notReady: false, unreachable: false }, podsToMark: false };
    expect(await placedStore(meeting, HEALTH_SHARDS).transact([markUnknown(seen!, mark)])).toEqual({ kind: 'written' });
    expect(await rowAt(raw, HEALTH_SHARDS, name)).toMatchObject({ m: T0 + 60_000, u: UID });
  });

  it('is created once by two processes at the same time', async () => {
    const creations = [former, current].map((items, index) =>
      leaseStore(items).createLease({ change: changeOf(name), nowMs: T0, tie: 0, uid: `lease-${index}` }),
    );
    expect((await Promise.all(creations)).map(({ kind }) => kind).sort()).toEqual(['conflict', 'written']);
    const rows = await Promise.all(HEALTH_SHARD_COUNTS.map((shards) => rowAt(raw, shards, name)));
    expect(rows.filter(isRow)).toHaveLength(1);
  });

  it('leaves a mark to which no write applies', async () => {
    await register(former, name);
    await moveKeepingMarks(raw, HEALTH_SHARDS);
    const mark = await rowAt(raw, FORMER_HEALTH_SHARDS, name);
    expect(mark).toEqual({ pk: healthKeyIn(FORMER_HEALTH_SHARDS, name).pk, sk: name, q: T0 });
    await beat(former, name, T0 + 9);
    await former.write(podsChanged(name));
    await former.transact([describeNode(name, aDigest({ zone: 'b' }), { isNew: false })]);
    await register(former, name, T0 + 10);
    expect(await rowAt(raw, FORMER_HEALTH_SHARDS, name)).toEqual(mark);
    expect(await rowAt(raw, HEALTH_SHARDS, name)).toMatchObject({ r: T0 + 9, l: T0 + 10, p: 1 });
  });

  it('is created at a key that has a mark', async () => {
    await register(former, name);
    await moveKeepingMarks(raw, HEALTH_SHARDS);
    await current.transact([forgetNode(name)]);
    await register(former, name, T0 + 20);
    expect(await rowAt(raw, FORMER_HEALTH_SHARDS, name)).toMatchObject({ l: T0 + 20, r: T0 + 20 });
    expect((await rowAt(raw, FORMER_HEALTH_SHARDS, name))?.['q']).toBeUndefined();
    expect(await rowAt(raw, HEALTH_SHARDS, name)).toBeUndefined();
  });
});

describe('the move of all rows', () => {
  let raw: ItemStore;
  let former: ItemStore;
  let current: ItemStore;
  let fleet: string[];
  beforeEach(async () => {
    raw = memoryItemStore();
    former = placedStore(raw, FORMER_HEALTH_SHARDS);
    current = placedStore(raw, HEALTH_SHARDS);
    fleet = names(40);
    for (const each of fleet) await register(former, each);
  });

  it.each([2, 3, 6, 9])('hides no node from a scan and shows none twice, before page %i', async (call) => {
    const moving = callBefore(raw, 'scan', call, () => moveKeepingMarks(raw, HEALTH_SHARDS));
    const seen = await scanHealth(placedStore(moving, HEALTH_SHARDS), { consistent: false, rowsExpected: 20_000 });
    expect(seen.map(({ nodeName }) => nodeName).sort()).toEqual([...fleet].sort());
    expect(new Set(seen.map(({ renewedAtMs }) => renewedAtMs))).toEqual(new Set([T0]));
  });

  it.each<[number, HealthShards]>([
    [16, HEALTH_SHARDS],
    [64, HEALTH_SHARDS],
    [64, FORMER_HEALTH_SHARDS],
    [200, FORMER_HEALTH_SHARDS],
  ])(
    'hides no Lease and no heartbeat time from a list and shows none twice, before query %i, to %i',
    async (call, to) => {
      const times = { fromSeconds: 1, toSeconds: 2 };
      for (const each of fleet) await former.write(confirmStatus(each, { uid: UID, nowMs: T0 + 1, times }));
      if (to === FORMER_HEALTH_SHARDS) await move(raw, HEALTH_SHARDS);
      const moving = () =>
        placedStore(
          callBefore(large(raw), 'query', call, () => moveKeepingMarks(raw, to)),
          HEALTH_SHARDS,
        );
      const { rows } = await leaseStore(moving()).listLeases({});
      expect(rows.map(({ sk }) => sk)).toEqual([...fleet].sort());

      await move(raw, otherHealthShards(to));
      const many = [...fleet, ...Array.from({ length: 600 }, (_, index) => `absent-${index}`)].sort();
      const read = await readHeartbeatTimes(moving(), many, { consistent: true });
      expect([...read.keys()].sort()).toEqual([...fleet].sort());
    },
  );

  it('lists a small table by one request, in pages by name', async () => {
    await moveKeepingMarks(raw, HEALTH_SHARDS);
    const requests: string[] = [];
    const counting: ItemStore = {
      ...current,
      query: async (request) => {
        requests.push('query');
        return current.query(request);
      },
      scan: async (request) => {
        requests.push('scan');
        return current.scan(request);
      },
    };
    const listed: unknown[] = [];
    let continueAfter: string | undefined;
    for (let pages = 0; pages < 3; pages += 1) {
      const { rows, next } = await leaseStore(counting).listLeases({ limit: 16, ...defined({ continueAfter }) });
      listed.push(...rows.map(({ sk }) => sk));
      continueAfter = next;
    }
    expect(continueAfter).toBeUndefined();
    expect(listed).toEqual([...fleet].sort());
    const times = { fromSeconds: 1, toSeconds: 2 };
    for (const each of fleet) await current.write(confirmStatus(each, { uid: UID, nowMs: T0 + 1, times }));
    const many = [...fleet, ...Array.from({ length: 600 }, (_, index) => `absent-${index}`)].sort();
    const read = await readHeartbeatTimes(counting, many, { consistent: true });
    expect([...read.keys()].sort()).toEqual([...fleet].sort());
    expect(requests).toEqual(['scan', 'scan', 'scan', 'scan']);
  });

  it('never has more than 32 reads of a list at once', async () => {
    let atOnce = 0;
    let most = 0;
    const counting: ItemStore = {
      ...large(raw),
      async query(request) {
        atOnce += 1;
        most = Math.max(most, atOnce);
        const page = await raw.query(request);
        await new Promise<void>((resolve) => setImmediate(resolve));
        atOnce -= 1;
        return page;
      },
    };
    expect((await leaseStore(counting).listLeases({})).rows).toHaveLength(40);
    const many = Array.from({ length: 600 }, (_, index) => `absent-${index}`).sort();
    await readHeartbeatTimes(counting, many, { consistent: true });
    expect(most).toBe(32);
  });

  it('continues after it was interrupted', async () => {
    let transactions = 0;
    const failing: ItemStore = {
      ...raw,
      async transact(writes) {
        transactions += 1;
        if (transactions > 10) throw new Error('killed');
        return raw.transact(writes);
      },
    };
    await expect(move(failing, HEALTH_SHARDS)).rejects.toThrow('killed');
    for (const each of fleet) expect((await beat(current, each, T0 + 3)).kind).toBe('written');
    expect(await move(raw, HEALTH_SHARDS, { atMs: T0 + 5 })).toMatchObject({
      kind: 'finished',
      moved: 30,
      marksDeleted: 40,
    });
    for (const each of fleet) expect(await rowAt(raw, HEALTH_SHARDS, each)).toMatchObject({ r: T0 + 3 });
  });

  it('may run twice at once', async () => {
    const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
    const conflicting = conflictingStore(raw, { transactionMs: 10, pause: turn, random: () => 0.5 });
    const results = await Promise.all([move(conflicting, HEALTH_SHARDS), move(conflicting, HEALTH_SHARDS)]);
    expect(results.map(({ kind }) => kind)).toEqual(['finished', 'finished']);
    expect(results[0]!.moved + results[1]!.moved).toBe(40);
    for (const each of fleet) {
      expect(await rowAt(raw, HEALTH_SHARDS, each)).toMatchObject({ r: T0, u: UID });
      expect(await rowAt(raw, FORMER_HEALTH_SHARDS, each)).toBeUndefined();
    }
  });

  it('moves at most so many rows per second', async () => {
    let nowMs = T0;
    await moveRows(raw, {
      to: HEALTH_SHARDS,
      rowsPerSecond: 8,
      nowMs: () => nowMs,
      pause: async (ms) => {
        nowMs += ms;
      },
      report: ({ moved }) => {
        if (moved === 40) expect(nowMs).toBeGreaterThanOrEqual(T0 + 5_000);
      },
    });
    expect(nowMs).toBeGreaterThan(T0 + 5_000);
  });

  it('reports rows that change at each attempt', async () => {
    const busy: ItemStore = {
      ...raw,
      async transact(writes) {
        nowMs += 1;
        await beat(former, fleet[0]!, nowMs);
        return raw.transact(writes);
      },
    };
    let nowMs = T0 + 1;
    const result = await move(busy, HEALTH_SHARDS);
    expect(result).toMatchObject({ kind: 'unfinished', left: 1, moved: 39 });
  });

  it('merges two rows of one node: the later Lease and the later digest', async () => {
    const [name] = fleet as [string];
    await raw.write(describeNode(name, aDigest({ zone: 'late', statusAtMs: T0 + 50 }), { isNew: true }));
    await beat(former, name, T0 + 70);
    const scanned = await scanHealth(current, { consistent: true });
    expect(scanned.filter(({ nodeName }) => nodeName === name)).toMatchObject([{ renewedAtMs: T0 + 70 }]);
    await move(raw, HEALTH_SHARDS);
    expect(await rowAt(raw, HEALTH_SHARDS, name)).toMatchObject({ z: 'late', l: T0 + 50, r: T0 + 70, u: UID });
    expect(await rowAt(raw, FORMER_HEALTH_SHARDS, name)).toBeUndefined();
  });
});

describe('rows that are moved while they are written', () => {
  it.each(Array.from({ length: 30 }, (_, seed) => seed))(
    'stay one per node and lose nothing (seed %i)',
    async (seed) => {
      const random = seededFraction(seed);
      const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
      const memory = memoryItemStore();
      const conflicting = conflictingStore(memory, { transactionMs: 10, pause: turn, random });
      const raw: ItemStore = {
        ...conflicting,
        // Rows change between the scan and their move.
        async scan(request) {
          const page = await conflicting.scan(request);
          await turn();
          return page;
        },
      };
      const processes = [placedStore(raw, HEALTH_SHARDS), placedStore(raw, FORMER_HEALTH_SHARDS)] as const;
      const fleet = names(6);
      let nowMs = T0;
      const alive = new Map<string, number>();
      for (const name of fleet) {
        await register(processes[1], name);
        alive.set(name, T0);
      }
      const anyProcess = () => processes[random() < 0.5 ? 0 : 1];

      const machine = async (name: string): Promise<void> => {
        for (let step = 0; step < 25; step += 1) {
          await turn();
          const items = anyProcess();
          nowMs += 1;
          const choice = random();
          if (choice < 0.7) {
            const outcome = await beat(items, name, nowMs);
            const expected = alive.has(name) ? 'written' : 'absent';
            expect(outcome.kind).toBe(expected);
            if (outcome.kind === 'written') alive.set(name, Number(outcome.row.r));
          } else if (choice < 0.8) {
            await untilSettled(() => items.transact([describeNode(name, aDigest(), { isNew: !alive.has(name) })]));
            if (!alive.has(name)) {
              await leaseStore(items).createLease({ change: changeOf(name), nowMs, tie: 0, uid: `${step}` });
              alive.set(name, nowMs);
            }
          } else if (choice < 0.9) {
            await untilSettled(() => items.transact([forgetNode(name)]));
            alive.delete(name);
          } else await items.write(podsChanged(name));
        }
      };
      const to = seed % 2 === 0 ? HEALTH_SHARDS : FORMER_HEALTH_SHARDS;
      let running = true;
      const mover = async (): Promise<void> => {
        while (running) {
          await moveKeepingMarks(raw, to);
          await turn();
        }
      };
      const moving = mover();
      try {
        await Promise.all(fleet.map(machine));
      } finally {
        running = false;
        await moving;
      }

      for (const name of fleet) {
        const rows = (
          await Promise.all([rowAt(memory, HEALTH_SHARDS, name), rowAt(memory, FORMER_HEALTH_SHARDS, name)])
        ).filter(isRow);
        expect(rows.map(({ r }) => r)).toEqual(alive.has(name) ? [alive.get(name)] : []);
      }
      const scanned = await scanHealth(processes[0], { consistent: true });
      expect(scanned.map(({ nodeName }) => nodeName).sort()).toEqual([...alive.keys()].sort());
    },
  );
});

async function untilSettled(transact: () => ReturnType<ItemStore['transact']>): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const outcome = await transact();
    if (outcome.kind === 'written') return;
    expect(outcome.kind).toBe('contended');
  }
  throw new Error('contended 50 times');
}
