import { beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject, ObjectRef } from '../../shared/kinds/types.ts';
import { logPartition, objectPartition } from '../../shared/store/layout.ts';
import { logEntries } from '../../shared/store/object-record.ts';
import { type ObjectStore, objectStore } from '../../shared/store/object-store.ts';
import { describeOnStores } from './stores.ts';

const T0 = 1_795_197_000_000;
const SHARDS = 4;
let count = 0;

describeOnStores('the object store', (fixture) => {
  let store: ObjectStore;
  /** A resource of its own for each case. */
  let widgets: string;
  let nowMs: number;
  beforeEach(() => {
    count += 1;
    widgets = `widgets${count}`;
    nowMs = T0;
    store = objectStore({
      items: fixture.items(),
      clock: { nowMs: () => nowMs },
      shardsOf: (resource) => (resource === 'single' ? 1 : SHARDS),
      selectableFields: (_, object): Record<string, string> =>
        typeof object.status?.['phase'] === 'string' ? { 'status.phase': object.status['phase'] } : {},
    });
    fixture.consumed();
  });

  const ref = (name: string, namespace = ''): ObjectRef => ({ resource: widgets, namespace, name });
  const anObject = (name: string, rest: Partial<KubeObject> = {}): KubeObject => ({
    apiVersion: 'v1',
    kind: 'Widget',
    ...rest,
    metadata: { name, uid: `uid-${name}`, ...rest.metadata },
  });
  const create = async (name: string, rest: Partial<KubeObject> = {}, namespace = ''): Promise<KubeObject> => {
    const outcome = await store.commit({
      writes: [{ kind: 'create', ref: ref(name, namespace), object: anObject(name, rest) }],
    });
    if (outcome.kind !== 'committed') throw new Error(outcome.kind);
    return outcome.objects[0]!;
  };
  const log = async () => {
    const pages = await Promise.all(
      Array.from({ length: SHARDS }, (_, shard) =>
        fixture.items().query({ table: 'objects', pk: logPartition(widgets, shard), consistent: true }),
      ),
    );
    return pages
      .flatMap((page) => page.items)
      .flatMap((item) => logEntries(widgets, item))
      .map((entry) => entry.change())
      .sort((one, other) => one.resourceVersion - other.resourceVersion);
  };
  const version = (object: KubeObject): number => Number(object.metadata.resourceVersion);

  it('returns what was committed, with its resourceVersion', async () => {
    const created = await create('a', { spec: { deep: [{ text: 'Größe 🚀', none: null }] } });
    expect(version(created)).toBeGreaterThanOrEqual(T0 * 1_000);
    expect(await store.get(ref('a'))).toEqual(created);
    expect(await store.get(ref('b'))).toBeUndefined();
    expect(await store.getMany([ref('b'), ref('a')])).toEqual([undefined, created]);
  });

  it('answers what is stored to a second create', async () => {
    const created = await create('a');
    const outcome = await store.commit({ writes: [{ kind: 'create', ref: ref('a'), object: anObject('a') }] });
    expect(outcome).toEqual({ kind: 'conflict', index: 0, current: created });
  });

  it('neither reads nor lists an expired object, and a create replaces it', async () => {
    // In the future of every clock: the engine itself deletes none of these items.
    nowMs = T0 + 10 * 365 * 86_400_000;
    const expiresAtSeconds = nowMs / 1_000 + 60;
    const event = { kind: 'create', ref: ref('a'), object: anObject('a'), expiresAtSeconds } as const;
    await store.commit({ writes: [event, { kind: 'create', ref: ref('b'), object: anObject('b') }] });
    const names = async () => (await store.list({ resource: widgets })).objects.map(({ metadata }) => metadata.name);
    nowMs = expiresAtSeconds * 1_000 - 1;
    expect(await store.get(ref('a'))).toBeDefined();
    expect(await names()).toEqual(['a', 'b']);
    expect((await store.commit({ writes: [event] })).kind).toBe('conflict');
    nowMs += 1;
    expect(await store.get(ref('a'))).toBeUndefined();
    expect(await store.getMany([ref('a')])).toEqual([undefined]);
    expect(await names()).toEqual(['b']);
    const again = { ...event, expiresAtSeconds: expiresAtSeconds + 60 };
    expect((await store.commit({ writes: [again] })).kind).toBe('committed');
    expect(await names()).toEqual(['a', 'b']);
  });

  it('pages over expired objects to the ones behind them', async () => {
    nowMs = T0 + 10 * 365 * 86_400_000;
    const expiresAtSeconds = nowMs / 1_000;
    const old = ['a', 'b', 'c', 'd', 'e'];
    await store.commit({
      writes: old.map((name) => ({ kind: 'create', ref: ref(name), object: anObject(name), expiresAtSeconds })),
    });
    await create('z');
    const listed: (string | undefined)[] = [];
    let continueAfter: string | undefined;
    for (let page = 0; page <= old.length; page += 1) {
      const after = continueAfter === undefined ? {} : { continueAfter };
      const { objects, next } = await store.list({ resource: widgets, limit: 1, ...after });
      listed.push(...objects.map(({ metadata }) => metadata.name));
      continueAfter = next;
      if (next === undefined) break;
    }
    expect([listed, continueAfter]).toEqual([['z'], undefined]);
  });

  it('updates and deletes the version that was read, no other', async () => {
    const first = await create('a');
    const outcome = await store.commit({
      writes: [{ kind: 'update', ref: ref('a'), object: { ...first, spec: { n: 2 } }, previous: first }],
    });
    if (outcome.kind !== 'committed') throw new Error(outcome.kind);
    const second = outcome.objects[0]!;
    expect(version(second)).toBeGreaterThan(version(first));
    const stale = { kind: 'conflict', index: 0, current: second };
    expect(await store.commit({ writes: [{ kind: 'update', ref: ref('a'), object: first, previous: first }] })).toEqual(
      stale,
    );
    expect(await store.commit({ writes: [{ kind: 'delete', ref: ref('a'), previous: first }] })).toEqual(stale);
    const gone = await store.commit({ writes: [{ kind: 'delete', ref: ref('a'), previous: second }] });
    expect(gone.kind).toBe('committed');
    expect(await store.get(ref('a'))).toBeUndefined();
    expect(await store.commit({ writes: [{ kind: 'delete', ref: ref('a'), previous: second }] })).toEqual({
      kind: 'conflict',
      index: 0,
    });
  });

  it('L8 lets exactly one of many concurrent writes on one version win', async () => {
    const first = await create('a');
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, (_, writer) =>
        store.commit({
          writes: [{ kind: 'update', ref: ref('a'), object: { ...first, spec: { writer } }, previous: first }],
        }),
      ),
    );
    const winners = outcomes.flatMap(({ kind }, writer) => (kind === 'committed' ? [writer] : []));
    expect(winners).toHaveLength(1);
    expect(outcomes.filter(({ kind }) => kind === 'conflict')).toHaveLength(11);
    expect((await store.get(ref('a')))?.spec).toEqual({ writer: winners[0] });
  });

  it('commits all writes or none, each with a version of its own', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `n${index}`);
    const outcome = await store.commit({
      writes: names.map((name) => ({ kind: 'create', ref: ref(name), object: anObject(name) })),
    });
    if (outcome.kind !== 'committed') throw new Error(outcome.kind);
    const versions = outcome.objects.map(version);
    expect(new Set(versions).size).toBe(20);
    expect(await store.getMany(names.map((name) => ref(name)))).toEqual(outcome.objects);
    const half = await store.commit({
      writes: ['n20', 'n5', 'n21'].map((name) => ({ kind: 'create', ref: ref(name), object: anObject(name) })),
    });
    expect(half).toMatchObject({ kind: 'conflict', index: 1 });
    expect(await store.get(ref('n20'))).toBeUndefined();
    expect(await log()).toHaveLength(20);
  });

  it('never issues a version twice or a lower one, whatever the clocks say', async () => {
    const behind = objectStore({
      items: fixture.items(),
      clock: { nowMs: () => T0 - 3_600_000 },
      shardsOf: () => SHARDS,
    });
    const versions: number[] = [];
    const perShard = new Map<number, number>();
    for (let index = 0; index < 12; index += 1) {
      const writer = index % 2 === 0 ? store : behind;
      const name = `n${index}`;
      const outcome = await writer.commit({ writes: [{ kind: 'create', ref: ref(name), object: anObject(name) }] });
      if (outcome.kind !== 'committed') throw new Error(outcome.kind);
      const issued = version(outcome.objects[0]!);
      expect(issued).toBeGreaterThan(perShard.get(issued % SHARDS) ?? 0);
      perShard.set(issued % SHARDS, issued);
      versions.push(issued);
    }
    expect(new Set(versions).size).toBe(12);
  });

  it('does what else belongs to the commit, or nothing', async () => {
    const counter = { table: 'control', pk: `counter-${widgets}`, sk: '-' } as const;
    const extra = [
      {
        kind: 'update',
        key: counter,
        add: { n: 1 },
        when: {
          kind: 'any',
          of: [
            { kind: 'lacks', attribute: 'n' },
            { kind: 'compare', attribute: 'n', op: '<', value: 1 },
          ],
        },
      },
    ] as const;
    const once = await store.commit({ writes: [{ kind: 'create', ref: ref('a'), object: anObject('a') }], extra });
    expect(once.kind).toBe('committed');
    const twice = await store.commit({ writes: [{ kind: 'create', ref: ref('b'), object: anObject('b') }], extra });
    expect(twice).toEqual({ kind: 'extraRefused', index: 0, current: { pk: counter.pk, sk: '-', n: 1 } });
    expect(await store.get(ref('b'))).toBeUndefined();
    const both = await store.commit({ writes: [{ kind: 'create', ref: ref('a'), object: anObject('a') }], extra });
    expect(both.kind).toBe('conflict');
  });

  it('logs every change once, with what a selector saw before where that differs', async () => {
    const created = await create('a', { metadata: { labels: { x: '1', y: '2' } }, status: { phase: 'Pending' } });
    const same = await store.commit({
      writes: [
        {
          kind: 'update',
          ref: ref('a'),
          object: { ...created, metadata: { ...created.metadata, labels: { y: '2', x: '1' } } },
          previous: created,
        },
      ],
    });
    if (same.kind !== 'committed') throw new Error(same.kind);
    const moved = await store.commit({
      writes: [
        {
          kind: 'update',
          ref: ref('a'),
          object: { ...same.objects[0]!, status: { phase: 'Running' } },
          previous: same.objects[0]!,
        },
      ],
    });
    if (moved.kind !== 'committed') throw new Error(moved.kind);
    await store.commit({ writes: [{ kind: 'delete', ref: ref('a'), previous: moved.objects[0]! }] });
    const changes = await log();
    expect(changes.map(({ type }) => type)).toEqual(['ADDED', 'MODIFIED', 'MODIFIED', 'DELETED']);
    expect(changes.map(({ previous }) => previous)).toEqual([
      undefined,
      undefined,
      { labels: { x: '1', y: '2' }, fields: { 'status.phase': 'Pending' } },
      undefined,
    ]);
    expect(changes.map(({ object }) => version(object))).toEqual(changes.map(({ resourceVersion }) => resourceVersion));
    expect(changes[3]?.object.status).toEqual({ phase: 'Running' });
    expect(changes[0]?.ref).toEqual(ref('a'));
  });

  it('lets log entries expire after the retention, and objects only when asked', async () => {
    await store.commit({
      writes: [
        { kind: 'create', ref: ref('a'), object: anObject('a'), expiresAtSeconds: 1_795_200_600 },
        { kind: 'create', ref: ref('b'), object: anObject('b') },
      ],
    });
    const items = await Promise.all(
      Array.from({ length: SHARDS }, (_, shard) =>
        fixture.items().query({ table: 'objects', pk: objectPartition(widgets, shard), consistent: true }),
      ),
    );
    const objects = items.flatMap((page) => page.items);
    expect(objects.find((item) => item['n'] === 'a')?.['ttl']).toBe(1_795_200_600);
    expect(objects.find((item) => item['n'] === 'b')).toMatchObject({ k: 'Widget' });
    expect(objects.find((item) => item['n'] === 'b')?.['ttl']).toBeUndefined();
    const entry = await fixture.items().query({
      table: 'objects',
      pk: logPartition(widgets, version((await store.get(ref('a')))!) % SHARDS),
      consistent: true,
      limit: 1,
    });
    expect(entry.items[0]?.['ttl']).toBeGreaterThanOrEqual(T0 / 1_000 + 3_900);
    expect(entry.items[0]?.['ttl']).toBeLessThanOrEqual(T0 / 1_000 + 3_902);
  });

  it('says when an object is larger than an item may be', async () => {
    const outcome = await store.commit({
      writes: [
        { kind: 'create', ref: ref('a'), object: anObject('a') },
        { kind: 'create', ref: ref('b'), object: anObject('b', { spec: { text: 'x'.repeat(130_000) } }) },
      ],
    });
    expect(outcome).toEqual({ kind: 'tooLarge', index: 1 });
    await create('c', { spec: { text: '节'.repeat(119_000) } });
  });

  it('says when objects that fit are together larger than a transaction may be', async () => {
    const writes = (length: number) =>
      Array.from({ length }, (_, index) => ({
        kind: 'create' as const,
        ref: ref(`n${index}`),
        object: anObject(`n${index}`, { spec: { text: '节'.repeat(119_000) } }),
      }));
    expect(await store.commit({ writes: writes(6) })).toEqual({ kind: 'overfull' });
    expect(await store.get(ref('n0'))).toBeUndefined();
    expect((await store.commit({ writes: writes(5) })).kind).toBe('committed');
  });

  it('reports an object with a log entry that is too large because of the previous labels', async () => {
    const labels = Object.fromEntries(Array.from({ length: 1_100 }, (_, index) => [`k${index}`, 'v'.repeat(63)]));
    const previous = await create('a', { metadata: { labels } } as Partial<KubeObject>);
    const object = {
      ...previous,
      metadata: { ...previous.metadata, labels: {} },
      spec: { text: '节'.repeat(118_000) },
    };
    const outcome = await store.commit({ writes: [{ kind: 'update', ref: ref('a'), object, previous }] });
    expect(outcome).toEqual({ kind: 'tooLarge', index: 0 });
  });

  it('keeps headroom above what a client writes, and lets a larger object shrink and go', async () => {
    const sized = (name: string, units: number) => anObject(name, { spec: { text: 'x'.repeat(units) } });
    const put = (object: KubeObject, previous?: KubeObject, byClient = true) =>
      store.commit({
        writes: [
          previous === undefined
            ? { kind: 'create', ref: ref(object.metadata.name!), object }
            : { kind: 'update', ref: ref(object.metadata.name!), object, previous },
        ],
        byClient,
      });
    expect(await put(sized('a', 100_000))).toEqual({ kind: 'tooLarge', index: 0 });
    const first = await put(sized('a', 99_000));
    if (first.kind !== 'committed') throw new Error(first.kind);
    const atLimit = first.objects[0]!;
    const grown = { ...atLimit, spec: { text: 'x'.repeat(119_000) } };
    expect(await put(grown, atLimit)).toEqual({ kind: 'tooLarge', index: 0 });
    const second = await put(grown, atLimit, false);
    if (second.kind !== 'committed') throw new Error(second.kind);
    const large = second.objects[0]!;
    expect(await put({ ...large, spec: { text: 'x'.repeat(119_001) } }, large)).toMatchObject({ kind: 'tooLarge' });
    const third = await put({ ...large, spec: { text: 'x'.repeat(118_000) } }, large);
    if (third.kind !== 'committed') throw new Error(third.kind);
    const shrunk = third.objects[0]!;
    const deletionTimestamp = '2026-11-22T00:00:00Z';
    const marked = { ...shrunk, metadata: { ...shrunk.metadata, deletionTimestamp } };
    expect((await put(marked, shrunk)).kind).toBe('committed');
  });

  it('accepts no more objects in a commit than a transaction has items', async () => {
    const writes = (length: number) =>
      Array.from({ length }, (_, index) => ({
        kind: 'create' as const,
        ref: ref(`n${index}`),
        object: anObject(`n${index}`),
      }));
    expect(await store.commit({ writes: writes(100 - 2 * SHARDS + 1) })).toEqual({ kind: 'overfull' });
    expect((await store.commit({ writes: writes(100 - 2 * SHARDS) })).kind).toBe('committed');
    await expect(store.commit({ writes: [] })).rejects.toThrow(RangeError);
  });

  describe('lists', () => {
    const names = Array.from({ length: 30 }, (_, index) => `n${String(index).padStart(2, '0')}`);
    beforeEach(async () => {
      await store.commit({
        writes: names.map((name) => ({ kind: 'create', ref: ref(name, 'one'), object: anObject(name) })),
      });
      await store.commit({
        writes: ['n07', 'x'].map((name) => ({ kind: 'create', ref: ref(name, 'one-b'), object: anObject(name) })),
      });
    });
    const namesOf = (objects: readonly KubeObject[]) => objects.map((object) => object.metadata.name);

    it('lists one namespace, or all, in key order over the shards', async () => {
      expect(namesOf((await store.list({ resource: widgets, namespace: 'one' })).objects)).toEqual(names);
      // '-' sorts before '/': the keys' order, which is also the order of continue tokens.
      expect(namesOf((await store.list({ resource: widgets })).objects)).toEqual(['n07', 'x', ...names]);
      expect(await store.list({ resource: widgets, namespace: 'none' })).toEqual({ objects: [], lengths: [] });
    });

    it.each([1, 7, 30, 31])('pages by %i until nothing is left', async (limit) => {
      const listed: (string | undefined)[] = [];
      let continueAfter: string | undefined;
      for (let page = 0; page < 40; page += 1) {
        const { objects, next } = await store.list({
          resource: widgets,
          namespace: 'one',
          limit,
          ...(continueAfter === undefined ? {} : { continueAfter }),
        });
        expect(objects.length).toBeLessThanOrEqual(limit);
        listed.push(...namesOf(objects));
        continueAfter = next;
        if (next === undefined) break;
      }
      expect(listed).toEqual(names);
    });

    it('continues after a key that was deleted in the meantime', async () => {
      const { objects, next } = await store.list({ resource: widgets, namespace: 'one', limit: 5 });
      expect(next).toBe('one/n04');
      await store.commit({ writes: [{ kind: 'delete', ref: ref('n04', 'one'), previous: objects[4]! }] });
      const second = await store.list({ resource: widgets, namespace: 'one', limit: 2, continueAfter: next! });
      expect(namesOf(second.objects)).toEqual(['n05', 'n06']);
    });
  });

  describe('pods by node', () => {
    const pod = (name: string, nodeName?: string): KubeObject => ({
      kind: 'Pod',
      metadata: { name, namespace: 'default' },
      spec: nodeName === undefined ? {} : { nodeName },
    });
    const podRef = (name: string): ObjectRef => ({ resource: 'pods', namespace: 'default', name });
    const commitPod = async (name: string, object: KubeObject, previous?: KubeObject): Promise<KubeObject> => {
      const outcome = await store.commit({
        writes: [
          previous === undefined
            ? { kind: 'create', ref: podRef(name), object }
            : { kind: 'update', ref: podRef(name), object, previous },
        ],
      });
      if (outcome.kind !== 'committed') throw new Error(outcome.kind);
      return outcome.objects[0]!;
    };
    const podsOf = async (node: string) => (await store.listByNode(node)).map((found) => found.metadata.name);

    it('finds a pod created on a node, bound later, and no longer once it is deleted', async () => {
      const node = `node-${count}`;
      const [a, b] = [`a-${count}`, `b-${count}`];
      const bound = await commitPod(a, pod(a, node));
      const unbound = await commitPod(b, pod(b));
      expect(await podsOf(node)).toEqual([a]);
      const later = await commitPod(b, pod(b, node), unbound);
      expect(await podsOf(node)).toEqual([a, b]);
      fixture.consumed();
      await commitPod(b, { ...later, status: { phase: 'Running' } }, later);
      await store.commit({ writes: [{ kind: 'delete', ref: podRef(a), previous: bound }] });
      expect(await podsOf(node)).toEqual([b]);
      expect(await podsOf('nobody')).toEqual([]);
    });
  });

  it('stores an object of 3 KB for six write units', async () => {
    const ofFormat = objectStore({ items: fixture.items(), clock: { nowMs: () => nowMs }, shardsOf: () => 1 });
    const writes = [
      { kind: 'create', ref: ref('a'), object: anObject('a', { spec: { filler: 'x'.repeat(2_900) } }) },
    ] as const;
    fixture.consumed();
    expect((await ofFormat.commit({ writes })).kind).toBe('committed');
    const units = fixture.consumed();
    expect(units.map(({ operation }) => operation)).toEqual(['TransactWriteItems']);
    expect(units[0]?.writeUnits).toBe(6);
  });
});
