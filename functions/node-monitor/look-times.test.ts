/** When a tick looks at accused nodes again, and at which of them: by their deadlines alone. */
import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { workDependencies } from '../../shared/ticks/dependencies.ts';
import { PERIOD_RESERVE_MS, type RunningTick } from '../../shared/ticks/tick.ts';
import type { Decided } from './decide-tick.ts';
import { monitorDependencies } from './dependencies.ts';
import { lookAgain } from './look-again.ts';

const PERIOD_MS = defaultPolicy.nodeMonitorPeriodSeconds * 1_000;
const SLOT = 360_000;
const START_MS = SLOT * PERIOD_MS;
/** No look is later. */
const END_MS = PERIOD_MS - PERIOD_RESERVE_MS;

interface Options {
  /** How much later than asked for each pause ends; absent: on time. Milliseconds. */
  readonly lateMs?: number;
  readonly hasTime?: () => boolean;
  readonly fails?: boolean;
}

/** Looks for deadlines in milliseconds after the start of the slot: pause, and the nodes that are read. */
async function looksAt(deadlines: Readonly<Record<string, number>>, { lateMs = 0, hasTime, fails }: Options = {}) {
  let nowMs = START_MS;
  const looks: string[] = [];
  const pauses: number[] = [];
  const tables = memoryItemStore();
  const items: ItemStore = {
    ...tables,
    getMany(keys, options) {
      if (fails === true) return Promise.reject(new Error('down'));
      looks.push(`${nowMs - START_MS}: ${keys.map(({ sk }) => sk).join(' ')}`);
      return tables.getMany(keys, options);
    },
  };
  const silent = () => {};
  const common = workDependencies({
    items,
    clock: { nowMs: () => nowMs },
    random: { uuid: () => 'u', fraction: () => 0 },
    policy: defaultPolicy,
    log: { debug: silent, info: silent, warn: silent, error: silent },
    meter: { add: silent },
  });
  const pause = async (milliseconds: number): Promise<void> => {
    pauses.push(milliseconds);
    nowMs += milliseconds + lateMs;
  };
  const accused = Object.entries(deadlines).map(([nodeName, ms]) => ({ nodeName, deadlineMs: START_MS + ms }));
  const decided = { outcome: { accused, zoneMetrics: [] }, before: { fence: 1 } } as unknown as Decided;
  const faults: unknown[] = [];
  const budget = () => ({ hasTime: hasTime ?? (() => true) });
  const running = { slot: SLOT, nowMs, budget, faults } as unknown as RunningTick;
  const marked = await lookAgain(monitorDependencies(common, { pause }), { nodes: [], decided }, running);
  return { looks, pauses, faults, marked };
}

describe('a look between two ticks', () => {
  it('is 0.05 s after a deadline, at the nodes that are due by then', async () => {
    const { looks, pauses } = await looksAt({ a: 1_000, b: 1_049, c: 1_050, d: 2_000 });
    expect(looks).toEqual(['1050: a b', '1100: c', '2050: d']);
    expect(pauses).toEqual([1_050, 50, 950]);
  });

  it('is not later than the end of the period allows, and at no node that is due after that', async () => {
    expect((await looksAt({ a: END_MS - 1, b: END_MS, c: END_MS + 1 })).looks).toEqual([`${END_MS}: a`]);
    expect(await looksAt({ b: END_MS })).toEqual({ looks: [], pauses: [], faults: [], marked: 0 });
  });

  it('is at once when its time has passed, and there are eight at most', async () => {
    const deadlines = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`n${index}`, 100 + index * 100]));
    expect((await looksAt(deadlines)).looks).toHaveLength(8);
    const { looks, pauses } = await looksAt({ a: 100, b: 200 }, { lateMs: 500 });
    expect(looks).toEqual(['650: a', '1150: b']);
    expect(pauses).toEqual([150, 0]);
  });

  it('is none while somebody else keeps the time, or without time', async () => {
    expect((await looksAt({ a: 100 }, { lateMs: -50 })).looks).toEqual([]);
    expect((await looksAt({ a: 100 }, { lateMs: -49 })).looks).toEqual(['101: a']);
    let looks = 0;
    const hasTime = () => looks++ < 1;
    expect((await looksAt({ a: 100, b: 200 }, { hasTime })).looks).toEqual(['150: a']);
  });

  it('that fails is a fault of the tick, and the next one follows', async () => {
    const { faults, pauses, marked } = await looksAt({ a: 100, b: 200 }, { fails: true });
    expect([faults.length, pauses, marked]).toEqual([2, [150, 100], 0]);
  });
});
