/** A decision on an earlier read is checked again at the write, by the server's clock. */
import { describe, expect, it } from 'vitest';
import { fleetControllers } from '../../server/fleet-controllers.ts';
import { evictionTimerStore } from '../../shared/fleet/eviction-timer-store.ts';
import { fleetStore } from '../../shared/fleet/fleet-store.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { apiInMemory } from '../support/api-in-memory.ts';
import { type ControlledFleet, settledFleet } from '../support/controlled-fleet.ts';

const beats = (fleet: ControlledFleet, ...names: string[]) => {
  return (seconds: number): Promise<unknown> => (seconds % 10 === 0 ? fleet.beat(...names) : Promise.resolve());
};

/** Runs a callback once, just before the Node of this name is read. */
const beforeReadOf = (items: ItemStore, name: string, what: () => Promise<unknown>): ItemStore => {
  let isDone = false;
  return {
    ...items,
    async get(key, options) {
      if (!isDone && key.pk.startsWith('o#nodes#') && key.sk === name) {
        isDone = true;
        await what();
      }
      return items.get(key, options);
    },
  };
};

describe('a NoExecute taint', () => {
  it('is not added to a node that becomes Ready between the decision and the write', async () => {
    const { fleet } = await settledFleet({ a: 5 });
    await fleet.run(0, 20, beats(fleet, 'a-0', 'a-1', 'a-2', 'a-3', 'a-4'));
    fleet.at(25);
    await fleet.post('a-4', 'False');
    await fleet.streams();
    await fleet.controllers.tickNodeMonitor(fleet.slot());
    expect((await fleet.records()).queue.map(({ nodeName }) => nodeName)).toEqual(['a-4']);
    let posted = false;
    const racing = fleet.makeControllers(
      beforeReadOf(fleet.tables, 'a-4', async () => {
        posted = true;
        await fleet.post('a-4', 'True');
      }),
    );
    await racing.tickEvictor(fleet.slot());
    expect(posted).toBe(true);
    expect(await fleet.taints('a-4')).not.toContain('not-ready:NoExecute');
  });

  it.each([
    ['gate', 'disruption'],
    ['disruption', 'gate'],
  ] as const)('waits for the fresh grace of the %s, though that of the %s is long over', async (later, _earlier) => {
    const { fleet } = await settledFleet({ a: 5 }, { policy: { nodeEvictionRatePerSecond: 0.1 } });
    await fleet.run(0, 45, beats(fleet, 'a-0', 'a-1', 'a-2', 'a-3'));
    expect(await fleet.ready('a-4')).toBe('Unknown');
    await fleet.changeNode('a-4', (node) => ({ ...node, spec: { ...node.spec, taints: [] } }));
    fleet.at(47);
    await fleet.beat('a-4');
    fleet.at(95);
    const health = await fleet.health('a-4');
    const { state } = await fleet.records();
    const freshSinceMs = fleet.nowMs() - 10_000;
    const key = { table: 'control', pk: 'fleet', sk: 'state' } as const;
    const { lastTickAtMs: _, ...gate } = state.gate;
    await fleet.tables.write({
      kind: 'update',
      key,
      set: {
        doneAt: fleet.nowMs(),
        gate: JSON.stringify({ ...gate, freshSinceMs: later === 'gate' ? freshSinceMs : 1 }),
        disruption: JSON.stringify({
          total: false,
          sinceMs: freshSinceMs,
          freshSinceMs: later === 'disruption' ? freshSinceMs : 1,
        }),
      },
    });
    const addedAtMs = fleet.nowMs();
    await fleetStore(fleet.tables).enqueue({
      zone: health!.zone,
      nodeName: 'a-4',
      uid: health!.uid,
      addedAtMs,
    });
    await fleet.controllers.tickEvictor(fleet.slot());
    expect(await fleet.taints('a-4')).not.toContain('unreachable:NoExecute');
    expect((await fleet.records()).queue).toEqual([]);
  });

  it('stays on a node that becomes not ready between the decision to remove it and the write', async () => {
    const { fleet } = await settledFleet({ a: 5 });
    await fleet.run(0, 60, beats(fleet, 'a-0', 'a-1', 'a-2', 'a-3'));
    expect(await fleet.taints('a-4')).toContain('unreachable:NoExecute');
    fleet.at(65);
    await fleet.beat('a-4');
    await fleet.post('a-4', 'True');
    let posted = false;
    const racing = fleet.makeControllers(
      beforeReadOf(fleet.tables, 'a-4', async () => {
        posted = true;
        await fleet.post('a-4', 'False');
      }),
    );
    await racing.tickNodeMonitor(fleet.slot());
    expect(posted).toBe(true);
    expect(await fleet.taints('a-4')).toContain('unreachable:NoExecute');
  });
});

describe('node-monitor', () => {
  it.each([
    ['on', 1],
    ['off', 0],
  ] as const)('with the ingest gate %s sends probes accordingly', async (ingestGate, atLeast) => {
    let probes = 0;
    const probe = {
      beat: async () => {
        probes += 1;
        return { kind: 'accepted' } as const;
      },
    };
    const { fleet } = await settledFleet({ a: 2 }, { probe, policy: { ingestGate } });
    await fleet.run(0, 15, beats(fleet, 'a-0', 'a-1'));
    if (atLeast === 0) expect(probes).toBe(0);
    else expect(probes).toBeGreaterThanOrEqual(atLeast);
  });
});

describe('the time that a pod tolerates a taint', () => {
  it('counts from its binding, not from its creation', async () => {
    const tables = memoryItemStore({ changesOf: ['objects'] });
    const api = apiInMemory({ items: tables });
    const made = async (path: string, body: object) => {
      const answer = await api.send('POST', path, { body });
      expect(answer.code, answer.text).toBe(201);
    };
    await made('/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1' },
      spec: {
        taints: [
          { key: 'k', effect: 'NoExecute', timeAdded: new Date(api.nowMs()).toISOString().replace(/\.\d+/, '') },
        ],
      },
    });
    await made('/api/v1/namespaces/default/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace: 'default' },
      spec: {
        containers: [{ name: 'c', image: 'i' }],
        tolerations: [{ key: 'k', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 60 }],
      },
    });
    api.advance(100_000);
    const boundAtMs = api.nowMs();
    await made('/api/v1/namespaces/default/pods/p/binding', {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'p' },
      target: { apiVersion: 'v1', kind: 'Node', name: 'n1' },
    });
    const note = () => undefined;
    const controllers = fleetControllers({
      items: tables,
      clock: { nowMs: api.nowMs },
      random: { uuid: () => crypto.randomUUID(), fraction: () => 0.5 },
      policy: defaultPolicy,
      log: { debug: note, info: note, warn: note, error: note },
      meter: { add: note },
    });
    const records = tables.changes('objects').filter(({ key }) => /^o#(nodes|pods)#/.test(key.pk));
    expect((await controllers.onObjectRecords(records)).faults).toEqual([]);
    const [timer] = (await evictionTimerStore(tables).read('n1')).timers;
    expect(timer?.atMs).toBeGreaterThanOrEqual(boundAtMs + 60_000);
    expect(timer?.atMs).toBeLessThan(boundAtMs + 62_000);
  });
});
