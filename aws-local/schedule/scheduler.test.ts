import { afterEach, describe, expect, it, vi } from 'vitest';
import type { SchedulePlan } from '../assembly/plan.ts';
import { fireSchedule, firingOffsetsMs, type ScheduleTiming, startScheduler } from './scheduler.ts';

const MINUTE = Date.parse('2026-11-20T17:44:00Z');
const MINUTE_MS = 60_000;

const sweep: SchedulePlan = {
  logicalId: 'Sweep',
  expression: 'cron(* * * * ? *)',
  target: { kind: 'function', functionId: 'F' },
  input: '{"at":"<aws.scheduler.scheduled-time>"}',
};

function targets() {
  const sent: unknown[] = [];
  return {
    sent,
    sendToQueue: (id: string, body: string) => void sent.push([id, body]),
    invoke: (id: string, event: unknown) => void sent.push([id, event]),
  };
}

afterEach(() => {
  vi.useRealTimers();
});

/** Moments of each call in the minutes after the first one, in seconds of their minute. */
async function secondsOf(timing: ScheduleTiming, minutes: number): Promise<number[][]> {
  vi.useFakeTimers({ now: MINUTE });
  const seconds: number[][] = Array.from({ length: minutes }, () => []);
  const scheduler = startScheduler({
    schedules: [sweep],
    timing,
    nowMs: () => Date.now(),
    targets: {
      sendToQueue: () => {},
      invoke: () => {
        const minute = Math.floor((Date.now() - MINUTE) / MINUTE_MS) - 1;
        seconds[minute]?.push((Date.now() % MINUTE_MS) / 1_000);
      },
    },
  });
  await vi.advanceTimersByTimeAsync((minutes + 1) * MINUTE_MS);
  scheduler.stop();
  return seconds;
}

describe('a schedule of each minute', () => {
  it('fires once per minute, at any second of it, much the same in each', async () => {
    const seconds = (await secondsOf({ kind: 'aws', seed: 7 }, 20)).map((each) => {
      expect(each).toHaveLength(1);
      return each[0]!;
    });
    expect(Math.max(...seconds) - Math.min(...seconds)).toBeGreaterThan(0.5);
    expect(Math.max(...seconds) - Math.min(...seconds)).toBeLessThan(8.1);
    const offsets = Array.from(
      { length: 20 },
      (_, seed) => firingOffsetsMs({ kind: 'aws', seed }, 'Sweep', MINUTE)[0]!,
    );
    expect(Math.min(...offsets)).toBeLessThan(15_000);
    expect(Math.max(...offsets)).toBeGreaterThan(45_000);
    expect(Math.max(...offsets)).toBeLessThan(MINUTE_MS);
  });

  it('can miss minutes, and fire twice in others', async () => {
    const seconds = await secondsOf({ kind: 'aws', seed: 7, missing: 0.3, doubled: 0.3 }, 40);
    const calls = seconds.map((each) => each.length);
    expect(calls.filter((count) => count === 0).length).toBeGreaterThan(4);
    expect(calls.filter((count) => count === 2).length).toBeGreaterThan(4);
  });

  it('fires at the beginning of its minute when that is asked for', async () => {
    const seconds = (await secondsOf({ kind: 'exact' }, 3)).flat();
    expect(seconds).toHaveLength(3);
    expect(Math.max(...seconds)).toBeLessThan(0.1);
  });

  it('fires at once when it starts, for the minute that has begun', () => {
    vi.useFakeTimers({ now: MINUTE + 12_000 });
    const to = targets();
    const scheduler = startScheduler({
      schedules: [sweep],
      timing: { kind: 'aws', seed: 1 },
      nowMs: () => Date.now(),
      targets: to,
    });
    expect(to.sent).toEqual([['F', { at: '2026-11-20T17:44:00Z' }]]);
    scheduler.stop();
  });

  it('sends one message to a queue, or one event to a function', () => {
    const to = targets();
    fireSchedule({ ...sweep, target: { kind: 'queue', queueId: 'Q' } }, MINUTE, to);
    fireSchedule(sweep, MINUTE, to);
    expect(to.sent).toEqual([
      ['Q', '{"at":"2026-11-20T17:44:00Z"}'],
      ['F', { at: '2026-11-20T17:44:00Z' }],
    ]);
  });
});
