import { describe, expect, it } from 'vitest';
import { validateOwnerReferences } from '../kubernetes/validate-metadata.ts';
import { memoryItemStore } from '../store/memory/item-store.ts';
import {
  addDue,
  addSweep,
  type DueKey,
  type DueRows,
  dueText,
  earliestRows,
  hasDueRow,
  isWanted,
  nextSweep,
  removeDue,
  type Turn,
  textOf,
  WORKLOADS_DUE,
} from './due-rows.ts';

const NOW_MS = 1_764_000_000_000;
const BY_KEY: DueRows = { pk: 'by-key', time: 'sortKey' };
const BY_ATTRIBUTE: DueRows = { pk: 'by-attribute', time: { attribute: 'due' } };
const AT_ONCE: DueRows = { pk: 'at-once', time: 'none' };

async function withRow(pk: string, sk: string, item: Record<string, number> = {}) {
  const items = memoryItemStore();
  await items.write({ kind: 'put', key: { table: 'control', pk, sk }, item });
  return items;
}

describe('due rows', () => {
  it('by sort key: are due at their millisecond, and not before', async () => {
    const items = await withRow(BY_KEY.pk, `${dueText(NOW_MS)}#zone/node`);
    expect(await hasDueRow(items, [BY_KEY], NOW_MS)).toBe(true);
    expect(await hasDueRow(items, [BY_KEY], NOW_MS - 1)).toBe(false);
  });

  it.each([Number.POSITIVE_INFINITY, 1e21, 3e17])('by sort key: are behind all others after %d ms', async (afterMs) => {
    const items = await withRow(BY_KEY.pk, `${dueText(NOW_MS + afterMs)}#cronjob`);
    expect(await hasDueRow(items, [BY_KEY], NOW_MS)).toBe(false);
    expect(dueText(NOW_MS + afterMs)).toBe('99999999999999');
  });

  it('by attribute: are due when the earliest of them is, wherever it is in the partition', async () => {
    const items = await withRow(BY_ATTRIBUTE.pk, 'a', { due: NOW_MS + 60_000 });
    await items.write({ kind: 'put', key: { table: 'control', pk: BY_ATTRIBUTE.pk, sk: 'b' }, item: { due: NOW_MS } });
    expect(await hasDueRow(items, [BY_ATTRIBUTE], NOW_MS)).toBe(true);
    expect(await hasDueRow(items, [BY_ATTRIBUTE], NOW_MS - 1)).toBe(false);
  });

  it('without a time: are due as long as they exist', async () => {
    expect(await hasDueRow(await withRow(AT_ONCE.pk, 'node'), [AT_ONCE], NOW_MS)).toBe(true);
    expect(await hasDueRow(memoryItemStore(), [AT_ONCE], NOW_MS)).toBe(false);
  });

  it('of several partitions: one that is due is enough', async () => {
    const items = await withRow(AT_ONCE.pk, 'node');
    expect(await hasDueRow(items, [BY_KEY, BY_ATTRIBUTE, AT_ONCE], NOW_MS)).toBe(true);
    expect(await hasDueRow(items, [BY_KEY, BY_ATTRIBUTE], NOW_MS)).toBe(false);
  });
});

it('a pass is wanted after a request that none has served, and from its time on', () => {
  const turn: Turn = { wanted: 2, done: 2, busyUntilMs: 0, dueAtMs: NOW_MS };
  expect(isWanted({ ...turn, wanted: 3 }, NOW_MS - 1)).toBe(true);
  expect(isWanted(turn, NOW_MS)).toBe(true);
  expect(isWanted(turn, NOW_MS - 1)).toBe(false);
});

const ref = { resource: 'jobs', namespace: 'shop', name: 'a.b-c' };
const KEYS: readonly DueKey[] = [
  { kind: 'sweep' },
  { kind: 'daemonSets' },
  { kind: 'workload', ref },
  { kind: 'workload', ref: { resource: 'namespaces', namespace: '', name: 'shop' } },
  { kind: 'finish', ref },
  { kind: 'finish', ref: { resource: 'clusterroles', namespace: '', name: 'system:a:b' } },
  { kind: 'adopt', ref },
  { kind: 'podEnded', ref },
  { kind: 'collect', ownerUid: 'u-1' },
  { kind: 'dependents', ownerUid: 'u-1' },
];

describe('due work of workloads', () => {
  it('of an owner is stored however long its uid may be', async () => {
    const ownedBy = (length: number) => ({ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u'.repeat(length) });
    const isValid = (length: number) => validateOwnerReferences([ownedBy(length)], 'f').length === 0;
    const ownerUid = 'u'.repeat(Array.from({ length: 2_048 }, (_, length) => length).findLast(isValid)!);
    const items = memoryItemStore();
    for (const kind of ['collect', 'dependents'] as const) await addDue(items, { atMs: 0, key: { kind, ownerUid } });
    expect((await earliestRows(items)).rows).toHaveLength(2);
  });

  it.each(KEYS)('is read as it was stored: %j', async (key) => {
    const items = memoryItemStore();
    await addDue(items, { atMs: 5_000, key });
    expect(await earliestRows(items)).toEqual({ rows: [{ atMs: 5_000, key }], isCut: false });
    await removeDue(items, { atMs: 5_000, key });
    expect((await earliestRows(items)).rows).toEqual([]);
  });

  it('has another text for each work', () => {
    expect(new Set(KEYS.map(textOf)).size).toBe(KEYS.length);
  });

  it('is rounded up to the second, so equal works are one row', async () => {
    const items = memoryItemStore();
    const key: DueKey = { kind: 'workload', ref };
    await addDue(items, { atMs: 5_001, key });
    await addDue(items, { atMs: 6_000, key });
    expect((await earliestRows(items)).rows).toEqual([{ atMs: 6_000, key }]);
    expect([await hasDueRow(items, [WORKLOADS_DUE], 5_999), await hasDueRow(items, [WORKLOADS_DUE], 6_000)]).toEqual([
      false,
      true,
    ]);
    await removeDue(items, { atMs: 5_400, key });
    expect((await earliestRows(items)).rows).toEqual([]);
  });

  it('is read by time, 200 rows at most', async () => {
    const items = memoryItemStore();
    for (let number = 200; number > 0; number -= 1) {
      await addDue(items, { atMs: number * 1_000, key: { kind: 'collect', ownerUid: `u${number}` } });
    }
    const { rows, isCut } = await earliestRows(items);
    expect([rows.length, isCut, rows[0]?.atMs, rows.at(-1)?.atMs]).toEqual([200, true, 1_000, 200_000]);
    await removeDue(items, rows[0]!);
    expect((await earliestRows(items)).isCut).toBe(false);
  });
});

describe('the next sweep', () => {
  it('is due at its time, and known when its row is not read', async () => {
    const items = memoryItemStore();
    expect(await nextSweep(items)).toEqual({ atMs: 0 });
    await addSweep(items, { atMs: 7_000 });
    expect(await nextSweep(items)).toEqual({ atMs: 7_000 });
    expect((await earliestRows(items)).rows).toEqual([{ atMs: 7_000, key: { kind: 'sweep' } }]);
  });

  it('continues where the last one was cut off', async () => {
    const items = memoryItemStore();
    await addSweep(items, { atMs: 7_000, from: 'jobs:shop/a' });
    expect(await nextSweep(items)).toEqual({ atMs: 7_000, from: 'jobs:shop/a' });
    await addSweep(items, { atMs: 8_000 });
    expect(await nextSweep(items)).toEqual({ atMs: 8_000 });
  });
});
