import { describe, expect, it } from 'vitest';
import { type ItemStore, StoreFault } from '../../../shared/store/item-store.ts';
import { scriptedCommits } from '../../../test/support/scripted-commits.ts';
import { servedWorkloads } from '../../../test/support/served-workloads.ts';
import type { WorkloadDependencies } from '../dependencies.ts';
import { syncVolume } from './reconcile.ts';

const VOLUMES = '/api/v1/persistentvolumes';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses';
const EVENTS = '/api/v1/namespaces/default/events';

const volume = (name: string, spec: object = {}, labels: object = {}) => ({
  metadata: { name, labels },
  spec: {
    capacity: { storage: '10Gi' },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: `/data/${name}` },
    storageClassName: 'manual',
    ...spec,
  },
});

const claim = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'manual',
    resources: { requests: { storage: '5Gi' } },
    ...spec,
  },
});

type Cluster = ReturnType<typeof servedWorkloads>;
const reasonsOf = async (cluster: Cluster, name: string): Promise<string[]> =>
  (await cluster.ok('GET', EVENTS)).items
    .filter((event: { involvedObject: { name: string } }) => event.involvedObject.name === name)
    .map(({ reason }: { reason: string }) => reason);

describe('a claim', () => {
  it('is bound to the smallest volume that satisfies it, and both say so', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', VOLUMES, volume('small', { capacity: { storage: '1Gi' } }));
    await cluster.ok('POST', VOLUMES, volume('large', { capacity: { storage: '100Gi' } }));
    await cluster.ok('POST', VOLUMES, volume('fit'));
    await cluster.settle();
    expect((await cluster.ok('GET', `${VOLUMES}/fit`)).status.phase).toBe('Available');
    await cluster.ok('POST', CLAIMS, claim('c'));
    await cluster.settle();
    const stored = await cluster.ok('GET', `${CLAIMS}/c`);
    expect(stored).toMatchObject({
      metadata: {
        annotations: { 'pv.kubernetes.io/bind-completed': 'yes', 'pv.kubernetes.io/bound-by-controller': 'yes' },
        finalizers: ['kubernetes.io/pvc-protection'],
      },
      spec: { volumeName: 'fit' },
      status: { phase: 'Bound', accessModes: ['ReadWriteOnce'], capacity: { storage: '10Gi' } },
    });
    const bound = await cluster.ok('GET', `${VOLUMES}/fit`);
    expect(bound).toMatchObject({
      metadata: { annotations: { 'pv.kubernetes.io/bound-by-controller': 'yes' } },
      spec: { claimRef: { namespace: 'default', name: 'c', uid: stored.metadata.uid } },
      status: { phase: 'Bound' },
    });
    for (const name of ['small', 'large']) {
      expect((await cluster.ok('GET', `${VOLUMES}/${name}`)).spec.claimRef).toBeUndefined();
    }
  });

  it('without a volume waits, and is bound when one is created', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', CLASSES, { metadata: { name: 'manual' }, provisioner: 'kubernetes.io/no-provisioner' });
    await cluster.ok('POST', CLAIMS, claim('c'));
    await cluster.settle();
    expect((await cluster.ok('GET', `${CLAIMS}/c`)).status).toEqual({ phase: 'Pending' });
    expect(await reasonsOf(cluster, 'c')).toEqual(['ProvisioningFailed']);
    await cluster.ok('POST', VOLUMES, volume('v'));
    await cluster.settle();
    expect((await cluster.ok('GET', `${CLAIMS}/c`)).status.phase).toBe('Bound');
  });

  it('gets the default class at its creation, or when one is marked', async () => {
    const cluster = servedWorkloads();
    const { storageClassName: _none, ...spec } = claim('c').spec;
    expect((await cluster.ok('POST', CLAIMS, { metadata: { name: 'c' }, spec })).spec.storageClassName).toBe('local');
    const local = await cluster.ok('GET', `${CLASSES}/local`);
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'false' };
    await cluster.ok('PUT', `${CLASSES}/local`, { ...local, metadata: { ...local.metadata, annotations } });
    await cluster.ok('POST', CLAIMS, { metadata: { name: 'later' }, spec });
    await cluster.settle();
    expect(await reasonsOf(cluster, 'later')).toEqual(['FailedBinding']);
    await cluster.ok('POST', CLASSES, {
      metadata: { name: 'fast', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'example.com/fast',
    });
    await cluster.settle();
    const later = await cluster.ok('GET', `${CLAIMS}/later`);
    expect(later.spec.storageClassName).toBe('fast');
    expect(later.metadata.annotations['volume.kubernetes.io/storage-provisioner']).toBe('example.com/fast');
    expect(await reasonsOf(cluster, 'later')).toContain('ExternalProvisioning');
  });

  it('of a class that waits for a consumer says so, and is asked for after the scheduler selected a node', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', CLAIMS, claim('c', { storageClassName: 'local' }));
    await cluster.settle();
    expect(await reasonsOf(cluster, 'c')).toEqual(['WaitForFirstConsumer']);
    await cluster.ok('POST', '/api/v1/nodes', { metadata: { name: 'n' } });
    const node = await cluster.ok('GET', '/api/v1/nodes/n');
    const ready = { conditions: [{ type: 'Ready', status: 'True' }] };
    await cluster.ok('PUT', '/api/v1/nodes/n/status', { ...node, status: ready });
    const stored = await cluster.ok('GET', `${CLAIMS}/c`);
    const annotations = { 'volume.kubernetes.io/selected-node': 'n' };
    await cluster.ok('PUT', `${CLAIMS}/c`, { ...stored, metadata: { ...stored.metadata, annotations } });
    await cluster.settle();
    expect(await reasonsOf(cluster, 'c')).toContain('ExternalProvisioning');
    const rows = await cluster.items.query({ table: 'control', pk: 'volume-work#n', consistent: true });
    expect(rows.items.map(({ sk }) => sk)).toEqual(['provision#default/c']);
    // The node disappears: the scheduler may select another one.
    await cluster.ok('DELETE', '/api/v1/nodes/n');
    await cluster.tickAfter(130_000);
    expect((await cluster.ok('GET', `${CLAIMS}/c`)).metadata.annotations).not.toHaveProperty([
      'volume.kubernetes.io/selected-node',
    ]);
  });

  it('that a pod on a node uses is removed after the pod', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', VOLUMES, volume('v'));
    await cluster.ok('POST', CLAIMS, claim('c'));
    const volumes = [{ name: 'd', persistentVolumeClaim: { claimName: 'c' } }];
    await cluster.ok('POST', '/api/v1/namespaces/default/pods', {
      metadata: { name: 'p' },
      spec: { nodeName: 'n', volumes, containers: [{ name: 'c', image: 'i' }] },
    });
    await cluster.settle();
    await cluster.ok('DELETE', `${CLAIMS}/c`);
    await cluster.settle();
    expect((await cluster.ok('GET', `${CLAIMS}/c`)).metadata.deletionTimestamp).toBeDefined();
    await cluster.ok('DELETE', '/api/v1/namespaces/default/pods/p?gracePeriodSeconds=0');
    await cluster.settle();
    expect((await cluster.api.send('GET', `${CLAIMS}/c`)).code).toBe(404);
    expect((await cluster.ok('GET', `${VOLUMES}/v`)).status.phase).toBe('Released');
  });

  it('may ask for more only if it is bound and its class allows it', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', CLASSES, {
      metadata: { name: 'grows' },
      provisioner: 'example.com/p',
      allowVolumeExpansion: true,
    });
    for (const [name, storageClassName] of [
      ['fixed', 'manual'],
      ['wide', 'grows'],
    ]) {
      await cluster.ok('POST', VOLUMES, volume(`v-${name}`, { storageClassName }));
      await cluster.ok('POST', CLAIMS, claim(name!, { storageClassName }));
    }
    const resized = async (name: string) => {
      const stored = await cluster.ok('GET', `${CLAIMS}/${name}`);
      const spec = { ...stored.spec, resources: { requests: { storage: '8Gi' } } };
      return cluster.api.send('PUT', `${CLAIMS}/${name}`, { body: { ...stored, spec } });
    };
    expect((await resized('wide')).code).toBe(422);
    await cluster.settle();
    expect((await resized('wide')).code).toBe(200);
    expect((await resized('fixed')).body.message).toBe(
      'persistentvolumeclaims "fixed" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
    );
  });

  it('is Lost when its volume is removed by force', async () => {
    const cluster = servedWorkloads();
    await cluster.ok('POST', VOLUMES, volume('v'));
    await cluster.ok('POST', CLAIMS, claim('c'));
    await cluster.settle();
    await cluster.ok('DELETE', `${VOLUMES}/v`);
    await cluster.settle();
    const held = await cluster.ok('GET', `${VOLUMES}/v`);
    expect(held.metadata.finalizers).toEqual(['kubernetes.io/pv-protection']);
    await cluster.ok('PUT', `${VOLUMES}/v`, { ...held, metadata: { ...held.metadata, finalizers: [] } });
    await cluster.settle();
    expect((await cluster.ok('GET', `${CLAIMS}/c`)).status).toEqual({ phase: 'Lost' });
    expect(await reasonsOf(cluster, 'c')).toContain('ClaimLost');
  });
});

describe('a killed binder', () => {
  /** The process dies at its write of this number: that one and all later ones fail until it is started again. */
  function dying(number: number) {
    let writes = 0;
    let isRevived = false;
    const refuse = () => {
      writes += 1;
      if (writes >= number && !isRevived) throw new StoreFault('unreachable', 'killed', { retryable: false });
    };
    const store = (items: ItemStore): ItemStore => ({
      ...items,
      async write(...given) {
        refuse();
        return items.write(...given);
      },
      async transact(...given) {
        refuse();
        return items.transact(...given);
      },
    });
    return {
      store,
      revive: () => {
        isRevived = true;
      },
    };
  }

  it.each([1, 2, 3, 4, 5, 6, 7, 8, 9])('at write %i leaves a state that the next one finishes', async (number) => {
    const { store, revive } = dying(number);
    const cluster = servedWorkloads({ controllerStore: store });
    for (const name of ['one', 'two']) await cluster.ok('POST', VOLUMES, volume(name));
    for (const name of ['a', 'b', 'c']) await cluster.ok('POST', CLAIMS, claim(name));
    await cluster.settle().catch(() => undefined);
    revive();
    cluster.loseRecords();
    await cluster.tickAfter(1_000_000);
    await cluster.tickAfter(1_000_000);
    const claims = (await cluster.ok('GET', CLAIMS)).items;
    const bound = claims.filter(({ status }: { status: { phase: string } }) => status.phase === 'Bound');
    expect(bound).toHaveLength(2);
    for (const { metadata, spec } of bound) {
      const { claimRef } = (await cluster.ok('GET', `${VOLUMES}/${spec.volumeName}`)).spec;
      expect(claimRef).toMatchObject({ name: metadata.name, uid: metadata.uid });
    }
  });

  it('of upstream, which wrote one side alone, is finished from either side', async () => {
    const cluster = servedWorkloads();
    const { metadata } = await cluster.ok('POST', CLAIMS, claim('c'));
    const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid: metadata.uid };
    await cluster.ok('POST', VOLUMES, volume('v', { claimRef }));
    await cluster.ok('POST', VOLUMES, volume('w'));
    await cluster.settle();
    expect((await cluster.ok('GET', `${CLAIMS}/c`)).spec.volumeName).toBe('v');
    expect((await cluster.ok('GET', `${VOLUMES}/v`)).status.phase).toBe('Bound');
    await cluster.ok('POST', CLAIMS, claim('named', { volumeName: 'w' }));
    await cluster.settle();
    expect((await cluster.ok('GET', `${VOLUMES}/w`)).spec.claimRef.name).toBe('named');
  });
});

it('two binders at once bind a volume to one claim', async () => {
  const cluster = servedWorkloads();
  await cluster.ok('POST', VOLUMES, volume('v'));
  for (const name of ['a', 'b']) await cluster.ok('POST', CLAIMS, claim(name));
  const changes = cluster.items.changes('objects', 0);
  const other = servedWorkloads({ sharedItems: cluster.items });
  await Promise.all([cluster.settle(), other.controllers.onWorkloadRecords(changes)]);
  await cluster.settle();
  const claims = (await cluster.ok('GET', CLAIMS)).items;
  expect(claims.map(({ status }: { status: { phase: string } }) => status.phase).sort()).toEqual(['Bound', 'Pending']);
});

it('a volume that would be too large is given up at once, and the fault says so', async () => {
  const stored = { ...volume('v'), metadata: { name: 'v', uid: 'u' } };
  const { objects, commits } = scriptedCommits([{ kind: 'tooLarge', index: 0 }], () => stored);
  const dependencies = { objects, clock: { nowMs: () => 0 } } as unknown as WorkloadDependencies;
  const ref = { resource: 'persistentvolumes', namespace: '', name: 'v' };
  await expect(syncVolume(dependencies, ref)).rejects.toMatchObject({ code: 'too-large', retryable: false });
  expect(commits).toHaveLength(1);
});
