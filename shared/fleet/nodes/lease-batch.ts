/**
 * A batch of heartbeats: what a relay sends in one request (docs/decisions/0040). Each item is the request of one
 * machine with that machine's own token, and has an answer of its own.
 */

export const LEASE_BATCH_API_VERSION = 'nodekeeper.dev/v1alpha1';
export const LEASE_BATCH_KIND = 'LeaseBatch';
/** Relays POST to it. */
export const LEASE_BATCHES_PATH = '/apis/nodekeeper.dev/v1alpha1/leasebatches';
/** Maximum number of items. More are answered 413. */
export const LEASE_BATCH_ITEMS_MAX = 100;
/** Maximum length of the request. Longer ones are answered 413. Bytes. */
export const LEASE_BATCH_BYTES_MAX = 262_144;

/** The request of one machine: a PUT of its Lease, or a merge patch of it. */
export interface LeaseBatchItem {
  readonly method: 'PUT' | 'PATCH';
  /** The path of the Lease, without a query. */
  readonly path: string;
  /** The machine's own token. */
  readonly token: string;
  /** JSON as the machine sent it. It is text: a malformed body is the fault of its item alone. */
  readonly body: string;
}

export interface LeaseBatch {
  readonly apiVersion: typeof LEASE_BATCH_API_VERSION;
  readonly kind: typeof LEASE_BATCH_KIND;
  readonly items: readonly LeaseBatchItem[];
}

/** The answer to one item: what the machine would have received itself, with `Prefer: return=minimal`. */
export interface LeaseBatchAnswerItem {
  readonly status: number;
  readonly retryAfterSeconds?: number;
  /**
   * A Status, or a Lease. The server leaves out of a Lease what follows from the path: type, name and namespace. Data
   * out to the internet is billed. The relay adds it.
   */
  readonly body: unknown;
}

export interface LeaseBatchAnswer {
  readonly apiVersion: typeof LEASE_BATCH_API_VERSION;
  readonly kind: typeof LEASE_BATCH_KIND;
  readonly metadata?: { readonly annotations?: Readonly<Record<string, string>> };
  /** In the order of the request. */
  readonly items: readonly LeaseBatchAnswerItem[];
}

/** Header `prefer` of an item: the answer has only what neither the machine nor its relay knows. */
export const PREFER_NEWS = 'return=nodekeeper-news';

/** Whether the path of a request is that of batches. */
export const isLeaseBatchPath = (path: string): boolean => path.replace(/\/$/, '') === LEASE_BATCHES_PATH;
