/**
 * Several kinds of bearer token behind one Authenticator. Each is recognised by its format, without a lookup. With what
 * each kind needs: JSON of unknown origin, and memories of bounded size.
 */

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
