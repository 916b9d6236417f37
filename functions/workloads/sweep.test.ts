import { expect, it, vi } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { addDue } from '../../shared/ticks/due-rows.ts';
import { type WorkloadCluster, workloadCluster } from '../../test/support/workload-cluster.ts';
import { SWEPT_WORKLOADS } from './metrics.ts';

const sweptOf = (cluster: WorkloadCluster) =>
  cluster.metrics.flatMap(({ name, value }) => (name === SWEPT_WORKLOADS ? [value] : []));

it('a sweep counts the workloads that it settles, and no namespaces and quotas', async () => {
  const cluster = workloadCluster();
  await cluster.create('resourcequotas', { kind: 'ResourceQuota', metadata: { name: 'q' } });
  await cluster.settle();
  const sweep = async () => {
    cluster.advance(900_000);
    await cluster.tick();
    cluster.advance(5_000);
    await cluster.tick();
  };
  await cluster.tick();
  await sweep();
  expect(sweptOf(cluster)).toEqual([]);
  await cluster.createSet(1, { name: 'web' });
  // Its record is lost.
  await cluster.records();
  await sweep();
  expect(sweptOf(cluster)).toEqual([1]);
});

const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'v1' }] } };
const set = { selector: { matchLabels: { app: 'web' } }, template };
const seen = (replicas?: number) => ({ observedGeneration: 1, ...(replicas !== undefined && { replicas }) });
const ended = { conditions: [{ type: 'Complete', status: 'True' }] };
const every = { schedule: '0 * * * *', jobTemplate: { spec: { template } } };

it.each<[string, string, Partial<KubeObject>, boolean]>([
  ['with its pods', 'deployments', { spec: { ...set, replicas: 3 }, status: seen(3) }, false],
  ['with one by default', 'deployments', { spec: set, status: seen(1) }, false],
  ['without pods that wants none', 'deployments', { spec: { ...set, replicas: 0 }, status: seen() }, false],
  ['without a pod that it wants', 'deployments', { spec: { ...set, replicas: 3 }, status: seen(2) }, true],
  ['that was not observed', 'deployments', { spec: { ...set, replicas: 3 }, status: { replicas: 3 } }, true],
  ['with its pods', 'replicasets', { spec: { ...set, replicas: 3 }, status: seen(3) }, false],
  [
    'with its pods that is being deleted',
    'replicasets',
    {
      metadata: { deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['foregroundDeletion'] },
      spec: { ...set, replicas: 3 },
      status: seen(3),
    },
    true,
  ],
  ['with its pods', 'replicationcontrollers', { spec: { replicas: 2, template }, status: seen(2) }, false],
  ['with too many', 'replicationcontrollers', { spec: { replicas: 1, template }, status: seen(2) }, true],
  ['at its last time', 'cronjobs', { spec: every, status: { lastScheduleTime: '2026-01-01T00:00:00Z' } }, false],
  ['behind its time', 'cronjobs', { spec: every, status: { lastScheduleTime: '2025-12-31T22:00:00Z' } }, true],
  ['that was counted', 'poddisruptionbudgets', { spec: { minAvailable: 1 }, status: seen() }, false],
  ['that was not counted', 'poddisruptionbudgets', { spec: { minAvailable: 1 } }, true],
  ['without a selector', 'services', { spec: { ports: [{ port: 80 }] } }, false],
  ['without its endpoints', 'services', { spec: { selector: { app: 'web' }, ports: [{ port: 80 }] } }, true],
  ['that is free', 'persistentvolumes', { spec: {}, status: { phase: 'Available' } }, false],
  ['that is bound', 'persistentvolumes', { spec: {}, status: { phase: 'Bound' } }, false],
  ['that was released', 'persistentvolumes', { spec: {}, status: { phase: 'Released' } }, true],
  ['that waits', 'persistentvolumeclaims', { spec: {}, status: { phase: 'Pending' } }, true],
  ['that has ended', 'jobs', { spec: { template }, status: ended }, false],
  ['that runs', 'jobs', { spec: { template } }, true],
  [
    'that has ended and is deleted later',
    'jobs',
    { spec: { template, ttlSecondsAfterFinished: 9_000 }, status: ended },
    true,
  ],
])('a sweep finds an object %s, of %s', async (_text, resource, { metadata, ...object }, isSynced) => {
  const cluster = workloadCluster();
  await cluster.create(resource, { metadata: { name: 'web', ...metadata }, ...object });
  // Its record is lost.
  await cluster.records();
  expect(await cluster.tick()).toEqual({ kind: 'ran', due: 0, swept: Number(isSynced) });
});

it('a sweep runs once per interval, also if its due time is behind many others', async () => {
  const cluster = workloadCluster();
  const sweeps = async () => {
    const { items } = await cluster.tables.query({ table: 'control', pk: 'workloads-due', consistent: true });
    return items.map(({ sk }) => String(sk)).filter((sk) => sk.endsWith('#sweep'));
  };
  await cluster.tick();
  const planned = await sweeps();
  expect(planned).toHaveLength(1);
  for (let index = 0; index < 250; index += 1) {
    const ref = { resource: 'cronjobs', namespace: 'default', name: `c${index}` };
    await addDue(cluster.tables, { atMs: cluster.now() + 600_000, key: { kind: 'workload', ref } });
  }
  for (let tick = 1; tick <= 5; tick += 1) {
    cluster.advance(60_000);
    await cluster.tick();
    expect(await sweeps()).toEqual(planned);
  }
  cluster.advance(600_000);
  await cluster.tick();
  cluster.advance(5_000);
  await cluster.tick();
  expect(await sweeps()).toHaveLength(1);
  expect(await sweeps()).not.toEqual(planned);
});

it('a sweep without time for all workloads continues where it ended', async () => {
  const cluster = workloadCluster();
  const names = Array.from({ length: 30 }, (_, index) => `web-${String(index).padStart(2, '0')}`);
  for (const name of names) await cluster.createSet(1, { name });
  // Their records are lost.
  await cluster.records();
  const synced = async () =>
    (await cluster.sets()).flatMap(({ metadata, status }) =>
      status?.observedGeneration === undefined ? [] : [metadata.name ?? ''],
    );
  // Each transaction lasts five seconds: the first eight syncs use up the time.
  const controllers = cluster.makeControllers({
    ...cluster.tables,
    transact(writes) {
      cluster.advance(5_000);
      return cluster.tables.transact(writes);
    },
  });
  const counts: number[] = [];
  for (let sweep = 1; sweep <= 10; sweep += 1) {
    await controllers.tickWorkloads(Math.floor(cluster.now() / 5_000));
    counts.push((await synced()).length);
    cluster.advance(60_000);
  }
  expect(counts.slice(0, 3)).toEqual([8, 16, 24]);
  expect(sweptOf(cluster).slice(0, 3)).toEqual([8, 8, 8]);
  expect(await synced()).toEqual(names);
  const { items } = await cluster.tables.query({ table: 'control', pk: 'workloads-due', consistent: true });
  expect(items.filter(({ sk }) => String(sk).endsWith('#sweep'))).toHaveLength(1);
  expect(items.find(({ sk }) => sk === 'next-sweep')).not.toHaveProperty('f');
});

/** Namespaces without their contents; their records are lost. The result reads which of them have their contents. */
async function emptyNamespaces(cluster: WorkloadCluster, count: number) {
  for (let index = 0; index < count; index += 1) {
    const name = `ns-${String(index).padStart(3, '0')}`;
    await cluster.create('namespaces', { kind: 'Namespace', metadata: { name }, status: { phase: 'Active' } });
  }
  await cluster.records();
  const accounts = async () => (await cluster.objects.list({ resource: 'serviceaccounts' })).objects;
  return async () => (await accounts()).map(({ metadata }) => metadata.namespace);
}

it('a sweep without time for all namespaces continues where it ended', async () => {
  const cluster = workloadCluster();
  const filled = await emptyNamespaces(cluster, 20);
  const controllers = cluster.makeControllers({
    ...cluster.tables,
    transact(writes) {
      cluster.advance(5_000);
      return cluster.tables.transact(writes);
    },
  });
  const counts: number[] = [];
  for (let sweep = 1; sweep <= 6; sweep += 1) {
    await controllers.tickWorkloads(Math.floor(cluster.now() / 5_000));
    counts.push(new Set(await filled()).size);
    cluster.advance(60_000);
  }
  expect(counts[0]).toBeLessThan(20);
  expect(counts.at(-1)).toBe(20);
});

it('the sweep after one that was killed does not begin at the same place', async () => {
  const cluster = workloadCluster();
  const filled = await emptyNamespaces(cluster, 450);
  const commits = 250;
  let count = 0;
  const killed = cluster.makeControllers({
    ...cluster.tables,
    transact(writes) {
      count += 1;
      return count > commits ? new Promise(() => {}) : cluster.tables.transact(writes);
    },
  });
  void killed.tickWorkloads(Math.floor(cluster.now() / 5_000));
  await vi.waitUntil(() => count > commits, { timeout: 20_000 });
  const { items } = await cluster.tables.query({ table: 'control', pk: 'workloads-due', consistent: true });
  expect(items.find(({ sk }) => sk === 'next-sweep')).toMatchObject({ f: 'namespaces:/ns-200' });
  cluster.advance(900_000);
  await cluster.tick();
  expect(new Set(await filled()).size).toBe(450);
  const after = await cluster.tables.query({ table: 'control', pk: 'workloads-due', consistent: true });
  expect(after.items.find(({ sk }) => sk === 'next-sweep')).not.toHaveProperty('f');
});
