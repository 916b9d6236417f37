import { expect, it } from 'vitest';
import { CALLER_IDENTITY_PREFIX } from '../../../shared/access/caller-identity-token.ts';
import { expiresByItself } from './hub-authenticator.ts';

it.each([
  ['a bootstrap token', `abcdef.${'S'.repeat(43)}`, true],
  ['a token of a user with AWS credentials', `${CALLER_IDENTITY_PREFIX}aHR0cHM6Ly9zdHM`, true],
  ['a token of a user of the cluster', 'c2VjcmV0LXRva2VuLW9mLWFuLWFkbWluaXN0cmF0b3I', false],
])('whether the cluster must be asked about %s each time', (_, token, expires) => {
  expect(expiresByItself(token)).toBe(expires);
});
