/**
 * Several kinds of bearer token behind one Authenticator. Each is recognised by its format, without a lookup. With what
 * each kind needs: JSON of unknown origin, and memories of bounded size. Static tokens have no format of their own.
 */

import { createHash, timingSafeEqual } from 'node:crypto';
import { isJsonObject, type JsonObject } from '../kubernetes/json.ts';
import type { Authentication, Authenticator } from './authenticator.ts';

export interface BearerScheme {
  /** Whether the token has this scheme's format. Called for every request, so it must be cheap. */
  recognises(token: string): boolean;
  /** Returns `refused` or `authenticated`. */
  authenticate(token: string, nowMs: number, audiences?: readonly string[]): Promise<Authentication>;
}

const BEARER = 'bearer ';

/** The token of the Authorization header; undefined if there is no header, or it has another scheme. */
export function bearerTokenOf(headers: Readonly<Record<string, string>>): string | undefined {
  const header = headers['authorization'];
  if (header === undefined || header.slice(0, BEARER.length).toLowerCase() !== BEARER) return undefined;
  return header.slice(BEARER.length).trim();
}

/** The first scheme that recognises a token authenticates it; `otherwise` handles all other requests. */
export function bearerSchemes(schemes: readonly BearerScheme[], otherwise: Authenticator): Authenticator {
  return {
    async authenticate(headers, nowMs, audiences) {
      const token = bearerTokenOf(headers);
      const scheme = token === undefined ? undefined : schemes.find((each) => each.recognises(token));
      if (token === undefined || scheme === undefined) return otherwise.authenticate(headers, nowMs);
      return scheme.authenticate(token, nowMs, audiences);
    },
  };
}

/** Parses bytes as a JSON object; undefined for anything else. */
export function jsonObjectIn(bytes: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

export interface BoundedMemory<T> {
  find(key: string): T | undefined;
  keep(key: string, value: T): void;
  forget(key: string): void;
}

/**
 * A map of bounded size. It drops the entry that was added first, whether it is used or not: callers add an entry in
 * use again when it expires.
 */
export function boundedMemory<T>(entriesMax: number): BoundedMemory<T> {
  const entries = new Map<string, T>();
  return {
    find: (key) => entries.get(key),
    keep(key, value) {
      entries.delete(key);
      if (entries.size >= entriesMax) {
        const [oldest] = entries.keys();
        if (oldest !== undefined) entries.delete(oldest);
      }
      entries.set(key, value);
    },
    forget: (key) => void entries.delete(key),
  };
}

/**
 * Caches lookups. Failed lookups are kept separately: a client can invent names, and these must not push out existing
 * entries.
 *
 * @param exists whether the lookup found an entry
 * @param entriesMax maximum number of each kind
 */
export function lookupMemory<T>(
  entriesMax: number,
  exists: (value: T) => boolean,
): Pick<BoundedMemory<T>, 'find' | 'keep'> {
  const existing = boundedMemory<T>(entriesMax);
  const absent = boundedMemory<T>(entriesMax);
  return {
    find: (key) => existing.find(key) ?? absent.find(key),
    keep(key, value) {
      const [kept, other] = exists(value) ? [existing, absent] : [absent, existing];
      kept.keep(key, value);
      other.forget(key);
    },
  };
}

export interface StaticToken {
  /** SHA-256 of the token, lower-case hex. The token itself is never stored. */
  readonly sha256: string;
  readonly user: string;
  readonly groups: readonly string[];
}

/** Longer tokens are refused without hashing; API Gateway limits headers to 10 KB anyway. */
const TOKEN_CHARACTERS_MAX = 4_096;

/**
 * Authenticates bearer tokens by their hash. The token is hashed once and compared with every known hash in constant
 * time. So the response time reveals neither the tokens nor their order.
 */
export function staticTokenAuthenticator(tokens: readonly StaticToken[]): Authenticator {
  const known = tokens.map((token) => ({ hash: Buffer.from(token.sha256, 'hex'), token }));
  return {
    authenticate: async (headers): Promise<Authentication> => {
      const header = headers['authorization'];
      if (header === undefined || header === '') return { kind: 'anonymous' };
      const token = bearerTokenOf(headers);
      if (token === undefined) return { kind: 'refused', reason: 'not a bearer token' };
      if (token.length > TOKEN_CHARACTERS_MAX) return { kind: 'refused', reason: 'token too long' };
      const hash = createHash('sha256').update(token).digest();
      let found: StaticToken | undefined;
      for (const candidate of known) {
        if (candidate.hash.length === hash.length && timingSafeEqual(candidate.hash, hash)) found = candidate.token;
      }
      return found === undefined
        ? { kind: 'refused', reason: 'unknown token' }
        : {
            kind: 'authenticated',
            user: { username: found.user, groups: [...found.groups, 'system:authenticated'] },
          };
    },
  };
}
