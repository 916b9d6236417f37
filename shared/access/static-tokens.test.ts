import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { staticTokenAuthenticator } from './static-tokens.ts';

const hashOf = (token: string): string => createHash('sha256').update(token).digest('hex');
const LONGEST = 'x'.repeat(4_096);
const { authenticate } = staticTokenAuthenticator([
  { sha256: hashOf('first'), user: 'ada', groups: ['nodekeeper:admins'] },
  // No SHA-256: it must not fail the comparison of the others.
  { sha256: 'abcd', user: 'nobody', groups: [] },
  { sha256: hashOf('second'), user: 'vera', groups: [] },
  { sha256: hashOf(LONGEST), user: 'long', groups: [] },
  { sha256: hashOf(`${LONGEST}x`), user: 'longer', groups: [] },
]);

async function outcomeOf(authorization: string | undefined): Promise<string> {
  const answer = await authenticate(authorization === undefined ? {} : { authorization }, 0);
  return answer.kind === 'authenticated'
    ? answer.user.username
    : answer.kind === 'refused'
      ? answer.reason
      : answer.kind;
}

it('a token authenticates its user, who is in the group of all who are authenticated', async () => {
  expect(await authenticate({ authorization: 'Bearer first' }, 0)).toEqual({
    kind: 'authenticated',
    user: { username: 'ada', groups: ['nodekeeper:admins', 'system:authenticated'] },
  });
  expect(await outcomeOf('Bearer second')).toBe('vera');
});

it.each([
  [undefined, 'anonymous'],
  ['', 'anonymous'],
  ['Basic first', 'not a bearer token'],
  ['Bearer ', 'unknown token'],
  ['Bearer third', 'unknown token'],
  [`Bearer ${LONGEST}`, 'long'],
  [`Bearer ${LONGEST}x`, 'token too long'],
])('the header %s is answered with %s', async (header, outcome) => {
  expect(await outcomeOf(header)).toBe(outcome);
});
