/** What controllers keep in the `control` table about ticks, zones and the queue, on every store. */
import { beforeEach, describe, expect, it } from 'vitest';
import {
  acquireTokenWrite,
  dequeueWrite,
  type FleetStore,
  fleetStore,
  type MonitorClaim,
  mayTaint,
} from '../../shared/fleet/fleet-store.ts';
import { UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import { takeTokenUpdate } from '../../shared/fleet/limiter.ts';
import { NO_DISRUPTION } from '../../shared/fleet/zone-state.ts';
import { describeOnStores } from './stores.ts';

const T0 = 1_795_197_000_000;
const PERIOD_MS = 5_000;
let count = 0;
let claims = 0;
/** Slots only go up, and all tests of a store share one state. */
let slot = 100;

const aClaim = (change: Partial<MonitorClaim> = {}): MonitorClaim => {
  claims += 1;
  return {
    slot,
    periodSeconds: 5,
    seenFence: 0,
    nowMs: T0,
    claimId: `tick-${claims}`,
    gate: UNTRIED_GATE,
    disruption: NO_DISRUPTION,
    nodes: 3,
    finished: true,
    ...change,
  };
};

describeOnStores('the fleet store', (fixture) => {
  let store: FleetStore;
  let zone: string;
  beforeEach(() => {
    count += 1;
    slot += 10;
    store = fleetStore(fixture.items());
    zone = `zone-${count}`;
    fixture.consumed();
  });

  const recordOf = async (name: string) => (await store.read()).zones.find((record) => record.zone === name);
  const commit = async (...writes: Parameters<ReturnType<typeof fixture.items>['transact']>[0]) =>
    (await fixture.items().transact(writes)).kind;

  describe('ticks of node-monitor', () => {
    it('lets one of many claim a slot, by one write each', async () => {
      const { fence } = await store.readState();
      fixture.consumed();
      const claims = await Promise.all(Array.from({ length: 10 }, () => store.claim(aClaim({ seenFence: fence }))));
      expect(claims.filter(({ kind }) => kind === 'claimed')).toHaveLength(1);
      expect(claims.filter(({ kind }) => kind === 'lost')).toHaveLength(9);
      expect(new Set(fixture.consumed().map(({ operation }) => operation))).toEqual(new Set(['UpdateItem']));
      expect(await store.readState()).toMatchObject({ slot, fence: fence + 1 });
    });

    it('counts a claim that its own lost success refuses as claimed', async () => {
      const { fence } = await store.readState();
      const claim = aClaim({ seenFence: fence, nowMs: T0 + 1 });
      expect(await store.claim(claim)).toEqual({ kind: 'claimed' });
      expect(await store.claim(claim)).toEqual({ kind: 'claimed' });
      expect(await store.claim({ ...claim, claimId: 'another' })).toEqual({ kind: 'lost' });
      expect(await store.readState()).toMatchObject({ slot, fence: fence + 1, claimedAtMs: T0 + 1 });
    });

    it('returns the stored state to a process that decided on an older one', async () => {
      const { fence } = await store.readState();
      await store.claim(aClaim({ seenFence: fence }));
      const overtaken = await store.claim(aClaim({ slot: slot + 1, seenFence: fence }));
      expect(overtaken).toMatchObject({ kind: 'overtaken', state: { slot, fence: fence + 1 } });
      expect(await store.claim(aClaim({ slot: slot + 1, seenFence: fence + 1 }))).toEqual({ kind: 'claimed' });
      expect(await store.claim(aClaim({ seenFence: fence + 2 }))).toEqual({ kind: 'lost' });
    });

    it('knows when the last tick that finished began', async () => {
      const { fence } = await store.readState();
      await store.claim(aClaim({ seenFence: fence, nowMs: T0 + slot }));
      expect((await store.readState()).gate.lastTickAtMs).toBe(T0 + slot);
      await store.claim(aClaim({ slot: slot + 1, seenFence: fence + 1, nowMs: T0 + slot + 2, finished: false }));
      expect((await store.readState()).gate.lastTickAtMs).toBe(T0 + slot);
      await store.finish(T0 + slot + 2);
      await store.finish(T0 + slot + 1); // an earlier tick that took long
      expect((await store.readState()).gate.lastTickAtMs).toBe(T0 + slot + 2);
    });

    it.each([
      ['the gate holds', { gate: { ...UNTRIED_GATE, reasons: ['missedTicks'] as const } }],
      ['all zones are dark', { disruption: { ...NO_DISRUPTION, total: true } }],
    ])('refuses a taint while %s', async (_, change) => {
      const { fence } = await store.readState();
      const effect = { kind: 'put', key: { table: 'control', pk: `effect-${count}`, sk: '-' }, item: {} } as const;
      await store.claim(aClaim({ seenFence: fence, ...change }));
      expect(await commit(effect, mayTaint)).toBe('refused');
      await store.claim(aClaim({ slot: slot + 1, seenFence: fence + 1 }));
      expect(await commit(effect, mayTaint)).toBe('written');
    });
  });

  describe('bare ticks', () => {
    it('let one of many claim a slot, in ascending order only, and separate controllers', async () => {
      const controller = `controller-${count}`;
      const claimed = (slot: number) => ({ slot, periodSeconds: 5 });
      const claims = await Promise.all(
        Array.from({ length: 10 }, (_, claimer) => store.claimBare(controller, claimed(8), T0 + claimer)),
      );
      expect(claims.filter((claim) => claim === 'claimed')).toHaveLength(1);
      expect(await store.claimBare(controller, claimed(7), T0 + PERIOD_MS)).toBe('lost');
      expect(await store.claimBare(`${controller}-other`, claimed(7), T0)).toBe('claimed');
      expect(await store.claimBare(controller, claimed(20), T0 + PERIOD_MS)).toBe('claimed');
    });

    it('are in the order of their beginnings when the policy has another period', async () => {
      const controller = `controller-${count}`;
      const claim = (slot: number, periodSeconds: number) => store.claimBare(controller, { slot, periodSeconds }, T0);
      const claims = [
        await claim(8, 5),
        await claim(4, 10),
        await claim(5, 10),
        await claim(10, 5),
        await claim(11, 5),
      ];
      expect(claims).toEqual(['claimed', 'lost', 'claimed', 'lost', 'claimed']);
    });
  });

  describe('zones', () => {
    it('reads all zones there are, the nameless one included', async () => {
      await store.createZone(zone, { state: 'Normal', ratePerSecond: 0.1, nowMs: 1 });
      await store.createZone('', { state: undefined, ratePerSecond: 1, nowMs: 2 });
      const limiter = (ratePerSecond: number) => ({ tatMs: undefined, ratePerSecond });
      expect(await recordOf(zone)).toEqual({ zone, state: 'Normal', limiter: limiter(0.1), createdAtMs: 1 });
      expect(await recordOf('')).toEqual({ zone: '', state: undefined, limiter: limiter(1), createdAtMs: 2 });
    });

    it('keeps what a zone has when it is created again', async () => {
      await store.createZone(zone, { state: 'Normal', ratePerSecond: 0.1, nowMs: 0 });
      await store.createZone(zone, { state: 'FullDisruption', ratePerSecond: 1, nowMs: 0 });
      expect(await recordOf(zone)).toMatchObject({ state: 'Normal', limiter: { ratePerSecond: 0.1 } });
    });

    it('changes the state for those who know the present one, and never makes a zone by it', async () => {
      await store.setZoneState(zone, undefined, 'Normal');
      expect(await recordOf(zone)).toBeUndefined();
      await store.createZone(zone, { state: 'Normal', ratePerSecond: 0.1, nowMs: 0 });
      await store.setZoneState(zone, 'PartialDisruption', 'FullDisruption');
      expect(await recordOf(zone)).toMatchObject({ state: 'Normal' });
      await store.setZoneState(zone, 'Normal', 'FullDisruption');
      expect(await recordOf(zone)).toMatchObject({ state: 'FullDisruption' });
      await store.setZoneState(zone, 'FullDisruption', undefined);
      expect((await recordOf(zone))?.state).toBeUndefined();
    });
  });

  describe('limiters', () => {
    beforeEach(async () => {
      await store.createZone(zone, { state: 'Normal', ratePerSecond: 0.1, nowMs: 0 });
      fixture.consumed();
    });
    const take = (nowMs: number, ratePerSecond = 0.1) =>
      commit(acquireTokenWrite(zone, takeTokenUpdate({ nowMs, ratePerSecond })!));

    it('grants one token an interval', async () => {
      expect(await take(T0)).toBe('written');
      expect(await take(T0 + 9_999)).toBe('refused');
      expect(await take(T0 + 10_000)).toBe('written');
    });

    it('L3 grants at most 1 + rate x T whoever asks, with clocks half a second apart', async () => {
      let granted = 0;
      for (let second = 0; second < 60; second += 1) {
        const takes = await Promise.all([-500, -100, 0, 300, 500].map((skewMs) => take(T0 + second * 1_000 + skewMs)));
        granted += takes.filter((outcome) => outcome === 'written').length;
      }
      expect(granted).toBeGreaterThanOrEqual(6);
      expect(granted).toBeLessThanOrEqual(1 + 0.1 * 61);
    });

    it('does not grant at a rate that is not the limiter’s, nor where there is none', async () => {
      expect(await take(T0, 1)).toBe('refused');
      const token = takeTokenUpdate({ nowMs: T0, ratePerSecond: 0.1 });
      expect(await commit(acquireTokenWrite(`${zone}-unknown`, token!))).toBe('refused');
    });

    it('changes the rate for those who know the present one', async () => {
      await take(T0);
      const change = { nowMs: T0 + 1_000, fromPerSecond: 0.1, toPerSecond: 1 };
      await store.setZoneRate(zone, change);
      await store.setZoneRate(zone, change); // it is so already
      await store.setZoneRate(zone, { nowMs: T0, fromPerSecond: 0.5, toPerSecond: 2 });
      expect((await recordOf(zone))?.limiter.ratePerSecond).toBe(1);
      expect(await take(T0 + 1_999, 1)).toBe('refused');
      expect(await take(T0 + 2_000, 1)).toBe('written');
    });

    it('outlives its zone until it is full', async () => {
      await take(T0);
      await store.dropZone(zone, T0 + 9_999);
      expect(await recordOf(zone)).toBeDefined();
      await store.dropZone(zone, T0 + 10_000);
      expect(await recordOf(zone)).toBeUndefined();
    });
  });

  describe('the queue', () => {
    const entry = (change: object = {}) => ({
      zone,
      nodeName: 'n1',
      uid: 'u1',
      addedAtMs: T0,
      ...change,
    });
    const waiting = async () => (await store.read()).queue.filter((each) => each.zone === zone);

    it('keeps the turn of a node that waits already', async () => {
      expect(await store.enqueue(entry())).toBe('written');
      expect(await store.enqueue(entry({ addedAtMs: T0 + 1 }))).toBe('refused');
      expect(await waiting()).toEqual([entry()]);
    });

    it('removes a node by its uid', async () => {
      await store.enqueue(entry());
      await store.dequeue(entry({ uid: 'another' }));
      expect(await waiting()).toHaveLength(1);
      await store.dequeue(entry());
      expect(await waiting()).toEqual([]);
    });

    it('lets this very entry leave once', async () => {
      await store.enqueue(entry());
      expect(await commit(dequeueWrite(entry({ addedAtMs: T0 - 1 })))).toBe('refused');
      expect(await commit(dequeueWrite(entry()))).toBe('written');
      expect(await commit(dequeueWrite(entry()))).toBe('refused');
    });
  });
});
