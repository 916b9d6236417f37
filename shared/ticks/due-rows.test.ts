import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../store/memory/item-store.ts';
import { type DueRows, dueText, hasDueRow, isWanted, type Turn } from './due-rows.ts';

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
