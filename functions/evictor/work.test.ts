import { describe, expect, it } from 'vitest';
import { decisionStore } from '../../shared/decisions/decision-store.ts';
import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import {
  type ControlledFleet,
  type FleetOptions,
  START_MS,
  settledFleet,
} from '../../test/support/controlled-fleet.ts';

const DOWN = new StoreFault('throttled', 'down', { retryable: true });

/** Two zones of five nodes; the last two of each are silent. The time is the tick that queues them. */
async function waitingFleet(options: FleetOptions = {}) {
  const { fleet, names } = await settledFleet({ a: 5, b: 5 }, options);
  const alive = names.filter((name) => !/[34]$/.test(name));
  for (let seconds = 0; seconds <= 45; seconds += 5) {
    fleet.at(seconds);
    if (seconds % 10 === 0 || seconds === 45) await fleet.beat(...alive);
    await fleet.controllers.tickNodeMonitor(fleet.slot());
  }
  return { fleet, alive };
}
async function evict(fleet: ControlledFleet) {
  const report = await fleet.controllers.tickEvictor(fleet.slot());
  if (report.kind !== 'ran') throw new Error(report.kind);
  const { tainted, holds, nextTokenAtMs } = report;
  const next = nextTokenAtMs === undefined ? undefined : (nextTokenAtMs - START_MS) / 1_000;
  return { tainted, holds: [...holds].map(([zone, { kind }]) => `${zone} ${kind}`).toSorted(), next };
}
const measured = (fleet: ControlledFleet, name: string) =>
  fleet.metrics.filter((each) => each.name === name).map(({ value, zone, reason }) => [value, zone ?? reason]);
const holdsOf = async (fleet: ControlledFleet) => (await fleet.records()).zones.map(({ hold }) => hold?.split(' ')[0]);
const heldRecords = async (fleet: ControlledFleet) =>
  (await decisionStore(fleet.tables).list({ nowMs: fleet.nowMs(), limit: 1_000 })).decisions
    .map(({ record }) => record)
    .filter(({ about, act }) => about.kind === 'Zone' && act.startsWith('Eviction'));
const at = async (fleet: ControlledFleet, seconds: number) => {
  fleet.at(seconds);
  return evict(fleet);
};

describe('a tick of evictor', () => {
  it('taints one node of each zone, and knows when the next one may follow', async () => {
    const { fleet } = await waitingFleet({ policy: { nodeEvictionRatePerSecond: 0.5 } });
    expect(await evict(fleet)).toEqual({ tainted: 2, holds: [], next: 47 });
    expect(measured(fleet, 'node_collector_evictions_total')).toEqual([
      [1, 'a'],
      [1, 'b'],
    ]);
    expect((await fleet.records()).queue.map(({ zone }) => zone)).toEqual(['a', 'b']);
    expect(await at(fleet, 50)).toEqual({ tainted: 2, holds: [], next: undefined });
    expect(await at(fleet, 55)).toEqual({ tainted: 0, holds: [], next: undefined });
  });

  it('reports zones that wait for their rate, and records that once', async () => {
    const { fleet } = await waitingFleet();
    expect(await evict(fleet)).toMatchObject({ tainted: 2, next: 55 });
    for (const seconds of [50, 52]) {
      const report = await at(fleet, seconds).catch((fault: unknown) => fault);
      if (seconds === 50) expect(report).toEqual({ tainted: 0, holds: ['a rate', 'b rate'], next: 55 });
    }
    expect(measured(fleet, 'node_collector_held_zones')).toEqual([[2, 'rate']]);
    expect(await heldRecords(fleet)).toHaveLength(2);
    expect((await heldRecords(fleet)).every(({ slot }) => slot !== undefined)).toBe(true);
    expect((await holdsOf(fleet)).every((hold) => hold !== undefined)).toBe(true);
    expect(await at(fleet, 55)).toMatchObject({ tainted: 2 });
    // No node waits any more: the holds are cleared.
    await at(fleet, 60);
    expect(await holdsOf(fleet)).toEqual([undefined, undefined]);
    expect(await heldRecords(fleet)).toHaveLength(2);
  });

  it('counts held zones by their reason', async () => {
    const { fleet } = await waitingFleet({ policy: { nodeEvictionRatePerSecond: 0 } });
    expect(await evict(fleet)).toEqual({ tainted: 0, holds: ['a never', 'b never'], next: undefined });
    expect(measured(fleet, 'node_collector_held_zones')).toEqual([[2, 'never']]);
  });

  it('taints the next node of a zone when the first one cannot be written, and reports the fault', async () => {
    const between = (items: ItemStore): ItemStore => ({
      ...items,
      transact: (writes) =>
        fleetHolder.isDown && writes.some(({ key }) => key.pk.startsWith('o#nodes#') && key.sk === 'a-3')
          ? Promise.reject(DOWN)
          : items.transact(writes),
    });
    const fleetHolder = { isDown: false };
    const { fleet } = await waitingFleet({ between });
    fleetHolder.isDown = true;
    await expect(evict(fleet)).rejects.toMatchObject({ errors: [DOWN] });
    expect(await fleet.taints('a-3')).not.toContain('unreachable:NoExecute');
    expect(await fleet.taints('a-4')).toContain('unreachable:NoExecute');
    expect(await fleet.taints('b-3')).toContain('unreachable:NoExecute');
    // A tick with a fault counts no held zone: its view may be incomplete.
    expect(measured(fleet, 'node_collector_held_zones')).toEqual([]);
  });

  it('removes nodes from the queue that need no taint any more, without a token', async () => {
    const { fleet } = await waitingFleet();
    fleet.at(46);
    await fleet.beat('a-3');
    await fleet.removeNode('a-4');
    expect(await evict(fleet)).toEqual({ tainted: 1, holds: [], next: 56 });
    expect((await fleet.records()).queue.map(({ nodeName }) => nodeName)).toEqual(['b-4']);
    expect((await fleet.records()).zones[0]?.limiter.tatMs).toBeUndefined();
  });

  it('taints a node behind more entries that need none than one read has', async () => {
    const { fleet } = await waitingFleet();
    const { enqueue } = fleetStore(fleet.tables);
    for (let index = 0; index < 30; index += 1) {
      await enqueue({ zone: 'a', nodeName: `gone-${index}`, uid: 'u', addedAtMs: START_MS });
    }
    expect(await evict(fleet)).toMatchObject({ tainted: 2, next: 55 });
    expect((await fleet.records()).queue.map(({ nodeName }) => nodeName)).toEqual(['a-4', 'b-4']);
  });

  it('does its other work when its timers cannot be read', async () => {
    const store = { isDown: true };
    const withoutTimers = (items: ItemStore): ItemStore => ({
      ...items,
      query: (request) =>
        store.isDown && request.pk === 'evictions-due' ? Promise.reject(DOWN) : items.query(request),
    });
    const { fleet } = await waitingFleet({ between: withoutTimers });
    await expect(evict(fleet)).rejects.toMatchObject({ errors: [DOWN] });
    expect(await fleet.taints('a-3')).toContain('unreachable:NoExecute');
    // Nor is a slot without other work skipped: the fault is reported.
    const quiet = await settledFleet({ a: 1 }, { policy: { tickGate: 'off' }, between: withoutTimers });
    await expect(evict(quiet.fleet)).rejects.toMatchObject({ errors: [DOWN] });
    quiet.fleet.at(5);
    const { runEvictorSlot } = quiet.fleet.controllers;
    await expect(runEvictorSlot(quiet.fleet.slot())).rejects.toMatchObject({ hasRun: false });
  });
});
