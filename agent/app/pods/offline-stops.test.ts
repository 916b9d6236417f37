import { expect, it } from 'vitest';
import { OFFLINE_STOP_AFTER } from '../../../shared/kinds/pods/offline-stop.ts';
import { SITE_HUB } from '../../../shared/kinds/pods/site-permit.ts';
import { silentLog } from '../../../test/support/agent-api.ts';
import { SteppedTime } from '../../../test/support/stepped-time.ts';
import type { RunningPod } from '../../ports/pod-runtime.ts';
import { clockReading } from '../../rules/offline-stop.ts';
import type { AnsweredHeartbeats } from '../answered-heartbeats.ts';
import { OfflineStops } from './offline-stops.ts';
import { newPodEntry, type PodEntry } from './pod-entry.ts';

const RUN_MS = 600_000;

function world({ annotated = true, silentMs = 0, longestSilenceMs = 0 } = {}) {
  const time = new SteppedTime(1_700_000_000_000);
  const stop = new AbortController();
  const steps: string[] = [];
  const silence = { now: silentMs, longest: longestSilenceMs };
  const heartbeats = {
    now: () => clockReading(time),
    silentMs: () => silence.now,
    longestSilenceMs: () => silence.longest,
    answered: () => void steps.push('answered'),
    keep: async () => void steps.push('keep'),
  } satisfies Partial<AnsweredHeartbeats> as unknown as AnsweredHeartbeats;
  const annotations = annotated ? { [OFFLINE_STOP_AFTER]: '10m' } : {};
  const entry = newPodEntry(
    { metadata: { name: 'web', uid: 'u', annotations }, spec: { containers: [], terminationGracePeriodSeconds: 30 } },
    true,
  );
  const entries = new Map<string, PodEntry>([['u', entry]]);
  const stops = new OfflineStops({
    ...{ time, heartbeats, entries, log: silentLog, stopSignal: () => stop.signal },
    recordEvent: (_, { reason }) => void steps.push(reason),
    request: ({ kill }) => void steps.push(`request ${kill?.graceSeconds}`),
  });
  return { time, stop, steps, silence, entry, stops };
}
const runningPod = (kind: 'running' | 'waiting'): RunningPod => {
  const state = kind === 'running' ? { kind, startedAtMs: 0 } : { kind, reason: 'x' };
  return { uid: 'u', containers: [{ name: 'main', state, restartCount: 0 }] } as unknown as RunningPod;
};

it('a pod that starts waits no longer, and the last heartbeat is kept for it', () => {
  const { stops, entry, steps, stop } = world();
  entry.isWaitingForHeartbeat = true;
  expect(stops.answered({ uptimeMs: 0, wallMs: 0 })).toBe(true);
  stops.starts(entry);
  expect([entry.isWaitingForHeartbeat, entry.mayRun]).toEqual([false, true]);
  expect(stops.answered({ uptimeMs: 0, wallMs: 0 })).toBe(false);
  expect(steps).toEqual(['answered', 'keep', 'answered', 'keep']);
  stop.abort();
});

it('a pod that may run on two machines costs no write of the last heartbeat', () => {
  const { stops, entry, steps } = world({ annotated: false });
  stops.starts(entry);
  expect(stops.answered({ uptimeMs: 0, wallMs: 0 })).toBe(false);
  expect(steps).toEqual(['answered']);
});

it.each([
  ['is not in the API any more', { present: false }],
  ['has ended', { status: { phase: 'Failed' } }],
])('a pod that %s waits for no list', (_, change) => {
  const { stops, entry } = world();
  Object.assign(entry, { isWaitingForHeartbeat: true }, change);
  expect(stops.answered({ uptimeMs: 0, wallMs: 0 })).toBe(false);
});

it.each([
  ['exactly as long as it may', RUN_MS, ['OfflineStop', 'request 30']],
  ['shorter', RUN_MS - 1, []],
])('a pod of the previous agent stops when the longest silence was %s', (_, longestSilenceMs, expected) => {
  const { stops, entry, steps, stop } = world({ longestSilenceMs });
  entry.adopted = true;
  stops.adopt([runningPod('running')]);
  expect([entry.mayRun, steps]).toEqual([true, expected]);
  stop.abort();
});

it.each([
  ['this agent started it', { adopted: false }, 'running'],
  ['it may run already', { adopted: true, mayRun: true }, 'running'],
  ['it does not run', { adopted: true }, 'waiting'],
] as const)('a pod is not adopted when %s', (_, change, kind) => {
  const { stops, entry, steps } = world({ longestSilenceMs: RUN_MS });
  Object.assign(entry, change);
  stops.adopt([runningPod(kind), { ...runningPod('running'), uid: 'unknown' }]);
  expect(steps).toEqual([]);
});

it('a pod is stopped at its time, and looked at every 10 s before', async () => {
  const { stops, entry, steps, time, silence, stop } = world({ silentMs: RUN_MS - 25_500 });
  stops.starts(entry);
  steps.length = 0;
  for (const [passedMs, expected] of [
    [10_000, []],
    [15_499, []],
    [1, ['OfflineStop', 'request 30']],
  ] as const) {
    silence.now += passedMs;
    await time.pass(passedMs);
    expect(steps).toEqual(expected);
  }
  // A stop that is under way becomes shorter, and is not reported again.
  silence.now += 10_000;
  await time.pass(10_000);
  expect(entry.kill?.graceSeconds).toBe(20);
  expect(steps.filter((each) => each === 'OfflineStop')).toHaveLength(1);
  entry.stopped = true;
  await time.pass(10_000);
  steps.length = 0;
  await time.pass(60_000);
  expect(steps).toEqual([]);
  stop.abort();
});

it('a machine that slept stops its pods at the next look', async () => {
  const { stops, entry, steps, time, silence, stop } = world();
  stops.starts(entry);
  steps.length = 0;
  silence.now = 2 * RUN_MS;
  await time.pass(10_000);
  expect(steps[0]).toBe('OfflineStop');
  expect(entry.kill?.graceSeconds).toBe(0);
  stop.abort();
});

it('only a pod of a site that waits, and has a permit, is permitted', () => {
  const time = new SteppedTime(0);
  const podWith = (uid: string, isOfSite: boolean, isWaiting: boolean): PodEntry => ({
    ...newPodEntry(
      { metadata: { uid, annotations: { [OFFLINE_STOP_AFTER]: '10m', ...(isOfSite && { [SITE_HUB]: 'hub' }) } } },
      true,
    ),
    isWaitingForHeartbeat: isWaiting,
    listedAfter: clockReading(time),
  });
  const found = [
    podWith('waits', true, true),
    podWith('runs', true, false),
    podWith('of no site', false, true),
    podWith('without a permit', true, true),
  ];
  const permits = {
    permitOf: ({ metadata }: PodEntry['pod']) => (metadata.uid === 'without a permit' ? undefined : clockReading(time)),
  };
  const stops = new OfflineStops({
    ...{ time, log: silentLog, stopSignal: () => undefined, recordEvent() {}, request() {} },
    entries: new Map(found.map((entry) => [entry.uid, entry])),
    heartbeats: { now: () => clockReading(time) } as AnsweredHeartbeats,
    permits: permits as never,
  });
  expect(stops.permitted().map(({ uid }) => uid)).toEqual(['waits']);
});
