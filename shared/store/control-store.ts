/**
 * The `control` table's small truths: whose turn a tick is, how the zones stand, and the zones' eviction limiters.
 * Every write is conditional and none is preceded by a read: whoever loses learns so from the refusal.
 */
import { changeRateUpdates, type LimiterUpdate, takeTokenUpdates } from '../domain/limiter.ts';
import {
  type CheckWrite,
  type Item,
  type ItemKey,
  type ItemStore,
  type PutWrite,
  StoreFault,
} from '../ports/item-store.ts';
import { ALONE, tickPartition, ZONES_PARTITION, zonePartition, zoneSortKey } from './layout.ts';

export type SlotClaim =
  | {
      readonly kind: 'claimed';
      /** Grows with every claim of this controller: later writes carry it, see fenceHolds. */
      readonly fence: number;
      /** The slot claimed before this one, and when (server time of its claimer); absent on the very first. */
      readonly previousSlot?: number;
      readonly previousAtMs?: number;
    }
  /** This slot, or a later one, is somebody else's. */
  | { readonly kind: 'lost' };

export type TokenTake =
  | { readonly kind: 'granted' }
  /** `waitMs`: when one can be had; Infinity for a rate of 0. */
  | { readonly kind: 'denied'; readonly waitMs: number }
  /** The limiter runs at another rate: whoever knows the zone's state has to change it first. */
  | { readonly kind: 'otherRate'; readonly ratePerSecond: number };

export interface ControlStore {
  /**
   * One conditional update. A claim whose answer was lost and that the SDK sent again is refused by its own success and
   * told `lost`: the slot is then nobody's, which costs one tick and is safe.
   */
  claimSlot(controller: string, slot: number, nowMs: number): Promise<SlotClaim>;
  /** The record of every zone that has one, by zone. */
  readZones(): Promise<ReadonlyMap<string, Item>>;
  /** `stale` when a holder of a later fence wrote it already. */
  writeZone(zone: string, record: Item, fence: number): Promise<'written' | 'stale'>;
  /**
   * Takes a token of a zone's limiter (GCRA, domain/limiter.ts). A limiter that does not exist yet is made, full, at the
   * rate of this call.
   */
  takeToken(zone: string, at: { readonly nowMs: number; readonly ratePerSecond: number }): Promise<TokenTake>;
  /** Changes the rate of a limiter that still runs at `fromPerSecond`; a missing one is made at the new rate, full. */
  changeRate(
    zone: string,
    at: { readonly nowMs: number; readonly fromPerSecond: number; readonly toPerSecond: number },
  ): Promise<'changed' | 'otherRate'>;
}

const tickKey = (controller: string): ItemKey => ({ table: 'control', pk: tickPartition(controller), sk: ALONE });
const limiterKey = (zone: string): ItemKey => ({ table: 'control', pk: zonePartition(zone), sk: 'limiter' });
const zoneKey = (zone: string): ItemKey => ({ table: 'control', pk: ZONES_PARTITION, sk: zoneSortKey(zone) });
/** Sort keys carry a prefix, because a zone may be named '' and a key may not. */
const ZONE_PREFIX_LENGTH = zoneSortKey('').length;
const ZONE_PAGES_MAX = 8;

/** For a commit's `extra`: nobody has claimed a later slot of this controller. */
export const fenceHolds = (controller: string, fence: number): CheckWrite => ({
  kind: 'check',
  key: tickKey(controller),
  when: { kind: 'compare', attribute: 'fence', op: '=', value: fence },
});

/** For a commit's `extra`: the same as writeZone. */
export const zoneWrite = (zone: string, record: Item, fence: number): PutWrite => ({
  kind: 'put',
  key: zoneKey(zone),
  item: { ...record, fence },
  when: {
    kind: 'any',
    of: [
      { kind: 'lacks', attribute: 'fence' },
      { kind: 'compare', attribute: 'fence', op: '<=', value: fence },
    ],
  },
});

export function controlStore(items: ItemStore): ControlStore {
  /** The first of the updates that is written; else the limiter as the last refusal showed it. */
  async function firstWritten(
    zone: string,
    updates: readonly LimiterUpdate[],
  ): Promise<{ kind: 'written' } | { kind: 'refused'; current: Item | undefined }> {
    let current: Item | undefined;
    for (const update of updates) {
      const outcome = await items.write({ kind: 'update', key: limiterKey(zone), ...update });
      if (outcome.kind === 'written') return { kind: 'written' };
      current = outcome.current;
      if (current === undefined) break;
    }
    return { kind: 'refused', current };
  }

  /** Makes a full limiter unless there is one. */
  const makeLimiter = (zone: string, ratePerSecond: number): Promise<unknown> =>
    items.write({ kind: 'put', key: limiterKey(zone), item: { ratePerSecond }, when: { kind: 'itemAbsent' } });

  return {
    async claimSlot(controller, slot, nowMs) {
      const outcome = await items.write(
        {
          kind: 'update',
          key: tickKey(controller),
          set: { slot, at: nowMs },
          add: { fence: 1 },
          when: {
            kind: 'any',
            of: [
              { kind: 'lacks', attribute: 'slot' },
              { kind: 'compare', attribute: 'slot', op: '<', value: slot },
            ],
          },
        },
        { returnPrevious: true },
      );
      if (outcome.kind === 'refused') return { kind: 'lost' };
      const { previous } = outcome;
      if (previous === undefined) return { kind: 'claimed', fence: 1 };
      return {
        kind: 'claimed',
        fence: (previous['fence'] as number) + 1,
        previousSlot: previous['slot'] as number,
        previousAtMs: previous['at'] as number,
      };
    },

    async readZones() {
      const zones = new Map<string, Item>();
      let after: string | undefined;
      for (let pages = 0; pages < ZONE_PAGES_MAX; pages += 1) {
        const page = await items.query({
          table: 'control',
          pk: ZONES_PARTITION,
          consistent: true,
          ...(after === undefined ? {} : { after }),
        });
        for (const { pk: _, sk, fence: __, ...record } of page.items) {
          zones.set((sk as string).slice(ZONE_PREFIX_LENGTH), record);
        }
        if (page.next === undefined) return zones;
        after = page.next;
      }
      throw new StoreFault('too-large', 'more zones than one read takes', { retryable: false });
    },

    async writeZone(zone, record, fence) {
      const outcome = await items.write(zoneWrite(zone, record, fence));
      return outcome.kind === 'written' ? 'written' : 'stale';
    },

    async takeToken(zone, { nowMs, ratePerSecond }) {
      const updates = takeTokenUpdates({ nowMs, ratePerSecond });
      if (updates.length === 0) return { kind: 'denied', waitMs: Infinity };
      let outcome = await firstWritten(zone, updates);
      if (outcome.kind === 'refused' && outcome.current === undefined) {
        await makeLimiter(zone, ratePerSecond);
        outcome = await firstWritten(zone, updates);
      }
      if (outcome.kind === 'written') return { kind: 'granted' };
      const stored = outcome.current?.['ratePerSecond'] as number | undefined;
      if (stored !== undefined && stored !== ratePerSecond) return { kind: 'otherRate', ratePerSecond: stored };
      return { kind: 'denied', waitMs: Math.max(0, ((outcome.current?.['tatMs'] as number) ?? nowMs) - nowMs) };
    },

    async changeRate(zone, at) {
      if (at.fromPerSecond === at.toPerSecond) return 'changed';
      const outcome = await firstWritten(zone, changeRateUpdates(at));
      if (outcome.kind === 'written') return 'changed';
      if (outcome.current === undefined) await makeLimiter(zone, at.toPerSecond);
      return outcome.current === undefined || outcome.current['ratePerSecond'] === at.toPerSecond
        ? 'changed'
        : 'otherRate';
    },
  };
}
