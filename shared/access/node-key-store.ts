/**
 * Node identities in the `control` table:
 *
 *   pk `node-keys#<shard>` sk node name   v resourceVersion, uid, createdAtMs, keys JSON, source, labels JSON if any
 *   pk `node-instances` sk instance id    the node that enrolled with that instance: name, atMs. Never deleted:
 *                                         an instance enrols once
 *
 * All keys of a node are one item, so a sign-in reads one item and a revocation deletes one. The heartbeat function may
 * read only partitions with this prefix (cdk/lib/nodekeeper-cluster.ts).
 */
import { defined } from '../defined.ts';
import {
  type Item,
  type ItemKey,
  type ItemReader,
  type ItemStore,
  type PutWrite,
  StoreFault,
  type TransactWrite,
} from '../store/item-store.ts';
import { is, RESOURCE_VERSIONS_PER_MS, shardOf } from '../store/layout.ts';
import { mergePages } from '../store/merge-pages.ts';
import type { NodeKey } from './node-identity.ts';
import type { NodeKeys } from './node-keys.ts';

/**
 * The same number as in the health table: when all nodes start at once, each one reads its keys and renews its Lease.
 */
const SHARDS = 32;
const PREFIX = 'node-keys#';
const partition = (shard: number): string => `${PREFIX}${String(shard).padStart(2, '0')}`;
/** Whether items of this partition of the control table are the keys of nodes. */
export const hasNodeKeys = (partition: string): boolean => partition.startsWith(PREFIX);
const identityKey = (nodeName: string): ItemKey => ({
  table: 'control',
  pk: partition(shardOf(nodeName, SHARDS)),
  sk: nodeName,
});

/** Attempts at a transaction that conflicts with another; the store waits between them. */
const ATTEMPTS_MAX = 8;

export interface NodeIdentity {
  readonly nodeName: string;
  readonly uid: string;
  /** resourceVersion. */
  readonly version: number;
  readonly createdAtMs: number;
  readonly keys: readonly NodeKey[];
  /** Source of the enrolment: `bootstraptoken/<id>`, `instance/<id>`, `user/<name>`. */
  readonly source: string;
  /** Labels to register the Node with. */
  readonly labels?: Readonly<Record<string, string>>;
}

export type EnrolOutcome =
  | { readonly kind: 'enrolled'; readonly identity: NodeIdentity }
  /** The name has an identity already, or one that is not `replaces`. */
  | { readonly kind: 'taken' }
  /** The condition of a write in `along` did not hold. */
  | { readonly kind: 'alongRefused' };

export interface NodeKeyStore extends NodeKeys {
  /** Strongly consistent. */
  read(nodeName: string): Promise<NodeIdentity | undefined>;
  list(page: { readonly limit: number; readonly continueAfter?: string }): Promise<{
    readonly identities: readonly NodeIdentity[];
    /** Name of the last one, when more may follow. */
    readonly next?: string;
  }>;
  /**
   * Creates an identity, and writes `along` in the same transaction.
   * @param replaces the identity that it replaces; absent: the name must be free
   * @throws StoreFault if every attempt conflicted with other transactions
   */
  enrol(
    identity: Omit<NodeIdentity, 'version'>,
    options: {
      readonly nowMs: number;
      readonly replaces?: NodeIdentity;
      readonly along: readonly TransactWrite[];
      /** Waits between tries. */
      readonly pause: (attempt: number) => Promise<unknown>;
    },
  ): Promise<EnrolOutcome>;
  /** Replaces the keys, if the identity has not changed since `before` was read. */
  replaceKeys(
    before: NodeIdentity,
    keys: readonly NodeKey[],
    nowMs: number,
  ): Promise<{ readonly kind: 'written'; readonly identity: NodeIdentity } | { readonly kind: 'conflict' }>;
  /** Strongly consistent. */
  hasEnrolled(instanceId: string): Promise<boolean>;
  /** Deletes the identity: its keys are no longer accepted. */
  remove(nodeName: string, expected: { readonly version: number }): Promise<'removed' | 'conflict'>;
}

/** The read side, for functions that verify tokens. */
export const nodeKeys = (items: ItemReader): NodeKeys => ({
  async keysOf(nodeName, { consistent }) {
    const item = await items.get(identityKey(nodeName), { consistent });
    return item === undefined ? [] : keysIn(item);
  },
});

const instanceKey = (instanceId: string): ItemKey => ({ table: 'control', pk: 'node-instances', sk: instanceId });

/** Records that this instance has enrolled; refused if it has before. */
export const claimInstanceWrite = (instanceId: string, nodeName: string, nowMs: number): PutWrite => ({
  kind: 'put',
  key: instanceKey(instanceId),
  item: { name: nodeName, atMs: nowMs },
  when: { kind: 'itemAbsent' },
});

export function nodeKeyStore(items: ItemStore): NodeKeyStore {
  return {
    ...nodeKeys(items),

    async read(nodeName) {
      const item = await items.get(identityKey(nodeName), { consistent: true });
      return item === undefined ? undefined : identityOf(item);
    },

    async hasEnrolled(instanceId) {
      return (await items.get(instanceKey(instanceId), { consistent: true })) !== undefined;
    },

    async list({ limit, continueAfter }) {
      const readers = Array.from(
        { length: SHARDS },
        (_, shard) => (page: { after?: string; limit?: number }) =>
          items.query({ table: 'control', pk: partition(shard), consistent: true, ...page }),
      );
      const { items: rows, next } = await mergePages(readers, {
        limit,
        ...defined({ after: continueAfter }),
      });
      return { identities: rows.map(identityOf), ...defined({ next }) };
    },

    async enrol(wanted, { nowMs, replaces, along, pause }) {
      const identity = { ...wanted, version: nextVersion(nowMs, replaces) };
      const put: TransactWrite = {
        kind: 'put',
        key: identityKey(identity.nodeName),
        item: itemOf(identity),
        when: replaces === undefined ? { kind: 'itemAbsent' } : is('v', replaces.version),
      };
      for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
        const outcome = await items.transact([put, ...along]);
        if (outcome.kind === 'written') return { kind: 'enrolled', identity };
        if (outcome.kind === 'refused') {
          return { kind: outcome.failures.some(({ index }) => index === 0) ? 'taken' : 'alongRefused' };
        }
        if (attempt < ATTEMPTS_MAX) await pause(attempt);
      }
      throw new StoreFault('throttled', 'an enrolment conflicted with others at every attempt', { retryable: true });
    },

    async replaceKeys(before, keys, nowMs) {
      const identity = { ...before, keys, version: nextVersion(nowMs, before) };
      const outcome = await items.write({
        kind: 'put',
        key: identityKey(before.nodeName),
        item: itemOf(identity),
        when: is('v', before.version),
      });
      return outcome.kind === 'written' ? { kind: 'written', identity } : { kind: 'conflict' };
    },

    async remove(nodeName, { version }) {
      const outcome = await items.write({ kind: 'delete', key: identityKey(nodeName), when: is('v', version) });
      return outcome.kind === 'written' ? 'removed' : 'conflict';
    },
  };
}

/** Increases with every write of one name, even if the clocks of two functions differ. */
const nextVersion = (nowMs: number, before: NodeIdentity | undefined): number =>
  Math.max(nowMs * RESOURCE_VERSIONS_PER_MS, (before?.version ?? 0) + 1);

function itemOf({ uid, version, createdAtMs, keys, source, labels }: NodeIdentity): Item {
  return {
    v: version,
    uid,
    createdAtMs,
    keys: JSON.stringify(keys),
    source,
    ...(labels === undefined ? {} : { labels: JSON.stringify(labels) }),
  };
}

type IdentityRow = {
  readonly sk: string;
  readonly v: number;
  readonly uid: string;
  readonly createdAtMs: number;
  /** JSON. */
  readonly keys: string;
  readonly source: string;
  /** JSON. */
  readonly labels?: string;
};

const keysIn = (item: Item): readonly NodeKey[] => JSON.parse((item as IdentityRow).keys) as NodeKey[];

function identityOf(item: Item): NodeIdentity {
  const { sk: nodeName, v: version, uid, createdAtMs, source, labels } = item as IdentityRow;
  return {
    ...{ nodeName, uid, version, createdAtMs, keys: keysIn(item), source },
    ...(labels === undefined ? {} : { labels: JSON.parse(labels) as Record<string, string> }),
  };
}
