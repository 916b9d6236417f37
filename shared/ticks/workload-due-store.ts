/**
 * When a workload is looked at again although nothing changes: pk `workloads-due` sk `<due, 14 digits>#<key>` in the
 * `control` table, without attributes. Times are rounded up to the second, so repeated syncs write one row.
 *
 * sk `next-sweep`, attribute t: when the next sweep is due, epoch milliseconds. It is read when more rows are stored
 * than one read returns: the row of the sweep may be behind them. Attribute f: where a sweep that was cut off
 * continues.
 */
import { defined } from '../defined.ts';
import type { ObjectRef } from '../kinds/types.ts';
import type { ItemKey, ItemStore } from '../store/item-store.ts';
import { DUE_DIGITS, type DueRows, dueText } from './due-rows.ts';

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
