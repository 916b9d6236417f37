import { expect, it } from 'vitest';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import { ActiveDeadlines } from './active-deadlines.ts';
import { newPodEntry, type PodEntry } from './pod-entry.ts';

const START_MS = Date.UTC(2026, 0, 1);
const YEAR_MS = 365 * 86_400_000;

function world(startTime?: string, limit: { readonly activeDeadlineSeconds?: number } = { activeDeadlineSeconds: 60 }) {
  const time = new SteppedTime(START_MS);
  const stop = new AbortController();
  const events: string[] = [];
  const requested: string[] = [];
  const spec = { terminationGracePeriodSeconds: 7, ...limit };
  const entry: PodEntry = {
    ...newPodEntry({ metadata: { uid: 'u', name: 'p' }, spec, ...(startTime && { status: { startTime } }) }, true),
    admission: 'admitted',
  };
  const deadlines = new ActiveDeadlines({
    time,
    entries: new Map([['u', entry]]),
    recordEvent: (_, { type, reason, message }) => events.push(`${type} ${reason}: ${message}`),
    request: ({ uid }) => requested.push(uid),
    stopSignal: () => stop.signal,
  });
  deadlines.watch();
  return { time, stop, events, requested, entry, deadlines };
}
const MESSAGE = 'Pod was active on the node longer than the specified deadline';

it('a pod fails when its deadline is over, with its own grace period, once', async () => {
  const { time, events, requested, entry } = world('2025-12-31T23:59:30Z');
  await time.pass(29_000);
  expect([requested, entry.kill]).toEqual([[], undefined]);
  await time.pass(60_000);
  expect([events, requested]).toEqual([[`Normal DeadlineExceeded: ${MESSAGE}`], ['u']]);
  expect([entry.kill?.graceSeconds, entry.kill?.change({ phase: 'Running', startTime: 'x' })]).toEqual([
    7,
    { phase: 'Failed', startTime: 'x', reason: 'DeadlineExceeded', message: MESSAGE },
  ]);
});

it('a clock that is set ends no pod, and delays no end', async () => {
  for (const byMs of [YEAR_MS, -YEAR_MS]) {
    const { time, requested } = world('2026-01-01T00:00:00Z');
    await time.pass(1_000);
    time.setClock(byMs);
    await time.pass(58_000);
    expect(requested).toEqual([]);
    await time.pass(1_000);
    expect(requested).toEqual(['u']);
  }
});

it('a suspend counts, and a start in the future is now', async () => {
  const { time, requested } = world('2027-01-01T00:00:00Z');
  await time.pass(1_000);
  time.suspend(60_000);
  await time.pass(1_000);
  expect(requested).toEqual(['u']);
});

it('a deadline that is set later counts from the start of the pod', async () => {
  const { time, requested, entry, deadlines } = world('2026-01-01T00:00:00Z', {});
  await time.pass(100_000);
  expect(time.waits).toEqual([]);
  entry.pod = { ...entry.pod, spec: { ...entry.pod.spec, activeDeadlineSeconds: 90 } };
  deadlines.watch();
  await time.pass(0);
  expect(requested).toEqual(['u']);
});

it('a pod that has not started, is deleted, or has ended is left alone, and nothing waits after a stop', async () => {
  const { time, requested, entry, stop, deadlines } = world();
  await time.pass(100_000);
  expect(requested).toEqual([]);
  entry.status = { phase: 'Succeeded', startTime: '2025-01-01T00:00:00Z' };
  await time.pass(1_000);
  const waits = time.waits.length;
  entry.status = { startTime: '2025-01-01T00:00:00Z' };
  entry.pod = { ...entry.pod, metadata: { ...entry.pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
  deadlines.watch();
  await time.pass(10_000);
  expect([requested, time.waits.length]).toEqual([[], waits]);
  entry.pod = { ...entry.pod, metadata: { uid: 'u' } };
  entry.status = { startTime: '2026-01-01T00:01:50Z' };
  deadlines.watch();
  stop.abort();
  await time.pass(120_000);
  expect(requested).toEqual([]);
});
