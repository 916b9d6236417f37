import { expect, it } from 'vitest';
import { ACCOUNT_TOKEN_SECONDS_MAX, accountTokenClaims, accountTokenVerdict, accountUser } from './account-token.ts';

const NOW_S = 1_767_225_600;
const HEADER = { alg: 'ES256', kid: 'k'.repeat(43) };
const CLAIMS = accountTokenClaims({
  namespace: 'a',
  account: { name: 'bot', uid: 'u' },
  pod: { name: 'p', uid: 'v' },
  audiences: ['here'],
  issuedAt: NOW_S,
  expiresAt: NOW_S + 600,
  tokenId: 't',
});
const BOUND = CLAIMS['kubernetes.io'];

function reason(header: object, claims: object = {}, nowMs = NOW_S * 1_000): string {
  const verdict = accountTokenVerdict({ ...HEADER, ...header }, { ...CLAIMS, ...claims }, nowMs);
  return verdict.kind === 'refused' ? verdict.reason : 'accepted';
}

it('accepts what it made, from ten seconds before its issue to its expiry', () => {
  expect(reason({})).toBe('accepted');
  expect(reason({ typ: 'JWT' }, {}, (NOW_S - 10) * 1_000)).toBe('accepted');
  expect(reason({}, {}, (NOW_S - 10) * 1_000 - 1)).toBe('not valid yet');
  expect(reason({}, {}, (NOW_S + 600) * 1_000)).toBe('expired');
  expect(reason({}, { exp: NOW_S + ACCOUNT_TOKEN_SECONDS_MAX + 1 })).toBe('validity not allowed');
  expect(reason({}, { exp: NOW_S })).toBe('validity not allowed');
});

it.each(['none', 'HS256', 'RS256', 'EdDSA', 'es256', '', undefined, ['ES256']])('refuses algorithm %j', (alg) => {
  expect(reason({ alg })).toBe('algorithm not allowed');
});

it.each([{ crit: ['exp'] }, { b64: false }, { typ: 'at+jwt' }])('refuses the header member %j', (member) => {
  expect(reason(member)).toBe('header has an unsupported member');
});

it.each(['', '../x', 'k', 7, undefined])('refuses the key id %j', (kid) => {
  expect(reason({ kid })).toBe('key id is no thumbprint');
});

it.each([
  { iss: 'https://issuer.example' },
  { sub: 'system:serviceaccount:b:bot' },
  { sub: 'system:serviceaccount:a:other' },
  { sub: 'system:serviceaccount:a:bot:c' },
  { sub: 'system:admin' },
  { aud: 'here' },
  { aud: [] },
  { aud: [7] },
  { exp: undefined },
  { iat: 1.5 },
  { nbf: NOW_S + 1 },
  { jti: '' },
  { 'kubernetes.io': undefined },
  { 'kubernetes.io': { ...BOUND, namespace: 'b' } },
  { 'kubernetes.io': { ...BOUND, serviceaccount: { name: 'bot' } } },
  // A binding that cannot be checked must not be ignored.
  { 'kubernetes.io': { ...BOUND, pod: { name: 'p' } } },
  { 'kubernetes.io': { ...BOUND, secret: null } },
])('refuses the claims %j', (claims) => {
  expect(reason({}, claims)).toBe('malformed claims');
});

it('its user has the names and the uids of all objects that it is bound to', () => {
  const times = { issuedAt: NOW_S, expiresAt: NOW_S + 600 };
  const content = { namespace: 'a', account: { name: 'bot', uid: 'u' }, audiences: ['here'], tokenId: 't', ...times };
  const bare = accountUser(content);
  expect(bare).toEqual({
    username: 'system:serviceaccount:a:bot',
    uid: 'u',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:a', 'system:authenticated'],
    extra: { 'authentication.kubernetes.io/credential-id': ['JTI=t'] },
  });
  const bound = accountUser({ ...content, pod: { name: 'p', uid: 'v' }, node: { name: 'n', uid: 'w' } });
  expect(bound.extra).toEqual({
    ...bare.extra,
    'authentication.kubernetes.io/pod-name': ['p'],
    'authentication.kubernetes.io/pod-uid': ['v'],
    'authentication.kubernetes.io/node-name': ['n'],
    'authentication.kubernetes.io/node-uid': ['w'],
  });
});
