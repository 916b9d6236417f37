import { describe, expect, it } from 'vitest';
import { memoryObjects, START_MS } from '../../test/support/memory-objects.ts';
import type { ItemStore } from './item-store.ts';
import { readShardChanges, readShardCursors } from './shard-changes.ts';

const HOUR_MS = 3_600_000;

describe('changes of a resource by shards', () => {
  it('are those after the cursors, each once, and a quiet resource costs its heads only', async () => {
    const { items, options, create, pass } = memoryObjects({ shards: 2 });
    expect(await readShardCursors(options, 'things')).toEqual({ versions: [0, 0], readAtMs: START_MS });
    await create('before');
    pass(10);
    const cursors = await readShardCursors(options, 'things');
    expect(cursors.readAtMs).toBe(START_MS + 10);
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const versions: number[] = [];
    for (const name of names) versions.push(await create(name));
    const first = await readShardChanges(options, 'things', cursors);
    if (first.kind !== 'changes') throw new Error(first.kind);
    expect(first.changes.map(({ object }) => object.metadata.name).toSorted()).toEqual(names);
    expect(first.cursors.versions).toEqual(
      [0, 1].map((shard) => Math.max(...versions.filter((version) => version % 2 === shard))),
    );
    const quiet: ItemStore = { ...items, query: () => Promise.reject(new Error('a log was read')) };
    expect(await readShardChanges({ ...options, items: quiet }, 'things', first.cursors)).toEqual({
      kind: 'changes',
      changes: [],
      cursors: first.cursors,
    });
  });

  it('may have expired an hour after the cursors were read, if there are any', async () => {
    const { options, create, pass } = memoryObjects({ shards: 2 });
    const cursors = await readShardCursors(options, 'things');
    pass(HOUR_MS + 1);
    expect((await readShardChanges(options, 'things', cursors)).kind).toBe('changes');
    await create('a');
    expect(await readShardChanges(options, 'things', cursors)).toEqual({ kind: 'expired' });
    pass(-1);
    expect((await readShardChanges(options, 'things', cursors)).kind).toBe('changes');
  });

  it.each([
    [4, 'changes'],
    [5, 'expired'],
  ])('in %i pages of the log of a shard are answered with %s', async (pages, kind) => {
    const { items, options, create } = memoryObjects();
    for (let index = 0; index < pages; index += 1) await create(`n${index}`);
    const onePerPage: ItemStore = { ...items, query: (request) => items.query({ ...request, limit: 1 }) };
    const cursors = { versions: [0], readAtMs: START_MS };
    const outcome = await readShardChanges({ ...options, items: onePerPage }, 'things', cursors);
    expect(outcome.kind).toBe(kind);
    if (outcome.kind === 'changes') expect(outcome.changes).toHaveLength(pages);
  });

  it('are asked for by heads that are read as consistently as the caller needs', async () => {
    const { items, options } = memoryObjects({ shards: 2 });
    const asked: boolean[] = [];
    const getMany: ItemStore['getMany'] = (keys, read) => {
      asked.push(read.consistent);
      return items.getMany(keys, read);
    };
    const watched = { ...options, items: { ...items, getMany } };
    await readShardCursors(watched, 'things');
    await readShardCursors(watched, 'things', { consistent: false });
    expect(asked).toEqual([true, false]);
  });
});
