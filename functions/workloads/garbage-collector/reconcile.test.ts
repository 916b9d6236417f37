import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { type ItemStore, StoreFault } from '../../../shared/store/item-store.ts';
import { TickFault } from '../../../shared/ticks/tick.ts';
import { type WorkloadCluster, workloadCluster } from '../../../test/support/workload-cluster.ts';
import { fateOf, type OwnerState } from './rule.ts';

const owner = (uid: string, state: OwnerState) => ({
  reference: { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: uid, uid },
  state,
});

describe('the fate of an object', () => {
  it.each([
    [['absent'], 'delete'],
    [['absent', 'waiting'], 'delete'],
    [['solid'], 'keep'],
    [['absent', 'solid'], 'release'],
    [['waiting', 'solid'], 'release'],
    [['unknown'], 'keep'],
    [['absent', 'unknown'], 'release'],
    [[], 'keep'],
  ] as const)('with owners %j is: %s', (states, kind) => {
    const owners = states.map((state, index) => owner(`u${index}`, state));
    expect(fateOf(owners, { isDeleting: false, hasDependents: false }).kind).toBe(kind);
    expect(fateOf(owners, { isDeleting: true, hasDependents: true }).kind).toBe('keep');
  });

  it.each([
    [['waiting'], true, 'Foreground'],
    [['absent', 'waiting'], true, 'Foreground'],
    [['waiting'], false, 'Background'],
    [['absent'], true, 'Background'],
  ] as const)('with owners %j and dependents %j is a deletion in the %s', (states, hasDependents, policy) => {
    const owners = states.map((state, index) => owner(`u${index}`, state));
    expect(fateOf(owners, { isDeleting: false, hasDependents })).toEqual({ kind: 'delete', policy });
  });
});

const CONFIG_MAP = { apiVersion: 'v1', kind: 'ConfigMap' };

async function running() {
  const cluster = workloadCluster();
  await cluster.createDeployment({ replicas: 2 });
  await cluster.settleRunning();
  return cluster;
}

describe('garbage collection', () => {
  it('deletes ReplicaSet and pods of a Deployment that was removed; pods have their grace period', async () => {
    const cluster = await running();
    await cluster.remove('deployments', 'web');
    await cluster.settle();
    expect(await cluster.sets()).toEqual([]);
    expect(await cluster.pods()).toEqual([]);
    expect(await cluster.list('pods')).toMatchObject([
      { metadata: { deletionGracePeriodSeconds: 30 } },
      { metadata: { deletionGracePeriodSeconds: 30 } },
    ]);
  });

  it('is repeated when it failed twice, here because the table refused every commit', async () => {
    const cluster = await running();
    await cluster.remove('deployments', 'web');
    const failing = cluster.makeControllers({
      ...cluster.tables,
      transact: () => Promise.reject(new StoreFault('throttled', 'throttled', { retryable: true })),
    });
    const outcome = await failing.onWorkloadRecords(await cluster.records());
    expect(outcome.postponed.length).toBeGreaterThan(0);
    expect(await cluster.sets()).toHaveLength(1);
    cluster.advance(10_000);
    // The tick finds the table as it was: the work is moved to a later time.
    await expect(failing.tickWorkloads(Math.floor(cluster.now() / 5_000))).rejects.toThrow(TickFault);
    cluster.advance(55_000);
    await cluster.tick();
    expect(await cluster.sets()).toHaveLength(1);
    cluster.advance(5_000);
    await cluster.tick();
    await cluster.settle();
    expect(await cluster.sets()).toEqual([]);
    expect(await cluster.pods()).toEqual([]);
  });

  it('leaves the dependents of an owner with the finalizer orphan, without their reference', async () => {
    const cluster = await running();
    await cluster.change('deployments', 'web', (object) => ({
      ...object,
      metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['orphan'] },
    }));
    await cluster.settle();
    expect(await cluster.deployment()).toBeUndefined();
    const [set] = await cluster.sets();
    expect(set?.metadata.ownerReferences).toBeUndefined();
    expect(await cluster.pods()).toHaveLength(2);
  });

  it('removes such an owner although its status is written at the same time', async () => {
    const cluster = await running();
    await cluster.change('deployments', 'web', (object) => ({
      ...object,
      metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['orphan'] },
    }));
    const batch = await cluster.records();
    let isFirst = true;
    const items: ItemStore = {
      ...cluster.tables,
      async transact(writes) {
        if (isFirst && writes.some(({ kind, key }) => kind === 'delete' && key.pk.startsWith('o#deployments#'))) {
          isFirst = false;
          await cluster.change('deployments', 'web', (object) => ({
            ...object,
            status: { ...object.status, unavailableReplicas: 7 },
          }));
        }
        return cluster.tables.transact(writes);
      },
    };
    await cluster.makeControllers(items).onWorkloadRecords(batch);
    await cluster.settle();
    expect(isFirst).toBe(false);
    expect(await cluster.deployment()).toBeUndefined();
    expect(await cluster.pods()).toHaveLength(2);
  });

  it.each(['deployments', 'replicasets'])('is repaired by the sweep when the record was lost: %s', async (resource) => {
    const cluster = await running();
    await cluster.tick();
    const [object] = await cluster.list(resource);
    await cluster.change(resource, object?.metadata.name ?? '', (each) => ({
      ...each,
      metadata: { ...each.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['orphan'] },
    }));
    await cluster.records();
    cluster.advance(900_000);
    await cluster.tick();
    expect((await cluster.list(resource)).map(({ metadata }) => metadata.uid)).not.toContain(object?.metadata.uid);
  });

  it('removes an owner in the foreground after the dependents that block it', async () => {
    const cluster = await running();
    const [set] = await cluster.sets();
    await cluster.change('replicasets', set?.metadata.name ?? '', (object) => ({
      ...object,
      metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] },
    }));
    await cluster.settle();
    expect(await cluster.pods()).toEqual([]);
    expect((await cluster.sets()).some(({ metadata }) => metadata.uid === set?.metadata.uid)).toBe(true);
    for (const pod of await cluster.list('pods')) await cluster.remove('pods', pod.metadata.name ?? '');
    await cluster.settle();
    expect((await cluster.sets()).some(({ metadata }) => metadata.uid === set?.metadata.uid)).toBe(false);
  });

  it('removes an owner in the foreground although a dependent has another owner, which keeps it', async () => {
    const cluster = await running();
    const [set] = await cluster.sets();
    const [pod] = await cluster.pods();
    const other = await cluster.create('configmaps', { kind: 'ConfigMap', metadata: { name: 'other' } });
    const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'other', uid: other.metadata.uid ?? '' };
    await cluster.change('pods', pod?.metadata.name ?? '', (object) => ({
      ...object,
      metadata: { ...object.metadata, ownerReferences: [...(object.metadata.ownerReferences ?? []), reference] },
    }));
    await cluster.change('replicasets', set?.metadata.name ?? '', (object) => ({
      ...object,
      metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] },
    }));
    await cluster.settle();
    for (const each of await cluster.list('pods')) {
      if (each.metadata.deletionTimestamp !== undefined) await cluster.remove('pods', each.metadata.name ?? '');
    }
    await cluster.settle();
    expect((await cluster.sets()).some(({ metadata }) => metadata.uid === set?.metadata.uid)).toBe(false);
    const kept = (await cluster.pods()).find(({ metadata }) => metadata.uid === pod?.metadata.uid);
    const uids = kept?.metadata.ownerReferences?.map(({ uid }) => uid);
    expect(uids).toContain(reference.uid);
    expect(uids).not.toContain(set?.metadata.uid);
  });

  it('keeps an object with another owner that exists, or is of an unknown kind', async () => {
    const cluster = await running();
    const [set] = await cluster.sets();
    const reference = {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      name: set?.metadata.name ?? '',
      uid: set?.metadata.uid ?? '',
    };
    const custom = { apiVersion: 'example.com/v1', kind: 'Thing', name: 't', uid: 't' };
    await cluster.create('configmaps', {
      kind: 'ConfigMap',
      metadata: { name: 'kept', ownerReferences: [reference, custom] },
    });
    await cluster.create('configmaps', { kind: 'ConfigMap', metadata: { name: 'lost', ownerReferences: [reference] } });
    await cluster.remove('replicasets', set?.metadata.name ?? '');
    await cluster.settle();
    const maps = await cluster.list('configmaps');
    expect(maps.map(({ metadata }) => [metadata.name, metadata.ownerReferences?.length])).toEqual([['kept', 1]]);
  });

  it('reads the owners of an object that is being deleted once, however many are absent', async () => {
    const cluster = workloadCluster();
    const owners = Array.from({ length: 80 }, (_, index) => ({ ...CONFIG_MAP, name: `o${index}`, uid: `u${index}` }));
    await cluster.create('configmaps', {
      ...CONFIG_MAP,
      metadata: { name: 'held', finalizers: ['example.com/hold'], ownerReferences: owners },
    });
    let reads = 0;
    const { onWorkloadRecords } = cluster.makeControllers({
      ...cluster.tables,
      get(key, options) {
        reads += 1;
        return cluster.tables.get(key, options);
      },
    });
    await onWorkloadRecords(await cluster.records());
    const [held] = await cluster.list('configmaps');
    expect(held?.metadata.deletionTimestamp).toBeDefined();
    // Each of eight workers may begin before the deletion.
    expect(reads).toBeLessThan(25 * owners.length);
  });

  it('keeps an object of an owner of a measured kind, which is never stored', async () => {
    const cluster = await running();
    const measured = { apiVersion: 'metrics.k8s.io/v1beta1', kind: 'NodeMetrics', name: 'n1', uid: 'm' };
    await cluster.create('configmaps', { kind: 'ConfigMap', metadata: { name: 'kept', ownerReferences: [measured] } });
    await cluster.settle();
    expect(await cluster.list('configmaps')).toHaveLength(1);
  });
});

/** ConfigMaps with owners that are ConfigMaps too. */
const mapOf = (name: string, owners: readonly KubeObject[] = [], finalizers: readonly string[] = []): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name,
    ...(finalizers.length > 0 && { finalizers: [...finalizers] }),
    ...(owners.length > 0 && {
      ownerReferences: owners.map(({ metadata }) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: metadata.name ?? '',
        uid: metadata.uid ?? '',
        blockOwnerDeletion: true,
      })),
    }),
  },
});
const createMap = (cluster: WorkloadCluster, ...map: Parameters<typeof mapOf>) =>
  cluster.create('configmaps', mapOf(...map));
const markMap = (cluster: WorkloadCluster, name: string, finalizers: readonly string[]) =>
  cluster.change('configmaps', name, (object) => ({
    ...object,
    metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [...finalizers] },
  }));
const map = async (cluster: WorkloadCluster, name: string) =>
  (await cluster.list('configmaps')).find(({ metadata }) => metadata.name === name);

describe('a deletion in the foreground', () => {
  it('continues with the dependents of a dependent, which keeps its other finalizers', async () => {
    const cluster = workloadCluster();
    const owner = await createMap(cluster, 'owner');
    const middle = await createMap(cluster, 'middle', [owner], ['a/b', 'orphan']);
    await createMap(cluster, 'last', [middle], ['c/d']);
    await markMap(cluster, 'owner', ['foregroundDeletion']);
    await cluster.settle();
    const { metadata } = (await map(cluster, 'middle'))!;
    expect(metadata.finalizers).toEqual(['a/b', 'foregroundDeletion']);
    expect(metadata.deletionTimestamp).toBeDefined();
    expect(metadata.ownerReferences).toMatchObject([{ name: 'owner', blockOwnerDeletion: true }]);
    expect((await map(cluster, 'last'))?.metadata).toMatchObject({
      finalizers: ['c/d'],
      deletionTimestamp: expect.any(String),
    });
    expect(await map(cluster, 'owner')).toBeDefined();
  });

  it('of objects that own each other ends', async () => {
    const cluster = workloadCluster();
    const one = await createMap(cluster, 'one');
    const other = await createMap(cluster, 'other', [one]);
    await cluster.change('configmaps', 'one', (object) => ({
      ...object,
      metadata: { ...object.metadata, ownerReferences: mapOf('one', [other]).metadata.ownerReferences ?? [] },
    }));
    await cluster.settle();
    await markMap(cluster, 'one', ['foregroundDeletion']);
    await cluster.settle();
    expect(await cluster.list('configmaps')).toEqual([]);
  });

  it('is not begun for an object without dependents', async () => {
    const cluster = workloadCluster();
    const owner = await createMap(cluster, 'owner', [], ['foregroundDeletion']);
    await createMap(cluster, 'dependent', [owner], ['a/b']);
    await markMap(cluster, 'owner', ['foregroundDeletion']);
    await cluster.settle();
    expect((await map(cluster, 'dependent'))?.metadata.finalizers).toEqual(['a/b']);
  });
});

describe('an object that another write changes before each commit', () => {
  const cases: readonly (readonly [string, string, readonly string[]])[] = [
    ['is collected', 'dependent', []],
    ['loses its owner', 'dependent', ['orphan']],
    ['loses its finalizer', 'owner', ['orphan']],
  ];

  /** Controllers of a cluster in which a label of the map changes before so many of its commits. */
  const changing = (cluster: WorkloadCluster, name: string, times: number) => {
    let left = times;
    return cluster.makeControllers({
      ...cluster.tables,
      async transact(writes) {
        if (left > 0 && writes.some(({ key }) => key.pk.startsWith('o#configmaps#') && key.sk.endsWith(name))) {
          left -= 1;
          await cluster.change('configmaps', name, (object) => ({
            ...object,
            metadata: { ...object.metadata, labels: { left: String(left) } },
          }));
        }
        return cluster.tables.transact(writes);
      },
    });
  };

  async function postponedAfter(times: number, [, name, finalizers]: (typeof cases)[number]) {
    const cluster = workloadCluster();
    const owner = await createMap(cluster, 'owner');
    await createMap(cluster, 'dependent', [owner]);
    await cluster.settle();
    if (finalizers.length > 0) await markMap(cluster, 'owner', finalizers);
    else await cluster.remove('configmaps', 'owner');
    const outcome = await changing(cluster, name, times).onWorkloadRecords(await cluster.records());
    return outcome.postponed.length;
  }

  it.each(cases)('%s within four attempts, and twice as many with the repetition', async (...of) => {
    expect(await postponedAfter(7, of)).toBe(0);
    expect(await postponedAfter(8, of)).toBe(1);
  });
});
