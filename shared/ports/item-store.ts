/**
 * The tables as the rest of the house sees them: items with a partition and a sort key, conditional writes, and
 * transactions. It is the part of DynamoDB's semantics we rely on and no more, so that the memory adapter can pass the
 * same contract suite (test/contract/item-store.ts) as the real one. What the keys and attributes mean is decided in
 * shared/store, once, for every adapter.
 *
 * Outcomes a caller plans for (a condition that did not hold, a transaction that met another) are values; faults
 * (throttled beyond the adapter's bounded retries, unreachable, malformed) are thrown as StoreFault.
 */
export type TableName = 'health' | 'objects' | 'control';

export type AttributeValue = string | number | boolean | AttributeValue[] | { [name: string]: AttributeValue };
export type Item = Record<string, AttributeValue>;

export interface ItemKey {
  readonly table: TableName;
  readonly pk: string;
  readonly sk: string;
}

/**
 * Comparison is by DynamoDB's rules: values of different type are never equal, nor smaller or larger, and an absent
 * attribute equals nothing (so `<>` holds for it). Booleans have no order: only `=` and `<>`.
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
      readonly value: string | number | boolean;
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
  /** Set only where the attribute is not there yet. */
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

/** At most one of the two; both are free of read units. */
export interface WriteOptions {
  /** Only for an update: answer the item as it is after the write. */
  readonly returnItem?: boolean;
  /** Answer the item as it was before the write. */
  readonly returnPrevious?: boolean;
}

export type WriteOutcome =
  | {
      readonly kind: 'written' /** the item after the write, when asked for */;
      readonly item?: Item /** the item before the write, when asked for and it held more than its keys */;
      readonly previous?: Item;
    }
  | {
      readonly kind: 'refused' /** the item whose condition did not hold, when it holds more than its keys */;
      readonly current?: Item;
    };

export type TransactOutcome =
  | { readonly kind: 'written' }
  | {
      readonly kind: 'refused';
      readonly failures: readonly { readonly index: number; readonly current?: Item }[];
    }
  /** Met another write on one of the items in the same moment: nothing was written; decide again and retry, bounded. */
  | { readonly kind: 'contended' };

export interface QueryRequest {
  readonly table: TableName;
  readonly pk: string;
  /** Sort keys strictly after this one (strictly before it with `descending`). */
  readonly after?: string;
  /** Sort keys up to and including this one; ascending only. */
  readonly through?: string;
  /** Sort keys that begin with this; may go with after, not with through. */
  readonly beginsWith?: string;
  readonly descending?: boolean;
  /** Items in this page at most. */
  readonly limit?: number;
  /** Strongly consistent read: twice the read units. */
  readonly consistent: boolean;
  /** Only these attributes (pk and sk always come). Saves bytes on the wire, not read units. */
  readonly attributes?: readonly string[];
}

export interface QueryPage {
  readonly items: readonly Item[];
  /** Sort key to continue after; absent when nothing follows. The page it leads to may be empty. */
  readonly next?: string;
}

/** Where in a table an item stands. */
export interface ItemPosition {
  readonly pk: string;
  readonly sk: string;
}

export interface ScanRequest {
  readonly table: TableName;
  /** Which of `segments` parts of the table, from 0. Together they give every item once; one of them may be empty. */
  readonly segment: number;
  /** 1 to SCAN_SEGMENTS_MAX. */
  readonly segments: number;
  /** Goes on after this item: `next` of the page before, of the same segment of as many. */
  readonly after?: ItemPosition;
  /** Items in this page at most. */
  readonly limit?: number;
  /** Strongly consistent read: twice the read units. */
  readonly consistent: boolean;
  /** Only these attributes (pk and sk always come). Saves bytes on the wire, not read units. */
  readonly attributes?: readonly string[];
}

export interface ScanPage {
  /** In no order that means anything, but always in the same one. */
  readonly items: readonly Item[];
  /** Where to continue; absent when nothing follows. A page may be empty and be followed by others. */
  readonly next?: ItemPosition;
}

/** Conditional updates and no more: all that the heartbeat may do. Every ItemStore is one. */
export interface ItemUpdater {
  write(write: UpdateWrite, options?: WriteOptions): Promise<WriteOutcome>;
}

/** One item by its key. Every ItemStore is one. */
export interface ItemReader {
  get(key: ItemKey, options: { readonly consistent: boolean }): Promise<Item | undefined>;
}

/** Every returned item carries its own keys as attributes `pk` and `sk`. */
export interface ItemStore extends ItemReader {
  /** Any number of keys; the adapter pages. Order of the answer is that of the keys; absent items are undefined. */
  getMany(keys: readonly ItemKey[], options: { readonly consistent: boolean }): Promise<readonly (Item | undefined)[]>;
  /** One page, in order of the sort key. */
  query(request: QueryRequest): Promise<QueryPage>;
  /**
   * One page of a table, or of a segment of it. No picture of one moment: an item that is there all the while comes once, as
   * it was when its page was read; one that comes or goes meanwhile may be met or missed.
   */
  scan(request: ScanRequest): Promise<ScanPage>;
  /**
   * One write. A write whose answer was lost may be sent again by the adapter, so a refusal can be the echo of one's own
   * success: conditions are chosen so that taking it for a refusal is safe, or `current` shows it.
   */
  write(write: Write, options?: WriteOptions): Promise<WriteOutcome>;
  /** 1 to 100 writes on distinct items, all or nothing, and applied once however often the request was sent. */
  transact(writes: readonly TransactWrite[]): Promise<TransactOutcome>;
}

/**
 * The store could not do what it was asked. After `too-large` and `rejected` nothing was written; after the others nothing
 * is known about whether a write happened, because an earlier sending of the same request may have been the one.
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

/** Writes in one transaction at most. */
export const TRANSACT_WRITES_MAX = 100;

/** Segments of one scan at most, of the million that the service takes: a fleet of 100,000 needs no more. */
export const SCAN_SEGMENTS_MAX = 32;

/** Units consumed by one request, as DynamoDB reports them. */
export interface ConsumedUnits {
  readonly table: TableName;
  readonly operation: string;
  readonly readUnits: number;
  readonly writeUnits: number;
}
