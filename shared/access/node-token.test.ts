import { describe, expect, it } from 'vitest';
import { boundTokenClaims, isUsable, type NodeTokenVerdict, nodeTokenVerdict, tokenClaims } from './node-token.ts';

const NOW_S = 1_767_225_600;
const KEY_ID = 'k'.repeat(43);
const HEADER = { alg: 'ES256', typ: 'JWT', kid: KEY_ID };
const CLAIMS = { iss: 'system:node:n1', sub: 'system:node:n1', aud: 'here', iat: NOW_S, exp: NOW_S + 300 };
const AT = { nowMs: NOW_S * 1_000, clusterId: 'here' };

const judged = (header: object = {}, claims: object = {}, nowMs = AT.nowMs): NodeTokenVerdict =>
  nodeTokenVerdict({ ...HEADER, ...header }, { ...CLAIMS, ...claims }, { ...AT, nowMs });
const reason = (verdict: NodeTokenVerdict): string => (verdict.kind === 'refused' ? verdict.reason : 'accepted');

describe('a token of a node', () => {
  it('says which node, which key and how long', () => {
    expect(judged()).toEqual({
      kind: 'claims',
      claims: {
        username: 'system:node:n1',
        nodeName: 'n1',
        keyId: KEY_ID,
        algorithm: 'ES256',
        fromMs: (NOW_S - 60) * 1_000,
        throughMs: (NOW_S + 360) * 1_000 - 1,
        isBeatOnly: false,
        bodySha256: undefined,
      },
    });
  });

  it("may be the probe's, which names no node", () => {
    const probe = 'system:nodekeeper:probe';
    expect(judged({}, { iss: probe, sub: probe })).toMatchObject({
      kind: 'claims',
      claims: { username: probe, nodeName: undefined },
    });
    for (const sub of [
      'nodekeeper:probe',
      'nodekeeper:probes',
      'system:nodekeeper:probe ',
      'system:node:nodekeeper-probe',
    ])
      expect(reason(judged({}, { iss: sub, sub })), sub).toBe('issuer and subject are not one node');
  });

  it('may live 300 seconds and not 301', () => {
    expect(reason(judged({}, { exp: NOW_S + 300 }))).toBe('accepted');
    expect(reason(judged({}, { exp: NOW_S + 301 }))).toBe('lives too long');
  });

  it('is good from a minute before to a minute after, to the millisecond', () => {
    const at = (offsetMs: number) => reason(judged({}, {}, AT.nowMs + offsetMs));
    expect(at(-60_000)).toBe('accepted');
    expect(at(-60_001)).toBe('not valid yet');
    expect(at(359_999)).toBe('accepted');
    expect(at(360_000)).toBe('expired');
  });

  it('may have an nbf of the epoch, and none before it', () => {
    expect(judged({}, { nbf: 0 }).kind).toBe('claims');
    expect(judged({}, { nbf: -1 }).kind).toBe('refused');
  });

  it('is not good before its nbf', () => {
    expect(reason(judged({}, { nbf: NOW_S + 61 }))).toBe('not valid yet');
    expect(reason(judged({}, { nbf: NOW_S - 900 }))).toBe('accepted');
  });

  it.each(['none', 'None', 'HS256', 'RS256', 'ES384', 'es256', '', undefined, ['ES256']])(
    'is refused with algorithm %j',
    (alg) => {
      expect(reason(judged({ alg }))).toBe('algorithm not allowed');
    },
  );

  it('may name one audience in a list, and the type of its header or not', () => {
    expect(reason(judged({}, { aud: ['here'] }))).toBe('accepted');
    expect(reason(judged({ typ: undefined }))).toBe('accepted');
    expect(judged({ alg: 'EdDSA' })).toMatchObject({ claims: { algorithm: 'EdDSA' } });
  });

  it('is refused with unknown critical headers', () => {
    expect(reason(judged({ crit: ['exp'] }))).toBe('header asks for what is not understood');
    expect(reason(judged({ b64: false }))).toBe('header asks for what is not understood');
    expect(reason(judged({ typ: 'at+jwt' }))).toBe('header asks for what is not understood');
  });

  const [short, long] = [KEY_ID.slice(1), `${KEY_ID}k`];
  it.each([
    '',
    '../../etc/passwd',
    `${KEY_ID}/`,
    `/${KEY_ID}`,
    `${KEY_ID}#x`,
    short,
    long,
    7,
    null,
    undefined,
    [KEY_ID],
  ])('is refused with the key id %j', (kid) => {
    expect(reason(judged({ kid }))).toBe('key id is no thumbprint');
  });

  it.each([
    { sub: 'system:node:n2' },
    { sub: 'n1', iss: 'n1' },
    { sub: 'system:node:', iss: 'system:node:' },
    { sub: 'system:node:../n1', iss: 'system:node:../n1' },
    { sub: 'x:system:node:n1', iss: 'x:system:node:n1' },
    { sub: 'system:masters', iss: 'system:masters' },
    { sub: 7, iss: 7 },
    { sub: undefined, iss: undefined },
  ])('is refused with issuer and subject %j', (claims) => {
    expect(reason(judged({}, claims))).toBe('issuer and subject are not one node');
  });

  it.each(['there', '', undefined, ['here', 'there'], [], ['there'], { here: true }])(
    'is refused for the audience %j',
    (aud) => {
      expect(reason(judged({}, { aud }))).toBe('for another audience');
    },
  );

  it.each([
    { iat: undefined },
    { exp: undefined },
    { exp: NOW_S },
    { exp: NOW_S - 1 },
    { iat: NOW_S + 0.5 },
    { exp: String(NOW_S + 10) },
    { iat: -1 },
    { iat: Number.NaN },
    { exp: Number.POSITIVE_INFINITY },
    { nbf: 'soon' },
  ])('is refused with the times %j', (claims) => {
    expect(reason(judged({}, claims))).toBe('times are not whole seconds in order');
  });
});

describe('what an honest signer says', () => {
  const [firstMs, lastMs] = [NOW_S * 1_000 - 60_000, NOW_S * 1_000 + 239_999];
  const claims = tokenClaims('system:node:n1', 'here', NOW_S * 1_000 + 700);

  it('is accepted for as long as it is used', () => {
    expect(claims).toEqual(CLAIMS);
    for (const nowMs of [firstMs, lastMs]) {
      expect(isUsable(claims, nowMs)).toBe(true);
      expect(reason(judged({}, claims, nowMs))).toBe('accepted');
    }
  });

  it('is said anew a minute before its end, and when the clock was set back', () => {
    expect([isUsable(claims, lastMs + 1), isUsable(claims, firstMs - 1)]).toEqual([false, false]);
  });
});

describe('a token for heartbeats', () => {
  const hash = 'h'.repeat(43);
  const atHeartbeat = (claims: object): NodeTokenVerdict =>
    nodeTokenVerdict(HEADER, { ...CLAIMS, aud: 'here#beat', ...claims }, { ...AT, acceptsBeatTokens: true });

  it('is accepted where heartbeats are, and nowhere else', () => {
    expect(atHeartbeat({})).toMatchObject({ claims: { isBeatOnly: true, bodySha256: undefined } });
    expect(atHeartbeat({ aud: 'here' })).toMatchObject({ claims: { isBeatOnly: false } });
    expect(reason(judged({}, { aud: 'here#beat' }))).toBe('for another audience');
    expect(reason(atHeartbeat({ aud: 'there#beat' }))).toBe('for another audience');
    expect(reason(atHeartbeat({ aud: ['here', 'here#beat'] }))).toBe('for another audience');
  });

  it('is never that of a probe', () => {
    const probe = 'system:nodekeeper:probe';
    expect(reason(atHeartbeat({ iss: probe, sub: probe }))).toBe('for another audience');
  });

  it('may be bound to one request body', () => {
    expect(atHeartbeat({ body_sha256: hash })).toMatchObject({ claims: { isBeatOnly: true, bodySha256: hash } });
    for (const wrong of ['', 'short', `${hash}h`, `/${hash}`, `${hash}/`, 7, null, [hash]]) {
      expect(reason(atHeartbeat({ body_sha256: wrong })), String(wrong)).toBe('body hash is no SHA-256 of a heartbeat');
    }
    expect(reason(atHeartbeat({ aud: 'here', body_sha256: hash }))).toBe('body hash is no SHA-256 of a heartbeat');
  });

  it('lives half a minute if it is bound', () => {
    const claims = boundTokenClaims('system:node:n1', { clusterId: 'here', bodySha256: hash }, NOW_S * 1_000);
    expect(claims).toMatchObject({ aud: 'here#beat', exp: NOW_S + 30, body_sha256: hash });
  });
});
