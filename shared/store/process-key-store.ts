/**
 * Public keys of our own processes in the `control` table:
 *
 *   pk `probe-keys` sk `-`        v, keys JSON: of node-monitor's processes. One item, so that whoever asks about a key that is
 *                                 not there has learnt of all that are, and a made-up id costs a read in some seconds, not each
 *   pk `ticket-keys` sk key id    publicKey JSON, throughMs: of the API's processes, of which there may be hundreds
 *
 * TTL cleans up; that a key has ended is judged by its throughMs, by whoever reads it. Whoever may write a partition may sign
 * in as what it stands for, so each has a grant of its own (cdk/lib/table-actions.ts).
 */
import type { NodePublicKey } from '../domain/access/node-identity.ts';
import { type ProcessKey, withProbeKey } from '../domain/access/process-key.ts';
import { type Item, type ItemKey, type ItemReader, type ItemStore, StoreFault } from '../ports/item-store.ts';
import type { KeepProcessKey, ProbeKeys, TicketKeys } from '../ports/process-keys.ts';
import { is } from './conditions.ts';
import { ALONE } from './layout.ts';

const PROBE_KEYS: ItemKey = { table: 'control', pk: 'probe-keys', sk: ALONE };
const ticketKey = (keyId: string): ItemKey => ({ table: 'control', pk: 'ticket-keys', sk: keyId });

/** Tries at the one item of all probes, when others change it. */
const ATTEMPTS_MAX = 4;
/** Kept beyond its end, for whoever looks into what happened. Seconds. */
const REMEMBERED_SECONDS = 86_400;

const ttlOf = (keys: readonly ProcessKey[]): number =>
  Math.ceil(Math.max(...keys.map(({ throughMs }) => throughMs)) / 1_000) + REMEMBERED_SECONDS;

const keysIn = (item: Item | undefined): readonly ProcessKey[] =>
  item === undefined ? [] : (JSON.parse(item['keys'] as string) as ProcessKey[]);

export const probeKeys = (items: ItemReader): ProbeKeys => ({
  probeKeys: async (options) => keysIn(await items.get(PROBE_KEYS, options)),
});

/** @throws StoreFault when the store refuses, or others kept changing the item */
export const keepProbeKey =
  (items: Pick<ItemStore, 'get' | 'write'>): KeepProcessKey =>
  async (made, nowMs) => {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt += 1) {
      const stored = await items.get(PROBE_KEYS, { consistent: true });
      // A refusal may have been the echo of our own write.
      if (keysIn(stored).some(({ keyId }) => keyId === made.keyId)) return;
      const keys = withProbeKey(keysIn(stored), made, nowMs);
      const version = (stored?.['v'] as number | undefined) ?? 0;
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
    const publicKey = JSON.parse(item['publicKey'] as string) as NodePublicKey;
    return { keyId, publicKey, throughMs: item['throughMs'] as number };
  },
});

export const keepTicketKey =
  (items: Pick<ItemStore, 'write'>): KeepProcessKey =>
  async ({ keyId, publicKey, throughMs }) => {
    const ttl = ttlOf([{ keyId, publicKey, throughMs }]);
    const item = { publicKey: JSON.stringify(publicKey), throughMs, ttl };
    await items.write({ kind: 'put', key: ticketKey(keyId), item });
  };
