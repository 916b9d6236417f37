/** Several kinds of bearer token behind one Authenticator. Each is recognised by its format, without a lookup. */
import type { Authentication, Authenticator } from '../authenticator.ts';

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
