import { describe, expect, it } from 'vitest';
import type { ContainerState, JobSpec, JobStatus, KubePod, PodPhase } from '../../../shared/kinds/types.ts';
import { afterEnds, mayCreateFromMs, NO_FAILURES } from './backoff.rule.ts';
import { verdictOf } from './failure-policy.rule.ts';
import { formatIndexes, INDEX, lowestFree, parseIndexes } from './indexes.rule.ts';
import { jobPodOf } from './job-pod.rule.ts';
import { decideJob } from './rule.ts';

const NOW_MS = Date.UTC(2026, 0, 1);

const pod = (name: string, phase: PodPhase, index?: number): KubePod => ({
  metadata: {
    name,
    namespace: 'default',
    uid: name,
    finalizers: ['batch.kubernetes.io/job-tracking'],
    ...(index === undefined ? {} : { annotations: { [INDEX]: String(index) } }),
  },
  spec: { nodeName: 'n1' },
  status: { phase },
});

const decide = (spec: JobSpec, pods: readonly KubePod[], status: JobStatus = {}) =>
  decideJob({
    job: { metadata: { name: 'pi', uid: 'u' }, spec, status },
    pods: pods.map(jobPodOf),
    failureCount: NO_FAILURES,
    nowMs: NOW_MS,
  });

describe('the pods of an Indexed Job', () => {
  it('WJ-35 keep one pod for each index, and none without an index', () => {
    const { changes, create } = decide({ parallelism: 5, completions: 5, completionMode: 'Indexed' }, [
      pod('a', 'Succeeded', 0),
      pod('b', 'Running', 1),
      pod('c', 'Running', 2),
      pod('d', 'Pending', 2),
      pod('e', 'Running'),
    ]);
    expect(changes.filter(({ remove }) => remove).map((change) => change.pod.name)).toEqual(['d', 'e']);
    expect(changes.find(({ count }) => count === 'succeeded')?.pod.name).toBe('a');
    expect(create).toBe(0);
  });

  it('do not count an index twice, nor one out of range', () => {
    const spec = { parallelism: 3, completions: 3, completionMode: 'Indexed' };
    const pods = [pod('a', 'Succeeded', 0), pod('b', 'Succeeded', 0), pod('c', 'Succeeded', 7)];
    expect(decide(spec, pods, { completedIndexes: '1', succeeded: 1 }).succeeded).toBe(2);
  });

  it.each([
    [[], ''],
    [[3], '3'],
    [[0, 1], '0,1'],
    [[7, 2, 0, 3, 4], '0,2-4,7'],
  ])('are written %j as "%s" and read again', (indexes, text) => {
    expect(formatIndexes(indexes)).toBe(text);
    expect([...parseIndexes(text, 100)]).toEqual(indexes.toSorted((one, other) => one - other));
  });

  it('do not read a text beyond the completions', () => {
    expect([...parseIndexes('0-999999999,x,5', 3)]).toEqual([0, 1, 2]);
    expect(lowestFree(new Set([0, 2]), 5, 4)).toEqual([1, 3]);
  });
});

describe('the wait after failures', () => {
  const failedAt = (count: number, atMs: number) => ({ succeededAtMs: [], failedAtMs: Array(count).fill(atMs) });

  it.each([
    [1, 10],
    [2, 20],
    [6, 320],
    [7, 600],
  ])('is after %i failures %i seconds', (failures, seconds) => {
    expect(mayCreateFromMs(afterEnds(NO_FAILURES, failedAt(failures, 0)))).toBe(seconds * 1_000);
  });

  it('WJ-21 is ten minutes at most', () => {
    expect(mayCreateFromMs(afterEnds(NO_FAILURES, failedAt(8, 0)))).toBe(600_000);
  });

  it('begins anew with a success', () => {
    const before = afterEnds(NO_FAILURES, failedAt(4, 1_000));
    expect(afterEnds(before, { succeededAtMs: [5_000], failedAtMs: [4_000, 6_000] })).toEqual({
      failures: 1,
      lastEndedAtMs: 6_000,
    });
    expect(afterEnds(before, { succeededAtMs: [5_000], failedAtMs: [] })).toEqual(NO_FAILURES);
  });
});

describe('the rules for failed pods', () => {
  const ended = (exitCode: number): ContainerState => ({ terminated: { exitCode } });
  const policy = (operator: string, values: number[], containerName?: string) => ({
    rules: [{ action: 'Ignore', onExitCodes: { operator, values, ...(containerName && { containerName }) } }],
  });
  const failed = (...codes: number[]) => {
    const containerStatuses = codes.map((code, position) => ({ name: `c${position}`, state: ended(code) }));
    return jobPodOf({ ...pod('a', 'Failed'), status: { phase: 'Failed', containerStatuses } });
  };

  it('WJ-41 ignore a container with exit code 0', () => {
    expect(verdictOf(policy('NotIn', [1, 2]), failed(0, 5))).toEqual({ kind: 'ignored' });
    expect(verdictOf(policy('NotIn', [5]), failed(0, 5))).toEqual({ kind: 'counts' });
    expect(verdictOf(policy('In', [0]), failed(0, 5))).toEqual({ kind: 'counts' });
  });

  it('look at one container if the rule names it', () => {
    expect(verdictOf(policy('In', [5], 'c0'), failed(0, 5))).toEqual({ kind: 'counts' });
    expect(verdictOf(policy('In', [5], 'c1'), failed(0, 5))).toEqual({ kind: 'ignored' });
  });

  it('use the first one that applies', () => {
    const rules = [
      { action: 'Count', onPodConditions: [{ type: 'DisruptionTarget' }] },
      { action: 'Ignore', onExitCodes: { operator: 'NotIn', values: [0] } },
    ];
    const disrupted = { ...failed(5), conditions: [{ type: 'DisruptionTarget', status: 'True' }] };
    expect(verdictOf({ rules }, disrupted)).toEqual({ kind: 'counts' });
    expect(verdictOf({ rules }, failed(5))).toEqual({ kind: 'ignored' });
  });
});

describe('the end of a pod', () => {
  const at = (seconds: number) => new Date(NOW_MS + seconds * 1_000).toISOString();
  const endOf = (more: Pick<KubePod, 'status'> & { deletionTimestamp?: string }) => {
    const { deletionTimestamp, ...rest } = more;
    const metadata = {
      ...pod('a', 'Failed').metadata,
      creationTimestamp: at(0),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp, deletionGracePeriodSeconds: 30 }),
    };
    return jobPodOf({ ...rest, metadata }).endedAtMs - NOW_MS;
  };

  it('is that of its last container, else the end of Ready, else the begin of its deletion, else its creation', () => {
    const conditions = [{ type: 'Ready', status: 'False' as const, lastTransitionTime: at(20) }];
    const ends = (...seconds: (number | undefined)[]) =>
      seconds.map((each) => (each === undefined ? {} : { state: { terminated: { finishedAt: at(each) } } }));
    expect(endOf({ status: { conditions, containerStatuses: ends(10, 12) } })).toBe(12_000);
    expect(endOf({ status: { conditions, containerStatuses: ends(10, undefined) } })).toBe(20_000);
    expect(endOf({ status: {}, deletionTimestamp: at(70) })).toBe(40_000);
    expect(endOf({ status: {} })).toBe(0);
  });
});
