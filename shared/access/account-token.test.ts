import { expect, it } from 'vitest';
import {
  ACCOUNT_TOKEN_SECONDS_MAX,
  type AccountTokenContent,
  accountTokenClaims,
  accountTokenVerdict,
  accountUser,
  isAlive,
  objectsOfUser,
  requiredObjects,
} from './account-token.ts';

const NOW_S = 1_767_225_600;
const HEADER = { alg: 'ES256', kid: 'k'.repeat(43) };
const BARE: AccountTokenContent = {
  namespace: 'a',
  account: { name: 'bot', uid: 'u' },
  audiences: ['here'],
  issuedAt: NOW_S,
  expiresAt: NOW_S + 600,
  tokenId: 't',
};
const CONTENT: AccountTokenContent = { ...BARE, pod: { name: 'p', uid: 'v' } };
const CLAIMS = accountTokenClaims(CONTENT);
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

it.each([
  CONTENT,
  BARE,
  { ...BARE, secret: { name: 's', uid: 'w' } },
  { ...CONTENT, node: { name: 'n', uid: 'x' }, audiences: ['here', 'there'] },
])('reads from a token what it was made of: %j', (content) => {
  expect(accountTokenVerdict(HEADER, accountTokenClaims(content), NOW_S * 1_000)).toEqual({
    kind: 'claims',
    token: { keyId: HEADER.kid, content },
  });
});

it('accepts a validity of a day, and times from the epoch on', () => {
  expect(reason({}, { exp: NOW_S + ACCOUNT_TOKEN_SECONDS_MAX })).toBe('accepted');
  expect(reason({}, { iat: 0, nbf: 0, exp: 1 }, 0)).toBe('accepted');
  expect(reason({}, { iat: -1, nbf: -1, exp: 1 }, 0)).toBe('malformed claims');
});

it.each(['none', 'HS256', 'RS256', 'EdDSA', 'es256', '', undefined, ['ES256']])('refuses algorithm %j', (alg) => {
  expect(reason({ alg })).toBe('algorithm not allowed');
});

it.each([{ crit: ['exp'] }, { b64: false }, { typ: 'at+jwt' }])('refuses the header member %j', (member) => {
  expect(reason(member)).toBe('header has an unsupported member');
});

it.each(['', '../x', 'k', HEADER.kid.slice(1), `${HEADER.kid}k`, `/${HEADER.kid}`, `${HEADER.kid}/`, 7, undefined])(
  'refuses the key id %j',
  (kid) => {
    expect(reason({ kid })).toBe('key id is no thumbprint');
  },
);

it.each([
  { iss: 'https://issuer.example' },
  { sub: 'system:serviceaccount:b:bot' },
  { sub: 'system:serviceaccount:a:other' },
  { sub: 'system:serviceaccount:a:bot:c' },
  { sub: 'system:admin' },
  { aud: 'here' },
  { aud: [] },
  { aud: [7] },
  { aud: ['here', ''] },
  { sub: undefined },
  { exp: undefined },
  { iat: 1.5, nbf: 1.5 },
  { exp: String(NOW_S + 600) },
  { nbf: NOW_S + 1 },
  { jti: '' },
  { 'kubernetes.io': undefined },
  { 'kubernetes.io': { ...BOUND, namespace: 'b' } },
  { 'kubernetes.io': [] },
  { 'kubernetes.io': { ...BOUND, serviceaccount: { name: 'bot' } } },
  { 'kubernetes.io': { ...BOUND, serviceaccount: { name: 'bot', uid: '' } } },
  { 'kubernetes.io': { ...BOUND, serviceaccount: { name: 'other', uid: 'u' } } },
  // A binding that cannot be checked must not be ignored.
  { 'kubernetes.io': { ...BOUND, pod: { name: 'p' } } },
  { 'kubernetes.io': { ...BOUND, pod: { name: '', uid: 'v' } } },
  { 'kubernetes.io': { ...BOUND, secret: null } },
  { 'kubernetes.io': { ...BOUND, node: { name: 'n', uid: 7 } } },
])('refuses the claims %j', (claims) => {
  expect(reason({}, claims)).toBe('malformed claims');
});

it('its user has the names and the uids of all objects that it is bound to', () => {
  const bare = accountUser(BARE);
  expect(bare).toEqual({
    username: 'system:serviceaccount:a:bot',
    uid: 'u',
    groups: ['system:serviceaccounts', 'system:serviceaccounts:a', 'system:authenticated'],
    extra: { 'authentication.kubernetes.io/credential-id': ['JTI=t'] },
  });
  const bound = accountUser({ ...CONTENT, node: { name: 'n', uid: 'w' } });
  expect(bound.extra).toEqual({
    ...bare.extra,
    'authentication.kubernetes.io/pod-name': ['p'],
    'authentication.kubernetes.io/pod-uid': ['v'],
    'authentication.kubernetes.io/node-name': ['n'],
    'authentication.kubernetes.io/node-uid': ['w'],
  });
});

const object = (resource: string, name: string, uid: string, namespace = 'a') => ({
  ref: { resource, namespace, name },
  uid,
});
const ACCOUNT = object('serviceaccounts', 'bot', 'u');
const NODE = { name: 'n', uid: 'x' };

it('needs its account and what it is bound to; the node of a pod may be deleted before the pod', () => {
  expect(requiredObjects(BARE)).toEqual([ACCOUNT]);
  expect(requiredObjects({ ...CONTENT, node: NODE })).toEqual([ACCOUNT, object('pods', 'p', 'v')]);
  expect(requiredObjects({ ...BARE, node: NODE })).toEqual([ACCOUNT, object('nodes', 'n', 'x', '')]);
  expect(requiredObjects({ ...BARE, secret: { name: 's', uid: 'w' } })).toEqual([ACCOUNT, object('secrets', 's', 'w')]);
});

it('needs the same objects when only its user is known', () => {
  for (const content of [BARE, CONTENT, { ...CONTENT, node: NODE }, { ...BARE, node: NODE }]) {
    expect(objectsOfUser(accountUser(content))).toEqual(requiredObjects(content));
  }
  const user = accountUser({ ...CONTENT, node: NODE });
  const { 'authentication.kubernetes.io/pod-uid': _uid, ...withoutUid } = user.extra ?? {};
  expect(objectsOfUser({ ...user, extra: withoutUid })).toEqual([ACCOUNT, object('nodes', 'n', 'x', '')]);
  const { 'authentication.kubernetes.io/pod-name': _name, ...withoutName } = user.extra ?? {};
  expect(objectsOfUser({ ...user, extra: withoutName })).toEqual([ACCOUNT, object('nodes', 'n', 'x', '')]);
});

it('needs no object for other users, and none for an account that is impersonated', () => {
  expect(objectsOfUser({ username: 'ada', uid: 'u', groups: [] })).toEqual([]);
  const { username, groups } = accountUser(BARE);
  expect(objectsOfUser({ username, groups })).toEqual([]);
  expect(objectsOfUser({ username, uid: 'u', groups })).toEqual([ACCOUNT]);
});

it('an object is alive until a minute after its deletion, under its own uid', () => {
  const at = (offsetMs: number, metadata: object) => isAlive({ metadata }, 'u', NOW_S * 1_000 + offsetMs);
  const deletionTimestamp = new Date(NOW_S * 1_000).toISOString();
  expect(isAlive(undefined, 'u', 0)).toBe(false);
  expect([at(0, { uid: 'u' }), at(0, { uid: 'v' })]).toEqual([true, false]);
  expect([at(59_999, { uid: 'u', deletionTimestamp }), at(60_000, { uid: 'u', deletionTimestamp })]).toEqual([
    true,
    false,
  ]);
});
