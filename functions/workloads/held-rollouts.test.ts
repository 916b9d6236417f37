/** What total disruption holds back, and what it does not. */
import { describe, expect, it } from 'vitest';
import { replay } from '../../cli/replay.ts';
import { daemonCluster } from '../../test/support/daemon-cluster.ts';
import { statefulCluster } from '../../test/support/stateful-cluster.ts';
import { type WorkloadCluster, workloadCluster } from '../../test/support/workload-cluster.ts';
import { heldText } from './decisions.ts';
import type { DeploymentSpec } from './workload-types.ts';

const changed = (cluster: WorkloadCluster, next: Partial<DeploymentSpec>) =>
  cluster.change('deployments', 'web', (object) => ({ ...object, spec: { ...object.spec, ...next } }));
const template = (image: string) => ({
  metadata: { labels: { app: 'web' } },
  spec: { containers: [{ name: 'c', image }] },
});
const imagesOf = async (cluster: WorkloadCluster) =>
  (await cluster.pods()).map((pod) => pod.spec?.containers?.[0]?.image).toSorted();
/** The reasons of the decisions. Their rule returns the same again. */
async function heldReasons(cluster: Pick<WorkloadCluster, 'decisions'>): Promise<readonly string[]> {
  const held = (await cluster.decisions()).filter(({ act }) => act === 'RolloutHeld');
  for (const record of held) expect(replay(record)).toMatchObject({ same: true, checked: true });
  return held.map(({ reason }) => reason);
}

/** Looks again as often as the controllers want within the time. */
async function wait(cluster: WorkloadCluster, seconds: number): Promise<void> {
  for (let waited = 0; waited < seconds; waited += 5) {
    cluster.advance(5_000);
    await cluster.tick();
    await cluster.settle();
  }
}

/** Two running pods of a DaemonSet with a new image, in total disruption. */
async function daemonsInDisruption() {
  const cluster = daemonCluster();
  await cluster.createNodes(2);
  await cluster.createDaemonSet();
  await cluster.settleRunning();
  await cluster.setTotalDisruption(true);
  cluster.advance(5_000);
  await cluster.setImage('v2');
  await cluster.settleDeleted();
  return cluster;
}

describe('total disruption', () => {
  it('WX-T1 holds a rollout, records that once, and lets it continue within ten seconds of its end', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment();
    await cluster.settleRunning();
    await cluster.setTotalDisruption(true);
    cluster.advance(5_000);
    await changed(cluster, { template: template('v2') });
    await cluster.settleRunning();
    expect(await cluster.events('RolloutHeld')).toHaveLength(1);
    await wait(cluster, 60);
    expect(await imagesOf(cluster)).toEqual(['v1', 'v1', 'v1', 'v2']);
    expect(await heldReasons(cluster)).toEqual([
      expect.stringMatching(
        /^every zone is in FullDisruption since 2026-01-01T00:00:00Z: the rollout waits with web-\w+ from 3 to 2 \(available\)$/,
      ),
    ]);
    expect(await cluster.events('RolloutHeld')).toEqual([`${(await heldReasons(cluster))[0]}.`]);
    expect(cluster.metrics.some(({ name, value }) => name === 'workload_held' && value === 1)).toBe(true);
    await cluster.setTotalDisruption(false);
    await wait(cluster, 10);
    await cluster.runPods();
    await cluster.settleRunning();
    expect(await imagesOf(cluster)).toEqual(['v2', 'v2', 'v2']);
    expect(await heldReasons(cluster)).toHaveLength(1);
  });

  it('WX-T2 follows people: scale in both directions, a deleted pod, and the end of the Deployment', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment();
    await cluster.settleRunning();
    await cluster.setTotalDisruption(true);
    cluster.advance(5_000);
    for (const replicas of [6, 2]) {
      await changed(cluster, { replicas });
      await cluster.settleRunning();
      expect(await cluster.pods()).toHaveLength(replicas);
    }
    await cluster.remove('pods', (await cluster.pods())[0]?.metadata.name ?? '');
    await cluster.settleRunning();
    expect(await cluster.pods()).toHaveLength(2);
    await cluster.remove('deployments', 'web');
    await cluster.settle();
    expect(await cluster.pods()).toEqual([]);
    expect(await heldReasons(cluster)).toEqual([]);
  });

  it('WX-T3 does not count towards the progress deadline', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment({ progressDeadlineSeconds: 60 });
    await cluster.settle();
    const reason = async () =>
      (await cluster.deployment())?.status?.conditions?.find(({ type }) => type === 'Progressing')?.reason;
    cluster.advance(5_000);
    await cluster.setTotalDisruption(true);
    await wait(cluster, 120);
    await cluster.setTotalDisruption(false);
    await wait(cluster, 60);
    expect(await reason()).toBe('ReplicaSetUpdated');
    await wait(cluster, 5);
    expect(await reason()).toBe('ProgressDeadlineExceeded');
  });

  it('WX-T4 holds the rolling update of a DaemonSet, and records the pods', async () => {
    const cluster = await daemonsInDisruption();
    await wait(cluster, 30);
    expect(await imagesOf(cluster)).toEqual(['v1', 'v1']);
    expect(await heldReasons(cluster)).toEqual([expect.stringMatching(/: the rollout waits with \S+-\w+$/)]);
    await cluster.setTotalDisruption(false);
    await wait(cluster, 10);
    await cluster.settleDeleted();
    expect(await imagesOf(cluster)).toContain('v2');
  });

  it('WX-T8 creates the pod of a DaemonSet that a person deletes from the new template', async () => {
    const cluster = await daemonsInDisruption();
    await cluster.remove('pods', (await cluster.pods())[0]?.metadata.name ?? '');
    await cluster.settleRunning();
    await wait(cluster, 30);
    expect(await imagesOf(cluster)).toEqual(['v1', 'v2']);
  });

  it('WX-T5 holds the rolling update of a StatefulSet, and records the pod', async () => {
    const cluster = statefulCluster();
    await cluster.createStatefulSet();
    await cluster.settleRunning();
    await cluster.setTotalDisruption(true);
    cluster.advance(5_000);
    await cluster.setImage('v2');
    await cluster.settleRunning();
    await wait(cluster, 30);
    expect(Object.values(await cluster.images())).toEqual(['v1', 'v1', 'v1']);
    expect(await heldReasons(cluster)).toEqual([expect.stringMatching(/: the rollout waits with web-2$/)]);
    await cluster.setTotalDisruption(false);
    await wait(cluster, 10);
    await cluster.settleRunning();
    expect(Object.values(await cluster.images())).toEqual(['v2', 'v2', 'v2']);
  });

  it('WX-T7 keeps the old pod of a DaemonSet with a surge that is not Ready because its node is silent', async () => {
    const cluster = daemonCluster();
    await cluster.createNodes(1);
    const rollingUpdate = { maxSurge: 1, maxUnavailable: 0 };
    await cluster.createDaemonSet({ updateStrategy: { type: 'RollingUpdate', rollingUpdate } });
    await cluster.settleRunning();
    await cluster.setImage('v2');
    // The second pod is created, and does not run yet.
    await cluster.settle();
    expect(await imagesOf(cluster)).toEqual(['v1', 'v2']);
    await cluster.setTotalDisruption(true);
    cluster.advance(5_000);
    // The pod is set not Ready, as node-monitor does it.
    const old = (await cluster.pods()).find((pod) => pod.status?.phase === 'Running')?.metadata.name ?? '';
    await cluster.change('pods', old, (pod) => ({
      ...pod,
      status: { ...pod.status, conditions: [{ type: 'Ready', status: 'False' }] },
    }));
    await cluster.settleDeleted();
    await wait(cluster, 30);
    expect(await imagesOf(cluster)).toEqual(['v1', 'v2']);
    expect(await heldReasons(cluster)).toEqual([expect.stringContaining(`: the rollout waits with ${old}`)]);
    await cluster.setTotalDisruption(false);
    await wait(cluster, 10);
    await cluster.settleDeleted();
    expect(await imagesOf(cluster)).toEqual(['v2']);
  });
});

describe('a hold', () => {
  it('WX-T6 is recorded again for another template, and for another hold', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment();
    await cluster.settleRunning();
    cluster.stopTicks();
    cluster.advance(60_000);
    for (const image of ['v2', 'v3']) {
      await changed(cluster, { template: template(image) });
      await cluster.settleRunning();
      await wait(cluster, 20);
    }
    expect(await heldReasons(cluster)).toEqual([
      expect.stringMatching(/^the safety gate is closed since 2026-01-01T00:00:00Z \(.+\): the rollout waits with /),
      expect.stringMatching(/^the safety gate is closed since 2026-01-01T00:00:00Z \(.+\): the rollout waits with /),
    ]);
    await cluster.setTotalDisruption(true);
    cluster.startTicks();
    await wait(cluster, 20);
    expect(await heldReasons(cluster)).toHaveLength(3);
  });

  it('names ten of many', () => {
    const names = Array.from({ length: 12 }, (_, index) => `p${index}`);
    expect(heldText({ kind: 'totalDisruption', sinceMs: 0 }, names)).toBe(
      'every zone is in FullDisruption: the rollout waits with p0, p1, p2, p3, p4, p5, p6, p7, p8, p9 and 2 more',
    );
  });
});
