import { describe, expect, it } from 'vitest';
import { cronjobs } from '../../../shared/kinds/jobs/serve.ts';
import type { KubeCronJob } from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { jobCluster } from '../../../test/support/job-cluster.ts';

const DUE_MS = Date.UTC(2026, 0, 2, 12);
const HOUR_MS = 3_600_000;
const nameAt = (dueMs: number) => `report-${dueMs / 60_000}`;

/** A CronJob of every hour, and a Job of another owner with the name that it would choose at noon. */
async function colliding() {
  const cluster = jobCluster();
  cluster.advance(DUE_MS - 60_000 - cluster.now());
  const jobTemplate = {
    spec: { template: { spec: { restartPolicy: 'Never' as const, containers: [{ name: 'c', image: 'v' }] } } },
  };
  const cronJob = cronjobs.prepareForCreate(
    {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: {
        name: 'report',
        namespace: 'default',
        uid: 'cron',
        generation: 1,
        creationTimestamp: formatTime(cluster.now()),
      },
      spec: { schedule: '0 * * * *', jobTemplate },
    },
    { nowMs: cluster.now() },
  );
  await cluster.create('cronjobs', cronJob);
  await cluster.createJob({ suspend: true }, nameAt(DUE_MS));
  await cluster.settle();
  return {
    cluster,
    status: async () =>
      ((await cluster.objects.get({ resource: 'cronjobs', namespace: 'default', name: 'report' })) as KubeCronJob)
        .status,
    names: async () => (await cluster.list('jobs')).map(({ metadata }) => metadata.name),
    async tickAt(nowMs: number) {
      cluster.advance(nowMs - cluster.now());
      await cluster.tick();
      await cluster.settle();
    },
  };
}

describe('a Job that has the name of the next one of a CronJob', () => {
  it('uses up that time, and no other', async () => {
    const { status, names, tickAt } = await colliding();
    await tickAt(DUE_MS + 1_000);
    expect(await status()).toEqual({ lastScheduleTime: formatTime(DUE_MS) });
    expect(await names()).toEqual([nameAt(DUE_MS)]);
    await tickAt(DUE_MS + HOUR_MS + 1_000);
    expect(await names()).toEqual([nameAt(DUE_MS), nameAt(DUE_MS + HOUR_MS)]);
    expect((await status())?.active?.map(({ name }) => name)).toEqual([nameAt(DUE_MS + HOUR_MS)]);
  });
});
