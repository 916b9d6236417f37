import { expect, it } from 'vitest';
import { type ConsumedUnits, StoreFault } from '../store/item-store.ts';
import { memoryItemStore } from '../store/memory/item-store.ts';
import { fleetStore } from './fleet-store.ts';
import { decideGate, UNTRIED_GATE } from './gate.ts';
import { defaultPolicy, type NodeProfile } from './policy.ts';
import { NO_DISRUPTION } from './zone-state.ts';

it('the removal of a node from the queue fails with the write', async () => {
  const fault = new StoreFault('timeout', 'no answer', { retryable: true });
  const failing = {
    ...memoryItemStore(),
    write: async () => {
      throw fault;
    },
  };
  const waiting = { zone: 'r/a', nodeName: 'n1', uid: 'u1', addedAtMs: 0 };
  await expect(fleetStore(failing).dequeue(waiting)).rejects.toBe(fault);
  await expect(fleetStore(failing).dropZone('r/a', 0)).rejects.toBe(fault);
});

it('stores the gates of three profiles with a claim of one write unit, and reads them back equal', async () => {
  const consumed: ConsumedUnits[] = [];
  const fleet = fleetStore(memoryItemStore({ onConsumed: (units) => consumed.push(units) }));
  const profile = (name: string, beatIntervalSeconds: number): NodeProfile => ({
    name,
    nodeSelector: { matchLabels: { link: name } },
    beatIntervalSeconds,
    nodeMonitorGracePeriodSeconds: 4 * beatIntervalSeconds,
  });
  const policy = { ...defaultPolicy, profiles: [profile('cell', 60), profile('fast', 5), profile('satellite', 300)] };
  let gate = UNTRIED_GATE;
  for (let slot = 0; slot < 200; slot += 1) {
    const nowMs = 1_790_000_000_000 + slot * 5_000;
    // At rest up to slot 150; then every other probe fails.
    const accepted = slot < 150 || slot % 2 === 0;
    gate = decideGate(gate, { nowMs, probes: [{ sentAtMs: nowMs, accepted }], policy });
    consumed.length = 0;
    const claim = {
      slot,
      periodSeconds: 5,
      seenFence: slot,
      nowMs,
      claimId: 'abcdefgh',
      gate,
      disruption: NO_DISRUPTION,
      nodes: 100_000,
    };
    expect(await fleet.claim({ ...claim, finished: true })).toEqual({ kind: 'claimed' });
    expect(consumed).toMatchObject([{ writeUnits: 1 }]);
    expect((await fleet.readState()).gate).toEqual({ ...gate, lastTickAtMs: nowMs });
  }
});
