/** One sync of a Job as a whole: what is counted, removed and created, how the Job ends, and its status. */
import { describe, expect, it } from 'vitest';
import type { JobSpec, JobStatus, KubeJob, KubePod, PodPhase } from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';
import { type FailureCount, NO_FAILURES } from './failures.rule.ts';
import { type JobPod, jobPodOf } from './job-pods.rule.ts';
import { decideJob, finalStatus, partStatus, wantedActive } from './rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const at = (seconds: number) => formatTime(NOW_MS + seconds * 1_000);

const pod = (name: string, phase: PodPhase, more: { metadata?: object; spec?: object; status?: object } = {}): JobPod =>
  jobPodOf({
    metadata: {
      name,
      namespace: 'd',
      uid: name,
      creationTimestamp: at(-60),
      finalizers: ['batch.kubernetes.io/job-tracking'],
      ...more.metadata,
    },
    spec: { nodeName: 'n', ...more.spec },
    status: { phase, ...more.status },
  } as unknown as KubePod);
const untracked = (name: string, phase: PodPhase) => pod(name, phase, { metadata: { finalizers: [] } });
const terminating = (name: string) =>
  pod(name, 'Running', { metadata: { deletionTimestamp: at(0), deletionGracePeriodSeconds: 30 } });

const jobOf = (spec: JobSpec = {}, status: JobStatus = {}, metadata: object = {}): KubeJob =>
  ({ metadata: { name: 'pi', uid: 'u', ...metadata }, spec, status }) as KubeJob;
function decide(job: KubeJob, pods: readonly JobPod[] = [], failureCount: FailureCount = NO_FAILURES) {
  const decision = decideJob({ job, pods, failureCount, nowMs: NOW_MS });
  return {
    ...decision,
    changes: decision.changes.map(({ pod: of, count, remove }) => `${of.name} ${count}${remove ? ' removed' : ''}`),
  };
}
const many = (count: number, phase: PodPhase) => Array.from({ length: count }, (_, index) => pod(`p${index}`, phase));

it.each([
  [{ parallelism: 3, succeeded: 0, active: 1 }, 3],
  [{ parallelism: 3, succeeded: 1, active: 2 }, 2],
  [{ parallelism: 3, completions: 5, succeeded: 1, active: 0 }, 3],
  [{ parallelism: 3, completions: 5, succeeded: 4, active: 0 }, 1],
  [{ parallelism: 3, completions: 5, succeeded: 6, active: 0 }, 0],
])('with %j there are %i active pods', (of, wanted) => {
  expect(wantedActive(of)).toBe(wanted);
});

describe('the pods of a Job', () => {
  it('are created up to its parallelism, and no more than it still needs', () => {
    expect(decide(jobOf({ parallelism: 3, completions: 5 }), [pod('a', 'Running')])).toMatchObject({
      create: 2,
      changes: [],
    });
    expect(decide(jobOf({ parallelism: 3, completions: 2 }), [pod('a', 'Succeeded')]).create).toBe(1);
    expect(decide(jobOf({ completions: 1 })).create).toBe(1);
    expect(decide(jobOf({ parallelism: 0, completions: 2 })).create).toBe(0);
  });

  it('are removed beyond it, without being counted', () => {
    const { changes, create } = decide(jobOf({ parallelism: 1, completions: 5 }), [
      pod('a', 'Running'),
      pod('b', 'Pending'),
    ]);
    expect([changes, create]).toEqual([['b nothing removed'], 0]);
  });

  it('are counted once: each pod with the finalizer that has ended', () => {
    const pods = [
      pod('a', 'Succeeded'),
      pod('b', 'Failed'),
      untracked('c', 'Failed'),
      untracked('d', 'Succeeded'),
      pod('e', 'Running'),
    ];
    const { changes, succeeded, failureInputs } = decide(jobOf({ completions: 9 }, { succeeded: 2, failed: 3 }), pods);
    expect([changes, succeeded, failureInputs.failed]).toEqual([['a succeeded', 'b failed'], 3, 4]);
  });

  it('that terminate have failed, unless only failed ones are replaced', () => {
    const pods = [terminating('a'), pod('b', 'Running')];
    expect(decide(jobOf({ parallelism: 2, completions: 2 }), pods)).toMatchObject({ changes: ['a failed'], create: 1 });
    expect(decide(jobOf({ parallelism: 2, completions: 2, podReplacementPolicy: 'Failed' }), pods)).toMatchObject({
      changes: [],
      create: 0,
    });
  });

  it('are none while the Job is suspended', () => {
    expect(decide(jobOf({ suspend: true, completions: 2 }), [pod('a', 'Running')])).toMatchObject({
      changes: ['a nothing removed'],
      create: 0,
      suspension: 'suspended',
    });
  });

  it('are created 500 at once, and removed and counted 500 at once', () => {
    expect(decide(jobOf({ parallelism: 600, completions: 600 })).create).toBe(500);
    const { changes, isFinal } = decide(jobOf({ parallelism: 0, completions: 900 }), many(600, 'Running'));
    expect([changes.length, isFinal]).toEqual([500, false]);
    const counted = decide(jobOf({ completions: 600 }), many(600, 'Succeeded'));
    expect([counted.changes.length, counted.outcome?.kind, counted.isFinal]).toEqual([500, 'Complete', false]);
    expect(decide(jobOf({ completions: 500 }), many(500, 'Succeeded'))).toMatchObject({ isFinal: true });
  });

  it('are not created before the wait after failures is over', () => {
    const decidedAfter = (lastEndedAtMs: number) =>
      decide(jobOf({ completions: 1 }), [], { failures: 1, lastEndedAtMs });
    expect(decidedAfter(NOW_MS - 9_999)).toMatchObject({ create: 0, lookAgainAtMs: NOW_MS + 1 });
    expect(decidedAfter(NOW_MS - 10_000).create).toBe(1);
    // A failure of this sync counts.
    const failed = pod('a', 'Failed', {
      status: { containerStatuses: [{ state: { terminated: { finishedAt: at(-5) } } }] },
    });
    expect(decide(jobOf({ completions: 1 }), [failed])).toMatchObject({ create: 0, lookAgainAtMs: NOW_MS + 5_000 });
    const limited = jobOf({ completions: 1, activeDeadlineSeconds: 3 });
    expect(decide(limited, [failed]).lookAgainAtMs).toBe(NOW_MS + 3_000);
  });

  it('of an Indexed Job have the lowest free indexes', () => {
    const indexed = (name: string, phase: PodPhase, index: number) =>
      pod(name, phase, { metadata: { annotations: { 'batch.kubernetes.io/job-completion-index': String(index) } } });
    const job = jobOf({ completionMode: 'Indexed', completions: 4, parallelism: 3 }, { completedIndexes: '1' });
    const decision = decide(job, [indexed('a', 'Running', 0), indexed('b', 'Failed', 2), indexed('c', 'Failed', 9)]);
    expect(decision).toMatchObject({ createIndexes: [2, 3], create: 2, succeeded: 1 });
    expect(decision.changes).toEqual(['b failed', 'c nothing']);
  });

  it('of an Indexed Job are found although memory holds fewer indexes than its status names', () => {
    const status = { completedIndexes: '1-2147483644', failedIndexes: '0' };
    const spec: JobSpec = { completionMode: 'Indexed', completions: 2 ** 31 - 1, backoffLimitPerIndex: 1 };
    const first = pod('a', 'Succeeded', {
      metadata: { annotations: { 'batch.kubernetes.io/job-completion-index': '2147483645' } },
    });
    const job = jobOf(spec, status);
    const decision = decideJob({ job, pods: [first], failureCount: NO_FAILURES, nowMs: NOW_MS });
    expect(decision).toMatchObject({ createIndexes: [2_147_483_646], succeeded: 2_147_483_645 });
    expect(partStatus(job, decision.changes, decision, NOW_MS)).toMatchObject({ completedIndexes: '1-2147483645' });
  });
});

describe('the indexes of a Job with a limit for each', () => {
  const ended = (name: string, index: number, before = 0, more: { phase?: PodPhase; secondsAgo?: number } = {}) => {
    const { phase = 'Failed', secondsAgo = 60 } = more;
    const annotations = {
      'batch.kubernetes.io/job-completion-index': `${index}`,
      'batch.kubernetes.io/job-index-failure-count': `${before}`,
    };
    const terminated = { exitCode: phase === 'Failed' ? 7 : 0, finishedAt: at(-secondsAgo) };
    const containerStatuses = [{ name: 'c', state: phase === 'Running' ? {} : { terminated } }];
    return pod(name, phase, { metadata: { annotations }, status: { containerStatuses } });
  };
  const running = (name: string, index: number, before = 0) => ended(name, index, before, { phase: 'Running' });
  const perIndex = (spec: JobSpec = {}, status: JobStatus = {}) =>
    jobOf(
      { completionMode: 'Indexed', completions: 3, parallelism: 3, backoffLimitPerIndex: 1, ...spec },
      { failedIndexes: '', ...status },
    );
  const statusOf = (job: KubeJob, pods: readonly JobPod[]) => {
    const decision = decideJob({ job, pods, failureCount: NO_FAILURES, nowMs: NOW_MS });
    return partStatus(job, decision.changes, decision, NOW_MS);
  };
  const policy = (action: string): JobSpec =>
    ({
      podFailurePolicy: { rules: [{ action, onExitCodes: { operator: 'In', values: [7] } }] },
      podReplacementPolicy: 'Failed',
    }) as JobSpec;

  it('are tried again, and the failed pod is counted only beside its replacement', () => {
    const first = decide(perIndex(), [ended('a', 1), running('b', 0)]);
    expect(first).toMatchObject({ createIndexes: [1, 2], changes: [], failureInputs: { failed: 1 } });
    expect(first.failuresOf.get(1)?.failures).toEqual({ counted: 1, ignored: 0 });
    const second = decide(perIndex(), [ended('a', 1), running('b', 0), running('c', 1, 1), running('d', 2)]);
    expect(second).toMatchObject({ create: 0, changes: ['a failed'] });
    expect(statusOf(perIndex(), [ended('a', 1), running('c', 1, 1)])).toEqual({ failed: 1, failedIndexes: '' });
  });

  it('count all failed pods but the last', () => {
    const { changes, failuresOf } = decide(perIndex({ backoffLimitPerIndex: 5 }), [
      ended('a', 1, 1),
      ended('b', 1, 2),
      ended('c', 1, 0),
    ]);
    expect([changes, failuresOf.get(1)?.failures]).toEqual([['a failed', 'c failed'], { counted: 3, ignored: 0 }]);
  });

  it('wait each by itself, whatever failed elsewhere', () => {
    const pods = [ended('a', 0, 0, { secondsAgo: 4 }), ended('b', 1, 0, { secondsAgo: 60 })];
    const failures = { failures: 9, lastEndedAtMs: NOW_MS };
    expect(decide(perIndex(), pods, failures)).toMatchObject({ createIndexes: [1, 2], lookAgainAtMs: NOW_MS + 6_000 });
    const waiting = decide(perIndex({ completions: 1 }), [ended('a', 0, 0, { secondsAgo: 4 })]);
    expect(waiting).toMatchObject({ create: 0, changes: [], lookAgainAtMs: NOW_MS + 6_000 });
  });

  it('fail beyond the limit, and are not tried again', () => {
    const job = perIndex({ completions: 4, parallelism: 2 }, { failedIndexes: '0' });
    const pods = [ended('a', 2, 1), running('b', 1)];
    expect(decide(job, pods)).toMatchObject({ createIndexes: [3], changes: ['a failed'], outcome: undefined });
    expect(statusOf(job, pods)).toEqual({ failed: 1, failedIndexes: '0,2' });
  });

  it('fail the Job when none is open, or too many failed', () => {
    const pods = [ended('a', 0, 1), ended('b', 1, 0, { phase: 'Succeeded' })];
    const open = decide(perIndex({ maxFailedIndexes: 1 }), pods);
    expect(open).toMatchObject({ outcome: undefined, createIndexes: [2] });
    expect(decide(perIndex({ completions: 2 }), pods)).toMatchObject({
      outcome: { reason: 'FailedIndexes' },
      changes: ['a failed', 'b succeeded'],
      isFinal: true,
    });
    expect(decide(perIndex({ maxFailedIndexes: 0 }), [...pods, running('c', 2)])).toMatchObject({
      outcome: { reason: 'MaxFailedIndexesExceeded' },
      changes: ['a failed', 'b succeeded', 'c failed removed'],
    });
  });

  it('release the pods that wait for a replacement with the end of the Job', () => {
    const waiting = [ended('a', 0), ended('b', 1, 1)];
    expect(decide(perIndex({ maxFailedIndexes: 0 }), waiting).changes).toEqual(['a failed', 'b failed']);
    const deleted = { ...perIndex(), metadata: { name: 'pi', uid: 'u', deletionTimestamp: at(0) } } as KubeJob;
    expect(decide(deleted, [ended('a', 0)]).changes).toEqual(['a failed']);
  });

  it('fail at once by a rule FailIndex, and never by one that ignores', () => {
    const failing = perIndex(policy('FailIndex'));
    expect(statusOf(failing, [ended('a', 0)])).toEqual({ failed: 1, failedIndexes: '0' });
    const ignoring = perIndex(policy('Ignore'));
    const { changes, failuresOf, failureInputs } = decide(ignoring, [ended('a', 0, 9)]);
    expect([changes, failureInputs.failed]).toEqual([[], 0]);
    expect(failuresOf.get(0)?.failures).toEqual({ counted: 9, ignored: 1 });
    expect(decide(ignoring, [ended('a', 0, 9), running('b', 0, 9)]).changes).toEqual(['a nothing']);
  });

  it('are never both failed and completed', () => {
    const both = [ended('a', 0, 1), ended('b', 0, 0, { phase: 'Succeeded' })];
    expect(statusOf(perIndex(), both)).toEqual({ failed: 1, succeeded: 1, completedIndexes: '0', failedIndexes: '' });
    const late = statusOf(perIndex({}, { failedIndexes: '0' }), [ended('b', 0, 0, { phase: 'Succeeded' })]);
    expect(late).toEqual({ failedIndexes: '0' });
  });

  it('do not matter without one', () => {
    const { changes, createIndexes } = decide(jobOf({ completionMode: 'Indexed', completions: 2, parallelism: 2 }), [
      ended('a', 0, 9),
    ]);
    expect([changes, createIndexes]).toEqual([['a failed'], [0, 1]]);
  });
});

describe('the success policy of a Job', () => {
  const indexed = (name: string, phase: PodPhase, index: number) =>
    pod(name, phase, { metadata: { annotations: { 'batch.kubernetes.io/job-completion-index': String(index) } } });
  const spec: JobSpec = {
    completionMode: 'Indexed',
    completions: 3,
    parallelism: 3,
    successPolicy: { rules: [{ succeededIndexes: '0,2', succeededCount: 1 }] },
  };

  it('that is met removes the other pods without counting them', () => {
    const pods = [indexed('a', 'Succeeded', 2), indexed('b', 'Running', 1), indexed('c', 'Failed', 0)];
    expect(decide(jobOf(spec), pods)).toMatchObject({
      outcome: { kind: 'Complete', reason: 'SuccessPolicy', message: 'Matched rules at index 0' },
      changes: ['a succeeded', 'b nothing removed', 'c failed'],
      create: 0,
      isFinal: false,
    });
  });

  it('that is not met, and a failure, change nothing', () => {
    expect(decide(jobOf(spec), [indexed('a', 'Succeeded', 1)]).outcome).toBeUndefined();
    const failed = decide(jobOf({ ...spec, backoffLimit: 0 }), [
      indexed('a', 'Succeeded', 2),
      indexed('b', 'Failed', 1),
    ]);
    expect(failed.outcome?.reason).toBe('BackoffLimitExceeded');
  });
});

describe('the end of a Job', () => {
  it('is complete when enough pods succeeded and none is active', () => {
    expect(decide(jobOf({ completions: 1 }), [pod('a', 'Succeeded')])).toMatchObject({
      outcome: { kind: 'Complete' },
      isFinal: true,
    });
    expect(
      decide(jobOf({ completions: 1, parallelism: 1 }), [pod('a', 'Succeeded'), pod('b', 'Running')]),
    ).toMatchObject({
      outcome: { kind: 'Complete' },
      changes: ['a succeeded', 'b nothing removed'],
      isFinal: false,
    });
    expect(decide(jobOf({ parallelism: 2 }), [pod('a', 'Succeeded'), pod('b', 'Running')]).outcome).toBeUndefined();
    expect(decide(jobOf({ completions: 2 }), [pod('a', 'Succeeded')]).outcome).toBeUndefined();
  });

  it('is not decided for a Job that is being deleted: its pods are released', () => {
    const deleted = jobOf({ completions: 1 }, {}, { deletionTimestamp: at(0) });
    expect(decide(deleted, [pod('a', 'Running'), untracked('b', 'Running')])).toMatchObject({
      outcome: undefined,
      changes: ['a nothing'],
      create: 0,
    });
    expect(decide(deleted, [pod('a', 'Succeeded')])).toMatchObject({ outcome: undefined, changes: ['a succeeded'] });
  });

  it('is a failure beyond the limit of failures: active pods are removed and counted', () => {
    const failed = decide(jobOf({ backoffLimit: 1, completions: 5 }, { failed: 1 }), [
      pod('a', 'Failed'),
      pod('b', 'Running'),
      untracked('c', 'Running'),
    ]);
    expect(failed).toMatchObject({
      outcome: { kind: 'Failed', reason: 'BackoffLimitExceeded' },
      create: 0,
      isFinal: false,
    });
    expect(failed.changes).toEqual(['a failed', 'b failed removed', 'c nothing removed']);
    expect(decide(jobOf({ completions: 5 }, { failed: 5 }), [pod('a', 'Failed')]).outcome).toBeUndefined();
    expect(decide(jobOf({ completions: 5 }, { failed: 6 }), [pod('a', 'Failed')]).outcome?.kind).toBe('Failed');
  });

  it('waits for pods on nodes, and for none without', () => {
    const limits = jobOf({ backoffLimit: 0 }, { failed: 1 });
    expect(decide(limits, [pod('a', 'Running')]).isFinal).toBe(false);
    expect(decide(limits, [pod('a', 'Pending', { spec: { nodeName: '' } })]).isFinal).toBe(true);
    expect(decide(limits, [terminating('a')]).isFinal).toBe(false);
    expect(decide(limits, []).isFinal).toBe(true);
  });

  it('is a failure after its deadline, from its start', () => {
    const job = (seconds: number, more: JobSpec = {}) =>
      jobOf({ activeDeadlineSeconds: 60, completions: 1, ...more }, { startTime: at(-seconds) });
    expect(decide(job(59))).toMatchObject({ outcome: undefined, lookAgainAtMs: NOW_MS + 1_000 });
    expect(decide(job(60))).toMatchObject({ outcome: { reason: 'DeadlineExceeded' } });
    expect(decide(job(60)).lookAgainAtMs).toBeUndefined();
    expect(decide(job(99, { suspend: true })).outcome).toBeUndefined();
  });

  it('counts restarts of pods that restart in place', () => {
    const restarting = (restartPolicy: string) =>
      decide(jobOf({ backoffLimit: 3, template: { spec: { restartPolicy } } } as unknown as JobSpec), [
        pod('a', 'Running', { status: { containerStatuses: [{ restartCount: 2 }] } }),
        pod('b', 'Pending', { status: { containerStatuses: [{ restartCount: 1 }] } }),
        pod('c', 'Succeeded', { status: { containerStatuses: [{ restartCount: 9 }] } }),
      ]);
    expect(restarting('OnFailure')).toMatchObject({ failureInputs: { restarts: 3 }, outcome: { kind: 'Failed' } });
    expect(restarting('Never').failureInputs.restarts).toBeUndefined();
  });

  it('that was stored is final', () => {
    const conditions = [{ type: 'FailureTarget', status: 'True', reason: 'r', message: 'm' }];
    expect(
      decide(jobOf({ completions: 1 }, { conditions } as unknown as JobStatus), [pod('a', 'Succeeded')]),
    ).toMatchObject({
      outcome: { kind: 'Failed', reason: 'r' },
      changes: ['a succeeded'],
    });
  });

  it('follows from a rule for failed pods', () => {
    const podFailurePolicy = { rules: [{ action: 'FailJob', onExitCodes: { operator: 'In', values: [7] } }] };
    const exited = (exitCode: number) =>
      pod('a', 'Failed', { status: { containerStatuses: [{ name: 'c', state: { terminated: { exitCode } } }] } });
    const job = jobOf({ completions: 1, podFailurePolicy } as unknown as JobSpec);
    expect(decide(job, [exited(7)]).outcome?.reason).toBe('PodFailurePolicy');
    expect(decide(job, [exited(8)]).outcome).toBeUndefined();
  });

  it('is reported with more successes than wanted', () => {
    expect(decide(jobOf({ completions: 1 }, { succeeded: 1 }), [pod('a', 'Succeeded')]).hasTooManySuccesses).toBe(true);
    expect(decide(jobOf({ completions: 2 }, { succeeded: 1 }), [pod('a', 'Succeeded')]).hasTooManySuccesses).toBe(
      false,
    );
    expect(decide(jobOf({}, { succeeded: 1 }), [pod('a', 'Succeeded')]).hasTooManySuccesses).toBe(false);
  });
});

describe('the suspension of a Job', () => {
  const conditions = (status: string) => ({ conditions: [{ type: 'Suspended', status }] }) as unknown as JobStatus;
  it.each<[JobSpec, JobStatus, string | undefined]>([
    [{ suspend: true }, {}, 'suspended'],
    [{ suspend: true }, conditions('True'), undefined],
    [{ suspend: true }, conditions('False'), 'suspended'],
    [{ suspend: false }, conditions('True'), 'resumed'],
    [{ suspend: false }, {}, undefined],
  ])('%j after %j: %s', (spec, status, expected) => {
    expect(decide(jobOf({ completions: 1, ...spec }, status)).suspension).toBe(expected);
  });

  it('does not count as time of a resumed Job', () => {
    const started = (spec: JobSpec, status: JobStatus) =>
      decide(jobOf({ completions: 1, ...spec }, status)).startedAtMs;
    expect(started({}, {})).toBe(NOW_MS);
    expect(started({ suspend: true }, {})).toBeUndefined();
    expect(started({}, { startTime: at(-60) })).toBe(NOW_MS - 60_000);
    expect(started({}, { ...conditions('True'), startTime: at(-60) })).toBe(NOW_MS);
    expect(started({ suspend: true }, { ...conditions('True'), startTime: at(-60) })).toBe(NOW_MS - 60_000);
  });
});

describe('the status of a Job', () => {
  const statusAfter = (job: KubeJob, pods: readonly JobPod[], created = 0) => {
    const decision = decideJob({ job, pods, failureCount: NO_FAILURES, nowMs: NOW_MS });
    return {
      part: partStatus(job, decision.changes, decision, NOW_MS),
      final: finalStatus({ job, pods, nowMs: NOW_MS }, decision, created),
    };
  };

  it('has the counts of the changes that were committed', () => {
    const pods = [pod('a', 'Succeeded'), pod('b', 'Failed'), pod('c', 'Running')];
    const { part } = statusAfter(jobOf({ completions: 9 }, { succeeded: 2, failed: 1 }), pods);
    expect(part).toEqual({ succeeded: 3, failed: 2 });
    expect(statusAfter(jobOf({ completions: 9 }), [pod('c', 'Running')]).part).toEqual({});
  });

  it('of an Indexed Job has its completed indexes', () => {
    const indexed = (name: string, index: number) =>
      pod(name, 'Succeeded', {
        metadata: { annotations: { 'batch.kubernetes.io/job-completion-index': String(index) } },
      });
    const { part } = statusAfter(
      jobOf({ completionMode: 'Indexed', completions: 9 }, { completedIndexes: '0,1', succeeded: 2 }),
      [indexed('a', 2), indexed('b', 5)],
    );
    expect(part).toEqual({ completedIndexes: '0-2,5', succeeded: 4 });
  });

  it('counts active, Ready and terminating pods', () => {
    const ready = pod('a', 'Running', { status: { conditions: [{ type: 'Ready', status: 'True' }] } });
    const { final } = statusAfter(
      jobOf({ parallelism: 4, completions: 9 }),
      [ready, pod('b', 'Running'), terminating('c')],
      2,
    );
    expect(final).toEqual({ active: 4, ready: 1, terminating: 1, uncountedTerminatedPods: {}, startTime: at(0) });
    expect(statusAfter(jobOf({ parallelism: 0, completions: 9 }), [pod('a', 'Running')]).final).toMatchObject({
      terminating: 1,
      ready: 0,
    });
    expect(statusAfter(jobOf({ parallelism: 0, completions: 9 }, { active: 3 }), []).final).not.toHaveProperty(
      'active',
    );
  });

  it('has the time of its completion, and the conditions of its end', () => {
    const complete = statusAfter(jobOf({ completions: 1 }), [pod('a', 'Succeeded')]);
    expect(complete.final.completionTime).toBe(at(0));
    expect(complete.final.conditions?.map(({ type }) => type)).toEqual(['SuccessCriteriaMet', 'Complete']);
    expect(complete.part.conditions?.map(({ type }) => type)).toEqual(['SuccessCriteriaMet']);
    const failed = statusAfter(jobOf({ backoffLimit: 0 }, { failed: 1 }), []);
    expect(
      failed.final.conditions?.map(({ type, status, lastTransitionTime }) => [type, status, lastTransitionTime]),
    ).toEqual([
      ['FailureTarget', 'True', at(0)],
      ['Failed', 'True', at(0)],
    ]);
    expect(failed.final).not.toHaveProperty('completionTime');
    const known = statusAfter(jobOf({ completions: 1 }, { completionTime: at(-9) }), [pod('a', 'Succeeded')]);
    expect(known.final.completionTime).toBe(at(-9));
  });

  it('has one condition for its suspension', () => {
    const suspended = statusAfter(jobOf({ suspend: true, completions: 1 }), []).final.conditions;
    expect(suspended).toMatchObject([
      { type: 'Suspended', status: 'True', reason: 'JobSuspended', lastProbeTime: at(0) },
    ]);
    const resumed = statusAfter(jobOf({ completions: 1 }, { conditions: suspended } as JobStatus), []).final.conditions;
    expect(resumed).toMatchObject([{ type: 'Suspended', status: 'False', reason: 'JobResumed' }]);
  });
});
