/**
 * Signing keys that a process creates when it first needs one: node-monitor for the tokens of its probes, the API for
 * its watch tickets. The private key never leaves the process and is lost when the process terminates. The public key
 * is stored for verification. So no private key must be distributed or stored.
 */
import type { NodePublicKey } from './node-identity.ts';

export interface ProcessKey {
  /** JWK thumbprint, RFC 7638, SHA-256, base64url. */
  readonly keyId: string;
  readonly publicKey: NodePublicKey;
  /** Last moment at which a signature of this key is accepted. Epoch milliseconds. */
  readonly throughMs: number;
}

/** Lifetime of a key since its creation. Seconds. */
export const PROCESS_KEY_LIFE_SECONDS = 86_400;
/** The next key is created this long before a key expires. Storing it may fail for that long. Seconds. */
const REPLACE_BEFORE_EXPIRY_SECONDS = 43_200;
/** A key signs nothing in this time before it expires: its signatures must still be valid when used. Seconds. */
const UNUSED_BEFORE_EXPIRY_SECONDS = 600;

/**
 * `use`: sign with it. `replace`: create a new key, and sign with this one while that fails. `ended`: do not use it.
 */
export function useOfKey({ throughMs }: Pick<ProcessKey, 'throughMs'>, nowMs: number): 'use' | 'replace' | 'ended' {
  const leftMs = throughMs - nowMs;
  if (leftMs < UNUSED_BEFORE_EXPIRY_SECONDS * 1_000) return 'ended';
  return leftMs < REPLACE_BEFORE_EXPIRY_SECONDS * 1_000 ? 'replace' : 'use';
}

export const hasEnded = ({ throughMs }: Pick<ProcessKey, 'throughMs'>, nowMs: number): boolean => nowMs > throughMs;

/**
 * Maximum number of stored probe keys. node-monitor has one process, briefly two. Lambda starts a new one several times
 * a day, and a key is kept for a day. An item with 16 keys costs one read unit.
 */
export const PROBE_KEYS_MAX = 16;

/** The keys to store with a new key `made`: unexpired ones, those that expire last first, at most PROBE_KEYS_MAX. */
export function withProbeKey(keys: readonly ProcessKey[], made: ProcessKey, nowMs: number): readonly ProcessKey[] {
  const others = keys.filter((key) => key.keyId !== made.keyId && !hasEnded(key, nowMs));
  const latest = others.toSorted((a, b) => b.throughMs - a.throughMs).slice(0, PROBE_KEYS_MAX - 1);
  return [made, ...latest];
}
