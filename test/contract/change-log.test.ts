import { beforeEach, expect, it } from 'vitest';
import type { KubeObject, ObjectRef } from '../../shared/kinds/types.ts';
import { type ChangeLog, type ChangesOutcome, changeLog } from '../../shared/store/change-log.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { headPartition } from '../../shared/store/layout.ts';
import { type ObjectStore, objectStore } from '../../shared/store/object-store.ts';
import { describeOnStores } from './stores.ts';

const T0 = 1_795_197_000_000;
const MINUTE = 60_000;
const SHARDS = 4;
let count = 0;

describeOnStores('the change log', (fixture) => {
  let resource: string;
  let nowMs: number;
  let objects: ObjectStore;
  let log: ChangeLog;
  beforeEach(() => {
    count += 1;
    resource = `things${count}`;
    nowMs = T0;
    ({ objects, log } = open(fixture.items()));
  });
  const open = (items: ItemStore) => {
    const options = { items, clock: { nowMs: () => nowMs }, shardsOf: () => SHARDS };
    return { objects: objectStore(options), log: changeLog(options) };
  };

  const create = async (name: string, store = objects): Promise<KubeObject> => {
    const ref: ObjectRef = { resource, namespace: '', name };
    const outcome = await store.commit({ writes: [{ kind: 'create', ref, object: { metadata: { name } } }] });
    if (outcome.kind !== 'committed') throw new Error(outcome.kind);
    return outcome.objects[0]!;
  };
  const read = async (after: number, limit = 100) => {
    const outcome = await log.readChanges({ resource, after, limit });
    if (outcome.kind !== 'changes') throw new Error(outcome.kind);
    return outcome;
  };
  const names = (outcome: Extract<ChangesOutcome, { kind: 'changes' }>) =>
    outcome.changes.map(({ object }) => object.metadata.name);
  const version = (object: KubeObject): number => Number(object.metadata.resourceVersion);

  it('returns a current version for an empty cluster', async () => {
    expect(await log.currentVersion(resource)).toBe(T0 * 1_000);
  });

  it('returns the changes after a list, in order, once', async () => {
    await create('before');
    const listed = await log.currentVersion(resource);
    for (const name of ['a', 'b', 'c', 'd', 'e']) await create(name);
    const first = await read(listed);
    expect(names(first)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(first.changes.map((change) => change.type)).toEqual(Array(5).fill('ADDED'));
    expect((await read(first.through)).changes).toEqual([]);
    await create('f');
    expect(names(await read(first.through))).toEqual(['f']);
  });

  it('continues after a limit, and after any single change', async () => {
    const start = await log.currentVersion(resource);
    const all = Array.from({ length: 23 }, (_, index) => `n${String(index).padStart(2, '0')}`);
    for (const name of all) await create(name);
    const seen: (string | undefined)[] = [];
    let after = start;
    for (let reads = 0; reads < 20; reads += 1) {
      const outcome = await read(after, 4);
      if (outcome.changes.length === 0) break;
      expect(outcome.changes.length).toBeLessThanOrEqual(4);
      expect(outcome.through).toBeGreaterThanOrEqual(outcome.changes.at(-1)!.resourceVersion);
      seen.push(...names(outcome));
      after = outcome.through;
    }
    expect(seen).toEqual(all);
    const whole = await read(start);
    for (const [index, change] of whole.changes.entries()) {
      expect(names(await read(change.resourceVersion))).toEqual(all.slice(index + 1));
    }
  });

  it('lets no commit write a version below one that it has returned', async () => {
    // A writer chooses its version, sleeps, and commits after a reader has returned a later one.
    const items = fixture.items();
    let wake: () => void = () => {};
    const asleep = new Promise<void>((resolve) => {
      wake = resolve;
    });
    let first = true;
    const sleepy = open({
      ...items,
      transact: async (writes) => {
        if (first) {
          first = false;
          await asleep;
        }
        return items.transact(writes);
      },
    });
    const start = await log.currentVersion(resource);
    const late = create('late', sleepy.objects);
    nowMs = T0 + 5;
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) await create(name);
    const told = await read(start);
    expect(told.changes).toHaveLength(6);
    wake();
    expect(version(await late)).toBeGreaterThan(told.through);
    expect(names(await read(told.through))).toEqual(['late']);
  });

  it('reads no log and writes nothing while all is quiet', async () => {
    await create('a');
    const start = await log.currentVersion(resource);
    await create('b');
    const { through } = await read(start);
    fixture.consumed();
    expect(await read(through)).toEqual({ kind: 'changes', changes: [], through, more: false });
    const units = fixture.consumed();
    expect(units.map(({ operation }) => operation)).toEqual(['BatchGetItem']);
    expect(units[0]).toMatchObject({ readUnits: SHARDS / 2, writeUnits: 0 });
  });

  it('raises nothing for a list when no shard is behind', async () => {
    await create('a');
    await log.currentVersion(resource);
    fixture.consumed();
    await log.currentVersion(resource);
    expect(fixture.consumed().map(({ operation }) => operation)).toEqual(['BatchGetItem']);
  });

  it('expires a cursor older than the retention after which something was committed', async () => {
    const start = await log.currentVersion(resource);
    nowMs = T0 + 61 * MINUTE;
    await create('a');
    expect(await log.readChanges({ resource, after: start, limit: 10 })).toEqual({ kind: 'expired' });
  });

  it('answers a cursor inside the retention to its last millisecond', async () => {
    const start = await log.currentVersion(resource);
    await create('a');
    nowMs = T0 + 60 * MINUTE;
    expect(names(await read(start))).toEqual(['a']);
    nowMs += 1;
    expect((await log.readChanges({ resource, after: start, limit: 10 })).kind).toBe('expired');
  });

  it('does not expire an old cursor in a quiet cluster, and moves it to the present', async () => {
    await create('a');
    const start = await read(await log.currentVersion(resource));
    nowMs = T0 + 300 * MINUTE;
    const quiet = await read(start.through);
    expect(quiet.changes).toEqual([]);
    expect(quiet.through).toBe(nowMs * 1_000);
    nowMs += MINUTE;
    await create('b');
    expect(names(await read(quiet.through))).toEqual(['b']);
  });

  it('returns a current version for a list in a quiet cluster', async () => {
    await create('a');
    nowMs = T0 + 11 * MINUTE;
    const listed = await log.currentVersion(resource);
    expect(listed).toBe(nowMs * 1_000);
    expect(version(await create('b'))).toBeGreaterThan(listed);
  });

  it('keeps the heads of one resource apart from those of another', async () => {
    await create('a');
    const head = await fixture
      .items()
      .get({ table: 'objects', pk: headPartition(`${resource}x`, 0), sk: '-' }, { consistent: true });
    expect(head).toBeUndefined();
  });
});
