/**
 * Area WG: garbage collection by owner. Ids from WG-41 are cases of ours: owners of other kinds, chains and cycles.
 */
import { describe, expect, it } from 'vitest';
import { findStored } from '../../shared/kinds/resources.ts';
import type { KubeObject, ObjectRef, OwnerReference } from '../../shared/kinds/types.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { type WorkloadCluster, workloadCluster } from '../support/workload-cluster.ts';

const KINDS: Readonly<Record<string, { readonly apiVersion: string; readonly kind: string }>> = {
  configmaps: { apiVersion: 'v1', kind: 'ConfigMap' },
  clusterroles: { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole' },
  namespaces: { apiVersion: 'v1', kind: 'Namespace' },
  nodes: { apiVersion: 'v1', kind: 'Node' },
  pods: { apiVersion: 'v1', kind: 'Pod' },
};

const refOf = (resource: string, name: string, namespace = 'default'): ObjectRef => ({
  resource,
  namespace: findStored(resource)?.namespaced === false ? '' : namespace,
  name,
});

const referenceTo = ({ apiVersion = '', kind = '', metadata }: KubeObject, blocks = false): OwnerReference => ({
  apiVersion,
  kind,
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
  ...(blocks && { blockOwnerDeletion: true }),
});

/** Stores the object as a POST does. */
async function make(
  cluster: WorkloadCluster,
  ref: ObjectRef,
  owners: readonly OwnerReference[] = [],
): Promise<KubeObject> {
  const { resource, namespace, name } = ref;
  const metadata = {
    name,
    ...(namespace === '' ? {} : { namespace }),
    uid: `${resource}-${namespace}-${name}`,
    ...(owners.length === 0 ? {} : { ownerReferences: [...owners] }),
  };
  const object: KubeObject = { ...KINDS[resource], metadata };
  const outcome = await cluster.objects.commit({ writes: [{ kind: 'create', ref, object }] });
  if (outcome.kind !== 'committed') throw new Error(outcome.kind);
  return outcome.objects[0]!;
}

const exists = async (cluster: WorkloadCluster, ref: ObjectRef): Promise<boolean> =>
  (await cluster.objects.get(ref)) !== undefined;

/** Stores the object as a DELETE in the foreground does. */
const deleteInForeground = (cluster: WorkloadCluster, resource: string, name: string) =>
  cluster.change(resource, name, (object) => ({
    ...object,
    metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] },
  }));

/** The machine of each pod that is being deleted reports its end. */
async function endPods(cluster: WorkloadCluster): Promise<void> {
  for (const { metadata } of await cluster.list('pods')) {
    if (metadata.deletionTimestamp !== undefined) await cluster.remove('pods', metadata.name ?? '');
  }
}

async function running() {
  const cluster = workloadCluster();
  await cluster.createDeployment({ replicas: 3 });
  await cluster.settleRunning();
  return cluster;
}

describe('garbage collection by owner', () => {
  it('WG-01 deletes ReplicaSet and pods after a Deployment that was removed', async () => {
    const cluster = await running();
    await cluster.remove('deployments', 'web');
    await cluster.settle();
    expect(await cluster.sets()).toEqual([]);
    expect(await cluster.pods()).toEqual([]);
  });

  it('WG-02 keeps a Deployment that is deleted in the foreground until the pods of its ReplicaSet have ended', async () => {
    const cluster = await running();
    await deleteInForeground(cluster, 'deployments', 'web');
    await cluster.settle();
    expect(await cluster.list('pods')).toHaveLength(3);
    expect(await cluster.pods()).toEqual([]);
    const [set] = await cluster.sets();
    expect(set?.metadata).toMatchObject({ finalizers: ['foregroundDeletion'], deletionTimestamp: expect.any(String) });
    expect(await cluster.deployment()).toBeDefined();
    const [first] = await cluster.list('pods');
    await cluster.remove('pods', first?.metadata.name ?? '');
    await cluster.settle();
    expect([(await cluster.sets()).length, await cluster.deployment()]).toEqual([1, expect.anything()]);
    await endPods(cluster);
    await cluster.settle();
    expect([await cluster.sets(), await cluster.deployment()]).toEqual([[], undefined]);
  });

  it('WG-03 keeps the dependents of an owner that is deleted with Orphan', async () => {
    const cluster = await running();
    await cluster.change('deployments', 'web', (object) => ({
      ...object,
      metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['orphan'] },
    }));
    await cluster.settle();
    expect(await cluster.deployment()).toBeUndefined();
    expect((await cluster.sets())[0]?.metadata.ownerReferences).toBeUndefined();
    expect(await cluster.pods()).toHaveLength(3);
  });

  it('WG-07 deletes a dependent of an owner that was created again with another uid', async () => {
    const cluster = workloadCluster();
    const owner = await make(cluster, refOf('configmaps', 'owner'));
    await make(cluster, refOf('pods', 'p'), [{ ...referenceTo(owner), uid: 'former' }]);
    await cluster.settle();
    expect(await exists(cluster, refOf('pods', 'p'))).toBe(false);
  });

  it('WG-08 deletes a dependent of an owner in another namespace, and says why', async () => {
    const cluster = workloadCluster();
    await make(cluster, refOf('namespaces', 'other'));
    const owner = await make(cluster, refOf('configmaps', 'owner', 'other'));
    await make(cluster, refOf('configmaps', 'dependent'), [referenceTo(owner)]);
    await make(cluster, refOf('configmaps', 'sibling', 'other'), [referenceTo(owner)]);
    await cluster.settle();
    expect(await exists(cluster, refOf('configmaps', 'dependent'))).toBe(false);
    expect(await exists(cluster, refOf('configmaps', 'sibling', 'other'))).toBe(true);
    expect(await cluster.events('OwnerRefInvalidNamespace')).toEqual([
      `ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: ${owner.metadata.uid}] does not exist in namespace "default"`,
    ]);
  });

  it('WG-09 keeps a dependent of a Node while the Node exists', async () => {
    const cluster = workloadCluster();
    const node = await make(cluster, refOf('nodes', 'n1'));
    const dependent = refOf('configmaps', 'dependent');
    await make(cluster, dependent, [referenceTo(node)]);
    await cluster.settle();
    expect(await exists(cluster, dependent)).toBe(true);
    await cluster.remove('nodes', 'n1');
    await cluster.settle();
    expect(await exists(cluster, dependent)).toBe(false);
  });

  it.each(['never existed', 'was removed before'])('WG-10 deletes a dependent of an owner that %s', async (which) => {
    const cluster = workloadCluster();
    const ref = refOf('configmaps', 'owner');
    const reference =
      which === 'never existed'
        ? { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'never', uid: 'never' }
        : referenceTo(await make(cluster, ref));
    if (which !== 'never existed') await cluster.remove('configmaps', 'owner');
    await cluster.settle();
    await make(cluster, refOf('configmaps', 'dependent'), [reference]);
    // Also one that gets its reference later.
    await make(cluster, refOf('configmaps', 'later'));
    await cluster.settle();
    await cluster.change('configmaps', 'later', ({ metadata, ...object }) => ({
      ...object,
      metadata: { ...metadata, ownerReferences: [reference] },
    }));
    await cluster.settle();
    expect(await cluster.list('configmaps')).toEqual([]);
    expect(await cluster.events('OwnerRefInvalidNamespace')).toEqual([]);
  });

  it('WG-11 keeps a dependent of an owner of a kind that is not served', async () => {
    const cluster = workloadCluster();
    await make(cluster, refOf('pods', 'p'), [{ apiVersion: 'example.com/v1', kind: 'Foo', name: 'f', uid: 'f' }]);
    await cluster.settle();
    cluster.advance(900_000);
    await cluster.tick();
    expect(await exists(cluster, refOf('pods', 'p'))).toBe(true);
  });

  it('WG-13 removes an owner although a dependent that does not block it is still there', async () => {
    const cluster = workloadCluster();
    const owner = await make(cluster, refOf('configmaps', 'owner'));
    await make(cluster, refOf('configmaps', 'blocks'), [referenceTo(owner, true)]);
    await make(cluster, refOf('configmaps', 'other'), [referenceTo(owner)]);
    for (const name of ['blocks', 'other']) {
      await cluster.change('configmaps', name, ({ metadata, ...object }) => ({
        ...object,
        metadata: { ...metadata, finalizers: ['a/b'] },
      }));
    }
    await deleteInForeground(cluster, 'configmaps', 'owner');
    await cluster.settle();
    expect(await exists(cluster, refOf('configmaps', 'owner'))).toBe(true);
    await cluster.remove('configmaps', 'blocks');
    await cluster.settle();
    expect((await cluster.list('configmaps')).map(({ metadata }) => metadata.name)).toEqual(['other']);
  });

  it('WG-41 keeps a cluster-scoped dependent of an owner in a namespace, and says why', async () => {
    const cluster = workloadCluster();
    await make(cluster, refOf('namespaces', 'default'));
    const owner = await make(cluster, refOf('configmaps', 'owner'));
    await make(cluster, refOf('clusterroles', 'dependent'), [referenceTo(owner)]);
    await cluster.settle();
    await cluster.remove('configmaps', 'owner');
    await cluster.settle();
    expect(await exists(cluster, refOf('clusterroles', 'dependent'))).toBe(true);
    expect(await cluster.events('OwnerRefInvalidNamespace')).toEqual([
      `ownerRef [v1/ConfigMap, namespace: , name: owner, uid: ${owner.metadata.uid}] does not exist in namespace ""`,
    ]);
  });

  it('WG-42 deletes the dependents of a cluster-scoped owner that was removed', async () => {
    const cluster = workloadCluster();
    const owner = await make(cluster, refOf('clusterroles', 'owner'));
    await make(cluster, refOf('clusterroles', 'dependent'), [referenceTo(owner)]);
    await cluster.settle();
    await cluster.remove('clusterroles', 'owner');
    await cluster.settle();
    expect(await exists(cluster, refOf('clusterroles', 'dependent'))).toBe(false);
  });

  it('WG-43 repeats the check of an owner that failed twice, and keeps the claim of one that exists', async () => {
    const cluster = await running();
    const [set] = await cluster.sets();
    const claim = { table: 'control' as const, pk: `owner#${set?.metadata.uid}`, sk: '-' };
    const before = await cluster.tables.get(claim, { consistent: true });
    const never = { apiVersion: 'v1', kind: 'ConfigMap', name: 'never', uid: 'never' };
    await make(cluster, refOf('configmaps', 'collected'), [never]);
    await make(cluster, refOf('configmaps', 'kept'), [
      referenceTo({ apiVersion: 'apps/v1', kind: 'ReplicaSet', ...set! }),
    ]);
    const failing: ItemStore = {
      ...cluster.tables,
      get: () => Promise.reject(new StoreFault('throttled', 'throttled', { retryable: true })),
    };
    const outcome = await cluster.makeControllers(failing).onWorkloadRecords(await cluster.records());
    expect(outcome.postponed.length).toBeGreaterThan(0);
    cluster.advance(15_000);
    await cluster.tick();
    await cluster.settle();
    expect((await cluster.list('configmaps')).map(({ metadata }) => metadata.name)).toEqual(['kept']);
    expect(before).toBeDefined();
    expect(await cluster.tables.get(claim, { consistent: true })).toEqual(before);
  });

  it('WG-44 deletes a chain of four from its end, in the foreground', async () => {
    const cluster = workloadCluster();
    const names = ['a', 'b', 'c', 'd'];
    let owner: KubeObject | undefined;
    for (const name of names) {
      owner = await make(cluster, refOf('configmaps', name), owner === undefined ? [] : [referenceTo(owner, true)]);
    }
    const removed: string[] = [];
    await deleteInForeground(cluster, 'configmaps', 'a');
    for (let round = 0; round < 40; round += 1) {
      const batch = await cluster.records();
      if (batch.length === 0) break;
      for (const { type, key } of batch) if (type === 'REMOVE') removed.push(key.sk);
      await cluster.controllers.onWorkloadRecords(batch);
    }
    expect(removed).toEqual(['default/d', 'default/c', 'default/b', 'default/a']);
  });

  it('WG-45 deletes objects that own each other in a circle', async () => {
    const cluster = workloadCluster();
    const owners: Readonly<Record<string, string>> = { p1: 'p3', p2: 'p1', p3: 'p2' };
    const own = (name: string): OwnerReference => ({
      apiVersion: 'v1',
      kind: 'Pod',
      name: owners[name]!,
      uid: `pods-default-${owners[name]}`,
      blockOwnerDeletion: true,
    });
    for (const name of Object.keys(owners)) await make(cluster, refOf('pods', name));
    for (const name of Object.keys(owners)) {
      await cluster.change('pods', name, ({ metadata, ...pod }) => ({
        ...pod,
        metadata: { ...metadata, ownerReferences: [own(name)] },
      }));
    }
    await cluster.settle();
    expect(await cluster.list('pods')).toHaveLength(3);
    await deleteInForeground(cluster, 'pods', 'p1');
    await cluster.settle();
    expect(await cluster.list('pods')).toEqual([]);
  });

  it('WG-46 reads one unit for the owner of new objects, and nothing for objects without one', async () => {
    let reads = 0;
    const cluster = workloadCluster({
      onConsumed: (units) => {
        reads += units.readUnits;
      },
    });
    const owner = await make(cluster, refOf('configmaps', 'owner'));
    await cluster.records();
    for (let index = 0; index < 50; index += 1) {
      await make(cluster, refOf('configmaps', `c${index}`), [referenceTo(owner)]);
      await make(cluster, refOf('configmaps', `free${index}`));
    }
    const batch = await cluster.records();
    expect(batch).toHaveLength(50);
    reads = 0;
    await cluster.controllers.onWorkloadRecords(batch);
    expect(reads).toBe(1);
  });
});
