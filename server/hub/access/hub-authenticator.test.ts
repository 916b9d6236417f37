import { expect, it } from 'vitest';
import { CALLER_IDENTITY_PREFIX } from '../../../shared/access/caller-identity-token.ts';
import { nodeKeyPair, nodeToken } from '../../../test/support/node-key-pair.ts';
import { expiresByItself, hubAuthenticator } from './hub-authenticator.ts';

it.each([
  ['a bootstrap token', `abcdef.${'S'.repeat(43)}`, true],
  ['a token of a user with AWS credentials', `${CALLER_IDENTITY_PREFIX}aHR0cHM6Ly9zdHM`, true],
  ['a token of a user of the cluster', 'c2VjcmV0LXRva2VuLW9mLWFuLWFkbWluaXN0cmF0b3I', false],
])('whether the cluster must be asked about %s each time', (_, token, expires) => {
  expect(expiresByItself(token)).toBe(expires);
});

it('answers 503 to a token that its own clock makes early or late, while nothing checks that clock', async () => {
  const nowMs = Date.UTC(2026, 0, 1);
  const pair = nodeKeyPair();
  let isDown = true;
  const authenticator = hubAuthenticator({
    accountKeys: { find: async () => undefined },
    nodeKeys: { keysOf: async () => [{ keyId: pair.keyId, publicKey: pair.publicKey, addedAtMs: 0 }] },
    clusterId: () => 'edge',
    find: async () => undefined,
    reviews: { authenticate: async () => ({ kind: 'refused', reason: 'by the cluster' }) },
    isDown: () => isDown,
    isPart: () => false,
    caughtUp: async () => true,
  });
  const outcomeOf = async (aheadMs: number, claims: object = {}): Promise<unknown> => {
    const token = nodeToken(pair, { nodeName: 'n1', nowMs: nowMs + aheadMs, clusterId: 'edge', claims });
    try {
      return (await authenticator.authenticate({ authorization: `Bearer ${token}` }, nowMs)).kind;
    } catch (error) {
      return (error as { status: { code: number } }).status.code;
    }
  };
  expect([await outcomeOf(0), await outcomeOf(86_400_000), await outcomeOf(-86_400_000)]).toEqual([
    'authenticated',
    503,
    503,
  ]);
  expect(await outcomeOf(0, { aud: 'another' })).toBe('refused');
  isDown = false;
  expect(await outcomeOf(86_400_000)).toBe('refused');
});
