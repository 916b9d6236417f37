import { expect, it } from 'vitest';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { ServerClock } from './server-clock.ts';

it('the clock of the server is ours until it answers, and continues whatever our clock is set to', async () => {
  const time = new SteppedTime(1_000_000);
  const clock = new ServerClock(time);
  expect([clock.nowMs(), clock.offsetMs()]).toEqual([1_000_000, 0]);
  clock.observe(1_060_000);
  expect([clock.nowMs(), clock.offsetMs()]).toEqual([1_060_000, 60_000]);
  time.setClock(-3_600_000);
  await time.pass(500);
  expect(clock.nowMs()).toBe(1_060_500);
  clock.observe(940_500);
  expect(clock.offsetMs()).toBe(-60_000);
  // A difference that may be delay on the way is none.
  clock.observe(1_000_600);
  expect([clock.nowMs(), clock.offsetMs()]).toEqual([1_000_500, 0]);
});
