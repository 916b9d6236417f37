/** The key pair of this process: made when something is first to be signed, replaced in good time, never written anywhere. */
import { generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { PROCESS_KEY_LIFE_SECONDS, useOfKey } from '../../domain/access/process-key.ts';
import type { Log } from '../../ports/log.ts';
import type { KeepProcessKey } from '../../ports/process-keys.ts';
import { readPublicKey } from './public-keys.ts';

export interface SigningKey {
  readonly keyId: string;
  readonly throughMs: number;
  /** Ed25519, base64url. */
  sign(text: string): string;
}

export interface ProcessKeys {
  /** The key to sign with now; its public half is stored. Rejects when there is none and none can be stored. */
  current(nowMs: number): Promise<SigningKey>;
  /** It is not believed: the next one is another. */
  forget(key: SigningKey): void;
}

/** A key that is due to be replaced serves on while storing the next fails, which is told; it is tried again so much later. */
const RETRY_MS = 60_000;

export function processKeys(keep: KeepProcessKey, log?: Pick<Log, 'warn'>): ProcessKeys {
  let key: SigningKey | undefined;
  let making: Promise<SigningKey> | undefined;
  let notBeforeMs = 0;

  async function make(nowMs: number): Promise<SigningKey> {
    const pair = generateKeyPairSync('ed25519');
    const read = readPublicKey(pair.publicKey.export({ format: 'jwk' }) as Record<string, unknown>);
    if (read.kind !== 'key') throw new Error(`a fresh key ${read.why}`);
    const { keyId, publicKey } = read;
    const throughMs = nowMs + PROCESS_KEY_LIFE_SECONDS * 1_000;
    await keep({ keyId, publicKey, throughMs }, nowMs);
    key = { keyId, throughMs, sign: (text) => signed(text, pair.privateKey) };
    return key;
  }

  /** One at a time: whoever comes meanwhile waits for the same. */
  function next(nowMs: number): Promise<SigningKey> {
    making ??= make(nowMs).finally(() => {
      making = undefined;
    });
    return making;
  }

  return {
    async current(nowMs) {
      const present = key;
      const use = present === undefined ? 'ended' : useOfKey(present, nowMs);
      if (present === undefined || use === 'ended') return next(nowMs);
      if (use === 'use' || nowMs < notBeforeMs) return present;
      notBeforeMs = nowMs + RETRY_MS;
      return next(nowMs).catch((error: unknown) => {
        log?.warn('the next key of this process could not be stored', { error, endsAtMs: present.throughMs });
        return present;
      });
    },
    forget(refused) {
      if (key === refused) key = undefined;
    },
  };
}

const signed = (text: string, privateKey: KeyObject): string =>
  sign(null, Buffer.from(text, 'utf8'), privateKey).toString('base64url');
