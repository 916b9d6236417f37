/**
 * Authenticates bootstrap tokens. It verifies only the secret. The enrolment request checks whether the token is still
 * valid and for which node (shared/access/bootstrap-token.ts), because its response can state the reason.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { BearerScheme } from '../../../shared/access/bearer.ts';
import { BOOTSTRAP_GROUP, BOOTSTRAP_USER_PREFIX, parseBootstrapToken } from '../../../shared/access/bootstrap-token.ts';
import type { BootstrapTokens } from '../../../shared/access/node-keys.ts';

export function bootstrapTokens(tokens: BootstrapTokens): BearerScheme {
  return {
    recognises: (token) => parseBootstrapToken(token) !== undefined,
    async authenticate(token) {
      const parsed = parseBootstrapToken(token);
      if (parsed === undefined) return { kind: 'refused', reason: 'malformed bootstrap token' };
      const stored = await tokens.find(parsed.id);
      const presented = createHash('sha256').update(parsed.secret).digest();
      const known = Buffer.from(stored?.secretSha256 ?? '', 'hex');
      if (stored === undefined || known.length !== presented.length || !timingSafeEqual(known, presented)) {
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
