import { describe, expect, it } from 'vitest';
import { workloadCluster } from '../../test/support/workload-cluster.ts';

const SWEEP_MS = 900_000;

async function sweep(cluster: ReturnType<typeof workloadCluster>) {
  cluster.advance(SWEEP_MS);
  cluster.metrics.length = 0;
  await cluster.tick();
  await cluster.settle();
  return cluster.metrics.flatMap(({ name, value }) => (name === 'workload_shortage_seconds' ? [value] : []));
}

describe('a workload without enough available pods', () => {
  it('is measured from the first sweep that finds it, until it has them', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment({ replicas: 2 });
    await cluster.settle();
    expect(await sweep(cluster)).toEqual([0]);
    expect(await sweep(cluster)).toEqual([900]);
    expect(await sweep(cluster)).toEqual([1_800]);
    await cluster.settleRunning();
    await cluster.settle();
    expect(await sweep(cluster)).toEqual([]);
    const [pod] = await cluster.pods();
    await cluster.change('pods', pod?.metadata.name ?? '', (each) => ({ ...each, status: { phase: 'Running' } }));
    await cluster.settle();
    expect(await sweep(cluster)).toEqual([0]);
  });

  it('is not measured while the safety gate is closed', async () => {
    const cluster = workloadCluster();
    await cluster.createDeployment({ replicas: 2 });
    await cluster.settle();
    expect(await sweep(cluster)).toEqual([0]);
    cluster.stopTicks();
    expect(await sweep(cluster)).toEqual([]);
    cluster.startTicks();
    expect(await sweep(cluster)).toEqual([1_800]);
  });
});
