/**
 * What the cluster answered about credentials, in the file of the hub: for the time when the cluster cannot be reached,
 * also after a restart. It has public keys and hashes of tokens, never a token.
 *
 *   control  pk `hub#<uid of kube-system>#<what>` sk <name>   value JSON, atMs, TTL
 *
 * The uid names the cluster: nothing that one cluster answered counts for another one behind the same address.
 */
import { type ItemKey, type ItemStore, StoreFault, type Write } from '../../../shared/store/item-store.ts';

/** Unused after this time without an answer. Seconds: a site may be without the cluster for months. */
const KEPT_SECONDS = 365 * 86_400;
/** The same answer is written again after this time only: flash memory wears with each write. Milliseconds. */
const REWRITE_MS = 3_600_000;

export interface KeptAnswer<T> {
  readonly value: T;
  /** When it was answered, REWRITE_MS late at most. */
  readonly atMs: number;
}

/** The disk may be full or read-only: what the cluster answered counts all the same. */
export interface KeptAnswers<T> {
  find(name: string): Promise<KeptAnswer<T> | undefined>;
  keep(name: string, value: T, nowMs: number): Promise<void>;
  drop(name: string): Promise<void>;
}

type Row = { readonly value: string; readonly atMs: number };

export interface KeptAnswersOptions {
  readonly items: ItemStore;
  /** undefined: the copy has no cluster yet, and nothing is kept. */
  readonly clusterUid: () => Promise<string | undefined>;
  /** An answer could not be written. */
  readonly onFault: (error: StoreFault) => void;
}

export function keptAnswers<T>(what: string, { items, clusterUid, onFault }: KeptAnswersOptions): KeptAnswers<T> {
  const write = (one: Write): Promise<unknown> =>
    items.write(one).catch((error: unknown) => {
      if (!(error instanceof StoreFault)) throw error;
      onFault(error);
    });
  const keyOf = async (name: string): Promise<ItemKey | undefined> => {
    const uid = await clusterUid();
    return uid === undefined ? undefined : { table: 'control', pk: `hub#${uid}#${what}`, sk: name };
  };
  const read = async (key: ItemKey | undefined): Promise<Row | undefined> =>
    key && ((await items.get(key, { consistent: true })) as Row | undefined);
  return {
    async find(name) {
      const row = await read(await keyOf(name));
      return row && { value: JSON.parse(row.value) as T, atMs: row.atMs };
    },
    async keep(name, answer, nowMs) {
      const key = await keyOf(name);
      const value = JSON.stringify(answer);
      const before = await read(key);
      const isSame = before?.value === value && Math.abs(nowMs - before.atMs) < REWRITE_MS;
      if (key === undefined || isSame) return;
      await write({
        kind: 'put',
        key,
        item: { value, atMs: nowMs, ttl: Math.ceil(nowMs / 1_000) + KEPT_SECONDS },
      });
    },
    async drop(name) {
      const key = await keyOf(name);
      if ((await read(key)) !== undefined) await write({ kind: 'delete', key: key! });
    },
  };
}
