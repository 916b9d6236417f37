/**
 * Tokens of service accounts (JWT, ES256; rules in shared/access/account-token.ts). A process of the API signs
 * with its own key and stores the public half (docs/decisions/0009-keys-of-our-own-processes.md).
 *
 * The stored key alone determines the algorithm. This excludes `none`, a public key as a secret, and a key that is sent
 * with the token.
 *
 * Cost of a request with such a token: one read unit for its account, and one for the pod, Secret or Node it is bound
 * to, at most every ALIVE_MS; the first one reads its key and verifies the signature. All caches are bounded.
 */

import { createHash, type KeyObject, verify } from 'node:crypto';
import type { KubeObject, ObjectRef } from '../kinds/types.ts';
import type { Log } from '../observability/log.ts';
import {
  ACCOUNT_ISSUER,
  ACCOUNT_TOKEN_CHARACTERS_MAX,
  ACCOUNT_TOKEN_SECONDS_MAX,
  type AccountTokenContent,
  accountTokenClaims,
  accountTokenVerdict,
  accountUser,
  isAlive,
  requiredObjects,
  type VerifiableToken,
} from './account-token.ts';
import type { Authentication } from './authenticator.ts';
import { type BearerScheme, boundedMemory, jsonObjectIn, lookupMemory } from './bearer.ts';
import { hasEnded, type ProcessKey } from './process-key.ts';
import { type KeepProcessKey, processKeys } from './process-keys.ts';
import { keyObjectOf } from './public-keys.ts';

/** How long the objects of a token are not read again, as upstream. A deletion takes effect within it. Milliseconds. */
const ALIVE_MS = 10_000;
/** A missing key is cached for this long. Milliseconds. */
const ABSENT_KEYS_LIVE_MS = 5_000;
/** A key that was removed from the table is accepted for at most this long. Milliseconds. */
const KEYS_LIVE_MS = 3_600_000;
const KEYS_MAX = 1_000;
const TOKENS_MAX = 5_000;

const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');

/** @param keep stores the public half of a key */
export function accountTokenIssuer(keep: KeepProcessKey, log?: Pick<Log, 'warn'>): AccountTokenIssuer {
  // A token may be signed with a key at its end, and its signature must be accepted until the token expires.
  const keys = processKeys(keep, log, { algorithm: 'ES256', trailSeconds: ACCOUNT_TOKEN_SECONDS_MAX });
  return {
    async issue(content, nowMs) {
      const key = await keys.current(nowMs);
      const signed = `${encoded({ alg: 'ES256', kid: key.keyId })}.${encoded(accountTokenClaims(content))}`;
      return `${signed}.${key.sign(signed)}`;
    },
  };
}

export interface AccountTokenOptions {
  readonly keys: Pick<AccountKeys, 'find'>;
  readonly find: FindObject;
}

interface KnownKey {
  /** undefined: there is no such key. */
  readonly key: { readonly publicKey: KeyObject; readonly throughMs: number } | undefined;
  readonly readAtMs: number;
}

interface KnownToken extends VerifiableToken {
  /** When the objects of the token were last read, and whether all existed. */
  alive?: { readonly atMs: number; readonly result: boolean };
}

/** header.payload.signature in base64url; a P-256 signature has 64 bytes. */
const TOKEN_FORMAT = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{86})$/;
const MARK = '"kubernetes.io":';

const refused = (reason: string, isByClock = false): Authentication => ({
  ...{ kind: 'refused', reason: `service account token: ${reason}` },
  ...(isByClock && { isByClock }),
});

export function accountTokens({ keys, find }: AccountTokenOptions): BearerScheme {
  const known = lookupMemory<KnownKey>(KEYS_MAX, ({ key }) => key !== undefined);
  const tokens = boundedMemory<KnownToken>(TOKENS_MAX);

  async function keyOf(keyId: string, nowMs: number): Promise<KeyObject | undefined> {
    const remembered = known.find(keyId);
    const liveMs = remembered?.key === undefined ? ABSENT_KEYS_LIVE_MS : KEYS_LIVE_MS;
    let key = remembered?.key;
    // A read time in the future means that the clock was set back.
    if (remembered === undefined || Math.abs(nowMs - remembered.readAtMs) >= liveMs) {
      const stored = await keys.find(keyId);
      key = stored && { publicKey: keyObjectOf(stored.publicKey), throughMs: stored.throughMs };
      known.keep(keyId, { key, readAtMs: nowMs });
    }
    return key === undefined || hasEnded(key, nowMs) ? undefined : key.publicKey;
  }

  /** The verified content of a token, or the refusal. */
  async function verified(token: string, nowMs: number): Promise<KnownToken | Authentication> {
    const [, header = '', payload = '', signature = ''] = TOKEN_FORMAT.exec(token) ?? [];
    const headerObject = jsonObjectIn(Buffer.from(header, 'base64url'));
    const payloadObject = jsonObjectIn(Buffer.from(payload, 'base64url'));
    if (headerObject === undefined || payloadObject === undefined) return refused('malformed');
    const verdict = accountTokenVerdict(headerObject, payloadObject, nowMs);
    if (verdict.kind === 'refused') return refused(verdict.reason, verdict.isByClock);
    const key = await keyOf(verdict.token.keyId, nowMs);
    if (key === undefined) return refused('no such key');
    const isSigned =
      key.asymmetricKeyType === 'ec' &&
      verify(
        'sha256',
        Buffer.from(`${header}.${payload}`, 'latin1'),
        { key, dsaEncoding: 'ieee-p1363' },
        Buffer.from(signature, 'base64url'),
      );
    return isSigned ? { ...verdict.token } : refused('wrong signature');
  }

  async function isStillAlive(token: KnownToken, nowMs: number): Promise<boolean> {
    const { alive } = token;
    if (alive !== undefined && Math.abs(nowMs - alive.atMs) < ALIVE_MS) return alive.result;
    const required = requiredObjects(token.content);
    const found = await Promise.all(required.map(({ ref }) => find(ref)));
    const result = required.every(({ uid }, index) => isAlive(found[index], uid, nowMs));
    token.alive = { atMs: nowMs, result };
    return result;
  }

  return {
    recognises(token) {
      const [header = '', payload = '', ...rest] = token.split('.', 4);
      return header.startsWith('eyJ') && rest.length === 1 && Buffer.from(payload, 'base64url').includes(MARK);
    },

    async authenticate(token, nowMs, audiences = [ACCOUNT_ISSUER]) {
      if (token.length > ACCOUNT_TOKEN_CHARACTERS_MAX) return refused('too long');
      const digest = createHash('sha256').update(token).digest('base64');
      const outcome = tokens.find(digest) ?? (await verified(token, nowMs));
      if ('kind' in outcome) return outcome;
      tokens.keep(digest, outcome);
      const { content } = outcome;
      if (nowMs >= content.expiresAt * 1_000) return refused('expired', true);
      if ((await keyOf(outcome.keyId, nowMs)) === undefined) return refused('no such key');
      const accepted = audiences.filter((audience) => content.audiences.includes(audience));
      if (accepted.length === 0) return refused('for another audience');
      if (!(await isStillAlive(outcome, nowMs))) return refused('its account, or what it is bound to, was deleted');
      return { kind: 'authenticated', user: accountUser(content), audiences: accepted };
    },
  };
}

/** Signs tokens of service accounts. Rejects if there is no key and a new one cannot be stored. */
export interface AccountTokenIssuer {
  issue(content: AccountTokenContent, nowMs: number): Promise<string>;
}

/** The public keys that sign tokens of service accounts. */
export interface AccountKeys {
  /** Strongly consistent; undefined: no key has this id, or no longer. */
  find(keyId: string): Promise<ProcessKey | undefined>;
  /** All keys, at most some thousands. */
  all(): Promise<readonly ProcessKey[]>;
}

/** Reads the objects that a token is bound to; undefined: there is none. */
export type FindObject = (ref: ObjectRef) => Promise<KubeObject | undefined>;
