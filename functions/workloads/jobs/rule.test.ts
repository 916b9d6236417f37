import { describe, expect, it } from 'vitest';
import { OFFLINE_STOP_AFTER } from '../../../shared/kinds/pods/offline-stop.ts';
import type { JobSpec, JobStatus, KubePod, PodPhase } from '../../../shared/kinds/types.ts';
import { NO_FAILURES } from './failures.rule.ts';
import { INDEX } from './indexes.rule.ts';
import { jobPodOf } from './job-pods.rule.ts';
import { verdictOf } from './policies.rule.ts';
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
});

describe('a terminating pod that must not run twice', () => {
  const terminating = (name: string, graceSeconds: number, index?: number): KubePod => {
    const running = pod(name, 'Running', index);
    return {
      ...running,
      metadata: {
        ...running.metadata,
        annotations: { ...running.metadata.annotations, [OFFLINE_STOP_AFTER]: '2h' },
        deletionTimestamp: '2026-01-01T00:00:00Z',
        deletionGracePeriodSeconds: graceSeconds,
      },
    };
  };

  it('has not failed, and is not replaced, until its machine confirms the end or it is removed', () => {
    const spec = { parallelism: 2, completions: 2 };
    expect(decide(spec, [terminating('a', 30), pod('b', 'Running')])).toMatchObject({ create: 0, changes: [] });
    expect(decide(spec, [terminating('a', 0), pod('b', 'Running')]).changes).toMatchObject([
      { pod: { name: 'a' }, count: 'failed', remove: false },
    ]);
  });

  it('keeps its index, beside one that is replaced', () => {
    const other = terminating('b', 30, 1);
    other.metadata.annotations = { [INDEX]: '1' };
    const spec = { parallelism: 3, completions: 3, completionMode: 'Indexed' };
    expect(decide(spec, [terminating('a', 30, 0), other]).createIndexes).toEqual([1, 2]);
  });
});

describe('the rules for failed pods', () => {
  const policy = (operator: string, values: number[]) => ({
    rules: [{ action: 'Ignore', onExitCodes: { operator, values } }],
  });
  const failed = (...codes: number[]) => {
    const containerStatuses = codes.map((exitCode) => ({ name: 'c', state: { terminated: { exitCode } } }));
    return jobPodOf({ ...pod('a', 'Failed'), status: { phase: 'Failed', containerStatuses } });
  };

  it('WJ-41 ignore a container with exit code 0', () => {
    expect(verdictOf(policy('NotIn', [1, 2]), failed(0, 5))).toEqual({ kind: 'ignored' });
    expect(verdictOf(policy('NotIn', [5]), failed(0, 5))).toEqual({ kind: 'counts' });
    expect(verdictOf(policy('In', [0]), failed(0, 5))).toEqual({ kind: 'counts' });
  });
});
