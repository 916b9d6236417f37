/**
 * Bootstrap tokens at the door: proves the secret, nothing more. Whether the token still enrols, and whom, is judged with
 * the request (shared/domain/access/bootstrap-token.ts), where the bearer can be told why not.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { BOOTSTRAP_GROUP, BOOTSTRAP_USER_PREFIX, parseBootstrapToken } from '../../domain/access/bootstrap-token.ts';
import type { BootstrapTokens } from '../../ports/node-keys.ts';
import type { BearerScheme } from './bearer.ts';

export function bootstrapTokens(tokens: BootstrapTokens): BearerScheme {
  return {
    recognises: (token) => parseBootstrapToken(token) !== undefined,
    async authenticate(token) {
      const parsed = parseBootstrapToken(token);
      if (parsed === undefined) return { kind: 'refused', reason: 'malformed bootstrap token' };
      const stored = await tokens.find(parsed.id);
      const given = createHash('sha256').update(parsed.secret).digest();
      const known = Buffer.from(stored?.secretSha256 ?? '', 'hex');
      if (stored === undefined || known.length !== given.length || !timingSafeEqual(known, given)) {
        return { kind: 'refused', reason: 'unknown bootstrap token' };
      }
      return {
        kind: 'authenticated',
        user: {
          username: `${BOOTSTRAP_USER_PREFIX}${parsed.id}`,
          groups: [BOOTSTRAP_GROUP, 'system:authenticated'],
        },
      };
    },
  };
}
