import { describe, expect, it, vi } from 'vitest';
import { useNode } from '../../shared/fleet/nodes/node-use.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { queueStore } from '../../shared/scheduling/queue-store.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';

import { ClusterCopy } from './cluster-copy.ts';

async function copied() {
  const items = memoryItemStore({ changesOf: ['objects'] });
  let uuids = 0;
  const uuid = () => {
    uuids += 1;
    return `u${uuids}`;
  };
  const silent = () => {};
  const dependencies = workDependencies({
    items,
    clock: { nowMs: () => Date.UTC(2026, 0, 1) },
    random: { uuid, fraction: () => 0.5 },
    policy: defaultPolicy,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: silent },
  });
  const { objects } = dependencies;
  const copy = new ClusterCopy(dependencies, queueStore(items));
  const changes = vi.spyOn(copy.history, 'add');
  const seen = () => {
    const read = changes.mock.calls.map(([change]) =>
      change.kind === 'volumes' ? [change.kind] : [change.kind, change.before?.uid, change.after?.uid],
    );
    changes.mockClear();
    return read;
  };
  const ref = (name: string) => ({ resource: 'nodes', namespace: '', name });
  const create = (name: string, uid: string) =>
    objects.commit({ writes: [{ kind: 'create', ref: ref(name), object: { kind: 'Node', metadata: { name, uid } } }] });
  const remove = async (name: string) => {
    const previous = (await objects.get(ref(name))) as KubeObject;
    return objects.commit({ writes: [{ kind: 'delete', ref: ref(name), previous }] });
  };
  const label = async (name: string) => {
    const previous = (await objects.get(ref(name))) as KubeObject;
    const object = { ...previous, metadata: { ...previous.metadata, labels: { a: 'b' } } };
    return objects.commit({ writes: [{ kind: 'update', ref: ref(name), object, previous }] });
  };
  await copy.refresh();
  return { copy, seen, create, remove, label };
}

const pod = (uid: string, resourceVersion: number, nodeName?: string): KubePod => ({
  metadata: { namespace: 'default', name: 'p', uid, resourceVersion: String(resourceVersion) },
  spec: { containers: [], ...(nodeName === undefined ? {} : { nodeName }) },
});

it('a changed Node keeps the version of its use, another one of its name has none', async () => {
  const { copy, seen, create, remove, label } = await copied();
  await create('a', 'first');
  await copy.refresh();
  expect(seen()).toEqual([['node', undefined, 'first']]);
  copy.advanced(['a']);
  await label('a');
  await copy.refresh();
  expect(seen()).toEqual([['node', 'first', 'first']]);
  expect(copy.useOf('a')).toBe(1);
  await remove('a');
  await create('a', 'second');
  await copy.refresh();
  expect(seen().at(-1)).toEqual(['node', undefined, 'second']);
  expect(copy.useOf('a')).toBe(0);
});

it('a pod is seen once per version, and another one of its name is an end and a beginning', async () => {
  const { copy, seen } = await copied();
  copy.bound(pod('first', 5));
  expect(seen()).toEqual([['pod', undefined, 'first']]);
  copy.bound(pod('first', 5));
  copy.bound(pod('first', 4));
  expect(seen()).toEqual([]);
  copy.bound(pod('first', 6));
  expect(seen()).toEqual([['pod', 'first', 'first']]);
  copy.bound(pod('second', 7));
  expect(seen()).toEqual([
    ['pod', 'first', undefined],
    ['pod', undefined, 'second'],
  ]);
});

it('a pod without a node waits: what others change is asked once', async () => {
  const { copy } = await copied();
  copy.bound(pod('first', 5));
  const tried = copy.history.changeCount;
  expect([copy.pending.has('default/p'), copy.history.mayHelp('default/p', tried, () => true)]).toEqual([true, false]);
  copy.bound(pod('first', 6, 'a'));
  expect([copy.pending.has('default/p'), copy.history.mayHelp('default/p', tried, () => false)]).toEqual([false, true]);
});

/** A copy over tables with noted reads, and a clock that can be moved. */
function following({ perPage }: { readonly perPage?: number } = {}) {
  const tables = memoryItemStore({ changesOf: ['objects'] });
  const reads: string[] = [];
  const logged: unknown[] = [];
  let nowMs = Date.UTC(2026, 0, 1);
  let uuids = 0;
  const items: ItemStore = {
    ...tables,
    get(key, options) {
      reads.push(`${key.pk} ${key.sk} ${options.consistent}`);
      return tables.get(key, options);
    },
    getMany(keys, options) {
      reads.push(...new Set(keys.map(({ pk }) => `${pk.split('#').slice(0, 2).join('#')} ${options.consistent}`)));
      return tables.getMany(keys, options);
    },
    query(request) {
      reads.push(request.pk.split('#').slice(0, 2).join('#'));
      return tables.query(request);
    },
  };
  const silent = () => {};
  const dependencies = workDependencies({
    items,
    clock: { nowMs: () => nowMs },
    random: { uuid: () => `u${uuids++}`, fraction: () => 0.5 },
    policy: defaultPolicy,
    log: { debug: silent, info: silent, warn: silent, error: (...line: unknown[]) => void logged.push(line) },
    meter: { add: silent },
  });
  const { objects } = dependencies;
  const lists: string[] = [];
  const failing = new Set<string>();
  const copy = new ClusterCopy(
    {
      ...dependencies,
      objects: {
        ...objects,
        list: (request: Parameters<typeof objects.list>[0]) => {
          lists.push(request.resource);
          reads.push(`list ${request.resource}`);
          if (failing.delete(request.resource)) return Promise.reject(new Error('down'));
          return objects.list(perPage === undefined ? request : { ...request, limit: perPage });
        },
      } as typeof objects,
    },
    queueStore(items),
  );
  const refOf = (resource: string, name: string) => ({ resource, namespace: resource === 'pods' ? 'd' : '', name });
  const put = async (resource: string, name: string, more: Partial<KubeObject> = {}): Promise<KubeObject> => {
    const ref = refOf(resource, name);
    const previous = await objects.get(ref);
    const namespace = ref.namespace === '' ? {} : { namespace: ref.namespace };
    const object = { ...more, metadata: { ...namespace, name, uid: `${resource}-${name}`, ...more.metadata } };
    const outcome = await objects.commit({
      writes: [previous === undefined ? { kind: 'create', ref, object } : { kind: 'update', ref, object, previous }],
    });
    if (outcome.kind !== 'committed') throw new Error(outcome.kind);
    return outcome.objects[0]!;
  };
  const drop = async (resource: string, name: string): Promise<void> => {
    const ref = refOf(resource, name);
    await objects.commit({ writes: [{ kind: 'delete', ref, previous: (await objects.get(ref))! }] });
  };
  const setOrder = (v: number) =>
    tables.write({ kind: 'put', key: { table: 'control', pk: 'scheduler', sk: 'order' }, item: { v } });
  /** Pods are bound to the node, from one version of its use to another one. */
  const use = async (nodeName: string, from: number, to: number): Promise<void> => {
    for (let version = from; version < to; version += 1) await tables.write(useNode(nodeName, version));
  };
  return {
    copy,
    put,
    drop,
    setOrder,
    use,
    logged,
    /** The next list of this resource fails. */
    failList: (resource: string) => void failing.add(resource),
    takeReads: () => reads.splice(0, reads.length),
    takeLists: () => lists.splice(0, lists.length),
    advance: (ms: number) => {
      nowMs += ms;
    },
  };
}
const BARE = { spec: { containers: [] } } as Partial<KubeObject>;

describe('a copy of a cluster', () => {
  it('lists once, and follows the changes of namespaces, nodes and pods after that', async () => {
    const { copy, put, drop, takeLists } = following({ perPage: 2 });
    for (const name of ['a', 'b', 'c']) await put('nodes', name);
    await put('namespaces', 'd', { metadata: { labels: { team: 'x' } } });
    await put('pods', 'p', BARE);
    await copy.refresh();
    expect(takeLists()).toEqual(['namespaces', 'nodes', 'nodes', 'pods']);
    expect([...copy.snapshot.nodes.keys()]).toEqual(['a', 'b', 'c']);
    expect(copy.snapshot.namespaces).toEqual(new Map([['d', { team: 'x' }]]));
    expect([...copy.pending.keys()]).toEqual(['d/p']);
    const { namespaces } = copy.snapshot;
    await put('namespaces', 'e');
    await put('nodes', 'd');
    await drop('nodes', 'a');
    await put('pods', 'q', BARE);
    await drop('pods', 'p');
    await copy.refresh();
    expect([...copy.snapshot.nodes.keys()].sort()).toEqual(['b', 'c', 'd']);
    expect([...copy.snapshot.namespaces.keys()]).toEqual(['d', 'e']);
    expect(copy.snapshot.namespaces).toBe(namespaces);
    expect([[...copy.snapshot.pods.keys()], [...copy.pending.keys()]]).toEqual([['d/q'], ['d/q']]);
    await drop('namespaces', 'd');
    await copy.refresh();
    expect([...copy.snapshot.namespaces.keys()]).toEqual(['e']);
    expect(takeLists()).toEqual([]);
  });

  it('reads versions after the nodes and before the pods: it has every pod of a version', async () => {
    const { copy, put, takeReads } = following();
    await put('pods', 'p', BARE);
    await copy.refresh();
    const first = takeReads();
    const placeIn = (reads: readonly string[], part: string) => reads.findIndex((read) => read.includes(part));
    const [nodes, order, pods] = ['list nodes', 'scheduler order', 'h#pods'].map((part) => placeIn(first, part));
    expect(nodes).toBeLessThan(order!);
    expect(order).toBeLessThan(pods!);
    expect(first).toContain('h#pods true');
    await copy.refresh();
    expect(takeReads().filter((read) => read.includes('scheduler'))).toEqual([]);
    await copy.refresh({ versions: true });
    const later = takeReads();
    expect(placeIn(later, 'scheduler order')).toBeGreaterThanOrEqual(0);
    expect(placeIn(later, 'scheduler order')).toBeLessThan(placeIn(later, 'h#namespaces'));
  });

  it('knows the order and the uses of nodes as they were read, and as it advances them', async () => {
    const { copy, setOrder, use, put } = following();
    await put('nodes', 'n');
    await setOrder(4);
    await use('n', 0, 7);
    await copy.refresh();
    expect([copy.order, copy.useOf('n'), copy.useOf('other')]).toEqual([4, 7, 0]);
    copy.advanced(['n', 'other']);
    expect([copy.order, copy.useOf('n'), copy.useOf('other')]).toEqual([5, 8, 1]);
    await setOrder(9);
    await use('n', 7, 12);
    await copy.refresh();
    expect([copy.order, copy.useOf('n')]).toEqual([5, 8]);
    await copy.refresh({ versions: true });
    expect([copy.order, copy.useOf('n'), copy.useOf('other')]).toEqual([9, 12, 0]);
  });

  it('names the rows of nodes that do not exist, once after each read of them', async () => {
    const { copy, use, put } = following();
    await put('nodes', 'n');
    await use('n', 0, 1);
    await use('gone', 0, 2);
    expect(copy.unusedRows()).toEqual([]);
    await copy.refresh();
    expect(copy.unusedRows()).toEqual([{ nodeName: 'gone', version: 2 }]);
    expect(copy.unusedRows()).toEqual([]);
    copy.rowDropped('gone');
    expect(copy.useOf('gone')).toBe(0);
    await copy.refresh({ versions: true });
    expect(copy.unusedRows()).toHaveLength(1);
  });

  it('shows whether pods changed since, by one late read', async () => {
    const { copy, put, takeReads } = following();
    expect(await copy.hasNewPods()).toBe(true);
    expect(takeReads()).toEqual([]);
    await copy.refresh();
    takeReads();
    expect(await copy.hasNewPods()).toBe(false);
    expect(takeReads()).toEqual(['h#pods false']);
    await put('nodes', 'n');
    expect(await copy.hasNewPods()).toBe(false);
    await put('pods', 'p', BARE);
    expect(await copy.hasNewPods()).toBe(true);
    await copy.refresh();
    expect(await copy.hasNewPods()).toBe(false);
  });

  it('lists again when changes may have expired, and what waits may be helped by anything', async () => {
    const { copy, put, takeLists, advance } = following();
    await put('pods', 'p', BARE);
    await copy.refresh();
    const tried = copy.history.changeCount;
    takeLists();
    advance(30 * 86_400_000);
    await put('pods', 'q', BARE);
    await copy.refresh();
    expect(takeLists()).toEqual(['namespaces', 'nodes', 'pods']);
    expect([...copy.pending.keys()].sort()).toEqual(['d/p', 'd/q']);
    expect(copy.history.mayHelp('d/p', tried, () => false)).toBe(true);
  });

  it('lists again after a list that failed half-way', async () => {
    const { copy, put, takeLists, failList } = following();
    await put('nodes', 'n');
    failList('pods');
    await expect(copy.refresh()).rejects.toThrow('down');
    await copy.refresh();
    expect(takeLists()).toEqual(['namespaces', 'nodes', 'pods', 'namespaces', 'nodes', 'pods']);
    expect([...copy.snapshot.nodes.keys()]).toEqual(['n']);
  });

  it('ignores a deletion of an earlier object than it has', async () => {
    const { copy, put, drop } = following();
    await put('pods', 'p', BARE);
    await copy.refresh();
    await drop('pods', 'p');
    copy.bound({
      ...BARE,
      metadata: { namespace: 'd', name: 'p', uid: 'new', resourceVersion: String(2 ** 52) },
    } as KubePod);
    await copy.refresh();
    expect(copy.snapshot.pods.get('d/p')?.uid).toBe('new');
  });

  it('leaves out a node that it cannot read, and schedules nothing beside such a pod', async () => {
    const { copy, put, logged } = following();
    await put('nodes', 'n');
    await put('nodes', 'bad', { spec: { taints: 7 } });
    await put('pods', 'bad', { spec: { nodeName: 'n', containers: 7 }, status: { phase: 'Running' } });
    await copy.refresh();
    expect([...copy.snapshot.nodes.keys()]).toEqual(['n']);
    expect(logged).toHaveLength(2);
    const { nodeName, isGated, requests } = copy.snapshot.pods.get('d/bad')!;
    expect({ nodeName, isGated }).toEqual({ nodeName: 'n', isGated: true });
    expect([requests.cpu, requests.memory]).toEqual([Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]);
    // A node that was readable before is removed.
    await put('nodes', 'n', { spec: { taints: 7 } });
    await copy.refresh();
    expect(copy.snapshot.nodes.size).toBe(0);
  });

  it('has one identity, which its process keeps', () => {
    const { copy } = following();
    expect(copy.process).toBe('u0');
    expect(copy.process).toBe('u0');
  });
});
