/**
 * Due work as data: a function keeps what it has to do later as rows in a partition of the `control` table, each with
 * the time from which it is due. node-monitor reads whether one of them is due (functions/node-monitor/due-work.ts). It
 * knows the partitions, and nothing of the work.
 *
 * The rows of the work are the due times themselves, so no due time can be lost or wrong beside them. One row for all
 * functions would need a second write for each timer, and all writers would contend for it.
 *
 * Concurrency. A look changes nothing. It is eventually consistent: a row written within the last second may be
 * missed, and the next tick finds it. The row of a work that is being done may be found: then the claim of the
 * function's slot decides whether it acts.
 */
import { defined } from '../defined.ts';
import type { Item, ItemKey, ItemStore } from '../store/item-store.ts';

/** Milliseconds since the epoch until the year 5138. */
export const DUE_DIGITS = 14;
const DUE_MAX_MS = 10 ** DUE_DIGITS - 1;
/** Pages of one look, of 1 MB. Rows behind them are found when earlier ones are done. */
const PAGES_MAX = 4;

/** A partition of the `control` table with due work. */
export interface DueRows {
  readonly pk: string;
  /** Where the time is: the first digits of the sort key, an attribute, or nowhere: every row is due at once. */
  readonly time: 'sortKey' | { readonly attribute: string } | 'none';
}

/**
 * The beginning of a sort key. Clients choose durations: a later time is the last one, because more digits, `1e+21` and
 * `Infinity` have another order.
 */
export const dueText = (dueMs: number): string =>
  String(Math.min(DUE_MAX_MS, Math.max(0, Math.floor(dueMs)))).padStart(DUE_DIGITS, '0');

/** Sorts after every row that is due at this millisecond: names cannot contain this character. */
export const throughDue = (nowMs: number): string => `${dueText(nowMs)}#~`;

/** Whether a row of one of these partitions is due. Half a read unit for each that has none. */
export async function hasDueRow(
  items: Pick<ItemStore, 'query'>,
  partitions: readonly DueRows[],
  nowMs: number,
): Promise<boolean> {
  const found = await Promise.all(partitions.map((rows) => isAnyDue(items, rows, nowMs)));
  return found.includes(true);
}

async function isAnyDue(items: Pick<ItemStore, 'query'>, { pk, time }: DueRows, nowMs: number): Promise<boolean> {
  const look = { table: 'control', pk, consistent: false } as const;
  if (typeof time === 'string') {
    const through = time === 'sortKey' ? throughDue(nowMs) : undefined;
    return (await items.query({ ...look, ...defined({ through }), limit: 1 })).items.length > 0;
  }
  let after: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await items.query({ ...look, ...defined({ after }) });
    if (page.items.some((item) => Number(item[time.attribute]) <= nowMs)) return true;
    after = page.next;
    if (after === undefined) return false;
  }
  return false;
}

/** The row of a function that works in passes, one at a time (shared/scheduling/queue-store.ts). */
export interface Turn {
  /** Requests for a pass so far. */
  readonly wanted: number;
  /** Requests that passes have served. */
  readonly done: number;
  /** End of the running pass at the latest; 0 without one. Epoch milliseconds. */
  readonly busyUntilMs: number;
  /** When a pass is due without a request. */
  readonly dueAtMs: number | undefined;
}

/** Whether a pass is requested, or its time has come. */
export const isWanted = ({ wanted, done, dueAtMs }: Turn, nowMs: number): boolean =>
  wanted > done || (dueAtMs !== undefined && dueAtMs <= nowMs);

/** Eventually consistent: half a read unit. */
export const peekTurn = async (items: Pick<ItemStore, 'get'>, key: ItemKey): Promise<Turn> =>
  turnOf(await items.get(key, { consistent: false }));

export function turnOf(item: Item | undefined): Turn {
  const row = (item ?? {}) as { readonly [name in 'wanted' | 'done' | 'busyUntil' | 'due']?: number };
  return { wanted: row.wanted ?? 0, done: row.done ?? 0, busyUntilMs: row.busyUntil ?? 0, dueAtMs: row.due };
}
