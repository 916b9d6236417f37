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
 *
 * When a workload is looked at again although nothing changes: pk `workloads-due` sk `<due, 14 digits>#<key>` in the
 * `control` table, without attributes. Times are rounded up to the second, so repeated syncs write one row.
 *
 * sk `next-sweep`, attribute t: when the next sweep is due, epoch milliseconds. It is read when more rows are stored
 * than one read returns: the row of the sweep may be behind them. Attribute f: where a sweep that was cut off
 * continues.
 */
import { defined } from '../defined.ts';
import type { ObjectRef } from '../kinds/types.ts';
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

export const WORKLOADS_DUE: DueRows = { pk: 'workloads-due', time: 'sortKey' };
const PARTITION = WORKLOADS_DUE.pk;
const DUE_READ_MAX = 200;
/** Behind all times. */
const NEXT_SWEEP = 'next-sweep';

/** A workload, the sweep over all of them, or another work that failed. `daemonSets`: all of them. */
export type DueKey =
  | { readonly kind: 'sweep' }
  | { readonly kind: 'daemonSets' }
  | { readonly kind: 'workload' | RepeatedKind; readonly ref: ObjectRef }
  /** Services changed for the agents of a zone (functions/workloads/endpoints/announcements.ts). */
  | { readonly kind: 'announce'; readonly zone: string }
  /** Dependents of an owner: that was removed, or, `dependents`, that may exist. */
  | { readonly kind: 'collect' | 'dependents'; readonly ownerUid: string };

type RepeatedKind = 'finish' | 'adopt' | 'podEnded';

export interface DueRow {
  readonly atMs: number;
  readonly key: DueKey;
}

const SWEEP = 'sweep';
const DAEMON_SETS = 'daemonSets';
const ANNOUNCE = 'announce=';
const OF_OWNER = ['collect', 'dependents'] as const;
const REPEATED: readonly RepeatedKind[] = ['finish', 'adopt', 'podEnded'];

export function textOf(key: DueKey): string {
  if (key.kind === 'sweep') return SWEEP;
  if (key.kind === 'daemonSets') return DAEMON_SETS;
  if (key.kind === 'announce') return `${ANNOUNCE}${key.zone}`;
  if ('ownerUid' in key) return `${key.kind}=${key.ownerUid}`;
  const { resource, namespace, name } = key.ref;
  return `${key.kind === 'workload' ? '' : `${key.kind}=`}${resource}:${namespace}/${name}`;
}

function keyOfText(text: string): DueKey {
  if (text === SWEEP) return { kind: 'sweep' };
  if (text === DAEMON_SETS) return { kind: 'daemonSets' };
  if (text.startsWith(ANNOUNCE)) return { kind: 'announce', zone: text.slice(ANNOUNCE.length) };
  const ofOwner = OF_OWNER.find((each) => text.startsWith(`${each}=`));
  if (ofOwner !== undefined) return { kind: ofOwner, ownerUid: text.slice(ofOwner.length + 1) };
  const kind = REPEATED.find((each) => text.startsWith(`${each}=`));
  const coordinates = kind === undefined ? text : text.slice(kind.length + 1);
  // The name of a role may have colons.
  const colon = coordinates.indexOf(':');
  const [resource, name] = [coordinates.slice(0, colon), coordinates.slice(colon + 1)];
  const slash = name.indexOf('/');
  return { kind: kind ?? 'workload', ref: { resource, namespace: name.slice(0, slash), name: name.slice(slash + 1) } };
}

const toSecond = (atMs: number): number => Math.ceil(atMs / 1_000) * 1_000;

const itemKey = ({ atMs, key }: DueRow): ItemKey => ({
  table: 'control',
  pk: PARTITION,
  sk: `${dueText(toSecond(atMs))}#${textOf(key)}`,
});

type Items = Pick<ItemStore, 'query' | 'write'>;

export async function addDue(items: Items, row: DueRow): Promise<void> {
  await items.write({ kind: 'put', key: itemKey(row), item: {} });
}

export async function removeDue(items: Items, row: DueRow): Promise<void> {
  await items.write({ kind: 'delete', key: itemKey(row) });
}

/** `from`: the text of the first workload that a sweep did not reach. Absent: the sweep reached all. */
export interface NextSweep {
  /** Epoch milliseconds; 0: it is not stored. */
  readonly atMs: number;
  readonly from?: string;
}

/** Stores the next sweep. */
export async function addSweep(items: Items, { atMs, from }: NextSweep): Promise<void> {
  await addDue(items, { atMs, key: { kind: 'sweep' } });
  const item = { t: atMs, ...defined({ f: from }) };
  await items.write({ kind: 'put', key: { table: 'control', pk: PARTITION, sk: NEXT_SWEEP }, item });
}

export async function nextSweep(items: Items): Promise<NextSweep> {
  const page = await items.query({
    table: 'control',
    pk: PARTITION,
    consistent: true,
    beginsWith: NEXT_SWEEP,
    limit: 1,
  });
  const { t: atMs = 0, f: from } = page.items[0] ?? {};
  return { atMs: Number(atMs), ...(from === undefined ? {} : { from: String(from) }) };
}

/** The earliest rows, due or not. `isCut`: more may be stored. */
export async function earliestRows(
  items: Items,
): Promise<{ readonly rows: readonly DueRow[]; readonly isCut: boolean }> {
  const page = await items.query({ table: 'control', pk: PARTITION, consistent: true, limit: DUE_READ_MAX });
  const rows = page.items
    .map(({ sk }) => String(sk))
    .filter((text) => text !== NEXT_SWEEP)
    .map((text) => ({ atMs: Number(text.slice(0, DUE_DIGITS)), key: keyOfText(text.slice(DUE_DIGITS + 1)) }));
  return { rows, isCut: rows.length >= DUE_READ_MAX };
}
