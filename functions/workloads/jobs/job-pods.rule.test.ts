/** Pods of a Job: what is read of them, which count as failed, and which are removed first. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KubeJob, KubePod } from '../../../shared/kinds/types.ts';
import { type Criterion, ownedPod, pairAt } from '../../../test/support/owned-pod.ts';
import { afterEnds, mayCreateFromMs, NO_FAILURES, NO_INDEX_FAILURES } from './failures.rule.ts';
import {
  countOf,
  countShared,
  formatIndexes,
  hasIndex,
  INDEX,
  indexOf,
  lowestFree,
  parseIndexes,
  withIndexes,
} from './indexes.rule.ts';
import { hasFailed, isTerminating, type JobPod, jobPodOf, podTemplateOf, removedFirst } from './job-pods.rule.ts';
import { verdictOf } from './policies.rule.ts';

const podOf = (more: Partial<JobPod> = {}): JobPod => ({
  ...ownedPod(),
  ...{ isTracked: true, isAwaited: false, index: undefined, failuresBefore: NO_INDEX_FAILURES, restarts: 0 },
  ...{ endedAtMs: 0, failedContainers: [], conditions: [], ...more },
});

describe('of two pods of a Job is removed first', () => {
  /** The most important one first. */
  const CRITERIA: readonly Criterion<JobPod>[] = [
    [{ nodeName: '' }, { nodeName: 'n1' }],
    [{ phase: 'Pending' }, { phase: 'Unknown' }],
    [{ ready: false }, { ready: true }],
    [{ restartsMax: 2 }, { restartsMax: 1 }],
    [{ createdAtMs: 2 }, { createdAtMs: 1 }],
    [{ name: 'a' }, { name: 'b' }],
  ];
  const firstOf = (pods: readonly JobPod[]) => removedFirst(pods, 1, undefined)[0];

  it.each(CRITERIA.map((criterion, rank) => [criterion[0], rank] as const))(
    'that with %j, whatever the less important criteria say',
    (_, rank) => {
      const [first, later] = pairAt(CRITERIA, rank).map(podOf) as [JobPod, JobPod];
      expect(firstOf([first, later])).toBe(first);
      expect(firstOf([later, first])).toBe(first);
    },
  );

  it.each([
    ['in an unknown phase, before one that runs', { phase: 'Unknown' }, { phase: 'Running', name: 'a' }],
    ['that became Ready later', { readyChangedAtMs: 2 }, { readyChangedAtMs: 1, restartsMax: 5 }],
    ['with an unknown time of its readiness', { readyChangedAtMs: undefined }, { readyChangedAtMs: 9_999 }],
    ['with an unknown time of its creation', { createdAtMs: undefined }, { createdAtMs: 9_999 }],
  ] as const)('that %s', (_, one, other) => {
    const [first, later] = [podOf({ name: 'z', ...one }), podOf({ name: 'y', ...other })];
    expect(firstOf([later, first])).toBe(first);
    expect(firstOf([first, later])).toBe(first);
  });

  it('neither one for a time of readiness while they are not Ready, nor for a phase after Running', () => {
    const late = podOf({ name: 'z', ready: false, readyChangedAtMs: 2 });
    const early = podOf({ name: 'a', ready: false, readyChangedAtMs: 1 });
    expect(firstOf([late, early])).toBe(early);
    const failed = podOf({ name: 'z', phase: 'Failed' });
    for (const phase of ['Running', 'Succeeded'] as const) {
      const other = podOf({ name: 'a', phase });
      expect(firstOf([failed, other])).toBe(other);
    }
  });
});

describe('pods of an Indexed Job', () => {
  const pods = [
    podOf({ name: 'e' }),
    podOf({ name: 'd', index: 2 }),
    podOf({ name: 'c', index: 1 }),
    podOf({ name: 'b', index: 0 }),
    podOf({ name: 'a', index: 0 }),
  ];
  const names = (count: number, completions: number | undefined) =>
    removedFirst(pods, count, completions).map(({ name }) => name);

  it('are all removed without an index in range, and all but one of each index, whatever the count', () => {
    expect(names(0, 2)).toEqual(['a', 'd', 'e']);
    expect(names(3, 2)).toEqual(['a', 'd', 'e']);
    expect(names(4, 2)).toEqual(['a', 'd', 'e', 'b']);
    expect(names(5, 2)).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(names(1, 3)).toEqual(['a', 'e']);
  });

  it('are removed by the order alone when the Job has no indexes', () => {
    expect(names(2, undefined)).toEqual(['a', 'b']);
    expect(names(0, undefined)).toEqual([]);
  });
});

describe('a failed pod', () => {
  const failed = podOf({
    namespace: 'ns',
    failedContainers: [
      { name: 'main', exitCode: 3 },
      { name: 'side', exitCode: 7 },
    ],
    conditions: [
      { type: 'DisruptionTarget', status: 'True' },
      { type: 'Odd', status: 'False' },
    ],
  });
  const codes = (operator: string, values: number[] | undefined, containerName?: string) => ({
    onExitCodes: { operator, values, ...(containerName === undefined ? {} : { containerName }) },
  });
  const verdict = (...rules: object[]) => verdictOf({ rules } as never, failed);

  it('counts without a policy, and without a rule that applies', () => {
    expect(verdictOf(undefined, failed)).toEqual({ kind: 'counts' });
    expect(verdict()).toEqual({ kind: 'counts' });
    expect(verdict({ action: 'Ignore' })).toEqual({ kind: 'counts' });
  });

  it.each([
    [codes('In', [3]), true],
    [codes('In', [7]), true],
    [codes('In', [4]), false],
    [codes('In', undefined), false],
    [codes('NotIn', [3, 7]), false],
    [codes('NotIn', [3]), true],
    [codes('Other', [3]), false],
    [codes('In', [3], 'main'), true],
    [codes('In', [3], 'side'), false],
    [{ onPodConditions: [{ type: 'DisruptionTarget' }] }, true],
    [{ onPodConditions: [{ type: 'DisruptionTarget', status: 'True' }] }, true],
    [{ onPodConditions: [{ type: 'DisruptionTarget', status: 'False' }] }, false],
    [{ onPodConditions: [{ type: 'Odd' }] }, false],
    [{ onPodConditions: [{ type: 'Odd', status: 'False' }] }, true],
    [{ onPodConditions: [] }, false],
    // Exit codes decide where a rule has both.
    [{ ...codes('In', [4]), onPodConditions: [{ type: 'DisruptionTarget' }] }, false],
  ])('matches %j: %s', (rule, isMatched) => {
    expect(verdict({ ...rule, action: 'Ignore' })).toEqual({ kind: isMatched ? 'ignored' : 'counts' });
  });

  it('fails the Job with the cause and the position of the rule', () => {
    const no = { action: 'Ignore', ...codes('In', [9]) };
    expect(verdict(no, { action: 'FailJob', ...codes('NotIn', [3]) })).toEqual({
      kind: 'failsJob',
      message: 'Container side for pod ns/p failed with exit code 7 matching FailJob rule at index 1',
    });
    expect(verdict({ action: 'FailJob', onPodConditions: [{ type: 'DisruptionTarget' }] })).toEqual({
      kind: 'failsJob',
      message: 'Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0',
    });
  });

  it('is decided by the first rule that applies', () => {
    const matching = codes('In', [3]);
    expect(verdict({ action: 'Count', ...matching }, { action: 'Ignore', ...matching })).toEqual({ kind: 'counts' });
    expect(verdict({ action: 'FailIndex', ...matching })).toEqual({ kind: 'failsIndex' });
    expect(verdict({ action: 'Ignore', ...matching }, { action: 'FailJob', ...matching })).toEqual({ kind: 'ignored' });
  });
});

describe('what is read of a pod', () => {
  const at = (second: number): string => `2026-01-01T00:00:${String(second).padStart(2, '0')}Z`;
  const ms = (second: number): number => Date.UTC(2026, 0, 1, 0, 0, second);
  const ended = (finishedAt: string | undefined, exitCode: number, name = 'c') => ({
    name,
    restartCount: 2,
    state: { terminated: { exitCode, ...(finishedAt === undefined ? {} : { finishedAt }) } },
  });
  const made = (pod: object) =>
    jobPodOf({ ...(pod as KubePod), metadata: { name: 'p', ...(pod as KubePod).metadata } });

  it('has its restarts and failures of all containers, its index and its conditions', () => {
    const pod = made({
      metadata: { annotations: { [INDEX]: '7' }, finalizers: ['batch.kubernetes.io/job-tracking'] },
      status: {
        containerStatuses: [ended(at(1), 3, 'main'), { name: 'up', restartCount: 1, state: { running: {} } }],
        initContainerStatuses: [ended(at(1), 0, 'fine'), ended(at(1), 9, 'init'), { state: {} }],
        conditions: [{ type: 'X', status: 'True', reason: 'left out' }],
      },
    });
    expect(pod).toMatchObject({ isTracked: true, isAwaited: false, index: 7, restarts: 7 });
    expect(pod.failedContainers).toEqual([
      { name: 'main', exitCode: 3 },
      { name: 'init', exitCode: 9 },
    ]);
    expect(pod.conditions).toEqual([{ type: 'X', status: 'True' }]);
    expect(made({})).toMatchObject({ isTracked: false, index: undefined, restarts: 0, failedContainers: [] });
  });

  it.each([
    ['no deletion', {}, false],
    ['a deletion with a grace period', { deletionTimestamp: at(1), deletionGracePeriodSeconds: 1 }, true],
    ['a deletion at its end', { deletionTimestamp: at(1), deletionGracePeriodSeconds: 0 }, false],
    ['a deletion without a grace period', { deletionTimestamp: at(1) }, false],
  ])('says after %s whether its node must confirm the end', (_, metadata, isAwaited) => {
    expect(made({ metadata }).isAwaited).toBe(isAwaited);
  });

  const notReady = { type: 'Ready', status: 'False', lastTransitionTime: at(20) };
  const deletion = { deletionTimestamp: at(40), deletionGracePeriodSeconds: 10, creationTimestamp: at(5) };
  it.each([
    ['the latest end of its containers', { status: { containerStatuses: [ended(at(9), 0), ended(at(11), 0)] } }, 11],
    [
      'the moment at which it stopped being Ready while a container has not ended',
      { status: { containerStatuses: [ended(at(9), 0), { name: 'c' }], conditions: [notReady] } },
      20,
    ],
    [
      'the same when an end has no time',
      { status: { containerStatuses: [ended(undefined, 0)], conditions: [notReady] } },
      20,
    ],
    ['the begin of its deletion', { metadata: deletion, status: {} }, 30],
    [
      'the begin of its deletion while it is Ready',
      { metadata: deletion, status: { conditions: [{ ...notReady, status: 'True' }] } },
      30,
    ],
    ['its deletion without a grace period', { metadata: { deletionTimestamp: at(40) } }, 40],
    ['its creation', { metadata: { creationTimestamp: at(5) }, status: { containerStatuses: [] } }, 5],
  ])('ended at %s', (_, pod, second) => {
    expect(made(pod).endedAtMs).toBe(ms(second));
  });

  it('has no end without any time', () => {
    expect(made({}).endedAtMs).toBe(0);
  });

  it.each([
    ['Failed', false, false, [true, true]],
    ['Running', false, false, [false, false]],
    ['Running', true, true, [false, true]],
    ['Running', true, false, [true, true]],
    ['Succeeded', true, false, [false, false]],
    ['Succeeded', true, true, [false, false]],
    ['Failed', true, true, [true, true]],
  ] as const)('in phase %s, being deleted %s, awaited %s, has failed: %j', (phase, isDeleting, isAwaited, failed) => {
    const pod = { phase, isDeleting, isAwaited };
    expect([hasFailed(pod, false), hasFailed(pod, true)]).toEqual(failed);
    expect(isTerminating(pod)).toBe(isAwaited && phase === 'Running');
  });
});

describe('the wait of a Job', () => {
  it('counts failures since the last success', () => {
    const before = { failures: 2, lastEndedAtMs: 50 };
    const counted = (succeededAtMs: number[], failedAtMs: number[]) => afterEnds(before, { succeededAtMs, failedAtMs });
    expect(counted([], [])).toBe(before);
    expect(counted([], [70, 60])).toEqual({ failures: 4, lastEndedAtMs: 70 });
    expect(counted([60, 40], [])).toEqual(NO_FAILURES);
    expect(counted([60], [60, 50])).toEqual(NO_FAILURES);
    expect(counted([40, 60], [61, 60, 70])).toEqual({ failures: 2, lastEndedAtMs: 70 });
  });

  it.each([
    [1, 10_000],
    [2, 20_000],
    [6, 320_000],
    [7, 600_000],
    [50, 600_000],
  ])('WJ-21 after %i failures is %i ms', (failures, waitMs) => {
    expect(mayCreateFromMs({ failures, lastEndedAtMs: 1_000 })).toBe(1_000 + waitMs);
  });

  it('is none without a failure', () => {
    expect(mayCreateFromMs(NO_FAILURES)).toBe(Number.NEGATIVE_INFINITY);
  });
});

describe('indexes', () => {
  it.each([
    [[], ''],
    [[3], '3'],
    [[4, 3], '3,4'],
    [[0, 2, 1], '0-2'],
    [[9, 1, 2, 3, 5, 6], '1-3,5,6,9'],
  ])('%j are written %j', (indexes, text) => {
    expect(formatIndexes(withIndexes([], indexes))).toBe(text);
  });

  it('are read as they were written, below the completions', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.nat(40)), fc.nat(45), (indexes, completions) => {
        const read = parseIndexes(formatIndexes(withIndexes([], indexes)), completions);
        expect(read).toEqual(
          withIndexes(
            [],
            indexes.filter((index) => index < completions),
          ),
        );
      }),
    );
  });

  it('as intervals are the same as one by one', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(30)), fc.array(fc.nat(30)), fc.nat(30), (left, right, count) => {
        const [one, other] = [withIndexes([], left), withIndexes([], right)];
        const all = Array.from({ length: 25 }, (_, index) => index);
        expect(countOf(one)).toBe(new Set(left).size);
        expect(all.filter((index) => hasIndex(one, index))).toEqual(all.filter((index) => left.includes(index)));
        expect(countShared(one, other)).toBe(new Set(left.filter((index) => right.includes(index))).size);
        const free = all.filter((index) => !left.includes(index) && !right.includes(index));
        expect(lowestFree([one, other], count, all.length)).toEqual(free.slice(0, count));
      }),
    );
  });

  it.each([undefined, '', 'a', '1-', '-1', '1-2-3', '1234567890', '5-3'])('in the text %j are none', (text) => {
    expect(parseIndexes(text, 100)).toEqual([]);
  });

  it('are read of a text with other parts, and none beyond the completions', () => {
    expect(parseIndexes('x,2,4-999999999,1-', 6)).toEqual([
      [2, 2],
      [4, 5],
    ]);
  });

  it.each([
    ['7', 7],
    ['007', 7],
    ['2147483646', 2_147_483_646],
    ['12345678901', undefined],
    ['-1', undefined],
    ['1x', undefined],
    ['', undefined],
  ])('of a pod in the annotation %j is %s', (text, index) => {
    expect(indexOf({ [INDEX]: text })).toBe(index);
  });

  it('of a pod without annotations is none', () => {
    expect([indexOf(undefined), indexOf({})]).toEqual([undefined, undefined]);
  });

  it.each([
    [2, 5, [1, 3]],
    [9, 4, [1, 3]],
    [1, 1, []],
    [0, 5, []],
  ])('that are free: the lowest %i of %i', (count, completions, free) => {
    expect(lowestFree([[[0, 0]], [[2, 2]]], count, completions)).toEqual(free);
  });
});

const TRACKING = 'batch.kubernetes.io/job-tracking';
const INDEX_KEY = 'batch.kubernetes.io/job-completion-index';
const fieldRef = { apiVersion: 'v1', fieldPath: `metadata.labels['${INDEX_KEY}']` };
const variable = { name: 'JOB_COMPLETION_INDEX', valueFrom: { fieldRef } };
const jobOf = (template: object | undefined) =>
  ({ metadata: { name: 'j' }, spec: template && { template } }) as unknown as KubeJob;

describe('the template of the pods of a Job', () => {
  it('has the finalizer once, last, and all else as it is', () => {
    const template = { metadata: { labels: { a: 'b' }, finalizers: [TRACKING, 'own'] }, spec: { hostNetwork: true } };
    const finalizers = ['own', TRACKING];
    expect(podTemplateOf(jobOf(template), undefined)).toEqual({
      ...template,
      metadata: { labels: { a: 'b' }, finalizers },
    });
    expect(podTemplateOf(jobOf(undefined), undefined)).toEqual({ metadata: { finalizers: [TRACKING] } });
  });

  it('has the failures of the index, with a limit for each', () => {
    const job = { metadata: { name: 'j' }, spec: { backoffLimitPerIndex: 1, template: {} } } as unknown as KubeJob;
    const counted = 'batch.kubernetes.io/job-index-failure-count';
    const ignored = 'batch.kubernetes.io/job-index-ignored-failure-count';
    expect(podTemplateOf(job, 2).metadata?.annotations).toEqual({ [INDEX_KEY]: '2', [counted]: '0' });
    expect(podTemplateOf(job, 2, { counted: 1, ignored: 3 }).metadata?.annotations).toEqual({
      [INDEX_KEY]: '2',
      [counted]: '1',
      [ignored]: '3',
    });
  });

  it('has the index in annotations, labels, the host name and the variables of all containers', () => {
    const own = { name: 'JOB_COMPLETION_INDEX', value: 'mine' };
    const metadata = { labels: { a: 'b' }, annotations: { c: 'd' } };
    const containers = [
      { name: 'x', env: [{ name: 'E' }] },
      { name: 'y', env: [{ name: 'E' }, own] },
    ];
    const spec = { restartPolicy: 'Never', containers, initContainers: [{ name: 'i' }] };
    expect(podTemplateOf(jobOf({ metadata, spec }), 0)).toEqual({
      metadata: {
        finalizers: [TRACKING],
        labels: { a: 'b', [INDEX_KEY]: '0' },
        annotations: { c: 'd', [INDEX_KEY]: '0' },
      },
      spec: {
        restartPolicy: 'Never',
        hostname: 'j-0',
        containers: [{ name: 'x', env: [{ name: 'E' }, variable] }, containers[1]],
        initContainers: [{ name: 'i', env: [variable] }],
      },
    });
  });

  it('with an index has no first containers where the template has none', () => {
    expect(podTemplateOf(jobOf({}), 7).spec).toEqual({ hostname: 'j-7', containers: [] });
    expect('initContainers' in (podTemplateOf(jobOf({}), 7).spec ?? {})).toBe(false);
  });
});
