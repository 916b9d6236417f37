/**
 * The tables in memory: the same semantics as DynamoDB (test/contract/item-store.ts runs on both), in one process and
 * in a fixed order. Every operation happens whole at the moment of the call; what a caller sees of concurrency is what
 * it brings itself, so a simulation stays deterministic.
 *
 * It can count units as DynamoDB bills them, and keep each table's changes for driving stream handlers.
 */
import { defined } from '../../domain/defined.ts';
import { textHash } from '../../domain/text-hash.ts';
import { utf8Bytes } from '../../domain/utf8-bytes.ts';
import {
  ITEM_BYTES_MAX,
  itemBytes,
  READ_UNIT_BYTES,
  TRANSACT_BYTES_MAX,
  WRITE_UNIT_BYTES,
} from '../../ports/item-size.ts';
import {
  type AttributeValue,
  type Condition,
  type ConsumedUnits,
  type Item,
  type ItemKey,
  type ItemPosition,
  type ItemStore,
  type QueryRequest,
  type ScanRequest,
  StoreFault,
  type TableName,
  type Write,
  type WriteOutcome,
} from '../../ports/item-store.ts';
import { compareKeys } from '../../ports/key-order.ts';
import { checkSegment, checkTransaction, keyText } from '../../store/request-limits.ts';

/** One change of one item, as a stream record of the table tells it. */
export interface ItemChange {
  /** Counts from 1 within the table. */
  readonly sequence: number;
  readonly key: ItemKey;
  readonly type: 'INSERT' | 'MODIFY' | 'REMOVE';
  readonly oldImage?: Item;
  readonly newImage?: Item;
  /** Removed by time to live, not by a caller. */
  readonly expired?: boolean;
}

export interface MemoryItemStore extends ItemStore {
  /** Changes of a table named in `changesOf` after a sequence number, in order. Writes that changed nothing are absent. */
  changes(table: TableName, after?: number): readonly ItemChange[];
  /** Forgets changes up to and including this one: bounds the memory of a long simulation. */
  forgetChanges(table: TableName, through: number): void;
  /** Every item of a table, in key order: for checkers. */
  items(table: TableName): readonly Item[];
  /** What time to live would have done by now: removes items whose `ttl` (epoch seconds) has passed. */
  expire(table: TableName, nowSeconds: number): number;
}

interface Partition {
  readonly items: Map<string, Item>;
  /** Sort keys in order; rebuilt by insertion, so reads never sort. */
  readonly order: string[];
}

// Limits of the service, as its page of quotas has them (Amazon DynamoDB Developer Guide, "Quotas in Amazon DynamoDB").
const PARTITION_KEY_BYTES_MAX = 2_048;
const SORT_KEY_BYTES_MAX = 1_024;
/** Magnitudes stay below this. */
const NUMBER_LIMIT = 1e126;
const NUMBER_MIN = 1e-130;
const PAGE_BYTES = 1_024 * 1_024;

/** Bytes of every stored item, weighed once: a page is cut by the sum of its items, whoever counts units. */
const weights = new WeakMap<Item, number>();
const weightOf = (item: Item): number => weights.get(item) ?? itemBytes(item);

export function memoryItemStore(
  options: {
    readonly onConsumed?: (units: ConsumedUnits) => void;
    /** Tables whose changes are kept. */
    readonly changesOf?: readonly TableName[];
  } = {},
): MemoryItemStore {
  const { onConsumed } = options;
  const tables: Record<TableName, Map<string, Partition>> = {
    health: new Map(),
    objects: new Map(),
    control: new Map(),
  };
  const feeds = new Map((options.changesOf ?? []).map((table) => [table, { last: 0, changes: [] as ItemChange[] }]));

  const read = (key: ItemKey): Item | undefined => tables[key.table].get(key.pk)?.items.get(key.sk);

  function apply(key: ItemKey, next: Item | undefined, expired = false): void {
    const partitions = tables[key.table];
    let partition = partitions.get(key.pk);
    const old = partition?.items.get(key.sk);
    if (next === undefined) {
      if (partition === undefined || old === undefined) return;
      partition.items.delete(key.sk);
      partition.order.splice(positionOf(partition.order, key.sk), 1);
      if (partition.order.length === 0) partitions.delete(key.pk);
    } else {
      if (partition === undefined) {
        partition = { items: new Map(), order: [] };
        partitions.set(key.pk, partition);
      }
      if (old === undefined) partition.order.splice(positionOf(partition.order, key.sk), 0, key.sk);
      partition.items.set(key.sk, next);
    }
    const feed = feeds.get(key.table);
    if (feed === undefined || (old !== undefined && next !== undefined && equalValues(old, next))) return;
    feed.last += 1;
    feed.changes.push({
      sequence: feed.last,
      key,
      type: old === undefined ? 'INSERT' : next === undefined ? 'REMOVE' : 'MODIFY',
      ...defined({ oldImage: old }),
      ...defined({ newImage: next }),
      ...(expired ? { expired } : {}),
    });
  }

  const consumedRead = (table: TableName, operation: string, units: number): void =>
    onConsumed?.({ table, operation, readUnits: units, writeUnits: 0 });
  const consumedWrite = (table: TableName, operation: string, units: number): void =>
    onConsumed?.({ table, operation, readUnits: 0, writeUnits: units });

  return {
    async get(key, { consistent }) {
      checkKey(key);
      const item = read(key);
      if (onConsumed)
        consumedRead(key.table, 'GetItem', readUnits(item === undefined ? 0 : weightOf(item), consistent));
      return item;
    },

    async getMany(keys, { consistent }) {
      for (const key of keys) checkKey(key);
      const found = keys.map(read);
      if (onConsumed) {
        const seen = new Map<string, number>();
        const units = new Map<TableName, number>();
        keys.forEach((key, index) => {
          const id = keyText(key);
          if (seen.has(id)) return;
          seen.set(id, index);
          const item = found[index];
          const cost = readUnits(item === undefined ? 0 : weightOf(item), consistent);
          units.set(key.table, (units.get(key.table) ?? 0) + cost);
        });
        for (const [table, sum] of units) consumedRead(table, 'BatchGetItem', sum);
      }
      return found;
    },

    async query(request) {
      checkKey({ ...request, sk: request.beginsWith || 'any' });
      const { items, next, bytes } = readPage(tables[request.table].get(request.pk), request);
      if (onConsumed) consumedRead(request.table, 'Query', readUnits(bytes, request.consistent));
      return next === undefined ? { items } : { items, next };
    },

    async scan(request) {
      checkSegment(request);
      const { items, next, bytes } = scanPage(tables[request.table], request);
      if (onConsumed) consumedRead(request.table, 'Scan', readUnits(bytes, request.consistent));
      return next === undefined ? { items } : { items, next };
    },

    async write(write, writeOptions = {}): Promise<WriteOutcome> {
      const current = read(write.key);
      const refused = write.when !== undefined && !conditionHolds(write.when, current);
      const next = refused ? current : resultOf(write, current);
      if (onConsumed) consumedWrite(write.key.table, operationOf(write), writeUnits(current, next));
      if (refused) {
        return isBare(current) ? { kind: 'refused' } : { kind: 'refused', current };
      }
      apply(write.key, next);
      if (writeOptions.returnItem && next !== undefined) return { kind: 'written', item: next };
      if (writeOptions.returnPrevious && !isBare(current)) return { kind: 'written', previous: current };
      return { kind: 'written' };
    },

    async transact(writes) {
      checkTransaction(writes);
      let bytes = 0;
      const failures: { index: number; current?: Item }[] = [];
      const results = writes.map((write, index) => {
        const current = read(write.key);
        const refused = write.when !== undefined && !conditionHolds(write.when, current);
        if (refused) failures.push(isBare(current) ? { index } : { index, current });
        checkKey(write.key);
        const next = refused || write.kind === 'check' ? current : resultOf(write, current);
        bytes += largerOf(current, next);
        return { write, next, units: 2 * writeUnits(current, next) };
      });
      if (bytes > TRANSACT_BYTES_MAX) {
        throw new StoreFault('rejected', 'the items of the transaction are larger than 4 MB', { retryable: false });
      }
      if (onConsumed) {
        const units = new Map<TableName, number>();
        for (const result of results) {
          const { table } = result.write.key;
          units.set(table, (units.get(table) ?? 0) + result.units);
        }
        for (const [table, sum] of units) consumedWrite(table, 'TransactWriteItems', sum);
      }
      if (failures.length > 0) return { kind: 'refused', failures };
      for (const { write, next } of results) if (write.kind !== 'check') apply(write.key, next);
      return { kind: 'written' };
    },

    changes(table, after = 0) {
      const feed = feeds.get(table);
      if (feed === undefined) throw new RangeError(`changes of ${table} are not kept: name it in changesOf`);
      const first = feed.changes[0]?.sequence ?? 1;
      return feed.changes.slice(Math.max(0, after + 1 - first));
    },

    forgetChanges(table, through) {
      const feed = feeds.get(table);
      if (feed === undefined) return;
      const first = feed.changes[0]?.sequence ?? 1;
      feed.changes.splice(0, Math.max(0, through + 1 - first));
    },

    items(table) {
      return [...tables[table].entries()]
        .sort(([one], [other]) => compareKeys(one, other))
        .flatMap(([, partition]) => partition.order.map((sk) => partition.items.get(sk)!));
    },

    expire(table, nowSeconds) {
      const due = this.items(table).filter((item) => typeof item['ttl'] === 'number' && item['ttl'] <= nowSeconds);
      for (const item of due) apply({ table, pk: item['pk'] as string, sk: item['sk'] as string }, undefined, true);
      return due.length;
    },
  };
}

/** No item, or one of keys alone: what some engines answer for the other. */
const isBare = (item: Item | undefined): item is undefined => item === undefined || Object.keys(item).length <= 2;

/** Where a sort key stands, or would stand. */
function positionOf(order: readonly string[], sk: string): number {
  // Keys mostly arrive in order (resourceVersions do): look at the end first.
  const last = order.at(-1);
  if (last === undefined || compareKeys(last, sk) < 0) return order.length;
  let low = 0;
  let high = order.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareKeys(order[middle]!, sk) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function readPage(
  partition: Partition | undefined,
  request: QueryRequest,
): { items: Item[]; next?: string; bytes: number } {
  const items: Item[] = [];
  let bytes = 0;
  if (partition === undefined) return { items, bytes };
  const { order } = partition;
  const { after, through, beginsWith, attributes } = request;
  const step = request.descending ? -1 : 1;
  let index: number;
  if (request.descending) {
    index = after === undefined ? order.length - 1 : positionOf(order, after) - 1;
  } else {
    index = after === undefined ? 0 : positionOf(order, after);
    if (after !== undefined && order[index] === after) index += 1;
    if (beginsWith !== undefined) index = Math.max(index, positionOf(order, beginsWith));
  }
  for (; index >= 0 && index < order.length; index += step) {
    const sk = order[index]!;
    if (through !== undefined && compareKeys(sk, through) > 0) break;
    if (beginsWith !== undefined && !sk.startsWith(beginsWith)) {
      if (request.descending && compareKeys(sk, beginsWith) > 0) continue;
      break;
    }
    if (items.length > 0 && (items.length === request.limit || bytes >= PAGE_BYTES)) {
      return { items, next: items.at(-1)!['sk'] as string, bytes };
    }
    const item = partition.items.get(sk)!;
    bytes += weightOf(item);
    items.push(attributes === undefined ? item : project(item, attributes));
  }
  return { items, bytes };
}

/** The segment of a scan in which a partition lies. */
export const segmentOf = (pk: string, segments: number): number => (segments === 1 ? 0 : textHash(pk) % segments);

function scanPage(
  partitions: ReadonlyMap<string, Partition>,
  { segment, segments, after, limit, attributes }: ScanRequest,
): { items: Item[]; next?: ItemPosition; bytes: number } {
  const items: Item[] = [];
  let bytes = 0;
  const left = [...partitions.keys()]
    .filter((pk) => segmentOf(pk, segments) === segment && (after === undefined || compareKeys(pk, after.pk) >= 0))
    .sort(compareKeys);
  for (const pk of left) {
    const partition = partitions.get(pk)!;
    let index = 0;
    if (pk === after?.pk) {
      index = positionOf(partition.order, after.sk);
      if (partition.order[index] === after.sk) index += 1;
    }
    for (; index < partition.order.length; index += 1) {
      if (items.length > 0 && (items.length === limit || bytes >= PAGE_BYTES)) {
        const last = items.at(-1)!;
        return { items, next: { pk: last['pk'] as string, sk: last['sk'] as string }, bytes };
      }
      const item = partition.items.get(partition.order[index]!)!;
      bytes += weightOf(item);
      items.push(attributes === undefined ? item : project(item, attributes));
    }
  }
  return { items, bytes };
}

function project(item: Item, attributes: readonly string[]): Item {
  const out: Item = { pk: item['pk']!, sk: item['sk']! };
  for (const name of attributes) {
    const value = item[name];
    if (value !== undefined) out[name] = value;
  }
  return out;
}

/** @throws StoreFault `rejected` */
function checkKey({ pk, sk }: ItemKey): void {
  if (pk === '' || sk === '') throw new StoreFault('rejected', 'a key is empty', { retryable: false });
  if (utf8Bytes(pk) > PARTITION_KEY_BYTES_MAX || utf8Bytes(sk) > SORT_KEY_BYTES_MAX) {
    throw new StoreFault('rejected', 'a key is longer than 2,048 or 1,024 bytes', { retryable: false });
  }
}

/** The item a write leaves behind, frozen: nobody who reads it can change the table by accident. */
function resultOf(write: Write, current: Item | undefined): Item | undefined {
  const { pk, sk } = write.key;
  checkKey(write.key);
  if (write.kind === 'delete') return undefined;
  const next: Item =
    write.kind === 'put' ? { ...copyItem(write.item), pk, sk } : { ...updated(write, current), pk, sk };
  const bytes = itemBytes(next);
  if (bytes > ITEM_BYTES_MAX) {
    throw new StoreFault('too-large', 'the item is larger than 400 KB', { retryable: false });
  }
  weights.set(next, bytes);
  return Object.freeze(next);
}

function updated(write: Extract<Write, { kind: 'update' }>, current: Item | undefined): Item {
  const next: Item = { ...current };
  for (const [name, value] of Object.entries(write.setIfAbsent ?? {})) next[name] ??= frozenCopy(value);
  for (const [name, value] of Object.entries(write.set ?? {})) next[name] = frozenCopy(value);
  for (const [name, amount] of Object.entries(write.add ?? {})) {
    const before = next[name] ?? 0;
    if (typeof before !== 'number') {
      throw new StoreFault('rejected', 'added to an attribute that is no number', { retryable: false });
    }
    next[name] = before + amount;
  }
  for (const name of write.remove ?? []) delete next[name];
  return next;
}

function copyItem(item: Item): Item {
  const copy: Item = {};
  for (const name in item) copy[name] = frozenCopy(item[name]!);
  return copy;
}

const isStorable = (value: number): boolean =>
  value === 0 || (Math.abs(value) >= NUMBER_MIN && Math.abs(value) < NUMBER_LIMIT);

function frozenCopy(value: AttributeValue): AttributeValue {
  if (typeof value === 'number' && !isStorable(value)) {
    throw new StoreFault('rejected', `${value} is not a number that an item can hold`, { retryable: false });
  }
  if (typeof value !== 'object') return value;
  return Object.freeze(Array.isArray(value) ? value.map(frozenCopy) : copyItem(value)) as AttributeValue;
}

/** Whether an item fulfils a condition, as DynamoDB judges it; undefined is an item that does not exist. */
export function conditionHolds(condition: Condition, item: Item | undefined): boolean {
  switch (condition.kind) {
    case 'itemExists':
      return item !== undefined;
    case 'itemAbsent':
      return item === undefined;
    case 'has':
      return item?.[condition.attribute] !== undefined;
    case 'lacks':
      return item?.[condition.attribute] === undefined;
    case 'all':
      return condition.of.every((part) => conditionHolds(part, item));
    case 'any':
      return condition.of.some((part) => conditionHolds(part, item));
    case 'compare':
      return compares(item?.[condition.attribute], condition.op, condition.value);
  }
}

function compares(
  value: AttributeValue | undefined,
  op: Extract<Condition, { kind: 'compare' }>['op'],
  than: string | number | boolean,
): boolean {
  if (op === '=') return value === than;
  if (op === '<>') return value !== than;
  if (typeof than === 'boolean') throw new StoreFault('rejected', 'booleans have no order', { retryable: false });
  if (typeof value !== typeof than) return false;
  const order =
    typeof than === 'string' ? compareKeys(value as string, than) : Math.sign((value as number) - (than as number));
  switch (op) {
    case '<':
      return order < 0;
    case '<=':
      return order <= 0;
    case '>':
      return order > 0;
    case '>=':
      return order >= 0;
  }
}

function equalValues(one: AttributeValue | undefined, other: AttributeValue | undefined): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  return (
    names.length === Object.keys(other).length &&
    names.every((name) => equalValues((one as Item)[name], (other as Item)[name]))
  );
}

const operationOf = (write: Write): string =>
  write.kind === 'put' ? 'PutItem' : write.kind === 'update' ? 'UpdateItem' : 'DeleteItem';

/** Reads round up to 4 KB; an eventually consistent one costs half; looking for nothing costs the least there is. */
const readUnits = (bytes: number, consistent: boolean): number =>
  Math.max(1, Math.ceil(bytes / READ_UNIT_BYTES)) * (consistent ? 1 : 0.5);

const largerOf = (before: Item | undefined, after: Item | undefined): number =>
  Math.max(before === undefined ? 0 : weightOf(before), after === undefined ? 0 : weightOf(after));

/** Writes are billed by the larger of the item before and after; a refused one as well. */
function writeUnits(before: Item | undefined, after: Item | undefined): number {
  return Math.max(1, Math.ceil(largerOf(before, after) / WRITE_UNIT_BYTES));
}
