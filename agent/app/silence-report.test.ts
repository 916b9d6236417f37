import { beforeEach, expect, it } from 'vitest';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import { SilenceReport } from './silence-report.ts';

let time: SteppedTime;
let report: SilenceReport;
beforeEach(() => {
  time = new SteppedTime(0);
  report = new SilenceReport({ role: 'hub', time });
});

/** A heartbeat is accepted. */
function beat(): string | undefined {
  const text = report.text();
  report.accepted(text);
  return text;
}

it('repeats what is silent for a minute, and withdraws it when it no longer holds', async () => {
  expect([report.isNews(), beat()]).toEqual([false, undefined]);
  report.update(['a', 'b']);
  expect([report.isNews(), beat()]).toEqual([true, 'hub a,b']);
  await time.pass(10_000);
  expect([report.isNews(), beat()]).toEqual([false, 'hub a,b']);
  report.update(['b']);
  expect([report.isNews(), beat()]).toEqual([true, 'hub b']);
  report.update([]);
  expect([report.isNews(), beat()]).toEqual([true, 'hub ']);
  expect([report.isNews(), beat()]).toEqual([false, undefined]);
});

it('withdraws nothing that the cluster does not know, and until the withdrawal is accepted', () => {
  report.update(['a']);
  report.update([]);
  expect(report.text()).toBeUndefined();
  report.update(['a']);
  beat();
  report.update([]);
  expect([report.text(), report.text()]).toEqual(['hub ', 'hub ']);
});

it('lets a report of a minute end without a withdrawal', async () => {
  report.update(['a']);
  beat();
  await time.pass(59_999);
  expect(report.text()).toBe('hub a');
  await time.pass(1);
  expect([report.isNews(), report.text()]).toEqual([false, undefined]);
  report.update([]);
  expect([report.isNews(), report.text()]).toEqual([false, undefined]);
});

it('reports a machine that is silent again for another minute', async () => {
  report.update(['a']);
  await time.pass(61_000);
  report.update([]);
  report.update(['a']);
  expect(report.text()).toBe('hub a');
});

it('sends a heartbeat at once for each change, and at most one in 2 s', async () => {
  const beats: number[] = [];
  const stop = new AbortController();
  const running = report.run(() => {
    beats.push(time.monotonicMs());
    beat();
  }, stop.signal);
  await time.pass(5_000);
  report.update(['a']);
  await time.pass(100);
  for (const names of [['a', 'b'], ['a'], ['a', 'c'], ['a', 'c']]) {
    report.update(names);
    await time.pass(100);
  }
  await time.pass(10_000);
  expect(beats).toEqual([5_000, 7_000]);
  report.update([]);
  await time.pass(10_000);
  expect(beats).toEqual([5_000, 7_000, 15_500]);
  stop.abort();
  await running;
});

it('sends heartbeats for a report that none repeated for 20 s, while it holds', async () => {
  const beats: number[] = [];
  const stop = new AbortController();
  const running = report.run(() => {
    beats.push(time.monotonicMs());
    beat();
  }, stop.signal);
  report.update(['a']);
  await time.pass(15_000);
  beat();
  await time.pass(200_000);
  expect(beats).toEqual([0, 36_000, 56_000]);
  stop.abort();
  await running;
});
