import { expect, it } from 'vitest';
import { shutdownSettingFaults } from './shutdown-settings.ts';

const faultsOf = (totalMs: number, criticalMs: number, priorities: readonly number[] = []) =>
  shutdownSettingFaults({
    shutdownGracePeriodMs: totalMs,
    shutdownGracePeriodCriticalPodsMs: criticalMs,
    shutdownGracePeriodByPodPriority: priorities.map((priority) => ({ priority, shutdownGracePeriodSeconds: 10 })),
  });

it.each([
  [0, 0, []],
  [1_000, 0, []],
  [30_000, 30_000, []],
  [0, 0, [0]],
])('%i ms, %i ms of them for critical pods, and priorities %j are valid', (total, critical, priorities) => {
  expect(faultsOf(total, critical, priorities)).toEqual([]);
});

it.each([
  [1_000, 0, [0], 'both shutdownGracePeriodByPodPriority and shutdownGracePeriod'],
  [2_000, 3_000, [], 'must be <= shutdownGracePeriod'],
  [999, 0, [], 'shutdownGracePeriod {999ms} must be either zero or otherwise >= 1 sec'],
  [2_000, 1, [], 'shutdownGracePeriodCriticalPods {1ms} must be either zero or otherwise >= 1 sec'],
])('%i ms, %i ms of them for critical pods, and priorities %j are refused', (total, critical, priorities, words) => {
  expect(faultsOf(total, critical, priorities)).toEqual([expect.stringContaining(words)]);
});

it.each([
  [1, 0],
  [0, 1],
])('any period beside priorities is refused as a second way to say the same: %i ms, %i ms', (total, critical) => {
  expect(faultsOf(total, critical, [0])).toContainEqual(expect.stringContaining('Cannot specify both'));
});
