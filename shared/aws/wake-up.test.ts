import { describe, expect, it } from 'vitest';
import { FAILED_TICKS, TICK_AGE } from '../functions/tick-metrics.ts';
import { TickFault } from '../ticks/tick.ts';
import { handleWakeUp, wakeUpEvent } from './wake-up.ts';

const NOW_MS = 1_000_000_003_000;
const SLOT = 200_000_000;

interface Given {
  readonly reportsSweeps?: boolean;
  readonly fault?: Error;
}

async function handle(event: unknown, { reportsSweeps = false, fault }: Given = {}) {
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
      if (fault !== undefined) throw fault;
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

  it.each<[string, Error, boolean]>([
    ['without age if its tick fails', new Error('no'), false],
    ['without age if the work of its tick fails', new TickFault([], 'no', { hasRun: false }), false],
    ['with age if only single objects failed', new TickFault([], 'no', { hasRun: true }), true],
  ])('is not repeated, and counts, %s', async (_, fault, hasAge) => {
    const { measured } = await handle({ sweep: 'x' }, { reportsSweeps: true, fault });
    expect(measured).toEqual([[FAILED_TICKS, 1], ...(hasAge ? [[TICK_AGE, 0]] : [])]);
  });
});
