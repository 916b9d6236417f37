import { describe, expect, it } from 'vitest';
import { changeLog } from '../../shared/store/change-log.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { resourceVersionOf } from '../../shared/store/object-record.ts';
import { objectStore } from '../../shared/store/object-store.ts';
import { changeSignals } from './change-signals.ts';
import { sharedChanges } from './shared-changes.ts';

const SHARDS = 4;

function cluster() {
  let nowMs = Date.UTC(2026, 0, 1);
  const clock = { nowMs: () => nowMs };
  const items = memoryItemStore();
  const objects = objectStore({ items, clock, shardsOf: () => SHARDS });
  const log = changeLog({ items, clock, shardsOf: () => SHARDS });
  const signals = changeSignals();
  let reads = 0;
  const counted: typeof log = {
    ...log,
    readChanges(request) {
      reads += 1;
      return log.readChanges(request);
    },
  };
  const shared = sharedChanges(counted, signals, clock);
  return {
    log,
    shared,
    reads: () => reads,
    pass(milliseconds: number) {
      nowMs += milliseconds;
    },
    async create(...names: readonly string[]) {
      for (const name of names) {
        nowMs += 1;
        const ref = { resource: 'nodes', namespace: '', name };
        await objects.commit({
          writes: [{ kind: 'create', ref, object: { apiVersion: 'v1', kind: 'Node', metadata: { name } } }],
        });
        signals.changed('nodes');
      }
    },
  };
}

/** What a watch receives that begins at a version. */
async function namesAfter(log: Pick<ReturnType<typeof cluster>, 'shared'>['shared'], after: number, limit = 500) {
  const names: string[] = [];
  let cursor = after;
  for (let reads = 0; reads < 100; reads += 1) {
    const outcome = await log.readChanges({ resource: 'nodes', after: cursor, limit });
    if (outcome.kind === 'expired') return 'expired';
    names.push(...outcome.changes.map(({ object }) => object.metadata.name ?? ''));
    cursor = outcome.through;
    if (outcome.changes.length < limit) break;
  }
  return names;
}

describe('the change log that watches share', () => {
  it('delivers what the log delivers, from any version, in parts of any size', async () => {
    const { shared, log, create } = cluster();
    await create('a', 'b');
    const version = await log.currentVersion('nodes');
    await shared.readChanges({ resource: 'nodes', after: version, limit: 10 });
    const names = Array.from({ length: 40 }, (_, index) => `n${index}`);
    for (const name of names) await create(name);
    expect(await namesAfter(shared, version)).toEqual(names);
    expect(await namesAfter(shared, version, 7)).toEqual(names);
    const all = await log.readChanges({ resource: 'nodes', after: version, limit: 500 });
    const middle = all.kind === 'changes' ? resourceVersionOf(all.changes[20]!.object) : 0;
    expect(await namesAfter(shared, middle)).toEqual(names.slice(21));
    // From before the first read of the shared log.
    expect(await namesAfter(shared, 1)).toEqual(await namesAfter(log, 1));
  });

  it('reads the log once per commit, however many watches there are', async () => {
    const { shared, log, create, reads } = cluster();
    const version = await log.currentVersion('nodes');
    await namesAfter(shared, version);
    const before = reads();
    for (const name of ['a', 'b', 'c']) {
      await create(name);
      await Promise.all(Array.from({ length: 500 }, () => namesAfter(shared, version)));
    }
    expect(reads() - before).toBe(3);
  });

  it('finds a commit that happened during a read', async () => {
    const { shared, log, create } = cluster();
    const version = await log.currentVersion('nodes');
    const [during] = await Promise.all([namesAfter(shared, version), create('a')]);
    expect(during).toBeInstanceOf(Array);
    expect(await namesAfter(shared, version)).toEqual(['a']);
  });

  it('a quiet watch keeps up with the log, and does not expire', async () => {
    const { shared, log, create, pass } = cluster();
    await create('a');
    let cursor = await log.currentVersion('nodes');
    for (let minutes = 0; minutes < 180; minutes += 10) {
      pass(600_000);
      const outcome = await shared.readChanges({ resource: 'nodes', after: cursor, limit: 500 });
      expect(outcome.kind).toBe('changes');
      if (outcome.kind === 'changes') cursor = outcome.through;
    }
    await create('b');
    expect(await namesAfter(shared, cursor)).toEqual(['b']);
  });

  it('a watch that is further behind than what is kept reads the log', async () => {
    const { shared, log, create } = cluster();
    const version = await log.currentVersion('nodes');
    await namesAfter(shared, version);
    const names = Array.from({ length: 2_300 }, (_, index) => `n${index}`);
    for (let first = 0; first < names.length; first += 100) {
      await create(...names.slice(first, first + 100));
      await shared.readChanges({ resource: 'nodes', after: Number.MAX_SAFE_INTEGER, limit: 1 });
    }
    expect(await namesAfter(shared, version)).toEqual(names);
  });
});
