import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { bootstrapTokens } from './bootstrap-tokens.ts';

const SECRET = 's'.repeat(43);
const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');
const stored: Readonly<Record<string, string>> = {
  valid0: hashOf(SECRET),
  other0: hashOf('t'.repeat(43)),
  // What no token of ours has as its hash must match no secret, and fail no request.
  empty0: '',
  short0: hashOf(SECRET).slice(2),
};
const scheme = bootstrapTokens({
  async find(id) {
    const secretSha256 = stored[id];
    // Whether it is still valid is checked at the enrolment, which can state the reason.
    return secretSha256 === undefined ? undefined : { id, secretSha256, expiresAtMs: 0, usesLeft: 0, reissue: false };
  },
});
const outcomeOf = async (token: string) => {
  const answer = await scheme.authenticate(token, 1);
  return answer.kind === 'refused' ? answer.reason : answer.kind;
};

it('a bootstrap token authenticates its bearer for enrolment, by its secret', async () => {
  expect(await scheme.authenticate(`valid0.${SECRET}`, 1)).toEqual({
    kind: 'authenticated',
    user: { username: 'system:bootstrap:valid0', groups: ['system:bootstrappers', 'system:authenticated'] },
  });
});

it.each(['none00', 'other0', 'empty0', 'short0'])('the secret of another token is refused: %s', async (id) => {
  expect(await outcomeOf(`${id}.${SECRET}`)).toBe('unknown bootstrap token');
});

it('only what has the form of a bootstrap token is one', async () => {
  expect([scheme.recognises(`valid0.${SECRET}`), scheme.recognises('eyJ.eyJ.x')]).toEqual([true, false]);
  expect(await outcomeOf('valid0')).toBe('malformed bootstrap token');
});
