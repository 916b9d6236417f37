/** Copies the rows of a cluster through the store port, and compares what arrived. */

import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type Backoff, backoffMs } from '../../shared/backoff.ts';
import {
  type AttributeValue,
  type Item,
  type ItemKey,
  type ItemStore,
  type PutWrite,
  StoreFault,
  type TableName,
} from '../../shared/store/item-store.ts';
import { MOVE_PARTITION } from '../../shared/store/move-rows.ts';

export const TABLES: readonly TableName[] = ['objects', 'control', 'health'];
/** Writes at once. */
const WRITES_MAX = 64;
const PAGE_ITEMS = 500;
const ATTEMPTS_MAX = 6;
const PAUSES: Backoff = { firstMs: 100, limitMs: 1_600 };
const HASH_WORDS = 4;

export interface RowSum {
  readonly rows: number;
  /** The sum of the hashes of all rows: the same rows in another order have the same sum. */
  readonly hash: string;
}
export type RowSums = Readonly<Record<TableName, RowSum>>;

/** Puts every row. A row that is there already is replaced: a copy can be repeated. @returns how many */
export async function copyRows(from: Pick<ItemStore, 'scan'>, to: Pick<ItemStore, 'write'>): Promise<number> {
  let copied = 0;
  for (const table of TABLES) {
    for await (const items of pagesOf(from, table)) {
      for (let first = 0; first < items.length; first += WRITES_MAX) {
        const part = items.slice(first, first + WRITES_MAX);
        await Promise.all(
          part.map((item) => {
            const { pk, sk, ...attributes } = item;
            const key: ItemKey = { table, pk: String(pk), sk: String(sk) };
            return written(to, { kind: 'put', key, item: attributes });
          }),
        );
        copied += part.length;
      }
    }
  }
  return copied;
}

/** New tables of DynamoDB accept a part of this at first. */
async function written(to: Pick<ItemStore, 'write'>, write: PutWrite): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await to.write(write);
      return;
    } catch (fault) {
      if (!(fault instanceof StoreFault && fault.retryable) || attempt === ATTEMPTS_MAX) throw fault;
      await pause(backoffMs(PAUSES, attempt - 1));
    }
  }
}

/**
 * Rows that expire before `expiryAfterSeconds` are left out: one of the two stores may have deleted them already.
 */
export async function rowSums(items: Pick<ItemStore, 'scan'>, expiryAfterSeconds: number): Promise<RowSums> {
  const sums: Partial<Record<TableName, RowSum>> = {};
  for (const table of TABLES) {
    let rows = 0;
    const words = new BigUint64Array(HASH_WORDS);
    for await (const page of pagesOf(items, table)) {
      for (const item of page) {
        const { ttl } = item;
        if (typeof ttl === 'number' && ttl <= expiryAfterSeconds) continue;
        rows += 1;
        const digest = createHash('sha256').update(canonical(item)).digest();
        // Modulo 2^64 each: a bitwise sum would not see a row that is there twice.
        for (let word = 0; word < HASH_WORDS; word += 1) words[word]! += digest.readBigUInt64BE(word * 8);
      }
    }
    sums[table] = { rows, hash: [...words].map((word) => word.toString(16).padStart(16, '0')).join('') };
  }
  return sums as RowSums;
}

/** Why they differ; undefined: they do not. */
export function differenceOf(expected: RowSums, found: RowSums): string | undefined {
  for (const table of TABLES) {
    const [one, other] = [expected[table], found[table]];
    if (one.rows !== other.rows) return `${table} has ${other.rows} rows of ${one.rows}`;
    if (one.hash !== other.hash) return `rows of ${table} differ`;
  }
  return undefined;
}

/** Whether the store has no row but those of a move. */
export async function isEmpty(items: Pick<ItemStore, 'scan'>): Promise<boolean> {
  for (const table of TABLES) {
    for await (const page of pagesOf(items, table)) if (page.length > 0) return false;
  }
  return true;
}

async function* pagesOf(items: Pick<ItemStore, 'scan'>, table: TableName): AsyncGenerator<readonly Item[]> {
  let after: { readonly pk: string; readonly sk: string } | undefined;
  do {
    const page = await items.scan({
      ...{ table, segment: 0, segments: 1, limit: PAGE_ITEMS, consistent: true },
      ...(after !== undefined && { after }),
    });
    yield page.items.filter(({ pk }) => table !== 'control' || pk !== MOVE_PARTITION);
    after = page.next;
  } while (after !== undefined);
}

/** The same text for the same value, whatever the order of its names. */
function canonical(value: AttributeValue): string {
  if (value instanceof Uint8Array) return `b${Buffer.from(value).toString('base64')}`;
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (typeof value !== 'object') return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${canonical(value[name]!)}`).join()}}`;
}
