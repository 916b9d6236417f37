import { beforeEach, describe, expect, it } from 'vitest';
import { type ControlStore, controlStore, fenceHolds } from '../../shared/store/control-store.ts';
import { describeOnStores } from './stores.ts';

const T0 = 1_795_197_000_000;
let count = 0;

describeOnStores('the control store', (fixture) => {
  let store: ControlStore;
  let controller: string;
  let zone: string;
  beforeEach(() => {
    count += 1;
    store = controlStore(fixture.items());
    controller = `monitor-${count}`;
    zone = `zone-${count}`;
    fixture.consumed();
  });

  describe('ticks', () => {
    it('gives a slot to one of many, with a fence that grows', async () => {
      expect(await store.claimSlot(controller, 7, T0)).toEqual({ kind: 'claimed', fence: 1 });
      const claims = await Promise.all(
        Array.from({ length: 10 }, (_, claimer) => store.claimSlot(controller, 8, T0 + 5_000 + claimer)),
      );
      const won = claims.filter(({ kind }) => kind === 'claimed');
      expect(won).toEqual([{ kind: 'claimed', fence: 2, previousSlot: 7, previousAtMs: T0 }]);
    });

    it('drops a late slot, and tells the next one of a gap', async () => {
      await store.claimSlot(controller, 7, T0);
      expect(await store.claimSlot(controller, 6, T0 + 1)).toEqual({ kind: 'lost' });
      expect(await store.claimSlot(controller, 7, T0 + 2)).toEqual({ kind: 'lost' });
      expect(await store.claimSlot(controller, 20, T0 + 9)).toEqual({
        kind: 'claimed',
        fence: 2,
        previousSlot: 7,
        previousAtMs: T0,
      });
    });

    it('keeps controllers apart', async () => {
      await store.claimSlot(controller, 7, T0);
      expect((await store.claimSlot(`${controller}-other`, 7, T0)).kind).toBe('claimed');
    });

    it('stops a holder whose slot was followed by another', async () => {
      await store.claimSlot(controller, 1, T0);
      const write = { kind: 'put', key: { table: 'control', pk: `effect-${count}`, sk: '-' }, item: {} } as const;
      expect((await fixture.items().transact([write, fenceHolds(controller, 1)])).kind).toBe('written');
      await store.claimSlot(controller, 2, T0);
      expect((await fixture.items().transact([write, fenceHolds(controller, 1)])).kind).toBe('refused');
      expect((await fixture.items().transact([write, fenceHolds(controller, 2)])).kind).toBe('written');
    });
  });

  describe('zones', () => {
    it('reads all zones there are, the nameless one included', async () => {
      await store.writeZone(zone, { state: 'Normal', since: T0 }, 3);
      await store.writeZone('', { state: 'Initial' }, 3);
      const zones = await store.readZones();
      expect(zones.get(zone)).toEqual({ state: 'Normal', since: T0 });
      expect(zones.get('')).toEqual({ state: 'Initial' });
    });

    it('refuses a record of an earlier fence', async () => {
      expect(await store.writeZone(zone, { state: 'Normal' }, 5)).toBe('written');
      expect(await store.writeZone(zone, { state: 'FullDisruption' }, 4)).toBe('stale');
      expect(await store.writeZone(zone, { state: 'PartialDisruption' }, 5)).toBe('written');
      expect((await store.readZones()).get(zone)).toEqual({ state: 'PartialDisruption' });
    });
  });

  describe('limiters', () => {
    const take = (nowMs: number, ratePerSecond = 0.1) => store.takeToken(zone, { nowMs, ratePerSecond });

    it('grants one token an interval by one write each, and says how long to wait', async () => {
      expect(await take(T0)).toEqual({ kind: 'granted' });
      fixture.consumed();
      expect(await take(T0 + 9_999)).toEqual({ kind: 'denied', waitMs: 1 });
      expect(await take(T0 + 10_000)).toEqual({ kind: 'granted' });
      expect(fixture.consumed().map(({ operation }) => operation)).toEqual(['UpdateItem', 'UpdateItem']);
    });

    it('never grants at a rate of 0, and writes nothing for it', async () => {
      expect(await take(T0, 0)).toEqual({ kind: 'denied', waitMs: Infinity });
      expect(fixture.consumed()).toEqual([]);
    });

    it('L3 grants at most 1 + rate x T whoever asks, with clocks half a second apart', async () => {
      let granted = 0;
      for (let second = 0; second < 60; second += 1) {
        const takes = await Promise.all(
          [-500, -100, 0, 300, 500].map((skewMs) => take(T0 + second * 1_000 + skewMs, 0.1)),
        );
        granted += takes.filter(({ kind }) => kind === 'granted').length;
      }
      expect(granted).toBeGreaterThanOrEqual(6);
      expect(granted).toBeLessThanOrEqual(1 + 0.1 * 61);
    });

    it('does not grant at a rate that is not the limiter’s', async () => {
      await take(T0);
      expect(await take(T0 + 60_000, 1)).toEqual({ kind: 'otherRate', ratePerSecond: 0.1 });
    });

    it('changes the rate for those who know the present one', async () => {
      await take(T0);
      const change = { nowMs: T0 + 1_000, fromPerSecond: 0.1, toPerSecond: 1 };
      expect(await store.changeRate(zone, change)).toBe('changed');
      expect(await store.changeRate(zone, change)).toBe('changed'); // it is so already
      expect(await take(T0 + 1_999, 1)).toEqual({ kind: 'denied', waitMs: 1 });
      expect(await take(T0 + 2_000, 1)).toEqual({ kind: 'granted' });
      expect(await store.changeRate(zone, { nowMs: T0, fromPerSecond: 0.5, toPerSecond: 2 })).toBe('otherRate');
    });

    it('makes a limiter that is to change before it was ever used', async () => {
      expect(await store.changeRate(zone, { nowMs: T0, fromPerSecond: 0.1, toPerSecond: 1 })).toBe('changed');
      expect(await take(T0, 1)).toEqual({ kind: 'granted' });
    });
  });
});
