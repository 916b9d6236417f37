import { describe, expect, it } from 'vitest';
import { FAILED_TICKS, TICK_AGE } from '../functions/tick-metrics.ts';
import { handleWakeUp, wakeUpEvent } from './wake-up-event.ts';

const NOW_MS = 1_000_000_003_000;
const SLOT = 200_000_000;

async function handle(event: unknown, { reportsSweeps = false, fails = false } = {}) {
  const slots: number[] = [];
  const measured: [string, number][] = [];
  await handleWakeUp(event, {
    periodSeconds: 5,
    log: { debug() {}, info() {}, warn() {}, error() {} },
    meter: { add: (name, value) => void measured.push([name, value]) },
    clock: { nowMs: () => NOW_MS },
    reportsSweeps,
    async runTick(slot) {
      slots.push(slot);
      if (fails) throw new Error('no');
    },
  });
  return { slots, measured };
}

describe('an event that starts a tick', () => {
  it('has the slot of the tick that woke it, however late it comes', async () => {
    expect((await handle(wakeUpEvent(NOW_MS - 33_000))).slots).toEqual([SLOT - 6]);
  });

  it.each([[{ sweep: 'x' }], [{}], [null], [{ wakeUpAtMs: 'soon' }]])(
    'has the slot of this moment if it is %j',
    async (event) => {
      expect((await handle(event)).slots).toEqual([SLOT + 1]);
    },
  );

  it('reports the age of sweeps where an alarm needs it', async () => {
    expect((await handle({ sweep: 'x' }, { reportsSweeps: true })).measured).toEqual([[TICK_AGE, 0]]);
    expect((await handle({ sweep: 'x' })).measured).toEqual([]);
    expect((await handle(wakeUpEvent(NOW_MS), { reportsSweeps: true })).measured).toEqual([]);
  });

  it('is not repeated if its tick fails, and counts', async () => {
    expect((await handle({ sweep: 'x' }, { reportsSweeps: true, fails: true })).measured).toEqual([[FAILED_TICKS, 1]]);
  });
});
