import { describe, expect, it } from 'vitest';
import type { KubePodDisruptionBudget } from '../../shared/kinds/types.ts';
import type { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { servedWorkloads } from '../../test/support/served-workloads.ts';
import { workloadCluster } from '../../test/support/workload-cluster.ts';

const REF = { resource: 'poddisruptionbudgets', namespace: 'default', name: 'web' };

type Cluster = ReturnType<typeof workloadCluster>;

const createBudget = (cluster: Cluster, spec: NonNullable<KubePodDisruptionBudget['spec']>) =>
  cluster.create('poddisruptionbudgets', {
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web' },
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  });

const statusOf = async (cluster: Cluster) =>
  ((await cluster.objects.get(REF)) as KubePodDisruptionBudget | undefined)?.status;

describe('the status of a PodDisruptionBudget', () => {
  it('WX-15 relates a percentage to the replicas of the Deployment', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment({ replicas: 10 });
    await cluster.settleRunning();
    await createBudget(cluster, { minAvailable: '50%' });
    await cluster.settle();
    const [pod] = await cluster.pods();
    // Its replacement is not Ready yet.
    await cluster.remove('pods', pod?.metadata.name ?? '');
    await cluster.settle();
    expect(await statusOf(cluster)).toMatchObject({
      observedGeneration: 1,
      expectedPods: 10,
      desiredHealthy: 5,
      currentHealthy: 9,
      disruptionsAllowed: 4,
      conditions: [{ type: 'DisruptionAllowed', status: 'True', reason: 'SufficientPods', observedGeneration: 1 }],
    });
  });

  it('WX-17 allows nothing for pods of a kind that cannot be scaled', async () => {
    const cluster = workloadCluster();
    // It is being deleted, so its controller leaves the pod alone.
    await cluster.create('daemonsets', {
      kind: 'DaemonSet',
      metadata: { name: 'agent', uid: 'ds', deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['example.com/x'] },
      spec: {},
    });
    await cluster.create('pods', {
      kind: 'Pod',
      metadata: {
        name: 'agent',
        labels: { app: 'web' },
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', uid: 'ds', controller: true }],
      },
      spec: {},
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    });
    await createBudget(cluster, { maxUnavailable: 1 });
    await cluster.settle();
    expect(await statusOf(cluster)).toMatchObject({
      disruptionsAllowed: 0,
      conditions: [
        {
          status: 'False',
          reason: 'SyncFailed',
          message: 'daemonsets.apps does not implement the scale subresource',
        },
      ],
    });
    expect(await cluster.events('CalculateExpectedPodCountFailed')).toHaveLength(1);
  });

  it('follows the readiness of its pods, and the wanted number', async () => {
    const cluster = workloadCluster();
    await createBudget(cluster, { maxUnavailable: 1 });
    await cluster.settle();
    expect(await statusOf(cluster)).toMatchObject({ expectedPods: 0, disruptionsAllowed: 0 });
    await cluster.createDeployment({ replicas: 2 });
    await cluster.settleRunning();
    expect(await statusOf(cluster)).toMatchObject({ expectedPods: 2, currentHealthy: 2, disruptionsAllowed: 1 });
    await cluster.change('deployments', 'web', (each) => ({ ...each, spec: { ...each.spec, replicas: 3 } }));
    await cluster.settle();
    expect(await statusOf(cluster)).toMatchObject({
      expectedPods: 3,
      disruptionsAllowed: 0,
      conditions: [{ status: 'False', reason: 'InsufficientPods' }],
    });
  });

  it('is counted again some time after a change that another process may have missed', async () => {
    const cluster = workloadCluster();
    await createBudget(cluster, { minAvailable: 1 });
    await cluster.settle();
    await cluster.createSet(2);
    // Records that this process never receives.
    await cluster.settleRunning();
    await cluster.change('poddisruptionbudgets', 'web', (each) => ({ ...each, status: { observedGeneration: 1 } }));
    cluster.advance(31_000);
    await cluster.tick();
    expect(await statusOf(cluster)).toMatchObject({ currentHealthy: 2, disruptionsAllowed: 1 });
  });

  it('costs one query in half a minute where there are no budgets', async () => {
    const cluster = workloadCluster();
    await cluster.createSet(3);
    let queries = 0;
    const counting: ReturnType<typeof memoryItemStore> = {
      ...cluster.tables,
      query(request) {
        if (request.pk.startsWith('o#poddisruptionbudgets#')) queries += 1;
        return cluster.tables.query(request);
      },
    };
    const controllers = cluster.makeControllers(counting);
    for (let round = 0; round < 8; round += 1) {
      await controllers.onWorkloadRecords(await cluster.records());
      await cluster.runPods();
      cluster.advance(1_000);
    }
    expect(await cluster.pods()).toHaveLength(3);
    expect(queries).toBe(1);
  });

  it('is counted once per batch, also if each of its pods has labels of its own', async () => {
    const cluster = workloadCluster();
    await createBudget(cluster, { maxUnavailable: 1 });
    await cluster.settle();
    for (let index = 0; index < 20; index += 1) {
      await cluster.create('pods', {
        kind: 'Pod',
        metadata: {
          name: `web-${index}`,
          labels: { app: 'web', 'statefulset.kubernetes.io/pod-name': `web-${index}` },
        },
        spec: { containers: [{ name: 'c', image: 'i' }] },
      });
    }
    let reads = 0;
    const counting: ReturnType<typeof memoryItemStore> = {
      ...cluster.tables,
      get(key, options) {
        if (key.pk.startsWith('o#poddisruptionbudgets#')) reads += 1;
        return cluster.tables.get(key, options);
      },
    };
    await cluster.makeControllers(counting).onWorkloadRecords(await cluster.records());
    expect(reads).toBe(1);
  });

  it('keeps granted evictions of others for pods that exist, for two minutes', async () => {
    const cluster = servedWorkloads();
    const labels = { app: 'web' };
    const path = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
    await cluster.ok('POST', '/api/v1/namespaces/default/pods', {
      metadata: { name: 'a', labels },
      spec: { nodeName: 'n', containers: [{ name: 'c', image: 'i' }] },
    });
    await cluster.ok('POST', path, {
      metadata: { name: 'web' },
      spec: { minAvailable: 1, selector: { matchLabels: labels } },
    });
    await cluster.settle();
    const time = new Date(cluster.api.nowMs()).toISOString().replace('.000', '');
    const budget = await cluster.ok('GET', `${path}/web`);
    const status = { ...budget.status, disruptedPods: { a: time, missing: time } };
    await cluster.ok('PUT', `${path}/web/status`, { ...budget, status });
    await cluster.settle();
    const disrupted = async () => (await cluster.ok('GET', `${path}/web`)).status.disruptedPods;
    expect(await disrupted()).toEqual({ a: time });
    for (let minute = 0; minute < 4; minute += 1) await cluster.tickAfter(60_000);
    expect(await disrupted()).toBeUndefined();
  });
});
