/**
 * Keys of nodes, in bounded memory. In steady state a request reads nothing.
 *
 *   keys of a node      for keysLiveMs: how long a revoked key may still be accepted. The probe's keys are cached
 *                       like those of one more node, and each also has an expiry
 *   missing keys        for ABSENT_KEYS_LIVE_MS: a flood of unknown names costs two reads per name in that time.
 *                       They are kept separately, because invented names must not push out keys of nodes
 */
import type { KeyObject } from 'node:crypto';
import { algorithmOf, type NodeKey, type NodeKeyAlgorithm } from '../node-identity.ts';
import type { NodeKeys } from '../node-keys.ts';
import type { NodeTokenClaims } from '../node-token.ts';
import { hasEnded } from '../process-key.ts';
import type { ProbeKeys } from '../process-keys.ts';
import { lookupMemory } from './bounded-memory.ts';
import { keyObjectOf } from './public-keys.ts';

const ABSENT_KEYS_LIVE_MS = 5_000;
const NODES_MAX = 20_000;

export interface KnownKeyOptions {
  readonly keys: NodeKeys;
  /** Absent: tokens of probes are refused. */
  readonly probeKeys?: ProbeKeys;
  /** Lifetime of cached keys. Milliseconds: a revocation takes effect within it. */
  readonly keysLiveMs: number;
  /** Maximum number of cached nodes, and of names without a key, each. */
  readonly rememberedMax?: number;
}

/** The owner of a key, and its id. */
export type KeySubject = Pick<NodeTokenClaims, 'username' | 'nodeName' | 'keyId'>;

export interface KnownKey {
  readonly algorithm: NodeKeyAlgorithm;
  readonly key: KeyObject;
  /** Expiry, independent of the cache; a node's key does not expire. Epoch milliseconds. */
  readonly throughMs: number;
}

/** A node, or the probe. */
interface KnownNode {
  readonly keys: ReadonlyMap<string, KnownKey>;
  readonly readAtMs: number;
  /** Whether the read was strongly consistent. */
  readonly isConsistent: boolean;
}

type StoredKey = Pick<NodeKey, 'keyId' | 'publicKey'> & { readonly throughMs?: number };

/** The key of a subject, from the cache while that is fresh. A missing key is read again, strongly consistent. */
export function knownKeys(
  options: KnownKeyOptions,
): (subject: KeySubject, nowMs: number) => Promise<KnownKey | undefined> {
  const { keysLiveMs } = options;
  const nodes = lookupMemory<KnownNode>(options.rememberedMax ?? NODES_MAX, ({ keys }) => keys.size > 0);

  async function readNode(subject: KeySubject, nowMs: number, consistent: boolean): Promise<KnownNode> {
    const stored: readonly StoredKey[] =
      subject.nodeName === undefined
        ? ((await options.probeKeys?.probeKeys({ consistent })) ?? [])
        : await options.keys.keysOf(subject.nodeName, { consistent });
    const keys = new Map<string, KnownKey>();
    for (const { keyId, publicKey, throughMs = Number.POSITIVE_INFINITY } of stored) {
      keys.set(keyId, { algorithm: algorithmOf(publicKey), key: keyObjectOf(publicKey), throughMs });
    }
    const known = { keys, readAtMs: nowMs, isConsistent: consistent };
    nodes.keep(subject.username, known);
    return known;
  }

  return async (subject, nowMs) => {
    const { username, keyId } = subject;
    const known = nodes.find(username);
    // A read time in the future means that the clock was set back. Then the distance is the age.
    const ageMs = known === undefined ? Number.POSITIVE_INFINITY : Math.abs(nowMs - known.readAtMs);
    const found = ageMs < keysLiveMs ? known?.keys.get(keyId) : undefined;
    if (found !== undefined) return unexpired(found, nowMs);
    if (known?.isConsistent === true && ageMs < ABSENT_KEYS_LIVE_MS) return undefined;
    if (ageMs >= keysLiveMs) {
      const key = (await readNode(subject, nowMs, false)).keys.get(keyId);
      if (key !== undefined) return unexpired(key, nowMs);
    }
    return unexpired((await readNode(subject, nowMs, true)).keys.get(keyId), nowMs);
  };
}

const unexpired = (key: KnownKey | undefined, nowMs: number): KnownKey | undefined =>
  key === undefined || hasEnded(key, nowMs) ? undefined : key;
