/** What a sync of a Deployment writes besides sizes: owners, generations and events. */
import { expect, it } from 'vitest';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { type WorkloadCluster, workloadCluster } from '../../../test/support/workload-cluster.ts';

const setOf = (name: string, more: Partial<KubeObject['metadata']> = {}, labels = { app: 'web' }): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name, labels, ...more },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: 'web', set: name } },
    template: { metadata: { labels: { app: 'web', set: name } }, spec: { containers: [{ name: 'c', image: name }] } },
  },
});
const OTHER = { apiVersion: 'v1', kind: 'ConfigMap', name: 'other', uid: 'other' };
const ownersOf = async (cluster: WorkloadCluster, name: string) =>
  (await cluster.sets()).find(({ metadata }) => metadata.name === name)?.metadata.ownerReferences;

async function owned(): Promise<{ readonly cluster: WorkloadCluster; readonly reference: object }> {
  const cluster = workloadCluster();
  await cluster.create('configmaps', {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'other', uid: 'other' },
  });
  await cluster.create('replicasets', setOf('orphan', { ownerReferences: [OTHER] }));
  await cluster.create('replicasets', setOf('stranger', {}, { app: 'else' }));
  await cluster.createDeployment({ replicas: 1 });
  await cluster.settleRunning();
  const { uid = '' } = (await cluster.deployment())?.metadata ?? {};
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid };
  return { cluster, reference: { ...deployment, controller: true, blockOwnerDeletion: true } };
}

it('a ReplicaSet that it selects is adopted beside its other owners, and no other set is', async () => {
  const { cluster, reference } = await owned();
  expect(await ownersOf(cluster, 'orphan')).toEqual([OTHER, reference]);
  expect(await ownersOf(cluster, 'stranger')).toBeUndefined();
});

it('a ReplicaSet that it no longer selects is released, and keeps its other owners', async () => {
  const { cluster } = await owned();
  await cluster.change('replicasets', 'orphan', ({ metadata, ...object }) => ({
    ...object,
    metadata: { ...metadata, labels: { app: 'else' } },
  }));
  await cluster.settle();
  expect(await ownersOf(cluster, 'orphan')).toEqual([OTHER]);
  const [own] = (await cluster.sets()).filter(({ metadata }) => metadata.name?.startsWith('web-'));
  expect(own?.metadata.ownerReferences).toHaveLength(1);
});

it('the generation of a ReplicaSet rises with its size, and not with annotations alone', async () => {
  const cluster = workloadCluster();
  await cluster.createDeployment({ replicas: 1 });
  await cluster.settleRunning();
  const generation = async () => (await cluster.sets())[0]?.metadata.generation;
  expect(await generation()).toBe(1);
  await cluster.change('deployments', 'web', (object) => ({
    ...object,
    metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, note: 'x' } },
  }));
  // A change of the spec starts the sync that copies the annotation.
  await cluster.change('deployments', 'web', (object) => ({
    ...object,
    spec: { ...object.spec, revisionHistoryLimit: 5 },
  }));
  await cluster.settleRunning();
  expect((await cluster.sets())[0]?.metadata.annotations).toMatchObject({ note: 'x' });
  expect(await generation()).toBe(1);
  await cluster.change('deployments', 'web', (object) => ({ ...object, spec: { ...object.spec, replicas: 2 } }));
  await cluster.settleRunning();
  expect(await generation()).toBe(2);
});

it('each scaling is an event of the Deployment', async () => {
  const cluster = workloadCluster();
  await cluster.createDeployment({ replicas: 1 });
  await cluster.settleRunning();
  const resize = async (replicas: number): Promise<void> => {
    await cluster.change('deployments', 'web', (object) => ({ ...object, spec: { ...object.spec, replicas } }));
    await cluster.settleRunning();
  };
  for (const replicas of [2, 1, 2]) await resize(replicas);
  const events = (await cluster.list<KubeObject & Record<string, unknown>>('events')).filter(
    ({ reason }) => reason === 'ScalingReplicaSet',
  );
  const name = (await cluster.sets())[0]?.metadata.name;
  expect(events.map(({ message }) => message).sort()).toEqual([
    `Scaled down replica set ${name} from 2 to 1`,
    `Scaled up replica set ${name} from 0 to 1`,
    `Scaled up replica set ${name} from 1 to 2`,
    `Scaled up replica set ${name} from 1 to 2`,
  ]);
  for (const event of events) {
    expect(event).toMatchObject({ type: 'Normal', involvedObject: { kind: 'Deployment', name: 'web' } });
    expect(JSON.stringify(event)).toContain('"deployment-controller"');
  }
});

it('a Deployment that selects all pods is warned once, and none is created without replicas', async () => {
  const cluster = workloadCluster();
  await cluster.createDeployment({ selector: {} });
  await cluster.settle();
  const warnings = (await cluster.list<KubeObject & Record<string, unknown>>('events')).filter(
    ({ type }) => type === 'Warning',
  );
  expect(warnings).toMatchObject([{ reason: 'SelectingAll', involvedObject: { kind: 'Deployment', name: 'web' } }]);
  expect(JSON.stringify(warnings)).toContain('"deployment-controller"');
  const empty = workloadCluster();
  await empty.createDeployment({ replicas: 0 });
  await empty.settle();
  expect(await empty.events('ScalingReplicaSet')).toEqual([]);
  expect(await empty.sets()).toHaveLength(1);
});
