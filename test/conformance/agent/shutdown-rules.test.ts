/** Areas GM, GV, GG, GP, GS, CC, CK and CS: the rules of the graceful shutdown and of ending pods. */
import { describe, expect, it } from 'vitest';
import type { PriorityGrace } from '../../../agent/config.ts';
import { isCriticalPod } from '../../../agent/rules/critical-pod.ts';
import { killRequest } from '../../../agent/rules/kill-request.ts';
import { shutdownGraceSeconds, shutdownGroups } from '../../../agent/rules/shutdown-groups.ts';
import {
  requestedDelayMs,
  type ShutdownSettings,
  shutdownBuckets,
  shutdownSettingFaults,
} from '../../../agent/rules/shutdown-settings.ts';
import { terminatedStatus } from '../../../agent/rules/shutdown-status.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';

const CRITICAL = 2_000_000_000;
const NOW_MS = Date.UTC(2024, 4, 1, 10);

const settings = (totalSeconds: number, criticalSeconds: number, buckets: PriorityGrace[] = []): ShutdownSettings => ({
  shutdownGracePeriodMs: totalSeconds * 1_000,
  shutdownGracePeriodCriticalPodsMs: criticalSeconds * 1_000,
  shutdownGracePeriodByPodPriority: buckets,
});
const bucket = (priority: number, shutdownGracePeriodSeconds: number): PriorityGrace => ({
  priority,
  shutdownGracePeriodSeconds,
});
const pod = (name: string, spec: Record<string, unknown>, annotations: Record<string, string> = {}): KubeObject => ({
  metadata: { name, annotations },
  spec,
});

describe('from two periods to buckets', () => {
  it.each([
    ['GM-01 300 s, 120 s critical', 300, 120, [bucket(0, 180), bucket(CRITICAL, 120)]],
    ['GM-03 both 0: off', 0, 0, []],
    ['GM-05 30 s, 10 s critical', 30, 10, [bucket(0, 20), bucket(CRITICAL, 10)]],
    ['GM-07 nothing for critical pods', 30, 0, [bucket(0, 30), bucket(CRITICAL, 0)]],
    ['GM-09 fractions are dropped per bucket', 30.9, 10.2, [bucket(0, 20), bucket(CRITICAL, 10)]],
    ['GM-11 total 0: off', 0, 10, []],
  ])('%s', (_name, total, critical, expected) => {
    expect(shutdownBuckets(settings(total, critical))).toEqual(expected);
  });

  it('asks the system for the sum of all periods', () => {
    expect(requestedDelayMs(shutdownBuckets(settings(30.9, 10.2)))).toBe(30_000);
  });

  it('sorts configured buckets, lowest priority first', () => {
    const given = [bucket(1_000, 5), bucket(-7, 1), bucket(0, 3)];
    expect(shutdownBuckets(settings(0, 0, given)).map(({ priority }) => priority)).toEqual([-7, 0, 1_000]);
  });
});

describe('validation of the settings', () => {
  it.each([
    [
      'GV-01 critical above total',
      settings(10, 20),
      ['invalid configuration: shutdownGracePeriodCriticalPods {20s} must be <= shutdownGracePeriod {10s}'],
    ],
    [
      'GV-05 both forms at once',
      settings(10, 0, [bucket(0, 10)]),
      [
        'invalid configuration: Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time',
      ],
    ],
    ['GV-07 all of it for critical pods', settings(30, 30), []],
    ['GV-09 one second', settings(1, 0), []],
  ])('%s', (_name, given, expected) => {
    expect(shutdownSettingFaults(given)).toEqual(expected);
  });

  it('GV-03 less than nothing', () => {
    expect(shutdownSettingFaults(settings(-1, 0)).join('\n')).toContain('must be either zero or otherwise >= 1 sec');
  });

  it('refuses half a second', () => {
    expect(shutdownSettingFaults(settings(0.5, 0))).toEqual([
      'invalid configuration: shutdownGracePeriod {500ms} must be either zero or otherwise >= 1 sec',
    ]);
  });
});

describe('groups by priority', () => {
  const TWO = [bucket(0, 180), bucket(CRITICAL, 120)];

  it.each<[string, PriorityGrace[], Record<string, number | undefined>, [number, number, string[]][]]>([
    [
      'GG-01 users below critical',
      TWO,
      { normal: 0, 'highest-user': 1_000_000_000, critical: CRITICAL },
      [
        [0, 180, ['normal', 'highest-user']],
        [CRITICAL, 120, ['critical']],
      ],
    ],
    [
      'GG-03 unset counts as 0, negative belongs to the lowest',
      TWO,
      { 'node-critical': 2_000_001_000, unset: undefined, negative: -5 },
      [
        [0, 180, ['unset', 'negative']],
        [CRITICAL, 120, ['node-critical']],
      ],
    ],
    [
      'GG-05 one bucket contains all',
      [bucket(10, 5)],
      { low: -2_147_483_648, mid: 10, high: 2_000_001_000 },
      [[10, 5, ['low', 'mid', 'high']]],
    ],
    [
      'GG-07 the border',
      TWO,
      { 'just-below': 1_999_999_999, at: CRITICAL },
      [
        [0, 180, ['just-below']],
        [CRITICAL, 120, ['at']],
      ],
    ],
    [
      'GG-09 below the lowest bucket',
      [bucket(1_000, 30), bucket(CRITICAL, 10)],
      { default: 0, mid: 1_000, unset: undefined },
      [
        [1_000, 30, ['default', 'mid', 'unset']],
        [CRITICAL, 10, []],
      ],
    ],
  ])('%s', (_name, buckets, priorities, expected) => {
    const pods = Object.entries(priorities).map(([name, priority]) =>
      pod(name, priority === undefined ? {} : { priority }),
    );
    const groups = shutdownGroups(buckets, pods);
    expect(
      groups.map(({ priority, periodSeconds, pods: members }) => [
        priority,
        periodSeconds,
        members.map(({ metadata }) => metadata.name),
      ]),
    ).toEqual(expected);
  });
});

describe('grace of a pod', () => {
  it.each([
    ['GP-01 unset', 20, undefined, 20],
    ['GP-03 shorter than the group', 20, 2, 2],
    ['GP-05 longer than the group', 20, 1_000, 20],
    ['GP-07 critical, nothing reserved', 0, undefined, 0],
    ['GP-09 critical', 5, undefined, 5],
    ['GP-11 none wanted', 20, 0, 0],
    ['GP-13 its own', 60, 30, 30],
  ])('%s', (_name, period, own, expected) => {
    const spec = own === undefined ? {} : { terminationGracePeriodSeconds: own };
    expect(shutdownGraceSeconds(pod('p', spec), period)).toBe(expected);
  });
});

describe('status of a pod that is ended', () => {
  const message = 'Pod was terminated in response to imminent node shutdown.';

  it.each([
    ['GS-01 running', 'Running', 'Failed'],
    ['GS-03 succeeded before', 'Succeeded', 'Succeeded'],
  ])('%s', (_name, phase, expected) => {
    expect(terminatedStatus({ phase, podIP: '10.0.0.9' }, NOW_MS)).toEqual({
      phase: expected,
      podIP: '10.0.0.9',
      reason: 'Terminated',
      message,
      conditions: [
        {
          type: 'DisruptionTarget',
          status: 'True',
          reason: 'TerminationByKubelet',
          message,
          lastTransitionTime: '2024-05-01T10:00:00Z',
        },
      ],
    });
  });

  it('keeps other conditions, and since when the pod is a target', () => {
    const ready = { type: 'Ready', status: 'True' };
    const evicted = { type: 'DisruptionTarget', status: 'True', reason: 'Other', lastTransitionTime: 'before' };
    expect(terminatedStatus({ conditions: [ready, evicted] }, NOW_MS)['conditions']).toEqual([
      ready,
      { ...evicted, reason: 'TerminationByKubelet', message },
    ]);
  });
});

describe('critical pods', () => {
  it.each([
    ['CC-01 system-cluster-critical', { priority: CRITICAL }, {}, true],
    ['CC-03 system-node-critical', { priority: 2_000_001_000 }, {}, true],
    ['CC-05 static', {}, { 'kubernetes.io/config.source': 'file' }, true],
    ['CC-07 from the API', {}, { 'kubernetes.io/config.source': 'api' }, false],
    ['CC-09 ordinary', {}, {}, false],
  ])('%s', (_name, spec, annotations, expected) => {
    expect(isCriticalPod(pod('p', spec, annotations))).toBe(expected);
  });

  it('treats a mirror pod as critical', () => {
    expect(isCriticalPod(pod('p', {}, { 'kubernetes.io/config.mirror': 'abc' }))).toBe(true);
  });
});

describe('kill requests', () => {
  it.each([
    ['CK-01 at once', 0, 0, 10],
    ['CK-03 six', 6, 6, 10],
    ['CK-05 ten', 10, 10, 15],
    ['CK-07 the pod’s own', undefined, 30, 45],
    ['CK-09 the same, as an override', 30, 30, 45],
  ])('%s', (_name, override, graceSeconds, giveUpAfterSeconds) => {
    const own = pod('p', { terminationGracePeriodSeconds: 30 });
    expect(killRequest(own, override)).toEqual({ graceSeconds, giveUpAfterSeconds });
  });
});

describe('static pods at shutdown', () => {
  it.each([
    ['CS-01 static without priority', pod('p', {}, { 'kubernetes.io/config.source': 'file' })],
    ['CS-03 some priority', pod('p', { priority: 500 })],
  ])('%s', (_name, given) => {
    const groups = shutdownGroups([bucket(0, 20), bucket(CRITICAL, 10)], [given]);
    expect(groups.find(({ pods }) => pods.length > 0)?.priority).toBe(0);
  });
});
