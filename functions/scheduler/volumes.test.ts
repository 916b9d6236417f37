import { describe, expect, it } from 'vitest';
import type { KubePersistentVolume, KubePersistentVolumeClaim, KubeStorageClass } from '../../shared/kinds/types.ts';
import type { Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import type { SchedulableNode, SchedulablePod } from '../../shared/scheduling/world.rule.ts';
import { servedWorkloads } from '../../test/support/served-workloads.ts';
import { volumesOfPod } from './volumes.rule.ts';

const VOLUMES = '/api/v1/persistentvolumes';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses';
const PODS = '/api/v1/namespaces/default/pods';
const NODES = '/api/v1/nodes';
const PASS_MS = 3_000;

const onNode = (name: string) => ({
  required: { nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [name] }] }] },
});

/** A cluster with these nodes, the binder and the scheduler. */
async function withNodes(...names: string[]) {
  const cluster = servedWorkloads();
  let seen = 0;
  const nodeOf = (name: string, labels: object, ready = 'True') => ({
    metadata: { name, labels },
    status: {
      allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
      conditions: [{ type: 'Ready', status: ready }],
    },
  });
  const addNode = async (name: string, labels: object = {}) => {
    const body = nodeOf(name, labels);
    const stored = await cluster.ok('POST', NODES, body);
    await cluster.ok('PUT', `${NODES}/${name}/status`, { ...stored, status: body.status });
  };
  for (const name of names) await addNode(name, { zone: `zone-${name}` });
  return {
    ...cluster,
    addNode,
    /** The controllers react, and the scheduler runs its passes. */
    async run(passes = 3) {
      for (let pass = 0; pass < passes; pass += 1) {
        await cluster.settle();
        const changes = cluster.items.changes('objects', seen);
        seen = changes.at(-1)?.sequence ?? seen;
        await cluster.controllers.onObjectRecords(changes.filter(({ key }) => /^o#(nodes|pods)#/.test(key.pk)));
        await cluster.controllers.tickScheduler(pass);
        cluster.api.advance(PASS_MS);
      }
      await cluster.settle();
    },
  };
}

type Cluster = Awaited<ReturnType<typeof withNodes>>;

const claim = (name: string, storageClassName: string, more: object = {}) => ({
  metadata: { name },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName,
    resources: { requests: { storage: '1Gi' } },
    ...more,
  },
});

const volume = (name: string, storageClassName: string, more: object = {}) => ({
  metadata: { name },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName,
    local: { path: `/data/${name}` },
    ...more,
  },
});

const pod = (name: string, ...claims: string[]) => ({
  metadata: { name },
  spec: {
    containers: [{ name: 'c', image: 'i' }],
    volumes: claims.map((claimName) => ({ name: claimName, persistentVolumeClaim: { claimName } })),
  },
});

const scheduledOf = async (cluster: Cluster, name: string) => {
  const { spec, status } = await cluster.ok('GET', `${PODS}/${name}`);
  const condition = status.conditions?.find(({ type }: { type: string }) => type === 'PodScheduled');
  return { node: spec.nodeName, message: condition?.message };
};

describe('a pod with a bound claim', () => {
  it('is bound to the node that its volume allows, and waits while that node does not exist', async () => {
    const cluster = await withNodes('a', 'b', 'c');
    await cluster.ok('POST', VOLUMES, volume('v', 'manual', { nodeAffinity: onNode('b') }));
    await cluster.ok('POST', CLAIMS, claim('c', 'manual'));
    await cluster.settle();
    await cluster.ok('POST', PODS, pod('p', 'c'));
    await cluster.run(1);
    expect((await scheduledOf(cluster, 'p')).node).toBe('b');
    await cluster.ok('DELETE', `${NODES}/b`);
    await cluster.ok('DELETE', `${PODS}/p?gracePeriodSeconds=0`);
    await cluster.ok('POST', PODS, pod('again', 'c'));
    await cluster.run(1);
    expect((await scheduledOf(cluster, 'again')).message).toContain(
      '0/2 nodes are available: 2 node(s) had volume node affinity conflict.',
    );
    await cluster.addNode('b');
    await cluster.run(2);
    expect((await scheduledOf(cluster, 'again')).node).toBe('b');
  });

  it('is bound in the zone of its volume', async () => {
    const cluster = await withNodes();
    const zone = 'topology.kubernetes.io/zone';
    await cluster.addNode('east', { [zone]: 'east' });
    await cluster.addNode('west', { [zone]: 'west' });
    const { metadata, spec } = volume('v', 'manual', { hostPath: { path: '/d' }, local: undefined });
    await cluster.ok('POST', VOLUMES, { metadata: { ...metadata, labels: { [zone]: 'west' } }, spec });
    await cluster.ok('POST', CLAIMS, claim('c', 'manual'));
    await cluster.settle();
    await cluster.ok('POST', PODS, pod('p', 'c'));
    await cluster.run(1);
    expect((await scheduledOf(cluster, 'p')).node).toBe('west');
  });

  it('for one pod alone waits for the end of that pod', async () => {
    const cluster = await withNodes('a');
    const accessModes = ['ReadWriteOncePod'];
    await cluster.ok('POST', VOLUMES, volume('v', 'manual', { accessModes, nodeAffinity: onNode('a') }));
    await cluster.ok('POST', CLAIMS, claim('c', 'manual', { accessModes }));
    await cluster.settle();
    for (const name of ['first', 'second']) await cluster.ok('POST', PODS, pod(name, 'c'));
    await cluster.run(1);
    const bound = (await scheduledOf(cluster, 'first')).node === 'a' ? 'first' : 'second';
    const waiting = bound === 'first' ? 'second' : 'first';
    expect((await scheduledOf(cluster, waiting)).message).toContain(
      '1 node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode',
    );
    await cluster.ok('DELETE', `${PODS}/${bound}?gracePeriodSeconds=0`);
    await cluster.run(2);
    expect((await scheduledOf(cluster, waiting)).node).toBe('a');
  });
});

describe('a pod with a claim that waits for its first consumer', () => {
  it.each([
    ['absent', undefined, 'persistentvolumeclaim "c" not found'],
    ['without a class that waits', claim('c', 'manual'), 'pod has unbound immediate PersistentVolumeClaims'],
  ])('that is %s fits nowhere', async (_case, body, text) => {
    const cluster = await withNodes('a');
    if (body !== undefined) await cluster.ok('POST', CLAIMS, body);
    await cluster.ok('POST', PODS, pod('p', 'c'));
    await cluster.run(1);
    expect((await scheduledOf(cluster, 'p')).message).toContain(`0/1 nodes are available: ${text}.`);
  });

  it('gets a volume of the node that fits the pod, and is bound before the pod', async () => {
    const cluster = await withNodes('a', 'b');
    await cluster.ok('POST', CLASSES, {
      metadata: { name: 'late' },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    await cluster.ok('POST', CLAIMS, claim('c', 'late'));
    await cluster.ok('POST', PODS, pod('p', 'c'));
    await cluster.run(1);
    expect((await scheduledOf(cluster, 'p')).message).toContain(
      "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.",
    );
    await cluster.ok('POST', VOLUMES, volume('on-b', 'late', { nodeAffinity: onNode('b') }));
    await cluster.run(4);
    expect((await cluster.ok('GET', `${CLAIMS}/c`)).spec.volumeName).toBe('on-b');
    expect((await scheduledOf(cluster, 'p')).node).toBe('b');
  });

  it('selects a node of the topologies of its class, and waits there for the provisioner', async () => {
    const cluster = await withNodes('a', 'b');
    await cluster.ok('POST', CLASSES, {
      metadata: { name: 'far' },
      provisioner: 'example.com/p',
      volumeBindingMode: 'WaitForFirstConsumer',
      allowedTopologies: [{ matchLabelExpressions: [{ key: 'zone', values: ['zone-b'] }] }],
    });
    await cluster.ok('POST', CLAIMS, claim('c', 'far'));
    await cluster.ok('POST', PODS, pod('p', 'c'));
    await cluster.run(2);
    const selected = await cluster.ok('GET', `${CLAIMS}/c`);
    expect(selected.metadata.annotations).toMatchObject({
      'volume.kubernetes.io/selected-node': 'b',
      'volume.kubernetes.io/storage-provisioner': 'example.com/p',
    });
    const waiting = await cluster.ok('GET', `${PODS}/p`);
    expect(waiting.spec.nodeName).toBeUndefined();
    expect(waiting.status.nominatedNodeName).toBe('b');
    expect((await scheduledOf(cluster, 'p')).message).toBe(
      'waiting for the volumes of node b: persistentvolumeclaims c',
    );
    // The provisioner makes it.
    const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'c', uid: selected.metadata.uid };
    await cluster.ok('POST', VOLUMES, volume('made', 'far', { nodeAffinity: onNode('b'), claimRef }));
    await cluster.run(3);
    expect((await scheduledOf(cluster, 'p')).node).toBe('b');
  });

  it('keeps the node of a claim while its volume is being made', async () => {
    const cluster = await withNodes('a', 'b');
    const body = claim('c', 'local');
    const annotations = { 'volume.kubernetes.io/selected-node': 'a' };
    await cluster.ok('POST', CLAIMS, { ...body, metadata: { ...body.metadata, annotations } });
    await cluster.ok('POST', PODS, pod('p', 'c'));
    await cluster.run(2);
    expect((await cluster.ok('GET', `${PODS}/p`)).status.nominatedNodeName).toBe('a');
  });
});

describe('volumes of a fleet', () => {
  const node = (name: string) => ({ name, labels: { 'kubernetes.io/hostname': name } }) as unknown as SchedulableNode;
  const stored = (volumes: readonly KubePersistentVolume[], wants: KubePersistentVolumeClaim) => ({
    claims: new Map([['default/c', wants]]),
    volumes: new Map(volumes.map((each) => [each.metadata.name ?? '', each])),
    classes: new Map([['late', LATE]]),
  });
  const LATE: KubeStorageClass = {
    metadata: { name: 'late' },
    provisioner: 'kubernetes.io/no-provisioner',
    volumeBindingMode: 'WaitForFirstConsumer',
  };
  const wanting = { namespace: 'default', claims: ['c'], uid: 'p' } as unknown as SchedulablePod;
  const wanted = { ...claim('c', 'late'), metadata: { name: 'c', namespace: 'default', uid: 'u' } };
  const NO_PODS = { pods: new Map() } as unknown as Snapshot;
  const onHost = (name: string) => ({
    required: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [name] }] }],
    },
  });
  const size = (name: string, storage: string, more: object = {}): KubePersistentVolume => {
    const made = volume(name, 'late', more);
    return { ...made, spec: { ...made.spec, capacity: { storage } }, status: { phase: 'Available' } };
  };
  const chosenOn = (name: string, volumes: readonly KubePersistentVolume[]) =>
    volumesOfPod(wanting, stored(volumes, wanted), NO_PODS)
      .stepsOn(node(name))
      .map((step) => (step.kind === 'claimVolume' ? step.next.metadata.name : step.kind));

  it('are the smallest of the node or of no node, whichever is smaller', () => {
    const local = size('local', '2Gi', { nodeAffinity: onHost('a') });
    const far = size('far', '1Gi', { nodeAffinity: onNode('b') });
    expect(chosenOn('a', [local, far])).toEqual(['local']);
    expect(chosenOn('a', [local, far, size('small', '1Gi')])).toEqual(['small']);
    expect(chosenOn('a', [local, far, size('large', '3Gi')])).toEqual(['local']);
    expect(chosenOn('c', [local, far])).toEqual([]);
  });

  it('are looked up by their host: a node examines none of the others', () => {
    let reads = 0;
    const volumes = Array.from({ length: 300 }, (_, index) => {
      const made = size(`v${index}`, '1Gi', {
        nodeAffinity: index % 2 === 0 ? onNode(`n${index}`) : onHost(`n${index}`),
      });
      const { spec } = made;
      Object.defineProperty(made, 'spec', {
        get() {
          reads += 1;
          return spec;
        },
      });
      return made;
    });
    const { stepsOn } = volumesOfPod(wanting, stored(volumes, wanted), NO_PODS);
    reads = 0;
    for (let index = 0; index < 300; index += 1) expect(stepsOn(node(`n${index}`))).toHaveLength(1);
    expect(reads).toBeLessThan(300 * 10);
  });
});
