/** Jobs that are suspended and resumed. Source: syncJob and manageJob in pkg/controller/job/job_controller.go. */
import { describe, expect, it } from 'vitest';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { type JobCluster, startedJob } from '../../../test/support/job-cluster.ts';

async function setSuspend(cluster: JobCluster, suspend: boolean): Promise<void> {
  await cluster.change('jobs', 'pi', (job) => ({ ...job, spec: { ...job.spec, suspend } }));
  await cluster.settle();
}

const isLeft = ({ metadata }: { metadata: { deletionTimestamp?: string } }) => metadata.deletionTimestamp === undefined;

describe('a suspended Job', () => {
  it('WJ-51 that is created suspended has not started, and starts when it is resumed', async () => {
    const cluster = await startedJob({ parallelism: 2, suspend: true });
    expect(await cluster.jobPods()).toEqual([]);
    expect((await cluster.job()).status?.startTime).toBeUndefined();
    expect(await cluster.conditions()).toEqual(['Suspended True JobSuspended']);
    cluster.advance(3_600_000);
    await setSuspend(cluster, false);
    expect(await cluster.pods()).toHaveLength(2);
    expect((await cluster.job()).status?.startTime).toBe(formatTime(cluster.now()));
  });

  it('WJ-53 does not fail at its deadline', async () => {
    const cluster = await startedJob({ activeDeadlineSeconds: 30 });
    await setSuspend(cluster, true);
    await cluster.confirmDeletions();
    cluster.advance(3_600_000);
    await cluster.tick();
    await cluster.settle();
    expect(await cluster.conditions()).toEqual(['Suspended True JobSuspended']);
  });

  it('WJ-55 keeps what succeeded: resumed, it runs only the rest', async () => {
    const cluster = await startedJob({ parallelism: 2, completions: 3 });
    for (const pod of await cluster.jobPods()) await cluster.end(pod, 'Succeeded');
    await cluster.settle();
    await cluster.runPods();
    await setSuspend(cluster, true);
    await cluster.confirmDeletions();
    expect((await cluster.job()).status).toMatchObject({ succeeded: 2 });
    expect((await cluster.job()).status?.active ?? 0).toBe(0);
    await setSuspend(cluster, false);
    expect((await cluster.job()).status).toMatchObject({ succeeded: 2, active: 1 });
  });

  it('WJ-57 that is resumed before its pods have terminated replaces them at once', async () => {
    const cluster = await startedJob({ parallelism: 2, completions: 2, backoffLimit: 0 });
    await setSuspend(cluster, true);
    await setSuspend(cluster, false);
    expect((await cluster.jobPods()).filter(isLeft)).toHaveLength(2);
    expect((await cluster.job()).status).toMatchObject({ active: 2, terminating: 2 });
    await cluster.confirmDeletions();
    expect(await cluster.conditions()).toEqual(['Suspended False JobResumed']);
  });

  it('WJ-59 that replaces failed pods only waits for the pods that terminate', async () => {
    const cluster = await startedJob({ parallelism: 2, completions: 2, podReplacementPolicy: 'Failed' });
    await setSuspend(cluster, true);
    await setSuspend(cluster, false);
    expect((await cluster.jobPods()).filter(isLeft)).toEqual([]);
    await cluster.confirmDeletions();
    expect((await cluster.jobPods()).filter(isLeft)).toHaveLength(2);
  });

  it('WJ-61 does not count pods that fail because they are stopped', async () => {
    const cluster = await startedJob({ parallelism: 2, completions: 2, backoffLimit: 0 });
    await setSuspend(cluster, true);
    for (const pod of await cluster.jobPods()) await cluster.end(pod, 'Failed', 143);
    await cluster.settle();
    await cluster.confirmDeletions();
    expect((await cluster.job()).status?.failed).toBeUndefined();
    expect(await cluster.conditions()).toEqual(['Suspended True JobSuspended']);
  });

  it('WJ-63 with indexes runs those again that have not succeeded', async () => {
    const cluster = await startedJob({ parallelism: 3, completions: 3, completionMode: 'Indexed' });
    const first = (await cluster.jobPods()).find(
      ({ metadata }) => metadata.annotations?.['batch.kubernetes.io/job-completion-index'] === '1',
    );
    await cluster.end(first!, 'Succeeded');
    await cluster.settle();
    await setSuspend(cluster, true);
    await cluster.confirmDeletions();
    expect(await cluster.indexes()).toEqual([]);
    await setSuspend(cluster, false);
    expect(await cluster.indexes()).toEqual([0, 2]);
    expect((await cluster.job()).status).toMatchObject({ completedIndexes: '1' });
  });

  it('WJ-65 has one condition for any number of suspensions, and an event for each', async () => {
    const cluster = await startedJob({});
    for (const suspend of [true, false, true, false, true]) {
      cluster.advance(1_000);
      await setSuspend(cluster, suspend);
      await cluster.confirmDeletions();
    }
    expect(await cluster.conditions()).toEqual(['Suspended True JobSuspended']);
    expect((await cluster.condition('Suspended'))?.lastTransitionTime).toBe(formatTime(cluster.now()));
    expect(await cluster.pods()).toEqual([]);
  });

  it('WJ-67 is deleted in the foreground after its pods', async () => {
    const cluster = await startedJob({ parallelism: 2 });
    await setSuspend(cluster, true);
    await cluster.change('jobs', 'pi', (job) => ({
      ...job,
      metadata: {
        ...job.metadata,
        deletionTimestamp: formatTime(cluster.now()),
        finalizers: ['foregroundDeletion'],
      },
    }));
    await cluster.settle();
    expect(await cluster.job()).toBeDefined();
    await cluster.confirmDeletions();
    await cluster.settle();
    expect(await cluster.job()).toBeUndefined();
    expect(await cluster.jobPods()).toEqual([]);
  });
});
