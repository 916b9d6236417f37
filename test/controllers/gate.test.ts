import { describe, expect, it } from 'vitest';
import { leaseProbe, probeTokens } from '../../functions/node-monitor/probes.ts';
import { keepProbeKey } from '../../shared/access/process-key-store.ts';
import { processKeys } from '../../shared/access/process-keys.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { settledFleet } from '../support/controlled-fleet.ts';

describe('the gate', () => {
  it('reports nothing about the first tick ever, and marks no node for the time before it', async () => {
    const { fleet, names } = await settledFleet({ a: 2 });
    await fleet.run(3_600, 3_640);
    for (const name of names) expect(await fleet.ready(name)).toBe('True');
    await fleet.run(3_645, 3_645);
    for (const name of names) expect(await fleet.ready(name)).toBe('Unknown');
    expect(await fleet.events('GateClosed')).toEqual([]);
    expect(await fleet.events('GateOpened')).toEqual([]);
  });

  it('reports missing ticks once, marks no node meanwhile, and reports once when it opens', async () => {
    const { fleet, names } = await settledFleet({ a: 2, b: 1 });
    await fleet.run(0, 20, () => fleet.beat(...names));
    await fleet.run(300, 330);
    for (const name of names) expect(await fleet.ready(name)).toBe('True');
    const told = [...(await fleet.events('GateClosed')), ...(await fleet.events('GateOpened'))];
    expect(told).toMatchObject([
      {
        reason: 'GateClosed',
        type: 'Warning',
        involvedObject: { kind: 'Namespace', name: 'kube-node-lease' },
        message: 'Safety gate closed: node-monitor missed ticks; no node is newly marked, tainted or evicted',
      },
      {
        reason: 'GateOpened',
        type: 'Normal',
        message: 'Safety gate open; every node has a full grace period from 2026-01-01T00:05:00Z',
      },
    ]);
    expect(fleet.metrics.filter(({ name, value }) => name === 'gate_holding' && value === 1)).toHaveLength(1);
    // The new grace period starts at the first tick after the gap: 40 s, and then the next tick.
    await fleet.run(335, 340);
    for (const name of names) expect(await fleet.ready(name)).toBe('True');
    await fleet.run(345, 345);
    for (const name of names) expect(await fleet.ready(name)).toBe('Unknown');
  });

  it('works in a tick that cannot record the event of the closed gate, and records it in the next tick', async () => {
    let broken = false;
    const { fleet } = await settledFleet(
      { a: 3 },
      {
        between: (items) => ({
          ...items,
          transact: (writes) =>
            broken && writes.some(({ key }) => key.pk.startsWith('o#events#'))
              ? Promise.reject(new StoreFault('throttled', 'no event is stored', { retryable: true }))
              : items.transact(writes),
        }),
      },
    );
    await fleet.run(0, 60, (seconds) => (seconds % 10 === 0 ? fleet.beat('a-0', 'a-1') : Promise.resolve()));
    expect(await fleet.taints('a-2')).toContain('unreachable:NoExecute');
    fleet.at(120);
    await fleet.beat('a-0', 'a-1');
    await fleet.post('a-2');
    broken = true;
    await expect(fleet.controllers.tickNodeMonitor(fleet.slot())).rejects.toThrow('node-monitor could not finish');
    expect(await fleet.taints('a-2')).not.toContain('unreachable:NoExecute');
    expect(await fleet.events('GateClosed')).toEqual([]);
    broken = false;
    fleet.at(125);
    expect((await fleet.controllers.tickNodeMonitor(fleet.slot())).kind).toBe('ran');
    expect(await fleet.events('GateClosed')).toHaveLength(1);
  });

  it('is closed while its own probes fail, whatever the fleet does, and no node is evicted', async () => {
    let accepted = true;
    const probe = {
      beat: async () =>
        accepted ? ({ kind: 'accepted' } as const) : ({ kind: 'failed', reason: 'answered 503' } as const),
    };
    const { fleet, names } = await settledFleet({ a: 2, b: 1 }, { probe });
    await fleet.run(0, 20, () => fleet.beat(...names));
    accepted = false;
    await fleet.run(25, 200);
    for (const name of names) expect(await fleet.taints(name)).toEqual([]);
    expect(await fleet.events('GateClosed')).toMatchObject([
      {
        message:
          'Safety gate closed: heartbeat path not proven healthy (probe heartbeats failed, or ticks were late); no node is newly marked, tainted or evicted',
      },
    ]);
    accepted = true;
    await fleet.run(205, 240, () => fleet.beat(...names));
    for (const name of names) expect(await fleet.ready(name)).toBe('True');
    expect(await fleet.events('GateOpened')).toHaveLength(1);
  });

  it('is closed while the key of its probe cannot be stored: the probe fails and the tick continues', async () => {
    let broken = true;
    const items = memoryItemStore();
    const store = {
      get: items.get.bind(items),
      write: async (...wanted: Parameters<typeof items.write>) => {
        if (broken) throw new StoreFault('throttled', 'no key is stored', { retryable: true });
        return items.write(...wanted);
      },
    };
    let sent = 0;
    const probe = leaseProbe({
      url: 'https://cluster',
      credentials: probeTokens({ keys: processKeys(keepProbeKey(store)), clusterId: 'here' }),
      clock: { nowMs: () => 0 },
      fetch: async () => {
        sent += 1;
        return new Response('{}');
      },
    });
    const { fleet, names } = await settledFleet({ a: 2, b: 1 }, { probe });
    await fleet.run(0, 200);
    expect(sent).toBe(0);
    for (const name of names) expect(await fleet.ready(name)).toBe('True');
    expect(await fleet.events('GateClosed')).toMatchObject([
      {
        message:
          'Safety gate closed: heartbeat path not proven healthy (probe heartbeats failed, or ticks were late); no node is newly marked, tainted or evicted',
      },
    ]);
    broken = false;
    await fleet.run(205, 240, () => fleet.beat(...names));
    expect(sent).toBeGreaterThan(0);
    expect(await fleet.events('GateOpened')).toHaveLength(1);
  });
});
