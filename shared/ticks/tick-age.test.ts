import { expect, it } from 'vitest';
import { reportTickAge } from './tick-age.ts';

function agesOf(slot: number, lateMs: number): unknown[] {
  const added: unknown[] = [];
  const meter = { add: (...metric: unknown[]) => added.push(metric) } as never;
  reportTickAge(meter, { slot, periodSeconds: 5, nowMs: slot * 5_000 + lateMs });
  return added.map((metric) => (metric as unknown[])[1]);
}

it('the first tick of each half minute reports its age in seconds, the others only when they are late', () => {
  expect(agesOf(12, 1_500)).toEqual([1.5]);
  expect(agesOf(18, -200)).toEqual([0]);
  expect(agesOf(13, 1_500)).toEqual([]);
  expect(agesOf(13, 120_000)).toEqual([120]);
});
