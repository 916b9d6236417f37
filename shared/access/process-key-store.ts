/**
 * Public keys of our own processes in the `control` table:
 *
 *   pk `probe-keys` sk `-`        v, keys JSON: keys of node-monitor's processes. One item: a lookup of an unknown key
 *                                 reads all keys, so made-up ids cost one read in several seconds and not one each
 *   pk `ticket-keys` sk key id    publicKey JSON, throughMs: keys of the API's processes; there may be hundreds
 *   pk `account-keys` sk key id   the same for tokens of service accounts
 *
 * TTL deletes old keys; readers compare throughMs to know whether a key has expired. A principal that may write a
 * partition can sign in with its keys, so each partition has its own grant (cdk/lib/table-actions.ts).
 */
import { defined } from '../defined.ts';
import { type Item, type ItemKey, type ItemReader, type ItemStore, StoreFault } from '../store/item-store.ts';
import { ALONE, is } from '../store/layout.ts';
import type { AccountKeys } from './account-tokens.ts';
import type { NodePublicKey } from './node-identity.ts';
import { type ProcessKey, withProbeKey } from './process-key.ts';
import type { KeepProcessKey, ProbeKeys, TicketKeys } from './process-keys.ts';

const PROBE_KEYS: ItemKey = { table: 'control', pk: 'probe-keys', sk: ALONE };
const ticketKey = (keyId: string): ItemKey => ({ table: 'control', pk: 'ticket-keys', sk: keyId });
const ACCOUNT_KEYS = 'account-keys';
const accountKey = (keyId: string): ItemKey => ({ table: 'control', pk: ACCOUNT_KEYS, sk: keyId });
/** Pages of the keys of service accounts, at 1 MB: some ten thousand keys. */
const PAGES_MAX = 4;

/** Attempts at the shared item of all probes while others change it. */
const ATTEMPTS_MAX = 4;
/** Keys are kept this long after they expire, for investigations. Seconds. */
const REMEMBERED_SECONDS = 86_400;

const ttlOf = (keys: readonly ProcessKey[]): number =>
  Math.ceil(Math.max(...keys.map(({ throughMs }) => throughMs)) / 1_000) + REMEMBERED_SECONDS;

type ProbeKeysRow = { readonly v: number; readonly keys: string };
/** A key in an item of its own. */
type TicketKeyRow = { readonly publicKey: string; readonly throughMs: number };

const keysIn = (item: Item | undefined): readonly ProcessKey[] =>
  item === undefined ? [] : (JSON.parse((item as ProbeKeysRow).keys) as ProcessKey[]);

export const probeKeys = (items: ItemReader): ProbeKeys => ({
  probeKeys: async (options) => keysIn(await items.get(PROBE_KEYS, options)),
});

/** @throws StoreFault if the store refuses, or if the item changed during every attempt */
export const keepProbeKey =
  (items: Pick<ItemStore, 'get' | 'write'>): KeepProcessKey =>
  async (made, nowMs) => {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const stored = await items.get(PROBE_KEYS, { consistent: true });
      // The refusal may be caused by our own earlier write; its response was lost.
      if (keysIn(stored).some(({ keyId }) => keyId === made.keyId)) return;
      const keys = withProbeKey(keysIn(stored), made, nowMs);
      const version = (stored as ProbeKeysRow | undefined)?.v ?? 0;
      const outcome = await items.write({
        kind: 'put',
        key: PROBE_KEYS,
        item: { v: version + 1, keys: JSON.stringify(keys), ttl: ttlOf(keys) },
        when: stored === undefined ? { kind: 'itemAbsent' } : is('v', version),
      });
      if (outcome.kind === 'written') return;
    }
    throw new StoreFault('throttled', 'the keys of probes kept changing', { retryable: true });
  };

const keyIn = (keyId: string, item: Item): ProcessKey => {
  const { publicKey, throughMs } = item as TicketKeyRow;
  return { keyId, publicKey: JSON.parse(publicKey) as NodePublicKey, throughMs };
};

export const ticketKeys = (items: ItemReader): TicketKeys => ({
  async find(keyId) {
    const item = await items.get(ticketKey(keyId), { consistent: true });
    return item && keyIn(keyId, item);
  },
});

const keepAt =
  (items: Pick<ItemStore, 'write'>, keyOf: (keyId: string) => ItemKey): KeepProcessKey =>
  async ({ keyId, publicKey, throughMs }) => {
    const ttl = ttlOf([{ keyId, publicKey, throughMs }]);
    const item = { publicKey: JSON.stringify(publicKey), throughMs, ttl };
    await items.write({ kind: 'put', key: keyOf(keyId), item });
  };

export const keepTicketKey = (items: Pick<ItemStore, 'write'>): KeepProcessKey => keepAt(items, ticketKey);

export const accountKeys = (items: Pick<ItemStore, 'get' | 'query'>): AccountKeys => ({
  async find(keyId) {
    const item = await items.get(accountKey(keyId), { consistent: true });
    return item && keyIn(keyId, item);
  },
  async all() {
    const keys: ProcessKey[] = [];
    let after: string | undefined;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const request = { table: 'control', pk: ACCOUNT_KEYS, consistent: false, ...defined({ after }) } as const;
      const read = await items.query(request);
      for (const item of read.items) keys.push(keyIn(String(item['sk']), item));
      if (read.next === undefined) break;
      after = read.next;
    }
    return keys;
  },
});

export const keepAccountKey = (items: Pick<ItemStore, 'write'>): KeepProcessKey => keepAt(items, accountKey);
