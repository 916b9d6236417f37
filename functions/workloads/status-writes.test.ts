import { expect, it } from 'vitest';
import { MERGE } from '../../test/support/api-in-memory.ts';
import { servedWorkloads } from '../../test/support/served-workloads.ts';
import { workloadCluster } from '../../test/support/workload-cluster.ts';

const template = { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };

it.each([
  ['/api/v1/namespaces/default/replicationcontrollers', { app: 'a' }],
  ['/apis/apps/v1/namespaces/default/replicasets', { matchLabels: { app: 'a' } }],
])('a status that a client wrote to one of %s is written again by its controller', async (path, selector) => {
  const cluster = servedWorkloads();
  await cluster.ok('POST', path, { metadata: { name: 'a' }, spec: { replicas: 1, selector, template } });
  await cluster.settle();
  expect((await cluster.ok('GET', `${path}/a`)).status.replicas).toBe(1);
  await cluster.api.send('PATCH', `${path}/a/status`, { body: { status: { replicas: 7 } }, contentType: MERGE });
  await cluster.settle();
  expect((await cluster.ok('GET', `${path}/a`)).status.replicas).toBe(1);
});

it('the removal of a pod that its owner no longer counts writes nothing', async () => {
  let writeUnits = 0;
  const cluster = workloadCluster({
    onConsumed: (units) => {
      writeUnits += units.writeUnits;
    },
  });
  await cluster.createSet(1);
  await cluster.settleRunning();
  await cluster.change('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas: 0 } }));
  await cluster.settle();
  const [pod] = await cluster.list('pods');
  await cluster.remove('pods', pod?.metadata.name ?? '');
  // They write, too.
  cluster.stopTicks();
  writeUnits = 0;
  expect(await cluster.settle()).toBeGreaterThan(0);
  expect(writeUnits).toBe(0);
});

it('the claim of an owner is deleted with it', async () => {
  const cluster = workloadCluster();
  const claims = () => cluster.tables.items('control').filter(({ pk }) => String(pk).startsWith('owner#'));
  await cluster.createSet(1);
  await cluster.settle();
  expect(claims()).toHaveLength(1);
  await cluster.remove('replicasets', 'web');
  await cluster.settle();
  expect(claims()).toEqual([]);
});
