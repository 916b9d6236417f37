/**
 * Public keys of our own processes in the `control` table:
 *
 *   pk `probe-keys` sk `-`        v, keys JSON: keys of node-monitor's processes. One item: a lookup of an unknown key
 *                                 reads all keys, so made-up ids cost one read in several seconds and not one each
 *   pk `ticket-keys` sk key id    publicKey JSON, throughMs: keys of the API's processes; there may be hundreds
 *
 * TTL deletes old keys; readers compare throughMs to know whether a key has expired. A principal that may write a
 * partition can sign in with its keys, so each partition has its own grant (cdk/lib/table-actions.ts).
 */
import type { NodePublicKey } from '../domain/access/node-identity.ts';
import { type ProcessKey, withProbeKey } from '../domain/access/process-key.ts';
import { type Item, type ItemKey, type ItemReader, type ItemStore, StoreFault } from '../ports/item-store.ts';
import type { KeepProcessKey, ProbeKeys, TicketKeys } from '../ports/process-keys.ts';
import { is } from './conditions.ts';
import { ALONE } from './layout.ts';

const PROBE_KEYS: ItemKey = { table: 'control', pk: 'probe-keys', sk: ALONE };
const ticketKey = (keyId: string): ItemKey => ({ table: 'control', pk: 'ticket-keys', sk: keyId });

/** Attempts at the shared item of all probes while others change it. */
const ATTEMPTS_MAX = 4;
/** Keys are kept this long after they expire, for investigations. Seconds. */
const REMEMBERED_SECONDS = 86_400;

const ttlOf = (keys: readonly ProcessKey[]): number =>
  Math.ceil(Math.max(...keys.map(({ throughMs }) => throughMs)) / 1_000) + REMEMBERED_SECONDS;

type ProbeKeysRow = { readonly v: number; readonly keys: string };
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

export const ticketKeys = (items: ItemReader): TicketKeys => ({
  async find(keyId) {
    const item = await items.get(ticketKey(keyId), { consistent: true });
    if (item === undefined) return undefined;
    const { publicKey, throughMs } = item as TicketKeyRow;
    return { keyId, publicKey: JSON.parse(publicKey) as NodePublicKey, throughMs };
  },
});

export const keepTicketKey =
  (items: Pick<ItemStore, 'write'>): KeepProcessKey =>
  async ({ keyId, publicKey, throughMs }) => {
    const ttl = ttlOf([{ keyId, publicKey, throughMs }]);
    const item = { publicKey: JSON.stringify(publicKey), throughMs, ttl };
    await items.write({ kind: 'put', key: ticketKey(keyId), item });
  };
