import { describe, expect, it } from 'vitest';
import { cronjobs } from '../../../shared/kinds/jobs/serve.ts';
import type { CronJobSpec, KubeCronJob, KubeJob } from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { type JobCluster, jobCluster, replayedActs } from '../../../test/support/job-cluster.ts';

/** Thursday, 2016-05-19T10:00:00Z. */
const H = Date.UTC(2016, 4, 19, 10);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const REF = { resource: 'cronjobs', namespace: 'default', name: 'report' };

const jobTemplate = {
  metadata: { labels: { team: 'a' }, annotations: { note: 'x' } },
  spec: { template: { spec: { restartPolicy: 'Never' as const, containers: [{ name: 'c', image: 'v1' }] } } },
};

interface Given {
  readonly spec?: CronJobSpec;
  readonly status?: KubeCronJob['status'];
  /** Creation. */
  readonly createdMs?: number;
}

/** A CronJob at a time; nothing has run yet. */
async function at(nowMs: number, { spec, status, createdMs = H - 59 * MINUTE }: Given = {}) {
  const cluster = jobCluster();
  cluster.advance(nowMs - cluster.now());
  const given = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: {
      name: 'report',
      namespace: 'default',
      uid: 'cron-report',
      generation: 1,
      creationTimestamp: formatTime(createdMs),
    },
    spec: { schedule: '0 * * * ?', jobTemplate, ...spec },
  };
  const stored = cronjobs.prepareForCreate(given, { nowMs });
  await cluster.create('cronjobs', { ...stored, ...(status === undefined ? {} : { status }) });
  const cron = {
    jobs: () => cluster.list<KubeJob>('jobs'),
    names: async () => (await cron.jobs()).map(({ metadata }) => metadata.name),
    get: async () => (await cluster.objects.get(REF)) as KubeCronJob,
    active: async () => ((await cron.get()).status?.active ?? []).map(({ name }) => name),
    async finish(name: string, type: 'Complete' | 'Failed' = 'Complete') {
      const now = formatTime(cluster.now());
      const condition = { type, status: 'True', lastTransitionTime: now };
      await cluster.change('jobs', name, (job) => ({
        ...job,
        status: { ...job.status, conditions: [condition], completionTime: now },
      }));
      await cluster.settle();
    },
    /** Runs a tick at that time, with what follows from it. */
    async at(nextMs: number) {
      cluster.advance(nextMs - cluster.now());
      await cluster.tick();
      await cluster.settle();
    },
  };
  await cluster.settle();
  return { cluster, ...cron };
}

/** Reasons of the times that were skipped. */
async function skipped({ cluster }: { readonly cluster: JobCluster }): Promise<readonly string[]> {
  await replayedActs(cluster);
  return (await cluster.decisions()).flatMap(({ act, reason }) => (act === 'CronJobSkipped' ? [reason] : []));
}

/** The name of a Job: the due time in whole minutes. */
const jobName = (dueMs: number): string => `report-${dueMs / MINUTE}`;

describe('a CronJob', () => {
  it('WC-01 waits for its time, and starts a Job with it', async () => {
    const cron = await at(H - MINUTE);
    expect(await cron.names()).toEqual([]);
    await cron.at(H);
    expect(await cron.names()).toEqual(['report-24394200']);
    const [job] = await cron.jobs();
    expect(job).toMatchObject({
      metadata: {
        labels: { team: 'a' },
        annotations: { note: 'x', 'batch.kubernetes.io/cronjob-scheduled-timestamp': '2016-05-19T10:00:00Z' },
        ownerReferences: [{ apiVersion: 'batch/v1', kind: 'CronJob', name: 'report', controller: true }],
      },
      spec: { completions: 1, selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': job?.metadata.uid } } },
    });
    expect((await cron.get()).status).toMatchObject({
      active: [{ kind: 'Job', name: 'report-24394200', uid: job?.metadata.uid }],
      lastScheduleTime: '2016-05-19T10:00:00Z',
    });
    expect(await cron.cluster.pods()).toHaveLength(1);
    expect(await cron.cluster.events('SuccessfulCreate')).toContain('Created job report-24394200');
    expect(await replayedActs(cron.cluster)).toContain('CronJobStarted');
  });

  it('WC-03 starts nothing while it is suspended, and what was missed afterwards', async () => {
    const cron = await at(H + MINUTE, { spec: { suspend: true } });
    expect(await cron.names()).toEqual([]);
    await cron.cluster.change('cronjobs', 'report', (each) => ({ ...each, spec: { ...each.spec, suspend: false } }));
    await cron.cluster.settle();
    expect(await cron.names()).toEqual([jobName(H)]);
  });

  it('WC-05 starts a Job beside the previous one', async () => {
    const cron = await at(H - HOUR + MINUTE, { createdMs: H - 2 * HOUR + MINUTE });
    await cron.at(H + MINUTE);
    expect(await cron.active()).toEqual([jobName(H - HOUR), jobName(H)]);
  });

  it('WC-07 replaces the previous Job', async () => {
    const cron = await at(H - HOUR + MINUTE, {
      spec: { concurrencyPolicy: 'Replace' },
      createdMs: H - 2 * HOUR + MINUTE,
    });
    await cron.at(H + MINUTE);
    expect(await cron.names()).toEqual([jobName(H)]);
    expect(await cron.active()).toEqual([jobName(H)]);
    expect(await cron.cluster.events('SuccessfulDelete')).toContain(`Deleted job ${jobName(H - HOUR)}`);
  });

  it('waits with Forbid until the previous Job has ended', async () => {
    const cron = await at(H - HOUR + MINUTE, {
      spec: { concurrencyPolicy: 'Forbid' },
      createdMs: H - 2 * HOUR + MINUTE,
    });
    await cron.at(H + MINUTE);
    expect(await cron.names()).toEqual([jobName(H - HOUR)]);
    expect(await cron.cluster.events('JobAlreadyActive')).toHaveLength(1);
    await cron.at(H + 2 * MINUTE);
    await cron.cluster.change('cronjobs', 'report', (each) => ({
      ...each,
      metadata: { ...each.metadata, annotations: { a: 'b' } },
    }));
    await cron.cluster.settle();
    expect(await skipped(cron)).toEqual([
      '0 * * * ? was due at 2016-05-19T10:00:00Z, no Job was created: 1 of its Jobs are active, and concurrencyPolicy is Forbid',
    ]);
    await cron.finish(jobName(H - HOUR));
    await cron.cluster.settle();
    expect(await cron.active()).toEqual([jobName(H)]);
    expect((await cron.get()).status?.lastSuccessfulTime).toBe(formatTime(H + 2 * MINUTE));
    expect(await cron.cluster.events('SawCompletedJob')).toEqual([
      `Saw completed job: ${jobName(H - HOUR)}, condition: Complete`,
    ]);
  });

  it('WC-09 starts one Job for all that it missed, with a warning', async () => {
    const cron = await at(H + 7 * DAY, { status: { lastScheduleTime: formatTime(H - HOUR) } });
    expect(await cron.names()).toEqual([jobName(H + 7 * DAY)]);
    expect(await cron.cluster.events('TooManyMissedTimes')).toHaveLength(1);
  });

  it('WC-11 starts the most recent of several missed Jobs', async () => {
    const cron = await at(H + 301 * MINUTE, { spec: { schedule: '0 * * * *' }, createdMs: H + 10_000 });
    expect(await cron.names()).toEqual([jobName(H + 300 * MINUTE)]);
    expect(await cron.cluster.events('TooManyMissedTimes')).toEqual([]);
  });

  it('WC-13 finds the most recent time of an irregular schedule', async () => {
    const cron = await at(Date.UTC(2016, 4, 20, 16, 30), {
      spec: { schedule: '30 10,11,12 * * 1-5' },
      status: { lastScheduleTime: '2016-05-19T10:30:00Z' },
    });
    expect(await cron.names()).toEqual([jobName(Date.UTC(2016, 4, 20, 12, 30))]);
  });

  it('WC-15 starts nothing after its starting deadline', async () => {
    const cron = await at(H + 7 * DAY, {
      spec: { schedule: '@every 1h', startingDeadlineSeconds: 10 },
      status: { lastScheduleTime: formatTime(H + MINUTE) },
    });
    expect(await cron.names()).toEqual([]);
    expect(await skipped(cron)).toEqual([
      '@every 1h was due at 2016-05-26T09:01:00Z, no Job was created: startingDeadlineSeconds (10 s) are over',
    ]);
  });

  it('WC-19 drops a Job from its status that no longer exists', async () => {
    const active = [{ kind: 'Job', name: 'report-1', uid: 'none' }];
    const cron = await at(H - MINUTE, { status: { active } });
    expect(await cron.active()).toEqual([]);
    expect(await cron.cluster.events('MissingJob')).toEqual(['Active job went missing: report-1']);
  });

  it('WC-21 keeps as many finished Jobs as its limits say, the latest ones', async () => {
    const cron = await at(H - MINUTE, { spec: { successfulJobsHistoryLimit: 3 } });
    for (let hour = 0; hour < 5; hour += 1) {
      await cron.at(H + hour * HOUR);
      await cron.finish(jobName(H + hour * HOUR));
    }
    expect(await cron.names()).toEqual([2, 3, 4].map((hour) => jobName(H + hour * HOUR)));
  });

  it('WC-23 makes one Job when two workers start it at once', async () => {
    const cron = await at(H - MINUTE);
    cron.cluster.advance(MINUTE + 1_000);
    const record = cron.cluster.tables.changes('objects', 0).find(({ key }) => key.pk.startsWith('o#cronjobs#'))!;
    const worker = () => cron.cluster.makeControllers(cron.cluster.tables).onWorkloadRecords([record]);
    await Promise.all([worker(), worker()]);
    await cron.cluster.settle();
    expect(await cron.names()).toEqual(['report-24394200']);
    expect(await cron.active()).toEqual(['report-24394200']);
    expect((await cron.get()).status?.lastScheduleTime).toBe(formatTime(H));
  });

  it('WK-17 reports a Job that a person made of it, once', async () => {
    const cron = await at(H - MINUTE);
    await cron.cluster.create('jobs', {
      kind: 'Job',
      metadata: {
        name: 'manual',
        ownerReferences: [
          { apiVersion: 'batch/v1', kind: 'CronJob', name: 'report', uid: 'cron-report', controller: true },
        ],
      },
      spec: { suspend: true },
    });
    await cron.cluster.settle();
    await cron.at(H);
    expect(await cron.cluster.events('UnexpectedJob')).toEqual([
      'Saw a job that the controller did not create or forgot: manual',
    ]);
    expect(await cron.active()).toEqual([jobName(H)]);
  });

  it('is found by the sweep when its due time was lost', async () => {
    const cron = await at(H - MINUTE);
    const page = await cron.cluster.tables.query({ table: 'control', pk: 'workloads-due', consistent: true });
    for (const { sk } of page.items) {
      await cron.cluster.tables.write({
        kind: 'delete',
        key: { table: 'control', pk: 'workloads-due', sk: String(sk) },
      });
    }
    await cron.at(H + 2 * MINUTE);
    expect(await cron.names()).toEqual([jobName(H)]);
  });

  it('writes nothing between its times', async () => {
    const cron = await at(H - MINUTE);
    const before = cron.cluster.tables.changes('objects', 0).length;
    await cron.at(H - MINUTE / 2);
    expect(cron.cluster.tables.changes('objects', 0).length).toBe(before);
  });

  it('is deleted with its Jobs and their pods', async () => {
    const cron = await at(H);
    expect(await cron.cluster.pods()).toHaveLength(1);
    await cron.cluster.remove('cronjobs', 'report');
    await cron.cluster.settle();
    expect(await cron.names()).toEqual([]);
    expect(await cron.cluster.list('pods')).toEqual([]);
  });
});
