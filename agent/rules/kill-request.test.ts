import { expect, it } from 'vitest';
import { killRequest } from './kill-request.ts';
import { shutdownGraceSeconds, shutdownGroups } from './shutdown-groups.ts';

const pod = (spec: object = {}) => ({ metadata: { name: 'p' }, spec }) as never;
const graceOf = (seconds: unknown) => pod({ terminationGracePeriodSeconds: seconds });

it.each([
  ['no grace period', pod(), undefined, 0, 10],
  ['a grace period that is no number', graceOf('30'), undefined, 0, 10],
  ['its own grace period', graceOf(30), undefined, 30, 45],
  ['another one', graceOf(30), 7, 7, 10],
  ['none in place of its own', graceOf(30), 0, 0, 10],
  ['an odd one', graceOf(9), undefined, 9, 13],
  ['no spec', { metadata: { name: 'p' } } as never, undefined, 0, 10],
])('a pod with %s has half as long in addition, and ten seconds at least', (_what, of, override, grace, giveUp) => {
  expect(killRequest(of, override)).toEqual({ graceSeconds: grace, giveUpAfterSeconds: giveUp });
});

it('a shutdown shortens a grace period, and does not lengthen it', () => {
  expect([graceOf(9), graceOf(11), pod()].map((each) => shutdownGraceSeconds(each, 10))).toEqual([9, 10, 10]);
});

it('a shutdown ends groups from the lowest priority, each pod in the highest group that is not above it', () => {
  const buckets = [
    { priority: 100, shutdownGracePeriodSeconds: 1 },
    { priority: 0, shutdownGracePeriodSeconds: 2 },
    { priority: 50, shutdownGracePeriodSeconds: 3 },
  ];
  const pods = [-1, 0, 49, 50, 99, 100, 101].map((priority) => pod({ priority }));
  const groups = shutdownGroups(buckets, pods).map(({ priority, periodSeconds, pods: members }) => [
    priority,
    periodSeconds,
    members.map((each) => pods.indexOf(each as never)),
  ]);
  expect(groups).toEqual([
    [0, 2, [0, 1, 2]],
    [50, 3, [3, 4]],
    [100, 1, [5, 6]],
  ]);
  expect(shutdownGroups(buckets, [])).toHaveLength(3);
  expect(shutdownGroups([], pods)).toEqual([]);
});
