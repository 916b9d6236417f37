import { describe, expect, it } from 'vitest';
import { decisionStore } from '../../../shared/decisions/decision-store.ts';
import type { PodSpec } from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { type JobCluster, jobCluster, replayedActs, startedJob, TRACKING } from '../../../test/support/job-cluster.ts';

const onFailure = {
  spec: { restartPolicy: 'OnFailure', containers: [{ name: 'c', image: 'v1' }] } satisfies PodSpec,
};

describe('a Job', () => {
  it('WJ-01 creates as many pods as may run at the same time, and has started', async () => {
    const cluster = jobCluster();
    await cluster.createJob({ parallelism: 2, completions: 5 });
    await cluster.settle();
    const pods = await cluster.jobPods();
    expect(pods).toHaveLength(2);
    expect(pods[0]).toMatchObject({
      metadata: {
        name: expect.stringMatching(/^pi-[bcdfghjklmnpqrstvwxz2456789]{5}$/),
        finalizers: [TRACKING],
        labels: { 'batch.kubernetes.io/job-name': 'pi', 'job-name': 'pi' },
        ownerReferences: [
          { apiVersion: 'batch/v1', kind: 'Job', name: 'pi', controller: true, blockOwnerDeletion: true },
        ],
      },
      spec: { restartPolicy: 'Never' },
    });
    expect((await cluster.job()).status).toEqual({
      active: 2,
      ready: 0,
      terminating: 0,
      startTime: formatTime(cluster.now()),
      uncountedTerminatedPods: {},
    });
    expect(await cluster.events('SuccessfulCreate')).toHaveLength(2);
  });

  it('WJ-03 counts a pod that succeeded, and replaces it', async () => {
    const cluster = await startedJob({ parallelism: 2, completions: 5 });
    await cluster.end((await cluster.jobPods())[0]!, 'Succeeded');
    await cluster.settle();
    expect((await cluster.job()).status).toMatchObject({ active: 2, succeeded: 1 });
    expect(await cluster.jobPods()).toHaveLength(3);
    expect(await cluster.tracked()).toBe(2);
  });

  it('WJ-05 deletes the pods beyond its parallelism without counting them', async () => {
    const cluster = await startedJob({ parallelism: 10, completions: 10 });
    await cluster.change('jobs', 'pi', (job) => ({ ...job, spec: { ...job.spec, parallelism: 2 } }));
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(2);
    const { status } = await cluster.job();
    expect(status).toMatchObject({ active: 2, terminating: 8 });
    expect(status?.failed).toBeUndefined();
    expect(await replayedActs(cluster)).toContain('PodsDeleted');
    await cluster.confirmDeletions();
    expect((await cluster.job()).status?.failed).toBeUndefined();
    expect(await cluster.jobPods()).toHaveLength(2);
  });

  it('WJ-07 is complete when enough pods succeeded', async () => {
    const cluster = await startedJob({ parallelism: 5, completions: 5 });
    for (const pod of await cluster.jobPods()) await cluster.end(pod, 'Succeeded');
    await cluster.settle();
    const { status } = await cluster.job();
    expect(status).toMatchObject({ succeeded: 5, ready: 0, completionTime: formatTime(cluster.now()) });
    expect(status?.active).toBeUndefined();
    expect(await cluster.conditions()).toEqual([
      'SuccessCriteriaMet True CompletionsReached',
      'Complete True CompletionsReached',
    ]);
    expect(await cluster.tracked()).toBe(0);
    expect(await cluster.events('Completed')).toEqual(['Job completed']);
  });

  it('WJ-09 without completions is complete with one success, when nothing runs any more', async () => {
    const cluster = await startedJob({ parallelism: 2 });
    const [one, other] = await cluster.jobPods();
    await cluster.end(one!, 'Succeeded');
    await cluster.settle();
    expect(await cluster.jobPods()).toHaveLength(2);
    expect(await cluster.conditions()).toEqual([]);
    await cluster.end(other!, 'Failed');
    await cluster.settle();
    expect((await cluster.job()).status).toMatchObject({ succeeded: 1, failed: 1 });
    expect(await cluster.conditions()).toContain('Complete True CompletionsReached');
  });

  it.each(['WJ-11', 'WJ-19'])('%s replaces a failed pod after ten seconds', async (_id) => {
    const cluster = await startedJob({ parallelism: 1, completions: 1, backoffLimit: 1 });
    await cluster.end((await cluster.jobPods())[0]!, 'Failed');
    await cluster.settle();
    expect((await cluster.job()).status).toMatchObject({ failed: 1 });
    cluster.advance(9_900);
    await cluster.tick();
    expect(await cluster.jobPods()).toHaveLength(1);
    cluster.advance(100);
    await cluster.tick();
    expect(await cluster.jobPods()).toHaveLength(2);
    expect(await cluster.conditions()).toEqual([]);
  });

  it('WJ-13 continues while the failures are within its limit', async () => {
    const cluster = await startedJob({ parallelism: 7, completions: 7, backoffLimit: 6 });
    for (const pod of (await cluster.jobPods()).slice(0, 6)) await cluster.end(pod, 'Failed');
    await cluster.change('jobs', 'pi', (job) => ({ ...job, spec: { ...job.spec, parallelism: 2 } }));
    await cluster.settle();
    cluster.advance(600_000);
    await cluster.tick();
    await cluster.settle();
    expect((await cluster.job()).status).toMatchObject({ active: 2, failed: 6 });
    expect(await cluster.conditions()).toEqual([]);
  });

  it.each([
    ['WJ-15', { parallelism: 1, completions: 1, backoffLimit: 1 }, 1],
    ['WJ-17', { parallelism: 2, completions: 5, backoffLimit: 2 }, 2],
  ])('%s fails when its containers restarted too often', async (_id, spec, failed) => {
    const cluster = await startedJob({ ...spec, template: onFailure });
    for (const pod of await cluster.jobPods()) {
      await cluster.change('pods', pod.metadata.name ?? '', (current) => ({
        ...current,
        status: { ...current.status, containerStatuses: [{ name: 'c', restartCount: 1 }] },
      }));
    }
    await cluster.settle();
    // Failed is final: it waits for the end of the last pod.
    expect(await cluster.conditions()).toEqual(['FailureTarget True BackoffLimitExceeded']);
    expect((await cluster.job()).status).toMatchObject({ failed, terminating: failed });
    await cluster.confirmDeletions();
    expect(await cluster.conditions()).toEqual([
      'FailureTarget True BackoffLimitExceeded',
      'Failed True BackoffLimitExceeded',
    ]);
    expect((await cluster.job()).status).toMatchObject({ failed, terminating: 0 });
    expect((await cluster.job()).status?.active).toBeUndefined();
    expect(await cluster.events('BackoffLimitExceeded')).toEqual(['Job has reached the specified backoff limit']);
  });

  it('WJ-23 fails from the end of its deadline', async () => {
    const cluster = await startedJob({ parallelism: 2, completions: 2, activeDeadlineSeconds: 10 });
    cluster.advance(9_900);
    await cluster.tick();
    expect(await cluster.pods()).toHaveLength(2);
    cluster.advance(100);
    await cluster.tick();
    await cluster.settle();
    expect(await cluster.pods()).toEqual([]);
    await cluster.confirmDeletions();
    expect(await cluster.conditions()).toContain('Failed True DeadlineExceeded');
    expect(await cluster.condition('Failed')).toMatchObject({
      message: 'Job was active longer than specified deadline',
    });
  });

  it.each(['WJ-25', 'WJ-27'])(
    '%s is suspended without counting its pods, and resumed with a new start',
    async (_id) => {
      const cluster = await startedJob({ parallelism: 2, completions: 4 });
      const suspend = (value: boolean) =>
        cluster.change('jobs', 'pi', (job) => ({ ...job, spec: { ...job.spec, suspend: value } }));
      await suspend(true);
      await cluster.settle();
      await cluster.confirmDeletions();
      expect(await cluster.jobPods()).toEqual([]);
      expect((await cluster.job()).status?.failed).toBeUndefined();
      expect(await cluster.conditions()).toEqual(['Suspended True JobSuspended']);
      expect(await cluster.events('Suspended')).toEqual(['Job suspended']);
      cluster.advance(60_000);
      await suspend(false);
      await cluster.settle();
      expect(await cluster.pods()).toHaveLength(2);
      expect(await cluster.conditions()).toEqual(['Suspended False JobResumed']);
      expect((await cluster.job()).status?.startTime).toBe(formatTime(cluster.now()));
      expect(await cluster.events('Resumed')).toEqual(['Job resumed']);
    },
  );

  it('WJ-24 counts the deadline of a resumed Job from its new start', async () => {
    const cluster = await startedJob({ parallelism: 2, completions: 4, activeDeadlineSeconds: 30 });
    const suspend = (value: boolean) =>
      cluster.change('jobs', 'pi', (job) => ({ ...job, spec: { ...job.spec, suspend: value } }));
    cluster.advance(20_000);
    await suspend(true);
    await cluster.settle();
    await cluster.confirmDeletions();
    cluster.advance(60_000);
    await cluster.tick();
    await suspend(false);
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(2);
    cluster.advance(29_000);
    await cluster.tick();
    expect(await cluster.conditions()).toEqual(['Suspended False JobResumed']);
    cluster.advance(1_000);
    await cluster.tick();
    await cluster.settle();
    expect(await cluster.pods()).toEqual([]);
    await cluster.confirmDeletions();
    expect(await cluster.conditions()).toContain('Failed True DeadlineExceeded');
  });

  it('WJ-37 counts an evicted pod of a silent node as failed, and replaces it at once', async () => {
    const cluster = await startedJob({ parallelism: 1, completions: 1 });
    const [pod] = await cluster.jobPods();
    const name = pod?.metadata.name ?? '';
    await cluster.change('pods', name, (current) => ({
      ...current,
      status: {
        ...current.status,
        conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: formatTime(cluster.now()) }],
      },
    }));
    await cluster.settle();
    cluster.advance(300_000);
    await cluster.markPod(name);
    await cluster.settle();
    expect((await cluster.job()).status).toMatchObject({ active: 1, failed: 1, terminating: 1 });
    expect(await cluster.jobPods()).toHaveLength(2);
    expect(await cluster.tracked()).toBe(1);
  });

  it('WJ-39 ignores what its failure policy ignores', async () => {
    const rule = { action: 'Ignore', onPodConditions: [{ type: 'DisruptionTarget', status: 'True' as const }] };
    const cluster = await startedJob({
      parallelism: 1,
      completions: 1,
      backoffLimit: 0,
      podFailurePolicy: { rules: [rule] },
    });
    const [pod] = await cluster.jobPods();
    const name = pod?.metadata.name ?? '';
    await cluster.markPod(name);
    await cluster.settle();
    // It is neither failed nor replaced before it has ended.
    expect(await cluster.jobPods()).toHaveLength(1);
    await cluster.change('pods', name, (current) => ({
      ...current,
      status: { ...current.status, phase: 'Failed', conditions: [{ type: 'DisruptionTarget', status: 'True' }] },
    }));
    await cluster.settle();
    expect(await cluster.pods()).toHaveLength(1);
    expect((await cluster.job()).status?.failed).toBeUndefined();
    expect(await cluster.conditions()).toEqual([]);
  });

  it('fails at once by a rule of its failure policy, with the container in the message', async () => {
    const rule = { action: 'FailJob', onExitCodes: { operator: 'In', values: [42] } };
    const cluster = await startedJob({ parallelism: 2, completions: 2, podFailurePolicy: { rules: [rule] } });
    const [pod] = await cluster.jobPods();
    await cluster.end(pod!, 'Failed', 42);
    await cluster.settle();
    await cluster.confirmDeletions();
    expect(await cluster.condition('Failed')).toMatchObject({
      reason: 'PodFailurePolicy',
      message: `Container c for pod default/${pod?.metadata.name} failed with exit code 42 matching FailJob rule at index 0`,
    });
  });

  it('WJ-43 is deleted with its pods when the time after its end is over', async () => {
    const cluster = await startedJob({ ttlSecondsAfterFinished: 15 });
    await cluster.end((await cluster.jobPods())[0]!, 'Succeeded');
    await cluster.settle();
    cluster.advance(14_000);
    await cluster.tick();
    expect(await cluster.job()).toBeDefined();
    cluster.advance(1_000);
    await cluster.tick();
    await cluster.settle();
    expect(await cluster.job()).toBeUndefined();
    expect(await cluster.jobPods()).toEqual([]);
    expect([...(await replayedActs(cluster))].sort()).toEqual([
      'Collected',
      'JobExpired',
      'JobFinished',
      'PodsCreated',
    ]);
  });

  it('WJ-45 does nothing after its end', async () => {
    const cluster = await startedJob({});
    await cluster.end((await cluster.jobPods())[0]!, 'Succeeded');
    await cluster.settle();
    await cluster.change('jobs', 'pi', (job) => ({ ...job, spec: { ...job.spec, parallelism: 3 } }));
    await cluster.remove('pods', (await cluster.jobPods())[0]?.metadata.name ?? '');
    await cluster.settle();
    expect(await cluster.jobPods()).toEqual([]);
  });

  it('decides and writes nothing when it is settled', async () => {
    const cluster = await startedJob({ parallelism: 2, completions: 2 });
    const before = cluster.tables.changes('objects', 0).length;
    const record = cluster.tables.changes('objects', 0).find(({ key }) => key.pk.startsWith('o#jobs#'))!;
    await cluster.controllers.onWorkloadRecords([record]);
    await cluster.tick();
    expect(cluster.tables.changes('objects', 0).length).toBe(before);
  });

  it('adopts all pods that it selects before it creates any', async () => {
    const cluster = jobCluster();
    for (let index = 0; index < 20; index += 1) {
      await cluster.create('pods', {
        kind: 'Pod',
        metadata: { name: `p${index}`, labels: { app: 'old' } },
        spec: { containers: [{ name: 'c', image: 'v1' }] },
      });
    }
    await cluster.createJob({
      parallelism: 20,
      completions: 20,
      manualSelector: true,
      selector: { matchLabels: { app: 'old' } },
      template: {
        metadata: { labels: { app: 'old' } },
        spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'v1' }] },
      },
    });
    await cluster.settle();
    const pods = await cluster.jobPods();
    expect(pods).toHaveLength(20);
    expect(pods.every(({ metadata }) => metadata.ownerReferences?.[0]?.name === 'pi')).toBe(true);
  });

  it('counts a pod that confirms its end in the last second of its grace period', async () => {
    const cluster = await startedJob({ podReplacementPolicy: 'Failed' });
    const [pod] = await cluster.jobPods();
    await cluster.change('pods', pod?.metadata.name ?? '', (each) => ({
      ...each,
      spec: { ...each.spec, nodeName: 'n1' },
    }));
    await cluster.markPod(pod?.metadata.name ?? '');
    await cluster.settle();
    expect((await cluster.job()).status).toMatchObject({ terminating: 1 });
    await cluster.confirmDeletions();
    expect((await cluster.job()).status).toMatchObject({ terminating: 0, failed: 1 });
  });

  it('adopts a pod again that lost its owner, and releases one that it no longer selects', async () => {
    const cluster = await startedJob({});
    const name = (await cluster.jobPods())[0]?.metadata.name ?? '';
    await cluster.change('pods', name, ({ metadata: { ownerReferences: _owners, ...metadata }, ...pod }) => ({
      ...pod,
      metadata,
    }));
    await cluster.settle();
    expect((await cluster.jobPods()).map(({ metadata }) => metadata.ownerReferences)).toMatchObject([
      [{ kind: 'Job', name: 'pi' }],
    ]);
    await cluster.change('pods', name, (pod) => ({ ...pod, metadata: { ...pod.metadata, labels: {} } }));
    await cluster.settle();
    const pods = await cluster.jobPods();
    expect(pods).toHaveLength(2);
    const released = pods.find(({ metadata }) => metadata.name === name);
    expect(released?.metadata.ownerReferences).toBeUndefined();
    expect(released?.metadata.finalizers).toBeUndefined();
  });
});

describe('the records of a Job', () => {
  const reasonsOf = async ({ tables, now }: JobCluster, act: string): Promise<readonly string[]> => {
    const { decisions } = await decisionStore(tables).list({ nowMs: now(), limit: 1_000 });
    return decisions.filter(({ record }) => record.act === act).map(({ record }) => record.reason);
  };

  it('name its end once, however many transactions and syncs that needs', async () => {
    const cluster = await startedJob({ parallelism: 40, completions: 40, backoffLimit: 0 });
    await cluster.end((await cluster.jobPods())[0]!, 'Failed');
    await cluster.settle();
    expect(await cluster.conditions()).toEqual(['FailureTarget True BackoffLimitExceeded']);
    await cluster.confirmDeletions();
    expect(await cluster.conditions()).toContain('Failed True BackoffLimitExceeded');
    expect(await reasonsOf(cluster, 'JobFinished')).toEqual(['BackoffLimitExceeded: 0 pods succeeded, 1 failed']);
    expect(await reasonsOf(cluster, 'PodsDeleted')).toEqual([]);
  });

  it('name the pods that are too many, and none that is only counted', async () => {
    const cluster = await startedJob({ parallelism: 3, completions: 9 });
    const [ended] = await cluster.jobPods();
    await cluster.end(ended!, 'Succeeded');
    await cluster.change('jobs', 'pi', (job) => ({ ...job, spec: { ...job.spec, parallelism: 1 } }));
    await cluster.settle();
    const stays = (await cluster.pods()).map(({ metadata }) => metadata.name);
    const removed = (await cluster.jobPods()).filter(({ metadata }) => metadata.deletionTimestamp !== undefined);
    expect([stays.includes(ended?.metadata.name), removed.length]).toEqual([true, 1]);
    expect(await reasonsOf(cluster, 'PodsDeleted')).toEqual([
      `1 pods are wanted and 2 are active: deleted ${removed[0]?.metadata.name}`,
    ]);
  });
});

describe('an Indexed Job', () => {
  const INDEX = 'batch.kubernetes.io/job-completion-index';

  it('WJ-29 makes pods with an index, in label, annotation, host name and variable', async () => {
    const cluster = jobCluster();
    await cluster.createJob({ parallelism: 2, completions: 5, completionMode: 'Indexed' });
    await cluster.settle();
    expect(await cluster.indexes()).toEqual([0, 1]);
    const first = (await cluster.jobPods()).find(({ metadata }) => metadata.annotations?.[INDEX] === '0');
    expect(first).toMatchObject({
      metadata: { name: expect.stringMatching(/^pi-0-.{5}$/), labels: { [INDEX]: '0' } },
      spec: {
        hostname: 'pi-0',
        containers: [
          {
            env: [
              { name: 'JOB_COMPLETION_INDEX', valueFrom: { fieldRef: { fieldPath: `metadata.labels['${INDEX}']` } } },
            ],
          },
        ],
      },
    });
  });

  it('WJ-31 is complete when each index succeeded', async () => {
    const cluster = await startedJob({ parallelism: 2, completions: 3, completionMode: 'Indexed' });
    const byIndex = async (index: number) =>
      (await cluster.jobPods()).find(
        ({ metadata, status }) => metadata.annotations?.[INDEX] === `${index}` && status?.phase === 'Running',
      )!;
    await cluster.end(await byIndex(1), 'Failed');
    await cluster.end(await byIndex(0), 'Succeeded');
    await cluster.settle();
    cluster.advance(600_000);
    await cluster.tick();
    await cluster.settle();
    await cluster.runPods();
    for (const index of [1, 2]) await cluster.end(await byIndex(index), 'Succeeded');
    await cluster.settle();
    expect((await cluster.job()).status).toMatchObject({ succeeded: 3, failed: 1, completedIndexes: '0-2' });
    expect(await cluster.conditions()).toContain('Complete True CompletionsReached');
  });

  it('WJ-33 creates the indexes that failed again', async () => {
    const cluster = await startedJob({ parallelism: 3, completions: 4, completionMode: 'Indexed' });
    for (const pod of await cluster.jobPods()) {
      if (pod.metadata.annotations?.[INDEX] !== '1') await cluster.end(pod, 'Failed');
    }
    await cluster.settle();
    cluster.advance(600_000);
    await cluster.tick();
    await cluster.settle();
    expect(await cluster.indexes()).toEqual([0, 1, 2]);
    expect((await cluster.job()).status).toMatchObject({ active: 3, failed: 2 });
  });
});

describe('an Indexed Job with a limit for each index', () => {
  const COUNT = 'batch.kubernetes.io/job-index-failure-count';
  const spec = { parallelism: 2, completions: 2, completionMode: 'Indexed', backoffLimitPerIndex: 1 } as const;
  const running = async (cluster: JobCluster, index: number) =>
    (await cluster.pods()).find(
      ({ metadata, status }) =>
        metadata.annotations?.['batch.kubernetes.io/job-completion-index'] === `${index}` &&
        status?.phase === 'Running',
    )!;
  const fail = async (cluster: JobCluster, index: number) => {
    await cluster.end(await running(cluster, index), 'Failed');
    await cluster.settle();
  };
  async function retry(cluster: JobCluster, waitMs: number) {
    cluster.advance(waitMs);
    await cluster.tick();
    await cluster.settle();
    await cluster.runPods();
    await cluster.settle();
  }

  it('WJ-69 tries each index again until its limit, and fails when the others succeeded', async () => {
    const cluster = await startedJob(spec);
    await fail(cluster, 0);
    // Its pod keeps the finalizer, and is not counted, until the replacement has its count.
    expect((await cluster.job()).status).toMatchObject({ active: 1, failedIndexes: '' });
    expect((await cluster.job()).status?.failed).toBeUndefined();
    expect(await cluster.tracked()).toBe(2);
    await retry(cluster, 9_900);
    expect(await cluster.jobPods()).toHaveLength(2);
    await retry(cluster, 100);
    expect((await running(cluster, 0)).metadata.annotations?.[COUNT]).toBe('1');
    expect((await running(cluster, 1)).metadata.annotations?.[COUNT]).toBe('0');
    expect((await cluster.job()).status).toMatchObject({ active: 2, failed: 1 });
    expect(await cluster.tracked()).toBe(2);
    await fail(cluster, 0);
    expect((await cluster.job()).status).toMatchObject({ active: 1, failed: 2, failedIndexes: '0' });
    await cluster.end(await running(cluster, 1), 'Succeeded');
    await cluster.settle();
    expect((await cluster.job()).status).toMatchObject({ succeeded: 1, failedIndexes: '0', completedIndexes: '1' });
    expect(await cluster.conditions()).toEqual(['FailureTarget True FailedIndexes', 'Failed True FailedIndexes']);
    expect(await cluster.events('FailedIndexes')).toEqual(['Job has failed indexes']);
    expect(await cluster.tracked()).toBe(0);
    expect(await replayedActs(cluster)).toContain('JobFinished');
  });

  it('WJ-71 fails with more failed indexes than permitted, and deletes the other pods', async () => {
    const cluster = await startedJob({ ...spec, backoffLimitPerIndex: 0, maxFailedIndexes: 0 });
    await fail(cluster, 1);
    expect((await cluster.job()).status).toMatchObject({ failed: 2, terminating: 1, failedIndexes: '1' });
    await cluster.confirmDeletions();
    expect(await cluster.condition('Failed')).toMatchObject({
      reason: 'MaxFailedIndexesExceeded',
      message: 'Job has exceeded the specified maximal number of failed indexes',
    });
  });

  it('WJ-73 keeps the count of an index when its failed pod is deleted and two workers replace it', async () => {
    const cluster = await startedJob(spec);
    await fail(cluster, 0);
    const [failed] = (await cluster.jobPods()).filter(({ status }) => status?.phase === 'Failed');
    await cluster.markPod(failed?.metadata.name ?? '');
    await cluster.confirmDeletions();
    const others = cluster.makeControllers(cluster.tables);
    cluster.advance(10_000);
    const job = cluster.tables.changes('objects', 0).find(({ key }) => key.pk.startsWith('o#jobs#'))!;
    await Promise.all([cluster.controllers, others].map((each) => each.onWorkloadRecords([job])));
    await cluster.settle();
    await cluster.runPods();
    expect((await running(cluster, 0)).metadata.annotations?.[COUNT]).toBe('1');
    expect((await cluster.job()).status).toMatchObject({ active: 2, failed: 1 });
    await fail(cluster, 0);
    expect((await cluster.job()).status).toMatchObject({ failed: 2, failedIndexes: '0' });
  });

  it('WJ-75 is complete by a rule of its success policy, when the other pods have terminated', async () => {
    const cluster = await startedJob({ ...spec, successPolicy: { rules: [{ succeededIndexes: '1' }] } });
    await cluster.end(await running(cluster, 1), 'Succeeded');
    await cluster.settle();
    expect(await cluster.conditions()).toEqual(['SuccessCriteriaMet True SuccessPolicy']);
    expect((await cluster.job()).status).toMatchObject({ succeeded: 1, terminating: 1 });
    await cluster.confirmDeletions();
    expect(await cluster.condition('Complete')).toMatchObject({
      reason: 'SuccessPolicy',
      message: 'Matched rules at index 0',
    });
    const { status } = await cluster.job();
    expect([status?.failed, status?.completedIndexes, status?.failedIndexes]).toEqual([undefined, '1', '']);
    expect(await cluster.events('Completed')).toEqual(['Job completed']);
    expect(await replayedActs(cluster)).toContain('JobFinished');
  });
});

describe('the end of a Job', () => {
  it('WG-05 deletes its pods, although they are not counted', async () => {
    const cluster = await startedJob({ parallelism: 2, completions: 2 });
    await cluster.remove('jobs', 'pi');
    await cluster.settle();
    expect(await cluster.pods()).toEqual([]);
    expect(await cluster.tracked()).toBe(0);
    await cluster.confirmDeletions();
    expect(await cluster.jobPods()).toEqual([]);
  });

  it('leaves no finalizer on a pod that was being deleted already', async () => {
    const cluster = await startedJob({});
    const [pod] = await cluster.jobPods();
    const held = { ...pod!.metadata, finalizers: [TRACKING, 'example.com/held'] };
    await cluster.change('pods', pod?.metadata.name ?? '', (current) => ({
      ...current,
      metadata: { ...current.metadata, ...held },
    }));
    await cluster.markPod(pod?.metadata.name ?? '');
    await cluster.remove('jobs', 'pi');
    await cluster.settle();
    expect((await cluster.jobPods())[0]?.metadata.finalizers).toEqual(['example.com/held']);
  });

  it('orphans its pods without the finalizer', async () => {
    const cluster = await startedJob({});
    await cluster.change('jobs', 'pi', (job) => ({
      ...job,
      metadata: { ...job.metadata, deletionTimestamp: formatTime(cluster.now()), finalizers: ['orphan'] },
    }));
    await cluster.settle();
    expect(await cluster.job()).toBeUndefined();
    const [pod] = await cluster.jobPods();
    expect(pod?.metadata).toMatchObject({ name: expect.stringMatching(/^pi-/) });
    expect(pod?.metadata.ownerReferences).toBeUndefined();
    expect(pod?.metadata.finalizers).toBeUndefined();
  });
});
