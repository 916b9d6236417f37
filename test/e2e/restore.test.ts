/**
 * Tables restored to an earlier time, and controllers that start on them hours later. The stored state of every machine
 * is outdated, and no machine may suffer from it. On virtual time, with the deployed controllers.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import type { TableName } from '../../shared/store/item-store.ts';
import type { MemoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type ControlledFleet, controlledFleet, settledFleet } from '../support/controlled-fleet.ts';

const TABLES: readonly TableName[] = ['health', 'objects', 'control'];
/** The restored time, and when the controllers run on it. Seconds from the start of the fleet. */
const MOMENT = 600;
const RESTORED = MOMENT + 6 * 3_600;
const BEAT = 10;

/** Does what a point-in-time restore does: every item, no stream records. */
async function restored(from: MemoryItemStore): Promise<ControlledFleet> {
  const fleet = controlledFleet();
  for (const table of TABLES) {
    for (const { pk, sk, ...item } of from.items(table)) {
      const key = { table, pk: pk as string, sk: sk as string };
      await fleet.tables.write({ kind: 'put', key, item: structuredClone(item) });
    }
  }
  for (const table of ['health', 'objects'] as const) {
    fleet.tables.forgetChanges(table, fleet.tables.changes(table).at(-1)?.sequence ?? 0);
  }
  return fleet;
}

const zoneOf = { north: 6, south: 6, west: 6 };
/** Silent since long before that time: marked, tainted NoExecute, with a pod timer. */
const DEAD = 'north-0';
/** Silent for less than a grace period at that time. */
const LATE = 'north-1';
/** Like DEAD, but it recovers during the outage. */
const BACK = 'south-0';

describe('a cluster restored to six hours ago', () => {
  let fleet: ControlledFleet;
  let names: string[];
  let source: MemoryItemStore;
  beforeEach(async () => {
    const before = await settledFleet(zoneOf);
    names = before.names;
    for (const name of names) await before.fleet.addPod(`pod-of-${name}`, name);
    await before.fleet.streams();
    await before.fleet.run(5, MOMENT, async (seconds) => {
      if (seconds % BEAT !== 0) return;
      const silent = [...(seconds > 300 ? [DEAD, BACK] : []), ...(seconds > MOMENT - 30 ? [LATE] : [])];
      await before.fleet.beat(...names.filter((name) => !silent.includes(name)));
      if (seconds % 100 === 0) for (const name of names) if (!silent.includes(name)) await before.fleet.post(name);
    });
    for (const name of [DEAD, BACK]) {
      expect(await before.fleet.taints(name)).toEqual(['unreachable:NoExecute', 'unreachable:NoSchedule']);
      expect(await before.fleet.timers(name)).toHaveLength(1);
    }
    source = before.fleet.tables;
    fleet = await restored(source);
  });

  const alive = () => names.filter((name) => name !== DEAD);
  /** Machines reconnect within one grace period, and send heartbeats from then on. */
  const beating = async (seconds: number): Promise<void> => {
    const since = seconds - RESTORED;
    if (since < 30 || since % BEAT !== 0) return;
    await fleet.beat(...alive());
    if (since === 30) await fleet.post(BACK);
  };

  const restoredEvents = async (reason: string) => (await restored(source)).events(reason);

  it('has the state of that time', async () => {
    expect((await fleet.objects.list({ resource: 'nodes' })).objects).toHaveLength(names.length);
    expect((await fleet.objects.list({ resource: 'pods' })).objects).toHaveLength(names.length);
    expect(await fleet.ready(DEAD)).toBe('Unknown');
    expect(await fleet.timers(DEAD)).toHaveLength(1);
  });

  it('holds back at once: no node is marked or tainted, no pod deleted, however old the state is', async () => {
    fleet.at(RESTORED);
    await fleet.tick();
    expect((await fleet.records()).state.gate.reasons).toEqual(['missedTicks']);
    for (const name of alive().filter((name) => name !== BACK)) {
      expect([name, await fleet.ready(name), await fleet.taints(name)]).toEqual([name, 'True', []]);
    }
    for (const name of names) {
      expect((await fleet.pod(`pod-of-${name}`))?.metadata.deletionTimestamp, name).toBeUndefined();
    }
  });

  it('marks and evicts no node that sends heartbeats again within a grace period', async () => {
    await fleet.run(RESTORED, RESTORED + 1_200, beating);
    for (const name of alive()) {
      expect([name, await fleet.ready(name), await fleet.taints(name)]).toEqual([name, 'True', []]);
      expect((await fleet.pod(`pod-of-${name}`))?.metadata.deletionTimestamp, name).toBeUndefined();
      expect(await fleet.timers(name), name).toEqual([]);
    }
    expect((await fleet.records()).state.gate.reasons).toEqual([]);
    expect((await fleet.records()).queue).toEqual([]);
    // Those from before the restored time have expired, and there are no others.
    expect(await restoredEvents('NodeNotReady')).not.toEqual([]);
    expect(await fleet.events('NodeNotReady')).toEqual([]);
  });

  it('still evicts the pods of the dead machine, after its new grace period', async () => {
    await fleet.run(RESTORED, RESTORED + 35, beating);
    expect((await fleet.pod(`pod-of-${DEAD}`))?.metadata.deletionTimestamp).toBeUndefined();
    await fleet.run(RESTORED + 40, RESTORED + 400, beating);
    expect(await fleet.taints(DEAD)).toEqual(['unreachable:NoExecute', 'unreachable:NoSchedule']);
    expect((await fleet.pod(`pod-of-${DEAD}`))?.metadata.deletionTimestamp).toBeDefined();
  });

  it('marks a silent node not before a new grace period, and at most one period after it', async () => {
    const grace = fleet.policy.nodeMonitorGracePeriodSeconds;
    const period = fleet.policy.nodeMonitorPeriodSeconds;
    const marked = new Map<string, number>();
    await fleet.run(RESTORED, RESTORED + 120, async (seconds) => {
      for (const name of ['west-0', 'west-1']) {
        if (!marked.has(name) && (await fleet.ready(name)) === 'Unknown') marked.set(name, seconds - period - RESTORED);
      }
      if (seconds >= RESTORED + 30 && seconds % BEAT === 0) {
        await fleet.beat(...alive().filter((name) => !name.startsWith('west-')));
      }
    });
    for (const name of ['west-0', 'west-1']) {
      expect(marked.get(name)).toBeGreaterThanOrEqual(grace);
      expect(marked.get(name)).toBeLessThanOrEqual(grace + 2 * period);
    }
  });

  it('continues with larger versions: watchers resume', async () => {
    const versionOf = async (name: string) => Number((await fleet.node(name))?.metadata.resourceVersion);
    const newest = Math.max(...(await Promise.all(names.map(versionOf))));
    fleet.at(RESTORED);
    await fleet.tick();
    await fleet.post('west-2');
    expect(await versionOf('west-2')).toBeGreaterThan(newest);
  });

  it('does not know machines that joined after that time: their requests fail, and they register again', async () => {
    fleet.at(RESTORED);
    await expect(fleet.beat('newcomer')).rejects.toThrow(/beat of newcomer: /);
    await fleet.register('newcomer', { zone: 'west' });
    await fleet.post('newcomer');
    await fleet.run(RESTORED, RESTORED + 200, async (seconds) => {
      await beating(seconds);
      if (seconds % BEAT === 0) await fleet.beat('newcomer');
    });
    expect([await fleet.ready('newcomer'), await fleet.taints('newcomer')]).toEqual(['True', []]);
  });
});
