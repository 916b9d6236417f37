/**
 * Objects and log items of releases before compression, beside those of this one: what an older function reads and
 * writes while both run, and what is left of it.
 */
import { beforeEach, expect, it } from 'vitest';
import { storePlainTexts } from '../../scripts/store-plain.ts';
import type { DecisionRecord } from '../../shared/controllers/decisions/decision-record.ts';
import { decisionStore, decisionWrite, decisionWrites } from '../../shared/controllers/decisions/decision-store.ts';
import type { KubeObject, ObjectRef } from '../../shared/kube/types.ts';
import type { Item, ItemStore } from '../../shared/ports/item-store.ts';
import { type ChangeLog, changeLog } from '../../shared/store/change-log.ts';
import { logPartition, objectPartition, shardOf } from '../../shared/store/layout.ts';
import { type ObjectStore, type ObjectWrite, objectStore } from '../../shared/store/object-store.ts';
import { packText, type TextFormat } from '../../shared/store/packed-text.ts';
import { describeOnStores } from './stores.ts';

const T0 = 1_795_197_000_000;
const FILLER = 'x'.repeat(2_000);
let count = 0;

/** The readers of a release before compression. */
const olderObject = (item: Item): KubeObject => {
  const object = JSON.parse(item['o'] as string) as KubeObject;
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(item['rv']) } };
};
const olderChange = (item: Item) => ({ type: item['t'], key: item['key'], object: olderObject(item) });

describeOnStores('objects in two formats', (fixture) => {
  let resource: string;
  let compressing: ObjectStore;
  let plain: ObjectStore;
  let log: ChangeLog;
  beforeEach(() => {
    count += 1;
    resource = `formats${count}`;
    const options = { items: fixture.items(), clock: { nowMs: () => T0 }, shardsOf: () => 1 };
    const open = (textFormat: TextFormat) => objectStore({ ...options, textFormat });
    compressing = open('compressed');
    plain = open('plain');
    log = changeLog(options);
  });

  const ref = (name: string): ObjectRef => ({ resource, namespace: '', name });
  const create = (name: string): ObjectWrite => ({
    kind: 'create',
    ref: ref(name),
    object: { apiVersion: 'v1', kind: 'Widget', metadata: { name, labels: { step: '0' } }, spec: { text: FILLER } },
  });
  const update = (previous: KubeObject, step: number): ObjectWrite => ({
    kind: 'update',
    ref: ref(previous.metadata.name!),
    object: { ...previous, metadata: { ...previous.metadata, labels: { step: String(step) } } },
    previous,
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

  it('reads, changes and deletes what the other format stored', async () => {
    let current = (await commit(plain, create('a')))[0]!;
    for (let step = 1; step <= 6; step += 1) {
      const [writer, reader] = step % 2 === 0 ? [plain, compressing] : [compressing, plain];
      expect(await writer.get(ref('a'))).toEqual(current);
      current = (await commit(writer, update(current, step)))[0]!;
      expect((await reader.list({ resource })).objects).toEqual([current]);
    }
    await commit(compressing, { kind: 'delete', ref: ref('a'), previous: current });
    const seen = await changes();
    expect(seen.map(({ type }) => type)).toEqual(['ADDED', ...Array(6).fill('MODIFIED'), 'DELETED']);
    expect(seen.map(({ object }) => object.metadata.labels?.['step'])).toEqual([...'01234566']);
    expect(seen.slice(1, -1).map(({ previous }) => previous?.labels['step'])).toEqual([...'012345']);
  });

  it('lets exactly one of two formats win on one version', async () => {
    const [first] = await commit(plain, create('a'));
    const outcomes = await Promise.all([
      plain.commit({ writes: [update(first!, 1)] }),
      compressing.commit({ writes: [update(first!, 2)] }),
    ]);
    expect(outcomes.map(({ kind }) => kind).sort()).toEqual(['committed', 'conflict']);
  });

  it('writes plain what an older release reads, item by item', async () => {
    const created = await commit(plain, create('a'), create('b'), create('c'));
    const [changed] = await commit(plain, update(created[1]!, 1));
    const items = await stored(objectPartition(resource, 0));
    expect(items.map(olderObject)).toEqual([created[0], changed, created[2]]);
    expect((await stored(logPartition(resource, 0))).map(olderChange)).toEqual([
      ...created.map((object) => ({ type: 'ADDED', key: object.metadata.name, object })),
      { type: 'MODIFIED', key: 'b', object: changed },
    ]);
  });

  it('returns to what an older release reads, with the same versions and changes', async () => {
    const created = await commit(compressing, create('a'), create('b'), create('c'));
    const [changed] = await commit(compressing, update(created[1]!, 1));
    await commit(compressing, { kind: 'delete', ref: ref('c'), previous: created[2]! });
    const before = await changes();
    const text = JSON.stringify({ reason: FILLER });
    const decision = { table: 'objects', pk: `d#${resource}`, sk: 'node.a' } as const;
    await fixture.items().write({ kind: 'put', key: decision, item: { d: packText(text, 'compressed'), ttl: 1 } });
    expect(await storePlainTexts(fixture.items())).toBeGreaterThanOrEqual(6);
    expect(await fixture.items().get(decision, { consistent: true })).toMatchObject({ d: text, ttl: 1 });
    const log = (await stored(logPartition(resource, 0))).map(olderChange);
    expect((await stored(objectPartition(resource, 0))).map(olderObject)).toEqual([created[0], changed]);
    expect(log.map(({ object }) => object)).toEqual(before.map(({ object }) => object));
    expect(log.map(({ type }) => type)).toEqual(['ADDED', 'ADDED', 'ADDED', 'MODIFIED', 'DELETED']);
    expect(await changes()).toEqual(before);
    expect(await storePlainTexts(fixture.items())).toBe(0);
  });

  it('stores each decision of a shared item in an item of its own, as an older release reads it', async () => {
    const recordOf = (name: string): DecisionRecord => ({
      ...{ v: 1, act: 'MarkUnknown', about: { kind: 'Node', name, uid: resource }, atMs: T0, reason: FILLER },
      ...{ rule: 'silence', inputs: {}, outcome: {}, policy: '', sum: '' },
    });
    const records = Array.from({ length: 12 }, (_, index) => recordOf(`${resource}-${index}`));
    const items = fixture.items();
    const writes = decisionWrites([...records, ...records.map((each) => ({ ...each, atMs: T0 + 1 }))], 'compressed');
    expect(writes.length).toBeLessThanOrEqual(16);
    for (const write of writes) await items.write(write);
    await storePlainTexts(items);
    for (const record of records) {
      const { key } = decisionWrite(record);
      const item = await items.get(key, { consistent: true });
      expect(JSON.parse(item?.['d'] as string)).toEqual(record);
    }
    expect(await storePlainTexts(items)).toBe(0);
    const about = records[0]!.about;
    expect((await decisionStore(items).list({ nowMs: T0, limit: 9, about })).decisions).toHaveLength(2);
  });

  it('stores each decision about pods of one set in an item of its own, as an older release reads it', async () => {
    const records = Array.from({ length: 5 }, (_, index): DecisionRecord => {
      const about = { kind: 'Pod', namespace: 'default', name: `${resource}-web-${index}`, uid: resource } as const;
      return {
        ...{ v: 1, act: 'PodScheduled', about, atMs: T0, reason: FILLER },
        ...{ rule: 'podPlacement', inputs: {}, outcome: {}, policy: '', sum: '' },
      };
    });
    const items = fixture.items();
    const writes = decisionWrites(records, 'compressed');
    expect(writes).toHaveLength(1);
    for (const write of writes) await items.write(write);
    // A release before the shared items, and one with them, while texts are stored plain.
    expect(decisionWrites(records, 'plain').map(({ key }) => key)).toEqual(
      records.map((each) => decisionWrite(each).key),
    );
    expect(await items.get(decisionWrite(records[0]!).key, { consistent: true })).toBeUndefined();
    await storePlainTexts(items);
    for (const record of records) {
      const item = await items.get(decisionWrite(record).key, { consistent: true });
      expect(JSON.parse(item?.['d'] as string)).toEqual(record);
      const { about } = record;
      expect((await decisionStore(items).list({ nowMs: T0, limit: 9, about })).decisions).toHaveLength(1);
    }
    expect(await storePlainTexts(items)).toBe(0);
  });

  it('does not overwrite an object that changes while texts are stored plain', async () => {
    const [first] = await commit(compressing, create('a'));
    const items = fixture.items();
    let later: KubeObject | undefined;
    const racing: ItemStore = {
      ...items,
      async scan(request) {
        const page = await items.scan(request);
        later ??= (await commit(compressing, update(first!, 1)))[0];
        return page;
      },
    };
    await storePlainTexts(racing);
    expect(later).toBeDefined();
    expect(await plain.get(ref('a'))).toEqual(later);
  });

  it('resumes between the changes of one log item', async () => {
    const created = await commit(compressing, create('a'), create('b'), create('c'), create('d'));
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
      await commit(compressing, ...Array.from({ length: 20 }, (_, index) => create(`n${commits}-${index}`)));
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
    // Each item is looked at twice: whether it is folded, and its text.
    expect(decompressed).toBe(2 * 2);
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
    const created = await commit(compressing, large('a'), large('b'), create('c'));
    expect(await stored(logPartition(resource, 0))).toHaveLength(2);
    expect((await changes()).map(({ object }) => object)).toEqual(created);
  });
});
