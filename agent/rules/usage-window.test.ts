import { expect, it } from 'vitest';
import { usageSince } from './usage-window.ts';

const start = { monotonicMs: 1_000, cpuBusySeconds: 10, memoryBytes: 1 };

it('averages CPU over at least a minute, and reports the newest memory', () => {
  const end = { monotonicMs: 71_000, cpuBusySeconds: 17, memoryBytes: 2_000.4 };
  expect(usageSince(start, end, 1_767_225_600_900)).toEqual({
    cpuCores: 0.1,
    memoryBytes: 2_000,
    windowSeconds: 70,
    atSeconds: 1_767_225_600,
  });
});

it('has no value for a shorter time, and none below zero', () => {
  expect(usageSince(start, { ...start, monotonicMs: 60_999 }, 0)).toBeUndefined();
  expect(usageSince(start, { ...start, monotonicMs: 61_000, cpuBusySeconds: 3 }, 0)?.cpuCores).toBe(0);
});
