import { describe, expect, it } from 'vitest';
import { fleetControllers } from '../../server/fleet-controllers.ts';
import { describeNode } from '../../shared/fleet/nodes/health-store.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';

const NODES = 1_000;
const START_MS = Date.UTC(2026, 0, 1);

async function world(policy: Policy = defaultPolicy) {
  const metrics: [name: string, value: number][] = [];
  let taken = { readUnits: 0, writeUnits: 0 };
  const items = memoryItemStore({
    onConsumed: ({ readUnits, writeUnits }) => {
      taken = { readUnits: taken.readUnits + readUnits, writeUnits: taken.writeUnits + writeUnits };
    },
  });
  for (let node = 0; node < NODES; node += 1) {
    const digest = {
      uid: `u${node}`,
      zone: 'a',
      ready: 'True',
      excluded: false,
      suspect: false,
      noExecute: { notReady: false, unreachable: false },
      ...(node % 2 === 0 ? { profile: 'cell' } : {}),
      createdAtMs: START_MS - 60_000,
      statusAtMs: START_MS,
    } as const;
    await items.write(describeNode(`n${node}`, digest, { isNew: true }));
  }
  let nowMs = START_MS;
  const quiet = () => {};
  const controllers = fleetControllers({
    items,
    clock: { nowMs: () => nowMs },
    random: { fraction: () => 0.5, uuid: () => 'u' },
    policy,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    meter: { add: (name, value) => metrics.push([name, value]) },
    takeUnits: () => {
      const units = taken;
      taken = { readUnits: 0, writeUnits: 0 };
      return units;
    },
  });
  return {
    metrics,
    async tickAt(seconds: number): Promise<void> {
      nowMs = START_MS + seconds * 1_000;
      await controllers.tickNodeMonitor(nowMs / 1_000 / defaultPolicy.nodeMonitorPeriodSeconds);
    },
  };
}

describe('the running cost of a cluster', () => {
  it('is reported at the beginning of each quarter of a day, with the units of the tick that reports it', async () => {
    const { metrics, tickAt } = await world();
    const told = () => metrics.filter(([name]) => name === 'cost_dollars_per_day' || name === 'tick_consumed_units');
    for (let seconds = 0; seconds < 60; seconds += 5) await tickAt(seconds);
    expect(told().map(([name]) => name)).toEqual(['cost_dollars_per_day', 'tick_consumed_units']);
    const [[, dollars], [, units]] = told() as [[string, number], [string, number]];
    // 1,000 nodes: $16 of heartbeats, $1 of status posts, ticks of a few dozen units.
    expect(dollars).toBeGreaterThan(16);
    expect(dollars).toBeLessThan(19);
    expect(units).toBeGreaterThan(16);
    expect(units).toBeLessThan(100);
  });

  it('follows the heartbeat intervals of profiles', async () => {
    const cell = { name: 'cell', nodeSelector: { matchLabels: { link: 'cell' } }, beatIntervalSeconds: 30 };
    const { metrics, tickAt } = await world({ ...defaultPolicy, profiles: [cell] });
    await tickAt(0);
    const [, dollars] = metrics.find(([name]) => name === 'cost_dollars_per_day') ?? [];
    // 500 nodes every 10 s cost $8 and 500 every 30 s $2.7; $1 of status posts and ticks.
    expect(dollars).toBeGreaterThan(11);
    expect(dollars).toBeLessThan(13);
  });
});
