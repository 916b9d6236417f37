/**
 * Slots of held watches in the `control` table. Each held watch occupies a concurrent execution of the account for up
 * to 15 minutes. The slots limit how many of them the functions for heartbeats and ticks must do without, and how many
 * of them one user may hold (functions/watch/watch-shares.ts).
 *
 *   pk `watch-slots` sk number of the slot, 4 digits     holder, user, untilMs, ttl
 *
 * A slot belongs to its holder until untilMs, or until the holder releases it. An execution that is killed releases
 * nothing: its slot is free again at untilMs, when its watch would have ended. A stored slot above the limit is
 * ignored, so a lower limit applies as soon as watches end.
 *
 * Cost of a watch: 2 write units, and two reads of 1 unit for every 25 held watches or part of them.
 */
import { defined } from '../../shared/defined.ts';
import type { ItemKey, ItemStore } from '../../shared/store/item-store.ts';
import type { MeasuredForm } from '../../shared/watches/stream-form.ts';
import { formOf, SLOTS_PARTITION } from '../../shared/watches/stream-form-store.ts';
import { chooseSlot, type HeldSlot, isWithinShare, type SlotChoice, type SlotClaim } from './watch-shares.ts';

/** Attempts at a slot that another watch acquires at the same time. */
const ATTEMPTS_MAX = 4;
/** Pages of one read: every page has items, and there are at most 10,000 slots. */
const PAGES_MAX = 100;
/** Expired rows are kept this long. Seconds. */
const REMEMBERED_SECONDS = 3_600;

const keyOf = (slot: number): ItemKey => ({ table: 'control', pk: SLOTS_PARTITION, sk: String(slot).padStart(4, '0') });

export interface WatchSlot {
  /** Frees the slot. Never rejects: a slot that cannot be freed now becomes free at the end of its time. */
  release(): Promise<void>;
}

export interface SlotRequest extends SlotClaim {
  /** Unique per watch. */
  readonly holder: string;
  readonly nowMs: number;
  /** When the watch ends at the latest. Epoch milliseconds. */
  readonly untilMs: number;
  /** 0 <= x < 1. Spreads concurrent watches over the free slots. */
  fraction(): number;
}

export type SlotOutcome =
  | {
      readonly kind: 'acquired';
      readonly slot: WatchSlot;
      /** The form of streams, read with the slots. undefined: it was never measured. */
      readonly measured: MeasuredForm | undefined;
    }
  | Exclude<SlotChoice, { readonly kind: 'free' }>
  /** Other watches acquired each slot first. */
  | { readonly kind: 'contended' };

export interface WatchSlots {
  /** What limits them, for messages. */
  readonly limitedBy: string;
  acquire(request: SlotRequest): Promise<SlotOutcome>;
}

export const watchSlots = (items: Pick<ItemStore, 'query' | 'write'>): WatchSlots => ({
  limitedBy: 'concurrentWatchesMax',
  async acquire(request) {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const choice = chooseSlot(request, (await heldSlots(items, request.nowMs)).held);
      if (choice.kind !== 'free') return choice;
      const key = keyOf(choice.slots[Math.floor(request.fraction() * choice.slots.length)]!);
      if (!(await occupy(items, key, request))) continue;
      const { held, measured } = await heldSlots(items, request.nowMs);
      if (isWithinShare(request, held)) {
        return { kind: 'acquired', slot: { release: () => release(items, key, request.holder) }, measured };
      }
      await release(items, key, request.holder);
    }
    return { kind: 'contended' };
  },
});

/** @returns whether the slot was free */
async function occupy(
  items: Pick<ItemStore, 'write'>,
  key: ItemKey,
  { holder, user, nowMs, untilMs }: SlotRequest,
): Promise<boolean> {
  const outcome = await items.write({
    kind: 'put',
    key,
    item: { holder, user, untilMs, ttl: Math.ceil(untilMs / 1_000) + REMEMBERED_SECONDS },
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
  return outcome.kind === 'written';
}

interface SlotRows {
  readonly held: readonly HeldSlot[];
  readonly measured: MeasuredForm | undefined;
}

async function heldSlots(items: Pick<ItemStore, 'query'>, nowMs: number): Promise<SlotRows> {
  const held: HeldSlot[] = [];
  let measured: MeasuredForm | undefined;
  let after: string | undefined;
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const read = await items.query({ table: 'control', pk: SLOTS_PARTITION, consistent: true, ...defined({ after }) });
    for (const item of read.items) {
      const { sk, user, untilMs, holder } = item;
      measured ??= formOf(item);
      if (holder === undefined || !(Number(untilMs) > nowMs)) continue;
      held.push({ slot: Number(sk), user: String(user) });
    }
    if (read.next === undefined) break;
    after = read.next;
  }
  return { held, measured };
}

async function release(items: Pick<ItemStore, 'write'>, key: ItemKey, holder: string): Promise<void> {
  const when = { kind: 'compare', attribute: 'holder', op: '=', value: holder } as const;
  try {
    await items.write({ kind: 'delete', key, when });
  } catch {
    // It expires.
  }
}
