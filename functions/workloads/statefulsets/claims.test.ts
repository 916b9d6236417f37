import { describe, expect, it } from 'vitest';
import { servedWorkloads } from '../../../test/support/served-workloads.ts';
import { workloadCluster } from '../../../test/support/workload-cluster.ts';

const NAMESPACE = '/api/v1/namespaces/default';
const CLAIMS = `${NAMESPACE}/persistentvolumeclaims`;
const PODS = `${NAMESPACE}/pods`;
const SETS = '/apis/apps/v1/namespaces/default/statefulsets';

const set = (spec: object = {}) => ({
  metadata: { name: 'db' },
  spec: {
    replicas: 2,
    serviceName: 'db',
    podManagementPolicy: 'Parallel',
    selector: { matchLabels: { app: 'db' } },
    template: {
      metadata: { labels: { app: 'db' } },
      spec: {
        volumes: [{ name: 'data', emptyDir: {} }],
        containers: [{ name: 'c', image: 'i', volumeMounts: [{ name: 'data', mountPath: '/data' }] }],
      },
    },
    volumeClaimTemplates: [
      {
        metadata: { name: 'data' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    ],
    ...spec,
  },
});

type Cluster = ReturnType<typeof servedWorkloads>;
const claimsOf = async (cluster: Cluster): Promise<{ metadata: Record<string, unknown> }[]> =>
  (await cluster.ok('GET', CLAIMS)).items;
const namesOf = async (cluster: Cluster) => (await claimsOf(cluster)).map(({ metadata }) => metadata['name']);
const ownersOf = async (cluster: Cluster) =>
  (await claimsOf(cluster)).map(({ metadata }) =>
    ((metadata['ownerReferences'] ?? []) as { kind: string; name: string }[]).map(
      ({ kind, name }) => `${kind}/${name}`,
    ),
  );

async function scale(cluster: Cluster, replicas: number): Promise<void> {
  const stored = await cluster.ok('GET', `${SETS}/db`);
  await cluster.ok('PUT', `${SETS}/db`, { ...stored, spec: { ...stored.spec, replicas } });
  await cluster.settle();
}

describe('the claims of a StatefulSet', () => {
  it('are created before the pods, which have them as volumes', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', SETS, set());
    await cluster.settle();
    expect(await claimsOf(cluster)).toMatchObject([
      { metadata: { name: 'data-db-0', labels: { app: 'db' }, finalizers: ['kubernetes.io/pvc-protection'] } },
      { metadata: { name: 'data-db-1' } },
    ]);
    expect(await ownersOf(cluster)).toEqual([[], []]);
    const { volumes } = (await cluster.ok('GET', `${PODS}/db-1`)).spec;
    expect(volumes).toContainEqual({ name: 'data', persistentVolumeClaim: { claimName: 'data-db-1' } });
    expect(volumes.filter(({ name }: { name: string }) => name === 'data')).toHaveLength(1);
    // From the start: a scheduler that reads them before the binder would refuse claims without a class.
    const first = cluster.items.changes('objects', 0).find(({ key }) => key.sk === 'default/data-db-0');
    expect(String(first?.newImage?.['o'])).toContain('"storageClassName":"local"');
    expect((await cluster.ok('GET', `${CLAIMS}/data-db-0`)).spec.storageClassName).toBe('local');
  });

  it('stay when the set is scaled down and deleted, and are used again', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', SETS, set());
    await cluster.settle();
    const { uid } = (await cluster.ok('GET', `${CLAIMS}/data-db-0`)).metadata;
    await scale(cluster, 0);
    await cluster.ok('DELETE', `${SETS}/db`);
    await cluster.settle();
    expect(await namesOf(cluster)).toEqual(['data-db-0', 'data-db-1']);
    await cluster.ok('POST', SETS, set());
    await cluster.settle();
    expect((await cluster.ok('GET', `${CLAIMS}/data-db-0`)).metadata.uid).toBe(uid);
  });

  it('are deleted with a pod that is scaled down, by the policy', async () => {
    const cluster = servedWorkloads();
    const persistentVolumeClaimRetentionPolicy = { whenScaled: 'Delete', whenDeleted: 'Retain' };
    await cluster.ok('POST', SETS, set({ persistentVolumeClaimRetentionPolicy }));
    await cluster.settle();
    await scale(cluster, 1);
    expect(await namesOf(cluster)).toEqual(['data-db-0']);
    expect(await ownersOf(cluster)).toEqual([[]]);
  });

  it('are deleted with the set, by the policy, until the policy changes', async () => {
    const cluster = servedWorkloads();
    const persistentVolumeClaimRetentionPolicy = { whenScaled: 'Retain', whenDeleted: 'Delete' };
    await cluster.ok('POST', SETS, set({ persistentVolumeClaimRetentionPolicy }));
    await cluster.settle();
    expect(await ownersOf(cluster)).toEqual([['StatefulSet/db'], ['StatefulSet/db']]);
    const stored = await cluster.ok('GET', `${SETS}/db`);
    const retained = { whenScaled: 'Retain', whenDeleted: 'Retain' };
    const spec = { ...stored.spec, persistentVolumeClaimRetentionPolicy: retained };
    const kept = await cluster.ok('PUT', `${SETS}/db`, { ...stored, spec });
    await cluster.settle();
    expect(await ownersOf(cluster)).toEqual([[], []]);
    await cluster.ok('PUT', `${SETS}/db`, {
      ...kept,
      metadata: { ...kept.metadata, resourceVersion: undefined },
      spec: stored.spec,
    });
    await cluster.settle();
    await cluster.ok('DELETE', `${SETS}/db`);
    await cluster.settle();
    expect(await namesOf(cluster)).toEqual([]);
  });

  it('that a quota refuses keep the pod from being created, with the reason', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', `${NAMESPACE}/resourcequotas`, {
      metadata: { name: 'q' },
      spec: { hard: { persistentvolumeclaims: '1' } },
    });
    await cluster.settle();
    await cluster.ok('POST', SETS, set());
    await cluster.settle();
    expect(await namesOf(cluster)).toEqual(['data-db-0']);
    expect((await cluster.ok('GET', PODS)).items).toHaveLength(1);
    const events = (await cluster.ok('GET', `${NAMESPACE}/events`)).items.map(
      ({ message }: { message: string }) => message,
    );
    expect(events).toContainEqual(
      expect.stringContaining(
        'create Claim data-db-1 Pod db-1 in StatefulSet db failed error: persistentvolumeclaims "data-db-1" is forbidden: exceeded quota: q',
      ),
    );
  });
});

describe('the claim of an ephemeral volume', () => {
  const ephemeral = {
    name: 'scratch',
    ephemeral: {
      volumeClaimTemplate: {
        metadata: { labels: { of: 'p' } },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      },
    },
  };
  const pod = { metadata: { name: 'p' }, spec: { containers: [{ name: 'c', image: 'i' }], volumes: [ephemeral] } };

  it('is created with the pod, and deleted with it', async () => {
    const cluster = servedWorkloads();
    const { metadata } = await cluster.ok('POST', PODS, pod);
    await cluster.settle();
    expect(await claimsOf(cluster)).toMatchObject([
      { metadata: { name: 'p-scratch', labels: { of: 'p' }, ownerReferences: [{ kind: 'Pod', uid: metadata.uid }] } },
    ]);
    await cluster.ok('DELETE', `${PODS}/p`);
    await cluster.settle();
    expect(await namesOf(cluster)).toEqual([]);
  });

  it('of another owner is not used', async () => {
    const cluster = servedWorkloads();
    const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
    await cluster.ok('POST', CLAIMS, { metadata: { name: 'p-scratch' }, spec });
    await cluster.ok('POST', PODS, pod);
    await cluster.settle();
    const events = (await cluster.ok('GET', `${NAMESPACE}/events`)).items.map(
      ({ message }: { message: string }) => message,
    );
    expect(events).toContain('PVC default/p-scratch was not created for pod default/p (pod is not owner)');
  });
});

it('pods are not created while their claims wait for admission, and neither are those after them', async () => {
  let isAnswered = false;
  const cluster = workloadCluster({
    admitObjects: async (_creator, { resource }, objects) => {
      const isLate = objects[0]?.object.metadata.name === 'data-db-1' && !isAnswered;
      return resource === 'persistentvolumeclaims' && isLate
        ? { kind: 'waiting', retryMs: 1_000, failure: 'denied' }
        : { kind: 'decided', objects };
    },
  });
  const { metadata, spec } = set({ replicas: 3 });
  await cluster.create('statefulsets', { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata, spec });
  await cluster.settle();
  const podNames = async () => (await cluster.list('pods')).map(({ metadata: { name } }) => name);
  expect(await podNames()).toEqual(['db-0']);
  isAnswered = true;
  cluster.advance(5_000);
  await cluster.tick();
  await cluster.settle();
  expect(await podNames()).toEqual(['db-0', 'db-1', 'db-2']);
});
