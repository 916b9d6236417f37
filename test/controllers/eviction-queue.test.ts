/**
 * The eviction queue of a zone is bounded: nodes beyond it wait in their digests, and follow in the order of their
 * marks.
 */
import { describe, expect, it } from 'vitest';
import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { type ControlledFleet, START_MS, settledFleet } from '../support/controlled-fleet.ts';

const PLACES = 3;
const ZONE_A = 12;

/**
 * Nodes a-0 to a-11 and b-0. Those of `silent` sent their last heartbeat at 0 s. The clock is at 45 s, before the tick.
 */
async function silentFleet(silent: readonly string[], policy: Partial<Policy> = {}) {
  const { fleet, names } = await settledFleet(
    { a: ZONE_A, b: 1 },
    { policy: { nodesQueuedPerZoneMax: PLACES, largeClusterSizeThreshold: 1, ...policy } },
  );
  const alive = (also: readonly string[] = []) =>
    names.filter((name) => !silent.includes(name) && !also.includes(name));
  await fleet.run(0, 40, (seconds) => (seconds % 10 === 0 ? fleet.beat(...alive()) : Promise.resolve()));
  fleet.at(45);
  await fleet.beat(...alive());
  /** Ticks of node-monitor and evictor every 5 s, after heartbeats of all but these. */
  const pass = async (untilSeconds: number, alsoSilent: readonly string[] = []): Promise<void> => {
    for (let seconds = fleet.seconds() + 5; seconds <= untilSeconds; seconds += 5) {
      fleet.at(seconds);
      await fleet.beat(...alive(alsoSilent));
      await fleet.tick();
    }
  };
  return { fleet, pass };
}

const queued = async (fleet: ControlledFleet): Promise<string[]> =>
  [...(await fleet.records()).queue].map(({ nodeName }) => nodeName).sort();
const tainted = async (fleet: ControlledFleet, names: readonly string[]): Promise<string[]> => {
  const found = await Promise.all(names.map((name) => fleet.taints(name)));
  return names.filter((_, index) => found[index]!.includes('unreachable:NoExecute'));
};
const tick = (fleet: ControlledFleet) => fleet.controllers.tickNodeMonitor(fleet.slot());
const SIX = ['a-1', 'a-2', 'a-3', 'a-4', 'a-5', 'a-6'];

describe('the eviction queue of a zone', () => {
  it('has at most nodesQueuedPerZoneMax nodes, and the next tick writes nothing for the others', async () => {
    const { fleet } = await silentFleet(SIX);
    await tick(fleet);
    expect(await queued(fleet)).toEqual(['a-1', 'a-2', 'a-3']);
    for (const name of SIX) expect(await fleet.ready(name)).toBe('Unknown');
    fleet.at(50);
    fleet.consumed();
    expect(await tick(fleet)).toMatchObject({ decisions: 0 });
    expect(fleet.consumed().writeUnits).toBe(1);
  });

  it('lets every node follow at the rate of the zone: none is forgotten, none is early', async () => {
    const { fleet, pass } = await silentFleet(SIX);
    await fleet.tick();
    const times: number[] = [];
    for (let count = 0; fleet.seconds() < 140; count = times.length) {
      await pass(fleet.seconds() + 5);
      const now = await tainted(fleet, SIX);
      for (let more = count; more < now.length - 1; more += 1) times.push(fleet.seconds());
    }
    expect(await tainted(fleet, SIX)).toEqual(SIX);
    expect(times).toEqual([55, 65, 75, 85, 95]);
    expect(await queued(fleet)).toEqual([]);
  });

  it('lets the node that was marked first follow first, whatever its name', async () => {
    const { fleet, pass } = await silentFleet(['a-3', 'a-4', 'a-5', 'a-6'], { nodeEvictionRatePerSecond: 0 });
    await fleet.tick();
    expect(await queued(fleet)).toEqual(['a-3', 'a-4', 'a-5']);
    await pass(100, ['a-1']);
    expect(await fleet.ready('a-1')).toBe('Unknown');
    await fleet.removeNode('a-4');
    await fleet.streams();
    await pass(105, ['a-1']);
    expect(await queued(fleet)).toEqual(['a-3', 'a-5', 'a-6']);
  });

  it('leaves out a node that returned while it waited, and adds a node that reports NotReady beyond its bound', async () => {
    const { fleet } = await silentFleet(SIX);
    await tick(fleet);
    fleet.at(50);
    await fleet.beat('a-1', 'a-6');
    await fleet.post('a-1');
    await fleet.post('a-6');
    await fleet.post('a-7', 'False');
    await tick(fleet);
    expect(await queued(fleet)).toEqual(['a-2', 'a-3', 'a-4', 'a-7']);
  });

  it('counts the nodes beyond it, and shows the wait of the first of all', async () => {
    const { fleet, pass } = await silentFleet(SIX, { nodeEvictionRatePerSecond: 0 });
    await tick(fleet);
    await pass(120);
    const last = (name: string) => fleet.metrics.filter((each) => each.name === name).at(-1)?.value;
    expect(last('node_collector_queued_nodes_in_zone')).toBe(6);
    expect(last('queue_age_seconds_max')).toBe(75);
  });
});

describe('a queue without this bound, of an earlier version', () => {
  const rowsOf = (names: readonly string[], fleet: ControlledFleet) =>
    Promise.all(
      names.map(async (nodeName) => {
        const uid = (await fleet.node(nodeName))?.metadata.uid ?? '';
        return { zone: 'a', nodeName, uid, addedAtMs: START_MS + 45_000 };
      }),
    );

  it('is read and worked off: each row keeps its place, and none is added or removed', async () => {
    const { fleet, pass } = await silentFleet(SIX);
    await tick(fleet);
    const store = fleetStore(fleet.tables);
    for (const row of await rowsOf(SIX, fleet)) await store.enqueue(row);
    expect(await queued(fleet)).toEqual(SIX);
    fleet.at(50);
    expect(await tick(fleet)).toMatchObject({ decisions: 0 });
    expect(await queued(fleet)).toEqual(SIX);
    await pass(70);
    expect(await tainted(fleet, SIX)).toEqual(['a-1', 'a-2']);
    expect(await queued(fleet)).toEqual(['a-3', 'a-4', 'a-5', 'a-6']);
    await pass(130);
    expect(await tainted(fleet, SIX)).toEqual(SIX);
    expect(await queued(fleet)).toEqual([]);
  });

  it('loses the row of a node that returned, also beyond the bound', async () => {
    const { fleet } = await silentFleet(SIX);
    await tick(fleet);
    const store = fleetStore(fleet.tables);
    for (const row of await rowsOf(SIX, fleet)) await store.enqueue(row);
    fleet.at(50);
    await fleet.beat('a-6');
    await fleet.post('a-6');
    await tick(fleet);
    expect(await queued(fleet)).toEqual(['a-1', 'a-2', 'a-3', 'a-4', 'a-5']);
  });

  it('may alternate with this version, tick by tick: each node is tainted once, at the rate', async () => {
    const { fleet, pass } = await silentFleet(SIX);
    const earlier = fleet.makeControllers(fleet.tables, undefined, {
      ...fleet.policy,
      nodesQueuedPerZoneMax: 100_000,
    });
    await fleet.tick();
    for (let seconds = 50; seconds <= 130; seconds += 10) {
      fleet.at(seconds);
      await earlier.tickNodeMonitor(fleet.slot());
      await earlier.tickEvictor(fleet.slot());
      await pass(seconds + 5);
    }
    expect(await tainted(fleet, SIX)).toEqual(SIX);
    const evictions = fleet.metrics.filter(({ name }) => name === 'node_collector_evictions_total');
    expect(evictions).toHaveLength(SIX.length);
  });

  it('finds the rows in its own format after a return, and adds the nodes without one', async () => {
    const { fleet } = await silentFleet(SIX);
    await tick(fleet);
    const { items } = await fleet.tables.query({
      table: 'control',
      pk: 'fleet',
      beginsWith: 'queue#',
      consistent: true,
    });
    const [first] = await rowsOf(['a-1'], fleet);
    expect(items[0]).toEqual({
      pk: 'fleet',
      sk: 'queue#a#a-1',
      uid: first!.uid,
      addedAtMs: first!.addedAtMs,
    });
    const store = fleetStore(fleet.tables);
    const outcomes = [];
    for (const row of await rowsOf(SIX, fleet)) outcomes.push(await store.enqueue(row));
    expect(outcomes).toEqual(['refused', 'refused', 'refused', 'written', 'written', 'written']);
  });
});
