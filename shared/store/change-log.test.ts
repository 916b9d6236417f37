import { expect, it } from 'vitest';
import { changeLog } from './change-log.ts';
import { type ItemStore, StoreFault } from './item-store.ts';
import { memoryItemStore } from './memory/item-store.ts';
import { objectStore } from './object-store.ts';

/** Pages of one shard's log in one read. */
const LOG_PAGES_MAX = 64;

it('a read of the change log ends, though pages without an entry never do', async () => {
  const items = memoryItemStore();
  let pages = 0;
  const endless: ItemStore = {
    ...items,
    async query(request) {
      pages += 1;
      if (pages > 10 * LOG_PAGES_MAX) throw new Error('the read does not stop');
      return { items: [], next: request.through ?? '' };
    },
  };
  const options = { clock: { nowMs: () => Date.UTC(2026, 0, 1) }, shardsOf: () => 1 };
  await objectStore({ ...options, items }).commit({
    writes: [
      { kind: 'create', ref: { resource: 'things', namespace: '', name: 'a' }, object: { metadata: { name: 'a' } } },
    ],
  });
  const { readChanges } = changeLog({ ...options, items: endless });
  const after = (Date.UTC(2026, 0, 1) - 60_000) * 1_000;
  await expect(readChanges({ resource: 'things', after, limit: 10, eager: true })).rejects.toMatchObject({
    name: 'StoreFault',
    code: 'too-large',
  });
  expect(pages).toBe(LOG_PAGES_MAX);
});

it('reads a log of more pages than one read may have in several reads, each from where the last one ended', async () => {
  const items = memoryItemStore();
  const startMs = Date.UTC(2026, 0, 1);
  const options = { clock: { nowMs: () => startMs }, shardsOf: () => 1 };
  const store = objectStore({ ...options, items });
  const names = Array.from({ length: 2 * LOG_PAGES_MAX + 10 }, (_, at) => `a-${at}`);
  for (const name of names) {
    const ref = { resource: 'things', namespace: '', name };
    await store.commit({ writes: [{ kind: 'create', ref, object: { metadata: { name } } }] });
  }
  const onePerPage: ItemStore = { ...items, query: (request) => items.query({ ...request, limit: 1 }) };
  const { readChanges } = changeLog({ ...options, items: onePerPage });
  const read: string[][] = [];
  let after = (startMs - 60_000) * 1_000;
  while (read.flat().length < names.length && read.length < 4) {
    const outcome = await readChanges({ resource: 'things', after, limit: 1_000, eager: true });
    if (outcome.kind !== 'changes') throw new Error('the log has expired');
    read.push(outcome.changes.map(({ object }) => object.metadata.name!));
    after = outcome.through;
  }
  expect(read.flat()).toEqual(names);
  expect(read.map((each) => each.length)).toEqual([LOG_PAGES_MAX, LOG_PAGES_MAX, 10]);
});

it('a list has a version while the tables refuse writes, and a watch from there misses nothing', async () => {
  const items = memoryItemStore();
  const options = { clock: { nowMs: () => Date.UTC(2026, 0, 1) }, shardsOf: () => 4 };
  const { commit } = objectStore({ ...options, items });
  const create = (name: string) =>
    commit({
      writes: [{ kind: 'create', ref: { resource: 'things', namespace: '', name }, object: { metadata: { name } } }],
    });
  const refuse = () => Promise.reject(new StoreFault('unreachable', 'the disk is full', { retryable: true }));
  const full = changeLog({ ...options, items: { ...items, write: refuse, transact: refuse } });

  await create('before');
  // Some shard has no commit yet, and its head cannot be raised: every version is possible there.
  expect(await full.currentVersion('things')).toBe(1);

  const raised = await changeLog({ ...options, items }).currentVersion('things');
  await create('later');
  const version = await full.currentVersion('things');
  expect(version).toBeLessThanOrEqual(raised);
  const outcome = await changeLog({ ...options, items }).readChanges({
    ...{ resource: 'things', after: version, limit: 10, eager: true },
  });
  expect(outcome).toMatchObject({ kind: 'changes', changes: [{ object: { metadata: { name: 'later' } } }] });
});
