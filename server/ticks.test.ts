import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { TickingFunction } from '../functions/function-list.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { TickFault } from '../shared/ticks/tick.ts';
import { tickTimers } from './ticks.ts';

const START_MS = Date.UTC(2026, 0, 1, 0, 0, 2);
const NAMES: readonly TickingFunction[] = ['node-monitor', 'evictor', 'cloud-node', 'pod-gc', 'scheduler', 'workloads'];

beforeEach(() => {
  vi.useFakeTimers({ now: START_MS });
});
afterEach(() => {
  vi.useRealTimers();
});

function started(run: (name: TickingFunction, slot: number) => Promise<string | undefined> = async () => undefined) {
  const ran: [TickingFunction, number][] = [];
  const errors: string[] = [];
  const warnings: unknown[] = [];
  const timers = tickTimers({
    policy: defaultPolicy,
    clock: { nowMs: () => Date.now() },
    log: {
      debug() {},
      info() {},
      warn: (message, fields) => void warnings.push({ message, ...fields }),
      error: (message) => void errors.push(message),
    },
    meter: { add() {} },
  });
  const ticks = Object.fromEntries(
    NAMES.map((name) => [
      name,
      async (slot: number) => {
        ran.push([name, slot]);
        return { kind: (await run(name, slot)) ?? 'ran' };
      },
    ]),
  ) as unknown as Parameters<typeof timers.start>[0];
  timers.start(ticks);
  const runsOf = (wanted: TickingFunction) => ran.filter(([name]) => name === wanted).map(([, slot]) => slot);
  return { timers, ticks, ran, errors, warnings, runsOf };
}

it('node-monitor ticks at the start of each slot, the others once per minute', async () => {
  const { timers, runsOf } = started();
  await vi.advanceTimersByTimeAsync(60_000);
  const first = Math.floor(START_MS / 5_000);
  expect(runsOf('node-monitor')).toEqual(Array.from({ length: 13 }, (_, index) => first + index));
  for (const name of NAMES.slice(1)) expect(runsOf(name)).toHaveLength(2);
  await timers.stop();
  const before = runsOf('node-monitor').length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(runsOf('node-monitor')).toHaveLength(before);
});

it('a second start changes nothing, and nothing ticks after the stop', async () => {
  const { timers, ticks, ran, runsOf } = started();
  timers.start(ticks);
  await vi.advanceTimersByTimeAsync(0);
  expect(runsOf('node-monitor')).toHaveLength(1);
  await timers.stop();
  const before = ran.length;
  expect(vi.getTimerCount()).toBe(0);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(ran).toHaveLength(before);
  timers.start(ticks);
  await vi.advanceTimersByTimeAsync(0);
  expect(ran.length).toBeGreaterThan(before);
  await timers.stop();
});

it('a function that is woken while it works runs once more, for the newest slot', async () => {
  const { promise: work, resolve: finish } = Promise.withResolvers<void>();
  let isFirst = true;
  const { timers, runsOf } = started(async (name) => {
    if (name !== 'scheduler' || !isFirst) return undefined;
    isFirst = false;
    await work;
    return 'ran';
  });
  const slot = Math.floor(START_MS / 5_000);
  for (const later of [1, 3, 2]) await timers.wake(['scheduler'], (slot + later) * 5_000);
  finish();
  await vi.advanceTimersByTimeAsync(1);
  expect(runsOf('scheduler').slice(1)).toEqual([slot + 3]);
  await timers.stop();
});

it('a tick that fails is logged, and the next one runs', async () => {
  let failures = 1;
  const { timers, runsOf, errors } = started(async (name) => {
    if (name === 'node-monitor' && failures-- > 0) throw new AggregateError([new Error('disk')], 'tick');
    return 'ran';
  });
  await vi.advanceTimersByTimeAsync(1);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(timers.silentMs()).toBe(1_001);
  await vi.advanceTimersByTimeAsync(4_000);
  expect(errors).toEqual(['a tick failed']);
  expect(runsOf('node-monitor').length).toBeGreaterThan(1);
  expect(timers.silentMs()).toBeLessThan(5_000);
  await timers.stop();
});

it.each([true, false])('a tick in which single objects fail is a tick: %s', async (hasRun) => {
  const { timers } = started(async () => {
    throw new TickFault([new Error('one node')], 'tick', { hasRun });
  });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(timers.silentMs() < 5_000).toBe(hasRun);
  await timers.stop();
});

it('a clock that was set back, or a machine that slept, is logged; what is claimed already is no tick', async () => {
  let claimed = 0;
  const { timers, warnings } = started(async (_name, slot) => {
    if (slot <= claimed) return 'lost';
    claimed = slot;
    return 'ran';
  });
  await vi.advanceTimersByTimeAsync(10_000);
  expect(timers.silentMs()).toBeLessThan(5_000);
  vi.setSystemTime(Date.now() - 3_600_000);
  await vi.advanceTimersByTimeAsync(30_000);
  expect(timers.silentMs()).toBeGreaterThan(25_000);
  vi.setSystemTime(Date.now() + 7_200_000);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(timers.silentMs()).toBeLessThan(5_000);
  const message = 'the clock of this machine was set, or the machine slept';
  expect(warnings).toEqual([
    { message, bySeconds: -3_600 },
    { message, bySeconds: 7_200 },
  ]);
  await timers.stop();
});

it('a clock that is set back delays no tick by more than a period', async () => {
  const { timers, runsOf } = started();
  await vi.advanceTimersByTimeAsync(3_000);
  const before = runsOf('node-monitor').length;
  vi.setSystemTime(START_MS - 3_600_000);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(runsOf('node-monitor').length).toBeGreaterThanOrEqual(before + 2);
  await timers.stop();
});

it('its end waits for the ticks that run', async () => {
  const { promise: work, resolve: finish } = Promise.withResolvers<undefined>();
  const { timers } = started(async (name) => (name === 'node-monitor' ? work : undefined));
  let isStopped = false;
  const stopped = timers.stop().then(() => {
    isStopped = true;
  });
  await vi.advanceTimersByTimeAsync(1);
  expect(isStopped).toBe(false);
  finish(undefined);
  await stopped;
});
