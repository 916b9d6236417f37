import { expect, it, vi } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { queueStore } from '../../shared/scheduling/queue-store.ts';
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
    const read = changes.mock.calls.map(([{ kind, before, after }]) => [kind, before?.uid, after?.uid]);
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
