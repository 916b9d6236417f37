/** What an owner adopts of the objects that are there before it. */
import { expect, it } from 'vitest';
import { workloadCluster } from '../../test/support/workload-cluster.ts';

const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'v1' }] } };

async function adopted(resource: string, kind: string, spec: object, labels: readonly object[]) {
  const cluster = workloadCluster();
  for (const [index, each] of labels.entries()) {
    await cluster.create('pods', { kind: 'Pod', metadata: { name: `p${index}`, labels: each }, spec: {} } as never);
  }
  await cluster.settle();
  await cluster.create(resource, { kind, metadata: { name: 'web' }, spec } as never);
  await cluster.settle();
  const pods = await cluster.pods();
  return pods
    .filter(({ metadata }) => /^p\d$/.test(metadata.name ?? '') && metadata.ownerReferences !== undefined)
    .map(({ metadata }) => metadata.name);
}
const WEB = { app: 'web' };

it('pods are adopted by an owner that selects them', async () => {
  const set = { replicas: 2, selector: { matchLabels: WEB }, template };
  expect(await adopted('replicasets', 'ReplicaSet', set, [WEB, { app: 'x' }, WEB])).toEqual(['p0', 'p2']);
  expect(
    await adopted('replicationcontrollers', 'ReplicationController', { ...set, selector: WEB }, [WEB, { app: 'x' }]),
  ).toEqual(['p0']);
});

it('an owner with an empty selector adopts nothing', async () => {
  expect(await adopted('replicasets', 'ReplicaSet', { replicas: 0, selector: {}, template }, [WEB])).toEqual([]);
});
