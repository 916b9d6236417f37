/**
 * Keys that a process of ours creates when it first needs one: node-monitor signs the tokens of its probes, the API its
 * watch tickets. The private key never leaves the process. The public key is stored for verification. So no key must be
 * distributed, rotated or protected, and a private key no longer exists once its process has terminated.
 */
import type { NodePublicKey } from './node-identity.ts';

export interface ProcessKey {
  /** JWK thumbprint, RFC 7638, SHA-256, base64url. */
  readonly keyId: string;
  readonly publicKey: NodePublicKey;
  /** Last moment at which anything it has signed counts. Epoch milliseconds. */
  readonly throughMs: number;
}

/** Seconds from when it was made. */
export const PROCESS_KEY_LIFE_SECONDS = 86_400;
/** The next key is made this long before the end of the one in use: so long may storing it fail. Seconds. */
const REPLACED_BEFORE_END_SECONDS = 43_200;
/** Nothing is signed any more this long before the end: what was signed must count while it is on its way. Seconds. */
const RESTS_BEFORE_END_SECONDS = 600;

/** `use` it, `replace` it and use it while that fails, or it has `ended`. */
export function useOfKey({ throughMs }: Pick<ProcessKey, 'throughMs'>, nowMs: number): 'use' | 'replace' | 'ended' {
  const leftMs = throughMs - nowMs;
  if (leftMs < RESTS_BEFORE_END_SECONDS * 1_000) return 'ended';
  return leftMs < REPLACED_BEFORE_END_SECONDS * 1_000 ? 'replace' : 'use';
}

export const hasEnded = ({ throughMs }: Pick<ProcessKey, 'throughMs'>, nowMs: number): boolean => nowMs > throughMs;

/**
 * Keys of probes that count at one time. node-monitor runs in one process, or two for a moment; Lambda makes it a new
 * one some times a day, and those of a day are kept. One item of 16 keys is read for one unit.
 */
export const PROBE_KEYS_MAX = 16;

/** What is stored once `made` is: those that have not ended, the ones with the nearest end dropped beyond the bound. */
export function withProbeKey(keys: readonly ProcessKey[], made: ProcessKey, nowMs: number): readonly ProcessKey[] {
  const others = keys.filter((key) => key.keyId !== made.keyId && !hasEnded(key, nowMs));
  const latest = others.toSorted((a, b) => b.throughMs - a.throughMs).slice(0, PROBE_KEYS_MAX - 1);
  return [made, ...latest];
}
