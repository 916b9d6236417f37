/** Changes of one commit share a log item, as far as they fit. */
import { beforeEach, expect, it } from 'vitest';
import type { KubeObject, ObjectRef } from '../../shared/kinds/types.ts';
import { type ChangeLog, changeLog } from '../../shared/store/change-log.ts';
import type { Item, ItemStore } from '../../shared/store/item-store.ts';
import { logPartition, shardOf } from '../../shared/store/layout.ts';
import { type ObjectStore, type ObjectWrite, objectStore } from '../../shared/store/object-store.ts';
import { describeOnStores } from './stores.ts';

const T0 = 1_795_197_000_000;
const FILLER = 'x'.repeat(2_000);
let count = 0;

describeOnStores('log items with several changes', (fixture) => {
  let resource: string;
  let store: ObjectStore;
  let log: ChangeLog;
  beforeEach(() => {
    count += 1;
    resource = `folded${count}`;
    const options = { items: fixture.items(), clock: { nowMs: () => T0 }, shardsOf: () => 1 };
    store = objectStore(options);
    log = changeLog(options);
  });

  const ref = (name: string): ObjectRef => ({ resource, namespace: '', name });
  const create = (name: string): ObjectWrite => ({
    kind: 'create',
    ref: ref(name),
    object: { apiVersion: 'v1', kind: 'Widget', metadata: { name, labels: { step: '0' } }, spec: { text: FILLER } },
  });
  const commit = async (store: ObjectStore, ...writes: ObjectWrite[]): Promise<readonly KubeObject[]> => {
    const outcome = await store.commit({ writes });
    if (outcome.kind !== 'committed') throw new Error(outcome.kind);
    return outcome.objects;
  };
  const stored = async (pk: string): Promise<readonly Item[]> =>
    (await fixture.items().query({ table: 'objects', pk, consistent: true })).items;
  const changes = async () => {
    const outcome = await log.readChanges({ resource, after: (T0 - 1) * 1_000, limit: 100, eager: true });
    if (outcome.kind !== 'changes') throw new Error(outcome.kind);
    return outcome.changes;
  };

  it('resumes between the changes of one log item', async () => {
    const created = await commit(store, create('a'), create('b'), create('c'), create('d'));
    expect(await stored(logPartition(resource, 0))).toHaveLength(1);
    const seen: string[] = [];
    let after = (T0 - 1) * 1_000;
    for (let reads = 0; reads < 10; reads += 1) {
      const outcome = await log.readChanges({ resource, after, limit: 1, eager: true });
      if (outcome.kind !== 'changes') throw new Error(outcome.kind);
      seen.push(...outcome.changes.map(({ ref: { name } }) => name));
      after = outcome.through;
      if (outcome.changes.length === 0) break;
    }
    expect(seen).toEqual(['a', 'b', 'c', 'd']);
    for (const [index, { metadata }] of created.entries()) {
      const rest = await log.readChanges({ resource, after: Number(metadata.resourceVersion), limit: 9, eager: true });
      expect(rest).toMatchObject({ kind: 'changes', changes: created.slice(index + 1).map((object) => ({ object })) });
    }
  });

  it('decompresses no more of the log than a read needs', async () => {
    for (let commits = 0; commits < 6; commits += 1) {
      await commit(store, ...Array.from({ length: 20 }, (_, index) => create(`n${commits}-${index}`)));
    }
    let decompressed = 0;
    const items = fixture.items();
    const counted: ItemStore = {
      ...items,
      async query(request) {
        const page = await items.query(request);
        const each = page.items.map((item) =>
          Object.defineProperty({ ...item }, 'e', {
            get() {
              decompressed += 1;
              return item['e'];
            },
          }),
        );
        return { ...page, items: each };
      },
    };
    const reader = changeLog({ items: counted, clock: { nowMs: () => T0 }, shardsOf: () => 1 });
    const outcome = await reader.readChanges({ resource, after: (T0 - 1) * 1_000, limit: 30, eager: true });
    expect(outcome).toMatchObject({ kind: 'changes', changes: { length: 30 } });
    expect(decompressed).toBe(2);
  });

  it('delivers changes of a commit that began below the version of a read and ended above it', async () => {
    const names = Array.from({ length: 40 }, (_, index) => `n${index}`);
    const ofShard = (shard: number): string[] => names.filter((name) => shardOf(name, 2) === shard);
    const items = fixture.items();
    const open = (nowMs: () => number) => objectStore({ items, clock: { nowMs }, shardsOf: () => 2 });
    const listedAt = (T0 - 1) * 1_000;
    const first = await commit(
      open(() => T0 + 1),
      create(ofShard(0)[0]!),
    );
    // The clock is read once per object, and once per version. It advances with the second version.
    let calls = 0;
    const spanning = open(() => {
      calls += 1;
      return T0 + Math.max(0, calls - 5);
    });
    let late: readonly KubeObject[] = [];
    const held: ItemStore = {
      ...items,
      async getMany(keys, options) {
        const heads = await items.getMany(keys, options);
        if (late.length === 0) {
          late = await commit(spanning, ...ofShard(1).slice(0, 4).map(create));
        }
        return heads;
      },
    };
    const version = (object: KubeObject): number => Number(object.metadata.resourceVersion);
    const reader = changeLog({ items: held, clock: { nowMs: () => T0 + 5 }, shardsOf: () => 2 });
    const seen: number[] = [];
    for (let after = listedAt, reads = 0; reads < 5; reads += 1) {
      const outcome = await reader.readChanges({ resource, after, limit: 100, eager: true });
      if (outcome.kind !== 'changes') throw new Error(outcome.kind);
      seen.push(...outcome.changes.map(({ resourceVersion }) => resourceVersion));
      after = outcome.through;
    }
    expect(version(late[0]!)).toBeLessThan(version(first[0]!));
    expect(version(late.at(-1)!)).toBeGreaterThan(version(first[0]!));
    expect(seen).toEqual([...first, ...late].map(version).sort((one, other) => one - other));
  });

  it('divides changes that are too large for one log item', async () => {
    const random = (length: number): string =>
      Array.from({ length }, (_, index) => ((index * 7_919 + (index >> 3) * 104_729) % 36).toString(36)).join('');
    const large = (name: string): ObjectWrite => ({
      kind: 'create',
      ref: ref(name),
      object: { metadata: { name }, spec: { text: random(60_000) } },
    });
    const created = await commit(store, large('a'), large('b'), create('c'));
    expect(await stored(logPartition(resource, 0))).toHaveLength(2);
    expect((await changes()).map(({ object }) => object)).toEqual(created);
  });
});
