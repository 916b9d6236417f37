import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import {
  type BootstrapToken,
  bootstrapTokens,
  bootstrapVerdict,
  isBootstrapTokenId,
  isNamePattern,
  matchesPattern,
  type NameUse,
  parseBootstrapToken,
} from './bootstrap-token.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const SECRET = 's'.repeat(43);
const token = (more: Partial<BootstrapToken> = {}): BootstrapToken => ({
  id: 'k3q9x7za',
  secretSha256: '',
  expiresAtMs: NOW_MS + 1,
  usesLeft: 1,
  reissue: false,
  ...more,
});
const judged = (more: Partial<BootstrapToken> = {}, wanted: { nodeName?: string; use?: NameUse } = {}) => {
  const verdict = bootstrapVerdict(token(more), { nodeName: 'edge-7', nowMs: NOW_MS, use: 'free', ...wanted });
  return verdict.kind === 'forbidden' ? verdict.reason : verdict.kind;
};

describe('a bootstrap token', () => {
  it('enrols until the millisecond before it expires', () => {
    expect(judged()).toBe('granted');
    expect(judged({ expiresAtMs: NOW_MS })).toBe('bootstrap token k3q9x7za has expired');
  });
  it('enrols as often as it says', () => {
    expect(judged({ usesLeft: 0 })).toBe('bootstrap token k3q9x7za has no uses left');
  });
  it('enrols names of its pattern', () => {
    expect(judged({ nodeNamePattern: 'edge-*' })).toBe('granted');
    expect(judged({ nodeNamePattern: 'core-*' })).toBe('bootstrap token k3q9x7za is for names like "core-*"');
  });
  it('takes over no name, unless it may', () => {
    expect(judged({}, { use: 'identity' })).toBe('taken');
    expect(judged({ nodeNamePattern: 'edge-7' }, { use: 'identity' })).toBe('taken');
    // A Node without an identity: a token for this name alone, or with reissue.
    expect(judged({}, { use: 'node' })).toContain('a Node "edge-7" exists');
    expect(judged({ nodeNamePattern: 'edge-*' }, { use: 'node' })).toContain('--nodes edge-7');
    expect(judged({ nodeNamePattern: 'edge-7' }, { use: 'node' })).toBe('granted');
    expect(judged({ reissue: true }, { use: 'node' })).toBe('granted');
    expect(judged({ reissue: true }, { use: 'identity' })).toBe('granted');
    expect(judged({ reissue: true, nodeNamePattern: 'core-*' }, { use: 'identity' })).toContain('is for names like');
  });
  it.each([
    ['a'.repeat(5), false],
    ['a'.repeat(6), true],
    ['a9'.repeat(10), true],
    ['a'.repeat(21), false],
    ['aaa-aaa', false],
    ['/aaaaaa', false],
    ['aaaaaa/', false],
    ['AAAAAA', false],
  ])('has the id %s: %s', (id, isId) => {
    expect(isBootstrapTokenId(id)).toBe(isId);
    expect(parseBootstrapToken(`${id}.${SECRET}`) !== undefined).toBe(isId);
  });
  it('has a secret of 43 characters of base64url', () => {
    const all = 'AZaz09_-'.padEnd(43, 's');
    expect(parseBootstrapToken(`k3q9x7za.${all}`)).toEqual({ id: 'k3q9x7za', secret: all });
    for (const secret of [SECRET.slice(1), `${SECRET}s`, `/${SECRET}`, `${SECRET}/`, SECRET.replace('s', '+')])
      expect(parseBootstrapToken(`k3q9x7za.${secret}`), secret).toBeUndefined();
  });
  it('reads as id and secret, and nothing else does', () => {
    expect(parseBootstrapToken(`k3q9x7za.${SECRET}`)).toEqual({ id: 'k3q9x7za', secret: SECRET });
    for (const text of ['', '.', 'k3q9x7za', `K3Q9X7ZA.${SECRET}`, `k3q9x7za.${SECRET}.x`, `k3q9x7za.${SECRET}=`]) {
      expect(parseBootstrapToken(text), text).toBeUndefined();
    }
    expect(parseBootstrapToken(`short.${SECRET}`)).toBeUndefined();
    expect(parseBootstrapToken('k3q9x7za.tooshort')).toBeUndefined();
  });
});

describe('a name pattern', () => {
  it.each([
    ['edge-*', 'edge-', true],
    ['edge-*', 'edge-7', true],
    ['edge-*', 'core-7', false],
    ['*', 'a', true],
    ['edge-?', 'edge-7', true],
    ['edge-?', 'edge-77', false],
    ['edge-?', 'edge-', false],
    ['*.north.example', 'a.north.example', true],
    ['*.north.example', 'a.north.example.evil', false],
    ['edge-*-x', 'edge-a-x-b-x', true],
    ['edge', 'edge', true],
    ['edge', 'edges', false],
    ['a.c', 'abc', false],
    ['edge*', 'edge', true],
    ['edge**', 'edge', true],
    ['*?', 'a', true],
    ['*?', '', false],
    ['?', '', false],
    ['', '', true],
    ['', 'a', false],
    ['a*b', 'ab', true],
    ['a*bc', 'abbc', true],
    ['*ab*ab', 'abab', true],
    ['*ab*ab', 'ab', false],
  ])('%s says of %s: %s', (pattern, name, matches) => {
    expect(matchesPattern(pattern, name)).toBe(matches);
  });
  it('costs no more steps than its length times the name', () => {
    const startedMs = performance.now();
    expect(matchesPattern(`${'*a'.repeat(100)}b`, 'a'.repeat(253))).toBe(false);
    expect(performance.now() - startedMs).toBeLessThan(200);
  });
  it('holds characters of names, * and ?', () => {
    for (const text of ['edge-*.site?', 'a', '*', 'a'.repeat(253)]) expect(isNamePattern(text), text).toBe(true);
    for (const text of ['', 'Edge', 'a/b', '/ab', 'ab/', '[ab]', 'a'.repeat(254)])
      expect(isNamePattern(text), text).toBe(false);
  });
});

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
