/**
 * Slots of held watches in the `control` table. Each held watch occupies a concurrent execution of the account for up to
 * 15 minutes. The slots limit how many of them the functions for heartbeats and ticks must do without.
 *
 *   pk `watch-slots` sk number of the slot, 4 digits     holder, untilMs, ttl
 *
 * A slot belongs to its holder until untilMs, or until the holder releases it. An execution that is killed releases
 * nothing: its slot is free again at untilMs, when its watch would have ended. A stored slot above the limit is ignored,
 * so a lower limit applies as soon as watches end.
 *
 * Cost of a watch: 2 write units, and a read of at most 1 unit for every 100 held watches.
 */
import type { ItemKey, ItemStore } from '../ports/item-store.ts';

const PARTITION = 'watch-slots';
/** Attempts at a slot that another watch acquires at the same time. */
const ATTEMPTS_MAX = 4;
/** Expired rows are kept this long. Seconds. */
const REMEMBERED_SECONDS = 3_600;

const keyOf = (slot: number): ItemKey => ({ table: 'control', pk: PARTITION, sk: String(slot).padStart(4, '0') });

export interface WatchSlot {
  /** Frees the slot. Never rejects: a slot that cannot be freed now becomes free at the end of its time. */
  release(): Promise<void>;
}

export interface SlotRequest {
  /** Unique per watch. */
  readonly holder: string;
  /** Number of slots. */
  readonly slotsMax: number;
  readonly nowMs: number;
  /** When the watch ends at the latest. Epoch milliseconds. */
  readonly untilMs: number;
  /** 0 <= x < 1. Spreads concurrent watches over the free slots. */
  fraction(): number;
}

export interface WatchSlots {
  /** undefined: every slot is held. */
  acquire(request: SlotRequest): Promise<WatchSlot | undefined>;
}

export const watchSlots = (items: Pick<ItemStore, 'query' | 'write'>): WatchSlots => ({
  async acquire(request) {
    const { holder, nowMs, untilMs } = request;
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const free = await freeSlots(items, request);
      const slot = free[Math.floor(request.fraction() * free.length)];
      if (slot === undefined) return undefined;
      const key = keyOf(slot);
      const outcome = await items.write({
        kind: 'put',
        key,
        item: { holder, untilMs, ttl: Math.ceil(untilMs / 1_000) + REMEMBERED_SECONDS },
        when: {
          kind: 'any',
          of: [
            { kind: 'itemAbsent' },
            { kind: 'compare', attribute: 'untilMs', op: '<=', value: nowMs },
            // An earlier attempt of this request succeeded and its answer was lost.
            { kind: 'compare', attribute: 'holder', op: '=', value: holder },
          ],
        },
      });
      if (outcome.kind === 'written') return { release: () => release(items, key, holder) };
    }
    return undefined;
  },
});

async function freeSlots(items: Pick<ItemStore, 'query'>, request: SlotRequest): Promise<readonly number[]> {
  const held = new Set<string>();
  let after: string | undefined;
  // Every page has items, and there are at most 10,000 slots.
  for (let page = 0; page < 100; page += 1) {
    const read = await items.query({
      table: 'control',
      pk: PARTITION,
      consistent: true,
      ...(after === undefined ? {} : { after }),
    });
    for (const { sk, untilMs } of read.items) if (Number(untilMs) > request.nowMs) held.add(String(sk));
    if (read.next === undefined) break;
    after = read.next;
  }
  return Array.from({ length: request.slotsMax }, (_, slot) => slot).filter((slot) => !held.has(keyOf(slot).sk));
}

async function release(items: Pick<ItemStore, 'write'>, key: ItemKey, holder: string): Promise<void> {
  const when = { kind: 'compare', attribute: 'holder', op: '=', value: holder } as const;
  try {
    await items.write({ kind: 'delete', key, when });
  } catch {
    // It expires.
  }
}
