import { createHash, timingSafeEqual } from 'node:crypto';
import type { Authentication, Authenticator } from './authenticator.ts';
import { bearerTokenOf } from './bearer.ts';

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
