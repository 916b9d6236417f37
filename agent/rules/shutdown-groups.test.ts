import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { shutdownGraceSeconds, shutdownGroups } from './shutdown-groups.ts';
import { shutdownPlan } from './shutdown-plan.ts';

const pod = (name: string, priority?: number, graceSeconds?: number): KubeObject => ({
  metadata: { name, namespace: 'a' },
  spec: { priority, terminationGracePeriodSeconds: graceSeconds },
});
const bucket = (priority: number, shutdownGracePeriodSeconds: number) => ({ priority, shutdownGracePeriodSeconds });
const BUCKETS = [bucket(100, 10), bucket(0, 30), bucket(1_000, 5)];

describe('the pods of a node in a shutdown', () => {
  it('belong to the highest group that is not above their priority, and the lowest group is first', () => {
    const pods = [pod('below', -5), pod('zero'), pod('mid', 99), pod('hundred', 100), pod('top', 5_000)];
    const groups = shutdownGroups(BUCKETS, pods);
    expect(groups.map(({ priority, periodSeconds }) => [priority, periodSeconds])).toEqual([
      [0, 30],
      [100, 10],
      [1_000, 5],
    ]);
    expect(groups.map(({ pods: members }) => members.map(({ metadata }) => metadata.name))).toEqual([
      ['below', 'zero', 'mid'],
      ['hundred'],
      ['top'],
    ]);
    expect(shutdownGroups([], pods)).toEqual([]);
  });

  it('have their own grace period, at most that of their group', () => {
    expect([shutdownGraceSeconds(pod('p', 0, 7), 10), shutdownGraceSeconds(pod('p', 0, 70), 10)]).toEqual([7, 10]);
    expect([shutdownGraceSeconds(pod('p'), 10), shutdownGraceSeconds(pod('p', 0, 0), 10)]).toEqual([10, 0]);
  });

  it('are terminated in phases; one without pods adds no time', () => {
    const plan = shutdownPlan(BUCKETS, [pod('a', 0, 5), pod('b', 1_000), { metadata: {} }]);
    const of = (name: string, priority: number, graceSeconds: number, namespace = 'a') => ({
      ...{ namespace, name, priority, graceSeconds },
    });
    expect(plan).toEqual({
      requestedSeconds: 45,
      longestSeconds: 35,
      phases: [
        {
          ...{ priority: 0, periodSeconds: 30, beginsAtSeconds: 0 },
          pods: [of('a', 0, 5), of('', 0, 30, 'default')],
        },
        { priority: 100, periodSeconds: 10, beginsAtSeconds: 30, pods: [] },
        { priority: 1_000, periodSeconds: 5, beginsAtSeconds: 30, pods: [of('b', 1_000, 5)] },
      ],
    });
  });
});
