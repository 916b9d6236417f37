import { describe, expect, it } from 'vitest';
import type { JobSpec, JobStatus, KubePod, PodPhase } from '../../../shared/kinds/types.ts';
import { NO_FAILURES } from './backoff.rule.ts';
import { verdictOf } from './failure-policy.rule.ts';
import { INDEX } from './indexes.rule.ts';
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
