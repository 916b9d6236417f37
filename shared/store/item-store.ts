/**
 * The tables: items with a partition key and a sort key, conditional writes, and transactions. The port contains only
 * the DynamoDB semantics that we rely on; the memory adapter passes the same contract suite
 * (test/contract/item-store.ts) as the real one. shared/store defines the keys and attributes, for every adapter.
 *
 * Expected outcomes (a condition that did not hold, a conflict of transactions) are values. Faults (throttled beyond
 * the adapter's bounded retries, unreachable, malformed) are thrown as StoreFault.
 *
 * Size of an item by DynamoDB's published rules: names and strings have their UTF-8 bytes, a number half a byte per
 * significant digit plus one, a boolean one byte, binary values their bytes, lists and maps three bytes and one for
 * each member. The exact rounding of numbers is not published; the result is right to one or two bytes per number.
 */
import { defined } from '../defined.ts';
import { utf8Bytes } from '../text.ts';

export type TableName = 'health' | 'objects' | 'control';

/** Bytes do not change after they are written or read. */
export type AttributeValue =
  | string
  | number
  | boolean
  | Uint8Array
  | AttributeValue[]
  | { [name: string]: AttributeValue };
export type Item = Record<string, AttributeValue>;

export interface ItemKey {
  readonly table: TableName;
  readonly pk: string;
  readonly sk: string;
}

/**
 * Comparison is by DynamoDB's rules: values of different type are never equal, nor smaller or larger, and an absent
 * attribute equals no value (so `<>` holds for it). Booleans and bytes are not ordered: only `=` and `<>`.
 * Bytes are compared in transactions only: the updates without the SDK send none.
 */
export type Condition =
  | { readonly kind: 'itemExists' }
  | { readonly kind: 'itemAbsent' }
  | { readonly kind: 'has'; readonly attribute: string }
  | { readonly kind: 'lacks'; readonly attribute: string }
  | {
      readonly kind: 'compare';
      readonly attribute: string;
      readonly op: '=' | '<>' | '<' | '<=' | '>' | '>=';
      readonly value: string | number | boolean | Uint8Array;
    }
  | { readonly kind: 'all'; readonly of: readonly Condition[] }
  | { readonly kind: 'any'; readonly of: readonly Condition[] };

export interface PutWrite {
  readonly kind: 'put';
  readonly key: ItemKey;
  /** Attributes besides pk and sk. Replaces the whole item. */
  readonly item: Item;
  readonly when?: Condition;
}

export interface UpdateWrite {
  readonly kind: 'update';
  readonly key: ItemKey;
  readonly set?: Item;
  /** Set only if the attribute does not exist. */
  readonly setIfAbsent?: Item;
  /** Numeric addition; an absent attribute counts as 0. */
  readonly add?: Record<string, number>;
  readonly remove?: readonly string[];
  readonly when?: Condition;
}

export interface DeleteWrite {
  readonly kind: 'delete';
  readonly key: ItemKey;
  readonly when?: Condition;
}

/** Only in a transaction: the item must satisfy the condition at commit. */
export interface CheckWrite {
  readonly kind: 'check';
  readonly key: ItemKey;
  readonly when: Condition;
}

export type Write = PutWrite | UpdateWrite | DeleteWrite;
export type TransactWrite = Write | CheckWrite;

/** At most one of the two; neither costs read units. */
export interface WriteOptions {
  /** Only for an update: return the item after the write. */
  readonly returnItem?: boolean;
  /** Return the item before the write. */
  readonly returnPrevious?: boolean;
}

export type WriteOutcome =
  | {
      readonly kind: 'written' /** the item after the write, when asked for */;
      readonly item?: Item /** the item before the write, when asked for and it held more than its keys */;
      readonly previous?: Item;
    }
  | {
      readonly kind: 'refused' /** the refusing item, if it has more than its keys */;
      readonly current?: Item;
    };

export type TransactOutcome =
  | { readonly kind: 'written' }
  | {
      readonly kind: 'refused';
      readonly failures: readonly { readonly index: number; readonly current?: Item }[];
    }
  /** Conflict with a concurrent write on one of the items: nothing was written. Decide again and retry, bounded. */
  | { readonly kind: 'contended' };

export interface QueryRequest {
  readonly table: TableName;
  readonly pk: string;
  /** Sort keys strictly after this one. */
  readonly after?: string;
  /** Sort keys up to and including this one. */
  readonly through?: string;
  /** Sort keys that begin with this; may be combined with after, not with through. */
  readonly beginsWith?: string;
  /** Maximum number of items in this page. */
  readonly limit?: number;
  /** Strongly consistent read: twice the read units. */
  readonly consistent: boolean;
  /** Only these attributes, and always pk and sk. Saves bytes on the wire, not read units. */
  readonly attributes?: readonly string[];
}

export interface QueryPage {
  readonly items: readonly Item[];
  /** Sort key to continue after; absent for the last page. The next page may be empty. */
  readonly next?: string;
}

/** Position of an item in a table. */
export interface ItemPosition {
  readonly pk: string;
  readonly sk: string;
}

export interface ScanRequest {
  readonly table: TableName;
  /** Which of `segments` parts of the table, from 0. Together they contain every item once; a segment may be empty. */
  readonly segment: number;
  /** 1 to SCAN_SEGMENTS_MAX. */
  readonly segments: number;
  /** Continues after this item: `next` of the previous page of the same segment, with the same `segments`. */
  readonly after?: ItemPosition;
  /** Maximum number of items in this page. */
  readonly limit?: number;
  /** Strongly consistent read: twice the read units. */
  readonly consistent: boolean;
  /** Only these attributes, and always pk and sk. Saves bytes on the wire, not read units. */
  readonly attributes?: readonly string[];
}

export interface ScanPage {
  /** In an arbitrary but stable order. */
  readonly items: readonly Item[];
  /** Where to continue; absent for the last page. An empty page may be followed by others. */
  readonly next?: ItemPosition;
}

/** Conditional updates only: what the heartbeat may do. Every ItemStore is one. */
export interface ItemUpdater {
  write(write: UpdateWrite, options?: WriteOptions): Promise<WriteOutcome>;
}

/** One item by its key. Every ItemStore is one. */
export interface ItemReader {
  get(key: ItemKey, options: { readonly consistent: boolean }): Promise<Item | undefined>;
}

/** Every returned item carries its own keys as attributes `pk` and `sk`. */
export interface ItemStore extends ItemReader {
  /** Any number of keys; the adapter pages. The result is in order of the keys; absent items are undefined. */
  getMany(keys: readonly ItemKey[], options: { readonly consistent: boolean }): Promise<readonly (Item | undefined)[]>;
  /** One page, in order of the sort key. */
  query(request: QueryRequest): Promise<QueryPage>;
  /**
   * One page of a table, or of a segment of it. It is no snapshot: an item that exists throughout is returned once, as
   * it was when its page was read. An item that is created or deleted meanwhile may be missing.
   */
  scan(request: ScanRequest): Promise<ScanPage>;
  /**
   * One write. The adapter may send it again if the response was lost, so a refusal can be caused by the success of the
   * first one. Callers choose conditions for which that is safe, or recognise it by `current`.
   */
  write(write: Write, options?: WriteOptions): Promise<WriteOutcome>;
  /** 1 to 100 writes on distinct items, all or none, applied once even if the request is sent again. */
  transact(writes: readonly TransactWrite[]): Promise<TransactOutcome>;
}

/**
 * A request to the store failed. After `too-large` and `rejected` nothing was written. After the others it is unknown
 * whether the write was applied, because an earlier attempt may have succeeded.
 */
export class StoreFault extends Error {
  override readonly name = 'StoreFault';
  readonly code: 'throttled' | 'unreachable' | 'timeout' | 'too-large' | 'rejected';
  readonly retryable: boolean;
  constructor(code: StoreFault['code'], message: string, options: { retryable: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.code = code;
    this.retryable = options.retryable;
  }
}

/** Maximum number of writes in one transaction. */
export const TRANSACT_WRITES_MAX = 100;

/** Maximum number of segments of one scan. DynamoDB allows a million; a fleet of 100,000 needs no more than this. */
export const SCAN_SEGMENTS_MAX = 32;

/** Units consumed by one request, as DynamoDB reports them. */
export interface ConsumedUnits {
  readonly table: TableName;
  readonly operation: string;
  readonly readUnits: number;
  readonly writeUnits: number;
}

/** A text that identifies a key, whatever characters the key has. */
export const keyText = ({ table, pk, sk }: ItemKey): string => `${table} ${pk.length} ${pk} ${sk}`;

/** @throws StoreFault `rejected` */
export function checkSegment({ segment, segments }: ScanRequest): void {
  if (segments > SCAN_SEGMENTS_MAX || segment < 0 || segment >= segments) {
    const last = SCAN_SEGMENTS_MAX - 1;
    throw new StoreFault('rejected', `a scan accepts segment 0 to ${last} of 1 to ${SCAN_SEGMENTS_MAX}`, {
      retryable: false,
    });
  }
}

/** @throws StoreFault `rejected` */
export function checkTransaction(writes: readonly TransactWrite[]): void {
  const keys = new Set(writes.map(({ key }) => keyText(key)));
  if (writes.length < 1 || writes.length > TRANSACT_WRITES_MAX || keys.size !== writes.length) {
    throw new StoreFault('rejected', `a transaction accepts 1 to ${TRANSACT_WRITES_MAX} writes on distinct items`, {
      retryable: false,
    });
  }
}

/** Pages in one read. A page of 1 MB holds about 3,000 watched nodes, 7,000 queued nodes, or 8,000 pods to collect. */
const PAGES_MAX = 64;

/** @throws StoreFault `too-large` with the message `tooMany`, if the partition has more pages */
export async function* controlPages(
  items: Pick<ItemStore, 'query'>,
  pk: string,
  { consistent, tooMany }: { readonly consistent: boolean; readonly tooMany: string },
): AsyncGenerator<readonly Item[], void, undefined> {
  let after: string | undefined;
  for (let pages = 0; pages < PAGES_MAX; pages += 1) {
    const page = await items.query({ table: 'control', pk, consistent, ...defined({ after }) });
    yield page.items;
    if (page.next === undefined) return;
    after = page.next;
  }
  throw new StoreFault('too-large', tooMany, { retryable: false });
}

/**
 * Compares string keys as DynamoDB does: by UTF-8 bytes, which is the order of code points. JavaScript compares UTF-16
 * units, in which a surrogate pair (U+10000 and up) sorts below U+E000 to U+FFFF. Surrogates are ranked above them
 * here.
 */
export function compareKeys(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let index = 0; index < length; index += 1) {
    const left = one.charCodeAt(index);
    const right = other.charCodeAt(index);
    if (left !== right) return rank(left) - rank(right);
  }
  return one.length - other.length;
}

const rank = (unit: number): number => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit);

export const WRITE_UNIT_BYTES = 1_024;
/** One item, attribute names included. Source: "Quotas in Amazon DynamoDB", items. */
export const ITEM_BYTES_MAX = 400 * 1_024;
/** The longest sort key. Bytes. */
export const SORT_KEY_BYTES_MAX = 1_024;
/** All items of one transaction together. Source: API reference of TransactWriteItems. */
export const TRANSACT_BYTES_MAX = 4 * 1_024 * 1_024;

function numberBytes(value: number): number {
  const digits = Number.isSafeInteger(value) ? integerDigits(Math.abs(value)) : decimalDigits(Math.abs(value));
  return Math.ceil(digits / 2) + 1 + (value < 0 ? 1 : 0);
}

const decimalDigits = (value: number): number => value.toExponential().split('e')[0]!.replace('.', '').length;

/** The same without a text: nearly all numbers of items are counts and times. */
function integerDigits(value: number): number {
  let rest = value;
  while (rest !== 0 && rest % 10 === 0) rest /= 10;
  let digits = 1;
  while (rest >= 10) {
    rest = Math.floor(rest / 10);
    digits += 1;
  }
  return digits;
}

export function valueBytes(value: AttributeValue): number {
  switch (typeof value) {
    case 'string':
      return utf8Bytes(value);
    case 'number':
      return numberBytes(value);
    case 'boolean':
      return 1;
    default: {
      if (value instanceof Uint8Array) return value.length;
      let bytes = 3;
      if (Array.isArray(value)) for (const member of value) bytes += 1 + valueBytes(member);
      else for (const [name, member] of Object.entries(value)) bytes += 1 + utf8Bytes(name) + valueBytes(member);
      return bytes;
    }
  }
}

/** Bytes of a whole item, including its keys if they are among the attributes. */
export function itemBytes(item: Item): number {
  let bytes = 0;
  for (const name in item) bytes += utf8Bytes(name) + valueBytes(item[name]!);
  return bytes;
}
