import { expect, it } from 'vitest';
import { memoryObjects, START_MS } from '../../test/support/memory-objects.ts';
import { changeLog } from './change-log.ts';
import { type ItemStore, StoreFault } from './item-store.ts';
import { memoryItemStore } from './memory/item-store.ts';

/** Pages of one shard's log in one read. */
const LOG_PAGES_MAX = 64;

it('a read of the change log ends, though pages without an entry never do', async () => {
  const { items, options, create } = memoryObjects();
  let pages = 0;
  const endless: ItemStore = {
    ...items,
    async query(request) {
      pages += 1;
      if (pages > 10 * LOG_PAGES_MAX) throw new Error('the read does not stop');
      return { items: [], next: request.through ?? '' };
    },
  };
  await create('a');
  const { readChanges } = changeLog({ ...options, items: endless });
  const after = (START_MS - 60_000) * 1_000;
  await expect(readChanges({ resource: 'things', after, limit: 10, eager: true })).rejects.toMatchObject({
    name: 'StoreFault',
    code: 'too-large',
  });
  expect(pages).toBe(LOG_PAGES_MAX);
});

it('reads a log of more pages than one read may have in several reads, each from where the last one ended', async () => {
  const { items, options, create } = memoryObjects();
  const names = Array.from({ length: 2 * LOG_PAGES_MAX + 10 }, (_, at) => `a-${at}`);
  for (const name of names) await create(name);
  const onePerPage: ItemStore = { ...items, query: (request) => items.query({ ...request, limit: 1 }) };
  const { readChanges } = changeLog({ ...options, items: onePerPage });
  const read: string[][] = [];
  let after = (START_MS - 60_000) * 1_000;
  while (read.flat().length < names.length && read.length < 4) {
    const outcome = await readChanges({ resource: 'things', after, limit: 1_000, eager: true });
    if (outcome.kind !== 'changes') throw new Error('the log has expired');
    read.push(outcome.changes.map(({ object }) => object.metadata.name!));
    after = outcome.through;
  }
  expect(read.flat()).toEqual(names);
  expect(read.map((each) => each.length)).toEqual([LOG_PAGES_MAX, LOG_PAGES_MAX, 10]);
});

it('reads little more of a log than the bytes that its reader accepts', async () => {
  const { items, options, create } = memoryObjects();
  const names = Array.from({ length: 40 }, (_, at) => `a-${at}`);
  for (const name of names) await create(name);
  let pages = 0;
  const onePerPage: ItemStore = {
    ...items,
    query(request) {
      pages += 1;
      return items.query({ ...request, limit: 1 });
    },
  };
  const { readChanges } = changeLog({ ...options, items: onePerPage });
  const after = (START_MS - 60_000) * 1_000;
  const read = (bytesMax: number) => readChanges({ resource: 'things', after, limit: 1_000, eager: true, bytesMax });
  // A change is returned whatever its bytes are.
  expect(await read(1)).toMatchObject({ changes: { length: 1 }, more: true });
  expect(pages).toBe(1);
  pages = 0;
  const outcome = await read(1_000);
  if (outcome.kind !== 'changes') throw new Error('the log has expired');
  expect(outcome.changes).toHaveLength(pages);
  expect(outcome.changes.at(-1)?.resourceVersion).toBe(outcome.through);
  expect(outcome.more).toBe(true);
  expect(pages).toBeGreaterThan(2);
  expect(pages).toBeLessThan(15);
});

it('a list has a version while the tables refuse writes, and a watch from there misses nothing', async () => {
  const { items, options, create } = memoryObjects({ shards: 4 });
  const refuse = () => Promise.reject(new StoreFault('unreachable', 'the disk is full', { retryable: true }));
  const full = changeLog({ ...options, items: { ...items, write: refuse, transact: refuse } });

  await create('before');
  // Some shard has no commit yet, and its head cannot be raised: every version is possible there.
  expect(await full.currentVersion('things')).toBe(1);

  const raised = await changeLog(options).currentVersion('things');
  await create('later');
  const version = await full.currentVersion('things');
  expect(version).toBeLessThanOrEqual(raised);
  const outcome = await changeLog(options).readChanges({
    ...{ resource: 'things', after: version, limit: 10, eager: true },
  });
  expect(outcome).toMatchObject({ kind: 'changes', changes: [{ object: { metadata: { name: 'later' } } }] });
});

/** A log of one shard with one commit. */
async function quietLog() {
  const operations: string[] = [];
  const items = memoryItemStore({
    onConsumed: ({ operation, readUnits }) => operations.push(`${operation} ${readUnits}`),
  });
  const { options, create, pass } = memoryObjects({ items });
  const version = await create('a');
  operations.splice(0);
  return { log: changeLog(options), create, version, pass, operations: () => operations.splice(0) };
}

it('a version is moved to the present when it is older than ten minutes, not at ten minutes', async () => {
  const { log, version, pass } = await quietLog();
  pass(600_000);
  expect(await log.currentVersion('things')).toBe(version);
  pass(1);
  expect(await log.currentVersion('things')).toBe((START_MS + 600_001) * 1_000);
});

it('a poll of a cursor that is ten minutes old is one late read of the heads, unless it must be complete', async () => {
  const { log, version, pass, operations } = await quietLog();
  pass(600_000);
  const poll = (eager: boolean) => log.readChanges({ resource: 'things', after: version, limit: 10, eager });
  const nothing = { kind: 'changes', changes: [], through: version, more: false };
  expect(await poll(false)).toEqual(nothing);
  expect(operations()).toEqual(['BatchGetItem 0.5']);
  expect(await poll(true)).toEqual(nothing);
  expect(operations()).toEqual(['BatchGetItem 1']);
  pass(1);
  expect((await poll(false)).kind).toBe('changes');
  expect(operations()).toEqual(['BatchGetItem 1', 'UpdateItem 0']);
});

it('a cursor beyond the log stays where it is, and a read asks for at least one change', async () => {
  const { log, version } = await quietLog();
  const read = (limit: number) => log.readChanges({ resource: 'things', after: version + 5_000, limit, eager: true });
  expect(await read(1)).toEqual({ kind: 'changes', changes: [], through: version + 5_000, more: false });
  await expect(read(0)).rejects.toThrow(RangeError);
});

it('the newest commit of each resource is 0 without one', async () => {
  const { log, create, version, operations } = await quietLog();
  const other = await create('b', 'others');
  operations();
  const resources = ['none', 'things', 'others'];
  expect(await log.newestCommits(resources, { consistent: true })).toEqual([0, version, other]);
  expect(await log.newestCommits(resources, { consistent: false })).toEqual([0, version, other]);
  expect(operations()).toEqual(['BatchGetItem 3', 'BatchGetItem 1.5']);
  // A raised head is no commit.
  await log.currentVersion('none');
  expect(await log.newestCommits(['none'], { consistent: true })).toEqual([0]);
});
