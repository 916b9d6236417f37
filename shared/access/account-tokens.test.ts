import { createHmac, createPublicKey, generateKeyPairSync, sign, verify } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { type ApiAnswer, type ApiInMemory, apiInMemory, MERGE } from '../../test/support/api-in-memory.ts';
import type { KubeObject } from '../kinds/types.ts';
import { ACCOUNT_ISSUER, type AccountTokenContent } from './account-token.ts';
import { accountTokenIssuer, accountTokens } from './account-tokens.ts';
import type { ProcessKey } from './process-key.ts';
import { keepAccountKey } from './process-key-store.ts';
import { readPublicKey } from './public-keys.ts';

const RBAC_GROUP = 'rbac.authorization.k8s.io';
const ACCOUNTS = '/api/v1/namespaces/a/serviceaccounts';
const PODS = '/api/v1/namespaces/a/pods';
const TOKEN = `${ACCOUNTS}/bot/token`;
const WHOAMI = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
const REVIEWS = '/apis/authentication.k8s.io/v1/tokenreviews';
const USERS = {
  n1: { name: 'system:node:n1', groups: ['system:nodes'] },
  n2: { name: 'system:node:n2', groups: ['system:nodes'] },
  vera: { name: 'vera', groups: ['nodekeeper:viewers'] },
};

async function make(api: ApiInMemory, path: string, body: object): Promise<{ metadata: { uid: string } }> {
  const answer = await api.send('POST', path, { body });
  expect(answer.code, answer.text).toBe(201);
  return answer.body;
}

const tokenVolume = (audience?: string) => ({
  name: 'token',
  projected: { sources: [{ serviceAccountToken: { path: 'token', ...(audience === undefined ? {} : { audience }) } }] },
});
const podOn = (nodeName: string, name = 'p', more: object = {}) => ({
  metadata: { name },
  spec: {
    nodeName,
    serviceAccountName: 'bot',
    containers: [{ name: 'm', image: 'i' }],
    volumes: [tokenVolume(), { ...tokenVolume('vault'), name: 'other' }],
    ...more,
  },
});

/** A namespace with the account bot, which may view it, and a pod of it on node n1. */
async function cluster() {
  const api = apiInMemory({ users: USERS });
  await make(api, '/api/v1/namespaces', { metadata: { name: 'a' } });
  const account = await make(api, ACCOUNTS, { metadata: { name: 'bot' } });
  const node = await make(api, '/api/v1/nodes', { metadata: { name: 'n1' } });
  await make(api, '/api/v1/nodes', { metadata: { name: 'n2' } });
  const pod = await make(api, PODS, podOn('n1'));
  await make(api, `/apis/${RBAC_GROUP}/v1/namespaces/a/rolebindings`, {
    metadata: { name: 'bot' },
    roleRef: { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: 'view' },
    subjects: [{ kind: 'ServiceAccount', name: 'bot', namespace: 'a' }],
  });
  return { api, account: account.metadata, node: node.metadata, pod: pod.metadata };
}

const request = (api: ApiInMemory, spec: object = {}, as?: string) =>
  api.send('POST', TOKEN, {
    body: { spec },
    ...(as === undefined ? {} : { headers: { authorization: `Bearer ${as}` } }),
  });

async function tokenOf(api: ApiInMemory, spec: object = {}): Promise<string> {
  const answer = await request(api, spec);
  expect(answer.code, answer.text).toBe(201);
  return answer.body.status.token;
}

const by = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
const code = async (api: ApiInMemory, token: string, path = PODS) => (await api.send('GET', path, by(token))).code;
const outcome = ({ code: status, body }: ApiAnswer) => [status, body.message];
const podRef = (uid?: string, name = 'p') => ({
  kind: 'Pod',
  apiVersion: 'v1',
  name,
  ...(uid === undefined ? {} : { uid }),
});
const partsOf = (token: string) =>
  token
    .split('.')
    .slice(0, 2)
    .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()));
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a token of a service account', () => {
  it('signs in as the account, with its groups and permissions', async () => {
    const { api, account } = await cluster();
    const token = await tokenOf(api);
    const { userInfo } = (await api.send('POST', WHOAMI, { ...by(token), body: {} })).body.status;
    expect(userInfo).toEqual({
      username: 'system:serviceaccount:a:bot',
      uid: account.uid,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:a', 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': [expect.stringMatching(/^JTI=/)] },
    });
    expect(await code(api, token)).toBe(200);
    expect(await code(api, token, '/api/v1/namespaces/a/secrets')).toBe(403);
    expect(await code(api, token, '/api/v1/pods')).toBe(403);
    expect(await code(api, token, '/api')).toBe(200);
  });

  it('has upstream’s claims, and the response upstream’s form', async () => {
    const { api, account, pod, node } = await cluster();
    const answer = await request(api, { expirationSeconds: 900, boundObjectRef: podRef(pod.uid) });
    const issuedAt = api.nowMs() / 1_000;
    expect(answer.body).toMatchObject({
      kind: 'TokenRequest',
      apiVersion: 'authentication.k8s.io/v1',
      spec: { audiences: [ACCOUNT_ISSUER], expirationSeconds: 900, boundObjectRef: podRef(pod.uid) },
      status: { expirationTimestamp: '2026-01-01T00:15:00Z' },
    });
    expect(partsOf(answer.body.status.token)).toEqual([
      { alg: 'ES256', kid: expect.any(String) },
      {
        iss: ACCOUNT_ISSUER,
        sub: 'system:serviceaccount:a:bot',
        aud: [ACCOUNT_ISSUER],
        iat: issuedAt,
        nbf: issuedAt,
        exp: issuedAt + 900,
        jti: expect.any(String),
        'kubernetes.io': {
          namespace: 'a',
          serviceaccount: { name: 'bot', uid: account.uid },
          pod: { name: 'p', uid: pod.uid },
          node: { name: 'n1', uid: node.uid },
        },
      },
    ]);
    const { userInfo } = (await api.send('POST', WHOAMI, { ...by(answer.body.status.token), body: {} })).body.status;
    expect(userInfo.extra).toMatchObject({
      'authentication.kubernetes.io/pod-name': ['p'],
      'authentication.kubernetes.io/node-name': ['n1'],
    });
  });

  it('lives an hour, at most a day, and at least ten minutes', async () => {
    const { api } = await cluster();
    const expiry = async (expirationSeconds?: number) =>
      (await request(api, expirationSeconds === undefined ? {} : { expirationSeconds })).body;
    expect((await expiry()).status.expirationTimestamp).toBe('2026-01-01T01:00:00Z');
    expect((await expiry(2_000_000)).status.expirationTimestamp).toBe('2026-01-02T00:00:00Z');
    expect((await expiry(599)).message).toBe(
      'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
    );
    expect((await expiry(2 ** 33)).message).toContain('may not specify a duration larger than 2^32 seconds');
    const token = await tokenOf(api, { expirationSeconds: 600 });
    api.advance(599_999);
    expect(await code(api, token)).toBe(200);
    api.advance(1);
    expect(await code(api, token)).toBe(401);
  });

  it('needs an account, and the verb create on its subresource', async () => {
    const { api } = await cluster();
    expect(outcome(await api.send('POST', `${ACCOUNTS}/none/token`, { body: {} }))).toEqual([
      404,
      'serviceaccounts "none" not found',
    ]);
    expect(outcome(await request(api, {}, 'vera'))).toEqual([
      403,
      'serviceaccounts "bot" is forbidden: User "vera" cannot create resource "serviceaccounts/token" in API group "" in the namespace "a"',
    ]);
    expect((await api.send('GET', TOKEN)).code).toBe(405);
    expect((await api.send('POST', `${TOKEN}?dryRun=All`, { body: {} })).body.status.token).toBe('');
  });

  it('is bound only to an object that fits', async () => {
    const { api, pod } = await cluster();
    await make(api, ACCOUNTS, { metadata: { name: 'other' } });
    await make(api, PODS, podOn('n1', 'q', { serviceAccountName: 'other' }));
    const bound = async (boundObjectRef: object) => outcome(await request(api, { boundObjectRef }));
    expect(await bound(podRef(undefined, 'none'))).toEqual([404, 'pods "none" not found']);
    expect(await bound(podRef(undefined, 'q'))).toEqual([
      400,
      'cannot bind token for serviceaccount "bot" to pod running with different serviceaccount name.',
    ]);
    expect(await bound(podRef('another'))).toEqual([
      409,
      'Operation cannot be fulfilled on Pod "p": the UID in the bound object reference (another) does not match the UID in record. The object might have been deleted and then recreated',
    ]);
    expect(await bound({ kind: 'ConfigMap', apiVersion: 'v1', name: 'c' })).toEqual([
      400,
      'cannot bind token to object of type /v1, Kind=ConfigMap',
    ]);
    expect((await request(api, { boundObjectRef: podRef(pod.uid) })).code).toBe(201);
  });
});

describe('a token is refused within 10 s', () => {
  const remove = async (api: ApiInMemory, path: string) =>
    expect((await api.send('DELETE', `${path}?gracePeriodSeconds=0`)).code).toBe(200);
  const refusedAfter = async (api: ApiInMemory, token: string) => {
    api.advance(10_000);
    return code(api, token);
  };

  it('after its account was deleted, also if another one has the name', async () => {
    const { api } = await cluster();
    const token = await tokenOf(api);
    expect(await code(api, token)).toBe(200);
    await remove(api, `${ACCOUNTS}/bot`);
    expect(await refusedAfter(api, token)).toBe(401);
    await make(api, ACCOUNTS, { metadata: { name: 'bot' } });
    expect(await refusedAfter(api, token)).toBe(401);
  });

  it('after its pod was deleted, also if another one has the name', async () => {
    const { api, pod } = await cluster();
    const token = await tokenOf(api, { boundObjectRef: podRef(pod.uid) });
    expect(await code(api, token)).toBe(200);
    await remove(api, `${PODS}/p`);
    expect(await refusedAfter(api, token)).toBe(401);
    await make(api, PODS, podOn('n1'));
    expect(await refusedAfter(api, token)).toBe(401);
  });

  it('after its node or its Secret was deleted', async () => {
    const { api } = await cluster();
    await make(api, '/api/v1/namespaces/a/secrets', { metadata: { name: 's' } });
    const ofNode = await tokenOf(api, { boundObjectRef: { kind: 'Node', apiVersion: 'v1', name: 'n2' } });
    const ofSecret = await tokenOf(api, { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 's' } });
    expect([await code(api, ofNode), await code(api, ofSecret)]).toEqual([200, 200]);
    await remove(api, '/api/v1/nodes/n2');
    await remove(api, '/api/v1/namespaces/a/secrets/s');
    api.advance(10_000);
    expect([await code(api, ofNode), await code(api, ofSecret)]).toEqual([401, 401]);
  });

  it('a minute after the end of the grace period of a pod that stays', async () => {
    const { api, pod } = await cluster();
    const finalizers = { metadata: { finalizers: ['x/y'] } };
    expect((await api.send('PATCH', `${PODS}/p`, { body: finalizers, contentType: MERGE })).code).toBe(200);
    const token = await tokenOf(api, { boundObjectRef: podRef(pod.uid) });
    await remove(api, `${PODS}/p`);
    api.advance(50_000);
    expect(await code(api, token)).toBe(200);
    expect(await refusedAfter(api, token)).toBe(401);
  });
});

describe('a forged token', () => {
  /** A token of `cluster` with other parts. */
  async function forged(change: (header: Record<string, unknown>, claims: Record<string, unknown>) => void) {
    const { api } = await cluster();
    const token = await tokenOf(api);
    const [header, claims] = partsOf(token);
    change(header, claims);
    return { api, token, head: `${encoded(header)}.${encoded(claims)}`, header, claims };
  }

  it.each([
    [
      'another account',
      (claims: Record<string, unknown>) => Object.assign(claims, { sub: 'system:serviceaccount:a:root' }),
    ],
    ['a later expiry', (claims: Record<string, unknown>) => Object.assign(claims, { exp: Number(claims['exp']) + 1 })],
    ['a user that is no account', (claims: Record<string, unknown>) => Object.assign(claims, { sub: 'system:admin' })],
    ['another issuer', (claims: Record<string, unknown>) => Object.assign(claims, { iss: 'https://issuer.example' })],
    ['no time of issue', (claims: Record<string, unknown>) => Object.assign(claims, { iat: undefined })],
  ])('with the signature of a genuine one is refused: %s', async (_, change) => {
    const { api, head, token } = await forged((_header, claims) => change(claims));
    expect(await code(api, `${head}.${token.split('.')[2]}`)).toBe(401);
  });

  it('without a signature is refused', async () => {
    for (const alg of ['none', 'None', 'NONE']) {
      const { api, head, token } = await forged((header) => Object.assign(header, { alg }));
      for (const signature of ['', token.split('.')[2]]) expect(await code(api, `${head}.${signature}`)).toBe(401);
    }
  });

  it('that is signed with the public key as a secret is refused', async () => {
    const { api, head, header } = await forged((part) => Object.assign(part, { alg: 'HS256' }));
    const { keys } = (await api.send('GET', '/openid/v1/jwks')).body;
    const jwk = keys.find(({ kid }: { kid: string }) => kid === header['kid']);
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    for (const secret of [
      key.export({ type: 'spki', format: 'pem' }),
      key.export({ type: 'spki', format: 'der' }),
      JSON.stringify(jwk),
    ]) {
      const signature = createHmac('sha256', secret).update(head).digest();
      expect(await code(api, `${head}.${signature.toString('base64url')}`)).toBe(401);
      const long = Buffer.concat([signature, signature]).toString('base64url');
      expect(await code(api, `${head}.${long}`)).toBe(401);
    }
  });

  it('with a key of its own is refused: in the header, of another id, or of another algorithm', async () => {
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const jwk = pair.publicKey.export({ format: 'jwk' });
    const signed = (head: string) =>
      sign('sha256', Buffer.from(head), { key: pair.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url');
    for (const more of [{}, { jwk }, { x5c: ['x'] }, { jku: 'https://keys.example' }, { kid: 'k'.repeat(43) }]) {
      const { api, head } = await forged((header) => Object.assign(header, more));
      expect(await code(api, `${head}.${signed(head)}`)).toBe(401);
    }
    const edwards = generateKeyPairSync('ed25519');
    const read = readPublicKey(edwards.publicKey.export({ format: 'jwk' }) as Record<string, unknown>);
    if (read.kind !== 'key') throw new Error(read.why);
    const { api, head } = await forged((header) => Object.assign(header, { kid: read.keyId }));
    const { keyId, publicKey } = read;
    await keepAccountKey(api.items)({ keyId, publicKey, throughMs: api.nowMs() + 1e9 }, api.nowMs());
    expect(await code(api, `${head}.${sign(null, Buffer.from(head), edwards.privateKey).toString('base64url')}`)).toBe(
      401,
    );
  });

  it('of another cluster is refused', async () => {
    const one = await cluster();
    const other = await cluster();
    expect(await code(other.api, await tokenOf(one.api))).toBe(401);
  });
});

describe('an audience', () => {
  it('of another service opens nothing here, but its TokenReview', async () => {
    const { api } = await cluster();
    const token = await tokenOf(api, { audiences: ['vault', 'other'] });
    expect(await code(api, token)).toBe(401);
    const review = async (spec: object) => (await api.send('POST', REVIEWS, { body: { spec } })).body.status;
    expect(await review({ token, audiences: ['vault', 'third'] })).toMatchObject({
      authenticated: true,
      audiences: ['vault'],
      user: { username: 'system:serviceaccount:a:bot' },
    });
    expect(await review({ token, audiences: ['third'] })).toEqual({ user: {}, error: 'invalid bearer token' });
    expect(await review({ token })).toEqual({ user: {}, error: 'invalid bearer token' });
    expect(await review({ token: await tokenOf(api) })).toMatchObject({
      authenticated: true,
      audiences: [ACCOUNT_ISSUER],
    });
    // Before and after, the token does not open the API.
    expect(await code(api, token)).toBe(401);
  });

  it('is bounded', async () => {
    const { api } = await cluster();
    for (const audiences of [[''], ['x'.repeat(3_000)], Array.from({ length: 33 }, (_, index) => `a${index}`)]) {
      expect((await request(api, { audiences })).code).toBe(422);
    }
  });
});

describe('a node', () => {
  const ask = async (api: ApiInMemory, spec: object, node = 'n1') => outcome(await request(api, spec, node));
  const refused = (why: string) => [403, `serviceaccounts "bot" is forbidden: ${why}`];

  it('requests tokens of its own pods only', async () => {
    const { api, pod } = await cluster();
    const boundObjectRef = podRef(pod.uid);
    expect((await request(api, { boundObjectRef }, 'n1')).code).toBe(201);
    expect((await request(api, { boundObjectRef, audiences: ['vault'] }, 'n1')).code).toBe(201);
    expect(await ask(api, { boundObjectRef }, 'n2')).toEqual([
      403,
      expect.stringContaining(`: no relationship found between node 'n2' and this object`),
    ]);
    await make(api, PODS, podOn('n2', 'q'));
    expect(await ask(api, { boundObjectRef }, 'n2')).toEqual(
      refused('node requested token bound to a pod scheduled on a different node'),
    );
  });

  it('names the pod, its uid, and one audience that the pod needs', async () => {
    const { api, pod } = await cluster();
    await make(api, '/api/v1/namespaces/a/secrets', { metadata: { name: 's' } });
    expect(await ask(api, {})).toEqual(refused('node requested token not bound to a pod'));
    for (const name of ['s', 'none']) {
      expect(await ask(api, { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name } })).toEqual(
        refused('node requested token not bound to a pod'),
      );
    }
    expect(await ask(api, { boundObjectRef: podRef() })).toEqual(
      refused('node requested token with a pod binding without a uid'),
    );
    expect(await ask(api, { boundObjectRef: podRef('x') })).toEqual([
      403,
      expect.stringContaining('(x) does not match'),
    ]);
    const boundObjectRef = podRef(pod.uid);
    expect(await ask(api, { boundObjectRef, audiences: ['a', 'b'] })).toEqual(
      refused('node may only request 0 or 1 audiences'),
    );
    expect(await ask(api, { boundObjectRef, audiences: ['bank'] })).toEqual(
      refused('audience "bank" not found in pod spec volume'),
    );
  });
});

describe('the issuer', () => {
  it('publishes the keys that verify its tokens, to service accounts and administrators', async () => {
    const { api } = await cluster();
    const token = await tokenOf(api);
    const discovery = await api.send('GET', '/.well-known/openid-configuration', {
      headers: { authorization: `Bearer ${token}`, host: 'api.example' },
    });
    expect(discovery.body).toMatchObject({ issuer: ACCOUNT_ISSUER, jwks_uri: 'https://api.example/openid/v1/jwks' });
    const { body, headers } = await api.send('GET', '/openid/v1/jwks', by(token));
    expect(headers['content-type']).toBe('application/jwk-set+json');
    const [header = '', payload = '', signature = ''] = token.split('.');
    const { kid } = JSON.parse(Buffer.from(header, 'base64url').toString());
    const jwk = body.keys.find((each: { kid: string }) => each.kid === kid);
    expect(jwk).toMatchObject({ kty: 'EC', crv: 'P-256', alg: 'ES256', use: 'sig' });
    expect(jwk.d).toBeUndefined();
    const key = createPublicKey({ key: jwk, format: 'jwk' });
    const text = Buffer.from(`${header}.${payload}`);
    expect(verify('sha256', text, { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))).toBe(true);
    expect(await code(api, 'vera', '/openid/v1/jwks')).toBe(403);
  });

  it('signs with a new key in time, and accepts the old one until its tokens have expired', async () => {
    const { api } = await cluster();
    const first = await tokenOf(api, { expirationSeconds: 86_400 });
    api.advance(23.5 * 3_600_000);
    expect(await code(api, first)).toBe(200);
    const second = await tokenOf(api, { expirationSeconds: 86_400 });
    expect(partsOf(second)[0].kid).not.toBe(partsOf(first)[0].kid);
    api.advance(3_600_000);
    expect([await code(api, first), await code(api, second)]).toEqual([401, 200]);
  });
});

describe('the scheme', () => {
  const NOW_MS = Date.UTC(2026, 0, 1);
  const content = (more: Partial<AccountTokenContent> = {}): AccountTokenContent => ({
    ...{ namespace: 'a', account: { name: 'bot', uid: 'u' }, audiences: [ACCOUNT_ISSUER], tokenId: 't' },
    ...{ issuedAt: NOW_MS / 1_000, expiresAt: NOW_MS / 1_000 + 86_400 },
    ...more,
  });

  function world() {
    const stored = new Map<string, ProcessKey>();
    const issuer = accountTokenIssuer(async (key) => void stored.set(key.keyId, key));
    const reads: string[] = [];
    const objects = new Map<string, KubeObject>([['serviceaccounts a/bot', { metadata: { uid: 'u' } }]]);
    const scheme = accountTokens({
      keys: {
        async find(keyId) {
          reads.push('key');
          return stored.get(keyId);
        },
      },
      async find({ resource, namespace, name }) {
        reads.push(`${resource} ${namespace}/${name}`);
        return objects.get(`${resource} ${namespace}/${name}`);
      },
    });
    const outcomeAt = async (token: string, offsetMs = 0, audiences?: string[]) => {
      const answer = await scheme.authenticate(token, NOW_MS + offsetMs, audiences);
      return answer.kind === 'refused' ? answer.reason.replace('service account token: ', '') : answer.kind;
    };
    return {
      stored,
      issuer,
      reads,
      objects,
      scheme,
      outcomeAt,
      make: (more = {}) => issuer.issue(content(more), NOW_MS),
    };
  }
  const DELETED = 'its account, or what it is bound to, was deleted';

  it('reads the key of a token once per hour, and its objects every ten seconds', async () => {
    const { make, outcomeAt, reads } = world();
    const token = await make();
    for (const atMs of [0, 9_999]) expect(await outcomeAt(token, atMs)).toBe('authenticated');
    expect(reads.splice(0)).toEqual(['key', 'serviceaccounts a/bot']);
    await outcomeAt(token, 10_000);
    expect(reads.splice(0)).toEqual(['serviceaccounts a/bot']);
    await outcomeAt(token, 3_599_999);
    expect(reads.splice(0)).toEqual(['serviceaccounts a/bot']);
    await outcomeAt(token, 3_609_999);
    expect(reads.splice(0)).toEqual(['key', 'serviceaccounts a/bot']);
    // The clock was set back.
    await outcomeAt(token, 9_999);
    expect(reads.splice(0)).toEqual(['key', 'serviceaccounts a/bot']);
  });

  it('remembers for ten seconds that an object is missing, and for five that a key is', async () => {
    const { make, outcomeAt, reads, objects, stored } = world();
    const token = await make();
    const [account] = objects.values();
    objects.clear();
    expect([await outcomeAt(token), await outcomeAt(token, 9_999)]).toEqual([DELETED, DELETED]);
    objects.set('serviceaccounts a/bot', account!);
    expect(await outcomeAt(token, 10_000)).toBe('authenticated');
    reads.length = 0;
    const [key] = stored.values();
    const other = world();
    expect([await other.outcomeAt(token), await other.outcomeAt(token, 4_999)]).toEqual(['no such key', 'no such key']);
    expect(other.reads).toEqual(['key']);
    other.stored.set(key!.keyId, key!);
    expect(await other.outcomeAt(token, 5_000)).toBe('authenticated');
  });

  it('needs all objects of a token', async () => {
    const { make, outcomeAt, objects } = world();
    const token = await make({ pod: { name: 'p', uid: 'v' } });
    expect(await outcomeAt(token)).toBe(DELETED);
    objects.set('pods a/p', { metadata: { uid: 'v' } });
    expect(await outcomeAt(token, 10_000)).toBe('authenticated');
    objects.set('pods a/p', { metadata: { uid: 'w' } });
    expect(await outcomeAt(token, 20_000)).toBe(DELETED);
  });

  it('knows the audience of the API, unless others are asked for', async () => {
    const { make, scheme, outcomeAt } = world();
    const token = await make({ audiences: ['vault', 'bank'] });
    expect(await outcomeAt(token)).toBe('for another audience');
    expect(await scheme.authenticate(token, NOW_MS, ['x', 'bank', 'vault'])).toMatchObject({
      kind: 'authenticated',
      audiences: ['bank', 'vault'],
      user: { username: 'system:serviceaccount:a:bot' },
    });
    expect(await outcomeAt(token, 0, ['x'])).toBe('for another audience');
  });

  it('refuses a token that was valid before and has expired, or its key', async () => {
    const { make, outcomeAt, stored } = world();
    const token = await make({ expiresAt: NOW_MS / 1_000 + 600 });
    expect([await outcomeAt(token), await outcomeAt(token, 599_999)]).toEqual(['authenticated', 'authenticated']);
    expect(await outcomeAt(token, 600_000)).toBe('expired');
    const second = await make();
    const [key] = stored.values();
    stored.set(key!.keyId, { ...key!, throughMs: NOW_MS + 4_000_000 });
    expect(await outcomeAt(second, 4_000_000)).toBe('authenticated');
    expect(await outcomeAt(second, 4_000_001)).toBe('no such key');
  });

  it('reads only what has the form of a token', async () => {
    const { make, outcomeAt, scheme, reads } = world();
    const token = await make();
    const [header = '', payload = '', signature = ''] = token.split('.');
    for (const text of [
      ...[`=${token}`, `${token}=`, `${token}.x`, `${header}.${payload}`, `${header}.${payload}.${signature}A`],
      ...[`${header}.${payload}.${signature.slice(1)}`, `${encoded([])}.${payload}.${signature}`],
      ...[`${header}.${encoded([])}.${signature}`, `${header}=.${payload}.${signature}`, ''],
    ])
      expect(await outcomeAt(text), text).toBe('malformed');
    expect(await outcomeAt(`${token}${'A'.repeat(6_001 - token.length)}`)).toBe('too long');
    expect(await outcomeAt(`${token}${'A'.repeat(6_000 - token.length)}`)).toBe('malformed');
    expect(await outcomeAt(`${header}.${payload}.${'A'.repeat(86)}`)).toBe('wrong signature');
    expect(reads).toEqual(['key']);
    expect(scheme.recognises(token)).toBe(true);
    const plain = encoded({ sub: 'x' });
    for (const text of [`x${token}`, `${token}.x`, `${header}.${payload}`, `${header}.${plain}.${signature}`, ''])
      expect(scheme.recognises(text), text).toBe(false);
  });
});
