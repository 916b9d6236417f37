import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import type { Log } from '../observability/log.ts';
import type { NodeKeyAlgorithm } from './node-identity.ts';
import { PROCESS_KEY_LIFE_SECONDS, type ProcessKey, useOfKey } from './process-key.ts';
import { readPublicKey } from './public-keys.ts';

/** Stores the public half of a new key. Once it returns, every reader finds the key. */
export type KeepProcessKey = (key: ProcessKey, nowMs: number) => Promise<void>;

/** The keys that authenticate probes; the result may include expired ones. */
export interface ProbeKeys {
  probeKeys(options: { readonly consistent: boolean }): Promise<readonly ProcessKey[]>;
}

/** The keys that sign watch tickets. */
export interface TicketKeys {
  /** Strongly consistent; undefined: no key has this id, or no longer. */
  find(keyId: string): Promise<ProcessKey | undefined>;
}

export interface SigningKey {
  readonly keyId: string;
  readonly throughMs: number;
  /** base64url. */
  sign(text: string): string;
}

/**
 * The key pair of this process: created for the first signature, replaced before it expires. The private key is never
 * stored.
 */
export interface ProcessKeys {
  /** The signing key. Its public half is stored. Rejects if there is no key and a new one cannot be stored. */
  current(nowMs: number): Promise<SigningKey>;
  /** The key was refused: the next call of `current` creates another. */
  forget(key: SigningKey): void;
}

/**
 * If the next key cannot be stored, a warning is logged and the current key stays in use. Time until the next attempt.
 */
const RETRY_MS = 60_000;

export interface ProcessKeyOptions {
  /** ES256 for signatures that programs of others verify. */
  readonly algorithm: NodeKeyAlgorithm;
  /** How long after the last use of a key its signatures are still accepted. Seconds. */
  readonly trailSeconds: number;
}

export function processKeys(
  keep: KeepProcessKey,
  log?: Pick<Log, 'warn'>,
  { algorithm, trailSeconds }: ProcessKeyOptions = { algorithm: 'EdDSA', trailSeconds: 0 },
): ProcessKeys {
  let key: SigningKey | undefined;
  let creation: Promise<SigningKey> | undefined;
  let retryAtMs = 0;

  async function create(nowMs: number): Promise<SigningKey> {
    const pair =
      algorithm === 'EdDSA' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const read = readPublicKey(pair.publicKey.export({ format: 'jwk' }) as Record<string, unknown>);
    if (read.kind !== 'key') throw new Error(`a new key ${read.why}`);
    const { keyId, publicKey } = read;
    const throughMs = nowMs + PROCESS_KEY_LIFE_SECONDS * 1_000;
    await keep({ keyId, publicKey, throughMs: throughMs + trailSeconds * 1_000 }, nowMs);
    key = { keyId, throughMs, sign: (text) => signed(text, pair.privateKey, algorithm) };
    return key;
  }

  /** Concurrent calls wait for the same key. */
  function createOnce(nowMs: number): Promise<SigningKey> {
    creation ??= create(nowMs).finally(() => {
      creation = undefined;
    });
    return creation;
  }

  return {
    async current(nowMs) {
      const present = key;
      const use = present === undefined ? 'ended' : useOfKey(present, nowMs);
      if (present === undefined || use === 'ended') return createOnce(nowMs);
      if (use === 'use' || nowMs < retryAtMs) return present;
      retryAtMs = nowMs + RETRY_MS;
      return createOnce(nowMs).catch((error: unknown) => {
        log?.warn('the next key of this process could not be stored', { error, endsAtMs: present.throughMs });
        return present;
      });
    },
    forget(refused) {
      if (key === refused) key = undefined;
    },
  };
}

const signed = (text: string, key: KeyObject, algorithm: NodeKeyAlgorithm): string =>
  sign(algorithm === 'EdDSA' ? null : 'sha256', Buffer.from(text, 'utf8'), {
    key,
    dsaEncoding: 'ieee-p1363',
  }).toString('base64url');
