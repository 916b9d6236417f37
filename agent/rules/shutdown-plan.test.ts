import { expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { shutdownPlan } from './shutdown-plan.ts';

const pod = (name: string, priority: number | undefined, graceSeconds: number, namespace?: string): KubeObject => ({
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  spec: {
    ...(priority === undefined ? {} : { priority }),
    terminationGracePeriodSeconds: graceSeconds,
    containers: [],
  },
});
const BUCKETS = [
  { priority: 0, shutdownGracePeriodSeconds: 30 },
  { priority: 100, shutdownGracePeriodSeconds: 20 },
  { priority: 1_000, shutdownGracePeriodSeconds: 10 },
];

it('has a phase for each priority, and no time for one without pods', () => {
  const plan = shutdownPlan(BUCKETS, [
    pod('late', 1_000, 60, 'kube-system'),
    pod('early', undefined, 5),
    pod('other', 99, 60),
  ]);
  expect(plan).toEqual({
    requestedSeconds: 60,
    longestSeconds: 40,
    phases: [
      {
        priority: 0,
        periodSeconds: 30,
        beginsAtSeconds: 0,
        pods: [
          { namespace: 'default', name: 'early', priority: 0, graceSeconds: 5 },
          { namespace: 'default', name: 'other', priority: 99, graceSeconds: 30 },
        ],
      },
      { priority: 100, periodSeconds: 20, beginsAtSeconds: 30, pods: [] },
      {
        priority: 1_000,
        periodSeconds: 10,
        beginsAtSeconds: 30,
        pods: [{ namespace: 'kube-system', name: 'late', priority: 1_000, graceSeconds: 10 }],
      },
    ],
  });
});

it('needs no time without pods', () => {
  expect(shutdownPlan(BUCKETS, [])).toMatchObject({ requestedSeconds: 60, longestSeconds: 0 });
});
