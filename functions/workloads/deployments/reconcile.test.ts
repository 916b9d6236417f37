import { describe, expect, it } from 'vitest';
import { StoreFault } from '../../../shared/store/item-store.ts';
import { type WorkloadCluster, workloadCluster } from '../../../test/support/workload-cluster.ts';
import type { DeploymentSpec } from '../workload-types.ts';

const image = (cluster: WorkloadCluster, to: string, more: Partial<DeploymentSpec> = {}) =>
  cluster.change('deployments', 'web', (object) => ({
    ...object,
    spec: {
      ...object.spec,
      ...more,
      template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: to }] } },
    },
  }));

const imagesOf = async (cluster: WorkloadCluster) =>
  (await cluster.pods()).map((pod) => pod.spec?.containers?.[0]?.image).toSorted();

describe('a Deployment', () => {
  it('makes a ReplicaSet, runs its pods, and is complete', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment();
    await cluster.settleRunning();
    const [set] = await cluster.sets();
    expect(set?.metadata.name).toMatch(/^web-[a-z0-9]+$/);
    expect(await imagesOf(cluster)).toEqual(['v1', 'v1', 'v1']);
    const deployment = await cluster.deployment();
    expect(deployment?.metadata.annotations).toEqual({ 'deployment.kubernetes.io/revision': '1' });
    expect(deployment?.status).toMatchObject({
      replicas: 3,
      updatedReplicas: 3,
      readyReplicas: 3,
      availableReplicas: 3,
      observedGeneration: 1,
      conditions: expect.arrayContaining([
        expect.objectContaining({ type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable' }),
        expect.objectContaining({ type: 'Available', status: 'True' }),
      ]),
    });
    expect(await cluster.events('ScalingReplicaSet')).toEqual([
      `Scaled up replica set ${set?.metadata.name} from 0 to 3`,
    ]);
  });

  it('rolls a new template out within surge and availability, and back', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment();
    await cluster.settleRunning();
    await image(cluster, 'v2');
    let most = 0;
    let leastReady = 9;
    for (let round = 0; round < 60; round += 1) {
      const batch = await cluster.records();
      if (batch.length > 0) await cluster.controllers.onWorkloadRecords(batch);
      const pods = await cluster.pods();
      most = Math.max(most, pods.length);
      leastReady = Math.min(leastReady, pods.filter(({ status }) => status?.phase === 'Running').length);
      if (round % 2 === 1) await cluster.runPods();
    }
    expect(await imagesOf(cluster)).toEqual(['v2', 'v2', 'v2']);
    // 25 % of 3: a surge of one, and none unavailable.
    expect([most, leastReady]).toEqual([4, 3]);
    expect((await cluster.sets()).map(({ spec }) => spec?.replicas).toSorted()).toEqual([0, 3]);
    await image(cluster, 'v1');
    await cluster.settleRunning();
    expect(await imagesOf(cluster)).toEqual(['v1', 'v1', 'v1']);
    expect(await cluster.sets()).toHaveLength(2);
    expect((await cluster.deployment())?.metadata.annotations).toMatchObject({
      'deployment.kubernetes.io/revision': '3',
    });
  });

  it('replaces all pods at once with Recreate', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment({ strategy: { type: 'Recreate' } });
    await cluster.settleRunning();
    await image(cluster, 'v2');
    await cluster.settle();
    expect(await cluster.pods()).toEqual([]);
    // Terminating pods still count: their node has to report their end.
    expect(await cluster.list('pods')).toHaveLength(3);
    for (const pod of await cluster.list('pods')) await cluster.remove('pods', pod.metadata.name ?? '');
    await cluster.settleRunning();
    expect(await imagesOf(cluster)).toEqual(['v2', 'v2', 'v2']);
  });

  it('creates new pods with Recreate by a due time, if the end of the last old pod came during a fault', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment({ strategy: { type: 'Recreate' } });
    await cluster.settleRunning();
    // The sweep is over.
    await cluster.tick();
    await image(cluster, 'v2');
    await cluster.settle();
    for (const pod of await cluster.list('pods')) await cluster.remove('pods', pod.metadata.name ?? '');
    const fault = new StoreFault('throttled', 'too many requests', { retryable: true });
    const faulty = cluster.makeControllers({ ...cluster.tables, transact: () => Promise.reject(fault) });
    const { postponed } = await faulty.onWorkloadRecords(await cluster.records());
    expect(postponed.length).toBeGreaterThan(0);
    cluster.advance(15_000);
    await cluster.tick();
    await cluster.settleRunning();
    expect(await imagesOf(cluster)).toEqual(['v2', 'v2', 'v2']);
  });

  it.each([
    [0, 'RollingUpdate'],
    [2, 'RollingUpdate'],
    [0, 'Recreate'],
  ] as const)('keeps %i old ReplicaSets after each rollout, with %s', async (revisionHistoryLimit, type) => {
    const cluster = workloadCluster();
    await cluster.createDeployment({ revisionHistoryLimit, strategy: { type } });
    await cluster.settleRunning();
    for (let change = 1; change <= 4; change += 1) {
      cluster.advance(1_000);
      await image(cluster, `v${change + 1}`);
      await cluster.settleRunning();
      for (const pod of await cluster.list('pods')) {
        if (pod.metadata.deletionTimestamp !== undefined) await cluster.remove('pods', pod.metadata.name ?? '');
      }
      await cluster.settleRunning();
      expect(await imagesOf(cluster)).toEqual(Array(3).fill(`v${change + 1}`));
      const revisions = (await cluster.sets()).map(({ metadata }) =>
        Number(metadata.annotations?.['deployment.kubernetes.io/revision']),
      );
      const kept = Math.min(revisionHistoryLimit, change);
      const wanted = Array.from({ length: kept + 1 }, (_, index) => change + 1 - kept + index);
      expect(revisions.toSorted()).toEqual(wanted);
    }
  });

  it('deletes old ReplicaSets near the size limit in several transactions', async () => {
    const cluster = workloadCluster();
    const { metadata } = await cluster.createDeployment({ revisionHistoryLimit: 0 });
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: metadata.uid ?? '', controller: true };
    for (let index = 0; index < 25; index += 1) {
      await cluster.create('replicasets', {
        kind: 'ReplicaSet',
        metadata: {
          name: `old-${index}`,
          labels: { app: 'web' },
          annotations: { padding: 'x'.repeat(95_000) },
          ownerReferences: [owner],
        },
        spec: {
          replicas: 0,
          selector: { matchLabels: { app: 'web' } },
          template: {
            metadata: { labels: { app: 'web' } },
            spec: { containers: [{ name: 'c', image: `old-${index}` }] },
          },
        },
        status: { observedGeneration: 1, replicas: 0 },
      });
    }
    await cluster.settleRunning();
    expect(await cluster.sets()).toHaveLength(1);
  });

  it('cleans its history later, if the safety gate was closed when the rollout was complete', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment({ revisionHistoryLimit: 0, replicas: 0 });
    await cluster.settle();
    cluster.stopTicks();
    cluster.advance(60_000);
    await image(cluster, 'v2');
    await cluster.settle();
    expect(await cluster.sets()).toHaveLength(2);
    cluster.startTicks();
    cluster.advance(10_000);
    await cluster.tick();
    await cluster.settle();
    expect(await cluster.sets()).toHaveLength(1);
  });

  it('follows spec.replicas up and down', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment();
    for (const replicas of [7, 2, 0, 1]) {
      await cluster.change('deployments', 'web', (object) => ({ ...object, spec: { ...object.spec, replicas } }));
      await cluster.settleRunning();
      expect(await cluster.pods()).toHaveLength(replicas);
    }
  });

  it('WD-53 makes another name when the one of its hash belongs to somebody else', async () => {
    const cluster = workloadCluster();
    const probe = workloadCluster();
    await probe.createDeployment();
    await probe.settle();
    const taken = (await probe.sets())[0]!;
    await cluster.create('replicasets', {
      kind: 'ReplicaSet',
      metadata: {
        name: taken.metadata.name!,
        ownerReferences: [{ apiVersion: 'example.com/v1', kind: 'Foo', name: 'x', uid: 'x', controller: true }],
      },
      spec: { replicas: 0, selector: { matchLabels: { app: 'x' } } },
    });
    await cluster.createDeployment();
    await cluster.settleRunning();
    expect((await cluster.deployment())?.status?.collisionCount).toBe(1);
    expect(await cluster.sets()).toHaveLength(2);
    expect(await cluster.pods()).toHaveLength(3);
  });

  it('reports a rollout that makes no progress, at its deadline', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment({ progressDeadlineSeconds: 60 });
    await cluster.settle();
    cluster.advance(62_000);
    await cluster.tick();
    await cluster.settle();
    const progressing = (await cluster.deployment())?.status?.conditions?.find(({ type }) => type === 'Progressing');
    expect(progressing).toMatchObject({ status: 'False', reason: 'ProgressDeadlineExceeded' });
  });

  it('gives up no old pod while the safety gate is closed, and continues after it', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment();
    await cluster.settleRunning();
    cluster.stopTicks();
    cluster.advance(60_000);
    await image(cluster, 'v2');
    await cluster.settleRunning();
    expect(await imagesOf(cluster)).toEqual(['v1', 'v1', 'v1', 'v2']);
    cluster.startTicks();
    cluster.advance(10_000);
    await cluster.settle();
    await cluster.tick();
    await cluster.settleRunning();
    expect(await imagesOf(cluster)).toEqual(['v2', 'v2', 'v2']);
  });

  it('is repaired by the sweep when every record was lost', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment();
    await cluster.records();
    await cluster.tick();
    await cluster.records();
    for (let round = 0; round < 4; round += 1) {
      cluster.advance(900_000);
      await cluster.tick();
      await cluster.records();
    }
    expect(await cluster.pods()).toHaveLength(3);
  });
});
