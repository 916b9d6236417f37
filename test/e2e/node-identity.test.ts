/** A machine's credentials from bootstrap to revocation, and attacks on them, through the deployed functions. */
import { createHmac } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  ACCOUNT,
  API_KEYS_LIVE_MS,
  HEARTBEAT_KEYS_LIVE_MS,
  IDENTITIES,
  IdentityCluster,
  identityBody,
  leaseBody,
  NODE_LEASES,
  REGION,
  TOKENS,
} from '../support/identity-cluster.ts';
import { assembled, type NodeKeyPair, nodeKeyPair, signedBy } from '../support/node-key-pair.ts';
import { pkcs7Of } from '../support/pkcs7.ts';

const pair = nodeKeyPair('ES256');
const newer = nodeKeyPair('EdDSA');
const foreign = nodeKeyPair('ES256');

let cluster: IdentityCluster;
beforeEach(() => {
  cluster = new IdentityCluster();
});
afterEach(() => {
  expect(cluster.takeFaults()).toEqual([]);
});

const keyIds = (answer: { body: { spec: { keys: { keyId: string }[] } } }) =>
  answer.body.spec.keys.map(({ keyId }) => keyId);

/** A node with an identity, a Node and a Lease. */
async function joined(nodeName = 'edge-7', keys: NodeKeyPair = pair): Promise<void> {
  const enrolled = await cluster.enrol(await cluster.bootstrapToken(), nodeName, keys);
  expect(enrolled.code).toBe(201);
  const token = cluster.signed(keys, nodeName);
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName } };
  expect((await cluster.send('POST', '/api/v1/nodes', token, node)).code).toBe(201);
  expect((await cluster.send('POST', NODE_LEASES, token, leaseBody(nodeName))).code).toBe(201);
}

/** A Node that an administrator made. */
async function made(name: string): Promise<void> {
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name } };
  expect((await cluster.asAdmin('POST', '/api/v1/nodes', node)).code).toBe(201);
}

describe('a machine', () => {
  it('turns a bootstrap token into an identity, and sends heartbeats with tokens of its own', async () => {
    const token = await cluster.bootstrapToken(
      { nodeNamePattern: 'edge-*', nodeLabels: { site: 'north' } },
      'k3q9x7za',
    );
    const enrolled = await cluster.enrol(token, 'edge-7', pair);
    expect(enrolled).toMatchObject({
      code: 201,
      body: {
        apiVersion: 'nodekeeper.dev/v1alpha1',
        kind: 'NodeIdentity',
        metadata: { name: 'edge-7', creationTimestamp: '2026-01-01T00:00:00Z' },
        spec: {
          keys: [{ keyId: pair.keyId, publicKey: pair.publicKey, addedAt: '2026-01-01T00:00:00Z' }],
          nodeLabels: { site: 'north' },
          source: 'bootstraptoken/k3q9x7za',
        },
      },
    });
    const own = cluster.signed(pair, 'edge-7');
    expect((await cluster.send('POST', NODE_LEASES, own, leaseBody('edge-7'))).code).toBe(201);
    expect((await cluster.beat(own, 'edge-7')).code).toBe(200);
    const whoami = await cluster.send('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', own, {});
    expect(whoami.body.status.userInfo).toMatchObject({
      username: 'system:node:edge-7',
      groups: ['system:nodes', 'system:authenticated'],
    });
  });

  it('sends a warm heartbeat with one write and no read', async () => {
    await joined();
    await cluster.beat(cluster.signed(pair, 'edge-7'), 'edge-7');
    cluster.consumed();
    const kept = cluster.signed(pair, 'edge-7');
    for (let beat = 0; beat < 29; beat += 1) {
      cluster.nowMs += 10_000;
      const token = beat % 24 === 23 ? cluster.signed(pair, 'edge-7') : kept;
      expect((await cluster.beat(token, 'edge-7')).code).toBe(200);
    }
    const units = cluster.consumed();
    expect(units.filter(({ readUnits }) => readUnits > 0)).toEqual([]);
    expect(units).toHaveLength(29);
  });

  it('gets the same answer again when the first was lost, without another use', async () => {
    const token = await cluster.bootstrapToken({ uses: 1 });
    const first = await cluster.enrol(token, 'edge-7', pair);
    const again = await cluster.enrol(token, 'edge-7', pair);
    expect([first.code, again.code]).toEqual([201, 200]);
    expect(again.body).toEqual(first.body);
  });

  it('rotates its key in two steps, and may repeat each of them', async () => {
    await joined();
    const both = await cluster.enrol(cluster.signed(pair, 'edge-7'), 'edge-7', newer);
    expect([both.code, keyIds(both)]).toEqual([200, [pair.keyId, newer.keyId]]);
    expect(keyIds(await cluster.enrol(cluster.signed(pair, 'edge-7'), 'edge-7', newer))).toEqual(keyIds(both));
    expect((await cluster.beat(cluster.signed(pair, 'edge-7'), 'edge-7')).code).toBe(200);
    expect((await cluster.beat(cluster.signed(newer, 'edge-7'), 'edge-7')).code).toBe(200);
    const one = await cluster.enrol(cluster.signed(newer, 'edge-7'), 'edge-7', newer);
    expect([one.code, keyIds(one)]).toEqual([200, [newer.keyId]]);
    cluster.nowMs += HEARTBEAT_KEYS_LIVE_MS;
    expect((await cluster.beat(cluster.signed(pair, 'edge-7'), 'edge-7')).code).toBe(401);
    expect((await cluster.beat(cluster.signed(newer, 'edge-7'), 'edge-7')).code).toBe(200);
    expect((await cluster.enrol(cluster.signed(pair, 'edge-7'), 'edge-7', pair)).code).toBe(401);
  });

  it('may not rotate with a revoked key, even when this function has not read the revocation yet', async () => {
    await joined();
    expect((await cluster.asAdmin('DELETE', `${IDENTITIES}/edge-7`)).code).toBe(200);
    expect(await cluster.enrol(cluster.signed(pair, 'edge-7'), 'edge-7', newer)).toMatchObject({
      code: 403,
      body: { message: expect.stringContaining('the key that signed this request was revoked') },
    });
  });

  it('is refused once the functions forget its key, after its identity was deleted', async () => {
    await joined();
    const token = () => cluster.signed(pair, 'edge-7');
    const get = async () => (await cluster.send('GET', '/api/v1/nodes/edge-7', token())).code;
    const beat = async () => (await cluster.beat(token(), 'edge-7')).code;
    expect([await get(), await beat()]).toEqual([200, 200]);
    await cluster.asAdmin('DELETE', `${IDENTITIES}/edge-7`);
    cluster.nowMs += API_KEYS_LIVE_MS;
    expect([await get(), await beat()]).toEqual([401, 200]);
    cluster.nowMs += HEARTBEAT_KEYS_LIVE_MS - API_KEYS_LIVE_MS;
    expect([await get(), await beat()]).toEqual([401, 401]);
    // The machine is installed again, with another key and a token for its name.
    const reinstall = await cluster.bootstrapToken({ nodeNamePattern: 'edge-7' });
    expect((await cluster.enrol(reinstall, 'edge-7', newer)).code).toBe(201);
    expect((await cluster.beat(cluster.signed(newer, 'edge-7'), 'edge-7')).code).toBe(401);
    cluster.nowMs += 5_000;
    expect((await cluster.beat(cluster.signed(newer, 'edge-7'), 'edge-7')).code).toBe(200);
  });

  it('renews its own Lease and no other', async () => {
    await joined('edge-7');
    await joined('edge-8', newer);
    const before = cluster.stored();
    expect(await cluster.beat(cluster.signed(pair, 'edge-7'), 'edge-8')).toMatchObject({
      code: 403,
      body: {
        reason: 'Forbidden',
        message: expect.stringContaining(
          'leases.coordination.k8s.io "edge-8" is forbidden: User "system:node:edge-7" cannot patch resource "leases" in API group "coordination.k8s.io" in the namespace "kube-node-lease"',
        ),
      },
    });
    expect(cluster.stored()).toBe(before);
  });
});

describe('a bootstrap token', () => {
  const refusals: [string, object, number, string][] = [
    ['of another pattern', { nodeNamePattern: 'core-*' }, 403, 'is for names like "core-*"'],
    ['that expired', { expires: '2026-01-01T00:00:01Z' }, 403, 'has expired'],
  ];
  it.each(refusals)('%s enrols no machine', async (_, spec, code, message) => {
    const token = await cluster.bootstrapToken(spec);
    cluster.nowMs += 1_000;
    const before = cluster.stored();
    const answer = await cluster.enrol(token, 'edge-7', pair);
    expect([answer.code, answer.body.reason]).toEqual([code, 'Forbidden']);
    expect(answer.body.message).toContain(message);
    expect(cluster.stored()).toBe(before);
  });

  it('enrols no second machine when it is replayed', async () => {
    const token = await cluster.bootstrapToken({ uses: 1 });
    expect((await cluster.enrol(token, 'edge-7', pair)).code).toBe(201);
    const before = cluster.stored();
    const replayed = await cluster.enrol(token, 'edge-8', foreign);
    expect([replayed.code, replayed.body.message]).toEqual([403, expect.stringContaining('has no uses left')]);
    expect((await cluster.enrol(token, 'edge-7', foreign)).code).toBe(403);
    expect(cluster.stored()).toBe(before);
  });

  it('enrols exactly as many concurrent machines as it allows', async () => {
    const token = await cluster.bootstrapToken({ uses: 5 });
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => cluster.enrol(token, `edge-${index}`, nodeKeyPair())),
    );
    expect(answers.filter(({ code }) => code === 201)).toHaveLength(5);
    expect(answers.filter(({ code }) => code === 403)).toHaveLength(15);
    expect((await cluster.asAdmin('GET', IDENTITIES)).body.items).toHaveLength(5);
  });

  it('does not take over a name, unless it was created for that', async () => {
    await joined();
    const plain = await cluster.enrol(await cluster.bootstrapToken(), 'edge-7', foreign);
    expect([plain.code, plain.body.reason]).toEqual([409, 'AlreadyExists']);
    const reissued = await cluster.enrol(await cluster.bootstrapToken({ reissue: true }), 'edge-7', newer);
    expect([reissued.code, keyIds(reissued)]).toEqual([201, [newer.keyId]]);
  });

  it.each([
    ['that lost its identity', joined, 'edge-7'],
    ['that never had one', () => made('edge-9'), 'edge-9'],
  ])('does not take over the name of a Node %s, unless it was created for that name', async (_, prepare, name) => {
    await prepare();
    await cluster.asAdmin('DELETE', `${IDENTITIES}/${name}`);
    for (const spec of [{ uses: 5 }, { uses: 5, nodeNamePattern: 'edge-*' }]) {
      const token = await cluster.bootstrapToken(spec);
      const refused = await cluster.enrol(token, name, foreign);
      expect([refused.code, refused.body.reason]).toEqual([403, 'Forbidden']);
      expect(refused.body.message).toContain(`a Node "${name}" exists`);
      expect(refused.body.message).toContain(`--nodes ${name}`);
    }
    expect((await cluster.asAdmin('GET', `${IDENTITIES}/${name}`)).code).toBe(404);
    expect((await cluster.enrol(await cluster.bootstrapToken({ nodeNamePattern: name }), name, newer)).code).toBe(201);
  });

  it('enrols the name of a Node after the Node was deleted', async () => {
    await joined();
    await cluster.asAdmin('DELETE', `${IDENTITIES}/edge-7`);
    await cluster.asAdmin('DELETE', '/api/v1/nodes/edge-7');
    expect((await cluster.enrol(await cluster.bootstrapToken(), 'edge-7', newer)).code).toBe(201);
  });

  it('is refused with another secret, an unknown id or a malformed text', async () => {
    const [id = ''] = (await cluster.bootstrapToken()).split('.');
    const before = cluster.stored();
    const secret = 'A'.repeat(43);
    for (const token of [
      `${id}.${secret}`,
      `unknown1.${secret}`,
      `${id}.`,
      id,
      `../${id}.${secret}`,
      `${id}#x.${secret}`,
    ]) {
      expect((await cluster.enrol(token, 'edge-7', pair)).code, token).toBe(401);
    }
    expect((await cluster.enrol(undefined, 'edge-7', pair)).code).toBe(401);
    expect(cluster.stored()).toBe(before);
  });

  it('permits enrolment only', async () => {
    await joined();
    const token = await cluster.bootstrapToken();
    const before = cluster.stored();
    const tried: [string, string, unknown?][] = [
      ['GET', '/api/v1/nodes'],
      ['GET', IDENTITIES],
      ['GET', TOKENS],
      ['POST', TOKENS, {}],
      ['DELETE', `${IDENTITIES}/edge-7`],
      ['POST', '/api/v1/nodes', { metadata: { name: 'x' } }],
    ];
    for (const [method, path, body] of tried) {
      expect((await cluster.send(method, path, token, body)).code, `${method} ${path}`).toBe(403);
    }
    // The heartbeat function does not accept bootstrap tokens.
    expect((await cluster.beat(token, 'edge-7')).code).toBe(401);
    expect(cluster.stored()).toBe(before);
  });

  it('is shown without the hash of its secret, counts down, and is revoked by deleting it', async () => {
    const token = await cluster.bootstrapToken({ uses: 3 }, 'shown123');
    await cluster.enrol(token, 'edge-7', pair);
    const shown = await cluster.asAdmin('GET', `${TOKENS}/shown123`);
    expect(shown.body).toMatchObject({ spec: { uses: 3 }, status: { usesLeft: 2 } });
    expect(JSON.stringify(shown.body)).not.toContain('sha256');
    expect(JSON.stringify(shown.body)).not.toContain('Sha256');
    expect((await cluster.asAdmin('DELETE', `${TOKENS}/shown123`)).code).toBe(200);
    expect((await cluster.enrol(token, 'edge-8', foreign)).code).toBe(401);
  });

  it('is refused when it is invalid', async () => {
    const make = (name: string, spec: object) =>
      cluster.asAdmin('POST', TOKENS, { metadata: { name }, spec: { secretSha256: '0'.repeat(64), ...spec } });
    const expires = '2026-01-02T00:00:00Z';
    expect((await make('good12', { expires })).code).toBe(201);
    expect((await make('good12', { expires })).code).toBe(409);
    const wrong: [string, object][] = [
      ['UPPER1', { expires }],
      ['tiny', { expires }],
      ['wrong1', {}],
      ['wrong1', { expires: '2025-12-31T00:00:00Z' }],
      ['wrong1', { expires: '2028-01-01T00:00:00Z' }],
      ['wrong1', { expires, uses: 0 }],
      ['wrong1', { expires, uses: 1e6 }],
      ['wrong1', { expires, nodeNamePattern: '[a-z]' }],
      ['wrong1', { expires, nodeLabels: { 'a b': 'c' } }],
      ['wrong1', { expires, nodeLabels: { 'node-restriction.kubernetes.io/pci': 'yes' } }],
      ['wrong1', { expires, secretSha256: 'short' }],
    ];
    for (const [name, spec] of wrong) expect((await make(name, spec)).code, JSON.stringify([name, spec])).toBe(422);
  });
});

describe('an EC2 instance', () => {
  const INSTANCE = 'i-0123456789abcdef0';
  const HOST = 'ip-10-0-0-7.eu-central-1.compute.internal';
  const tokenOf = (more: object = {}): string => {
    const pendingTime = new Date(cluster.nowMs).toISOString();
    const document = { accountId: ACCOUNT, region: REGION, instanceId: INSTANCE, pendingTime, ...more };
    return `ec2.${pkcs7Of(JSON.stringify(document), cluster.documents).toString('base64url')}`;
  };
  beforeEach(() => {
    cluster.cloud.put({
      instanceId: INSTANCE,
      zone: `${REGION}a`,
      instanceType: 't4g.small',
      launchedAtMs: cluster.nowMs,
      addresses: [{ type: 'InternalDNS', address: HOST }],
    });
  });

  it('enrols once, under a name that EC2 has for it', async () => {
    const token = tokenOf();
    const enrolled = await cluster.enrol(token, HOST, pair);
    expect([enrolled.code, enrolled.body.spec?.source]).toEqual([201, `instance/${INSTANCE}`]);
    expect((await cluster.enrol(token, HOST, pair)).code).toBe(200);
    const before = cluster.stored();
    expect((await cluster.enrol(token, HOST, foreign)).code).toBe(409);
    const second = await cluster.enrol(token, INSTANCE, foreign);
    expect([second.code, second.body.message]).toEqual([403, expect.stringContaining('has enrolled before')]);
    expect(cluster.stored()).toBe(before);
    // Nor after its identity was deleted.
    await cluster.asAdmin('DELETE', `${IDENTITIES}/${HOST}`);
    expect((await cluster.enrol(token, HOST, foreign)).code).toBe(403);
  });

  it('enrols once, although it requests both of its names at the same moment', async () => {
    const token = tokenOf();
    const answers = await Promise.all([HOST, INSTANCE].map((name) => cluster.enrol(token, name, nodeKeyPair())));
    expect(answers.map(({ code }) => code).sort()).toEqual([201, 403]);
  });

  it('enrols under no other name, not while stopped, not too late, and not from elsewhere', async () => {
    const before = cluster.stored();
    const other = await cluster.enrol(tokenOf(), 'edge-7', pair);
    expect([other.code, other.body.message]).toEqual([
      403,
      expect.stringContaining(`may be named ${INSTANCE}, ${HOST}`),
    ]);
    expect((await cluster.enrol(tokenOf({ accountId: '999988887777' }), HOST, pair)).code).toBe(401);
    expect((await cluster.enrol(tokenOf({ region: 'eu-west-1' }), HOST, pair)).code).toBe(401);
    const late = tokenOf({ pendingTime: new Date(cluster.nowMs - 900_001).toISOString() });
    expect((await cluster.enrol(late, HOST, pair)).code).toBe(401);
    cluster.cloud.fail('InternalError');
    expect((await cluster.enrol(tokenOf(), HOST, pair)).code).toBe(503);
    expect(cluster.takeFaults()).toEqual([expect.stringContaining('EC2 could not be asked')]);
    cluster.cloud.fail(null);
    cluster.cloud.terminate(INSTANCE);
    expect((await cluster.enrol(tokenOf(), HOST, pair)).code).toBe(403);
    expect(cluster.stored()).toBe(before);
  });

  it('permits nothing else with its document', async () => {
    await joined();
    const token = tokenOf();
    expect((await cluster.send('GET', '/api/v1/nodes', token)).code).toBe(403);
    expect((await cluster.beat(token, 'edge-7')).code).toBe(401);
  });
});

describe('an attack on a sign-in', () => {
  const seconds = () => cluster.nowMs / 1_000;
  const claims = (more: object = {}) => {
    const name = 'system:node:edge-7';
    return { iss: name, sub: name, aud: 'here', iat: seconds(), exp: seconds() + 300, ...more };
  };
  const header = (more: object = {}) => ({ alg: 'ES256', typ: 'JWT', kid: pair.keyId, ...more });
  const pem = pair.publicKeyObject.export({ type: 'spki', format: 'pem' }) as string;
  const hmac = (text: string) => createHmac('sha256', pem).update(text).digest();
  const attacks: Record<string, () => string> = {
    'expired token': () => assembled(header(), claims({ iat: seconds() - 400, exp: seconds() - 100 }), signedBy(pair)),
    'token from the future': () =>
      assembled(header(), claims({ iat: seconds() + 100, exp: seconds() + 400 }), signedBy(pair)),
    'token for a year': () => assembled(header(), claims({ exp: seconds() + 31_536_000 }), signedBy(pair)),
    'token for another cluster': () => assembled(header(), claims({ aud: 'there' }), signedBy(pair)),
    'token for several clusters': () => assembled(header(), claims({ aud: ['here', 'there'] }), signedBy(pair)),
    'token by another key': () => assembled(header(), claims(), signedBy(foreign)),
    'token by another key that names itself': () =>
      assembled(header({ kid: foreign.keyId }), claims(), signedBy(foreign)),
    'token that brings its key': () =>
      assembled(header({ kid: foreign.keyId, jwk: foreign.publicKey }), claims(), signedBy(foreign)),
    'algorithm none': () => assembled(header({ alg: 'none' }), claims(), () => ''),
    'algorithm none, signed': () => assembled(header({ alg: 'none' }), claims(), signedBy(pair)),
    'public key as secret': () => assembled(header({ alg: 'HS256' }), claims(), hmac),
    'another algorithm of the same key': () => assembled(header({ alg: 'EdDSA' }), claims(), signedBy(pair)),
    'key id that is a path': () => assembled(header({ kid: '../../../dev/null' }), claims(), signedBy(pair)),
    'key id that is a query': () => assembled(header({ kid: "' or 1=1 --" }), claims(), signedBy(pair)),
    'node that is a path': () => {
      const name = 'system:node:../edge-7';
      return assembled(header(), claims({ iss: name, sub: name }), signedBy(pair));
    },
    'administrator by claim': () =>
      assembled(
        header(),
        claims({ iss: 'system:admin', sub: 'system:admin', groups: ['system:masters'] }),
        signedBy(pair),
      ),
    'oversized token': () => assembled(header(), claims({ padding: 'x'.repeat(8_000) }), signedBy(pair)),
    'no token': () => '',
    'three dots': () => '...',
    'JSON that is none': () => `eyJ.${'A'.repeat(20)}.${'A'.repeat(86)}`,
  };

  it.each(Object.keys(attacks))('by %s gets 401 everywhere, and nothing is written', async (name) => {
    await joined();
    const before = cluster.stored();
    const token = attacks[name]!();
    expect((await cluster.beat(token, 'edge-7')).code).toBe(401);
    expect((await cluster.send('PUT', `${NODE_LEASES}/edge-7`, token, leaseBody('edge-7'))).code).toBe(401);
    expect((await cluster.send('GET', '/api/v1/nodes/edge-7', token)).code).toBe(401);
    expect((await cluster.enrol(token, 'edge-7', foreign)).code).toBe(401);
    expect((await cluster.enrol(token, 'edge-9', foreign)).code).toBe(401);
    expect(cluster.stored()).toBe(before);
  });

  it('by a node on the identity of another gets 403', async () => {
    await joined('edge-7');
    await joined('edge-8', newer);
    const before = cluster.stored();
    const token = cluster.signed(pair, 'edge-7');
    expect((await cluster.enrol(token, 'edge-8', foreign)).code).toBe(403);
    expect((await cluster.enrol(token, 'edge-9', foreign)).code).toBe(403);
    expect((await cluster.send('GET', `${IDENTITIES}/edge-8`, token)).code).toBe(403);
    expect((await cluster.send('GET', IDENTITIES, token)).code).toBe(403);
    expect((await cluster.send('DELETE', `${IDENTITIES}/edge-7`, token)).code).toBe(403);
    expect((await cluster.send('POST', TOKENS, token, {})).code).toBe(403);
    expect((await cluster.send('GET', `${IDENTITIES}/edge-7`, token)).code).toBe(200);
    expect(cluster.stored()).toBe(before);
  });

  it('by a key of no kind, off its curve, or with its private half, stores nothing of it', async () => {
    const token = await cluster.bootstrapToken({ uses: 9 });
    const before = cluster.stored();
    const offCurve = { publicKey: { ...pair.publicKey, y: pair.publicKey.x } };
    for (const spec of [{ publicKey: { kty: 'oct', k: 'c2VjcmV0' } }, { publicKey: undefined }, offCurve]) {
      const answer = await cluster.send('POST', IDENTITIES, token, identityBody('edge-7', pair, spec));
      expect(answer.code, JSON.stringify(answer.body)).toBe(422);
    }
    expect(cluster.stored()).toBe(before);
    const withPrivate = { ...pair.publicKey, d: 'SECRET' };
    const taken = await cluster.send(
      'POST',
      IDENTITIES,
      token,
      identityBody('edge-7', pair, { publicKey: withPrivate }),
    );
    expect(taken.code).toBe(201);
    expect(cluster.stored()).not.toContain('SECRET');
  });

  it('by a body that sets what only the server sets changes nothing of that', async () => {
    const token = await cluster.bootstrapToken();
    const keys = [{ keyId: foreign.keyId, publicKey: foreign.publicKey, addedAt: '2026-01-01T00:00:00Z' }];
    const more = { keys, source: 'user/admin', nodeLabels: { role: 'control' } };
    const answer = await cluster.enrol(token, 'edge-7', pair, more);
    expect([answer.code, keyIds(answer)]).toEqual([201, [pair.keyId]]);
    expect(answer.body.spec.source).toMatch(/^bootstraptoken\//);
    expect(answer.body.spec).not.toHaveProperty('nodeLabels');
  });
});

describe('an administrator', () => {
  it('stores a public key by hand, and dry runs store nothing', async () => {
    const before = cluster.stored();
    const body = identityBody('edge-7', pair, { nodeLabels: { site: 'south' } });
    expect((await cluster.asAdmin('POST', `${IDENTITIES}?dryRun=All`, body)).code).toBe(201);
    expect(cluster.stored()).toBe(before);
    const made = await cluster.asAdmin('POST', IDENTITIES, body);
    expect(made).toMatchObject({ code: 201, body: { spec: { source: 'user/admin', nodeLabels: { site: 'south' } } } });
    expect((await cluster.asAdmin('POST', IDENTITIES, identityBody('edge-7', foreign))).code).toBe(409);
  });

  it('lists identities and tokens as tables', async () => {
    await joined();
    const accept = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' };
    const table = async (path: string) => {
      const { body } = await cluster.send('GET', path, 'the-administrators-token', undefined, accept);
      return body.rows.map(({ cells }: { cells: unknown[] }) => cells);
    };
    expect(await table(IDENTITIES)).toEqual([['edge-7', 1, expect.stringMatching(/^bootstraptoken\//), '0s']]);
    expect(await table(TOKENS)).toEqual([[expect.any(String), '0/1', '2026-01-01T01:00:00Z', '*', false, '0s']]);
  });

  it('changes neither, and watches neither', async () => {
    await joined();
    for (const [method, path] of [
      ['PUT', `${IDENTITIES}/edge-7`],
      ['PATCH', `${IDENTITIES}/edge-7`],
      ['DELETE', IDENTITIES],
      ['GET', `${IDENTITIES}?watch=true`],
    ] as const) {
      expect((await cluster.asAdmin(method, path, {})).code, `${method} ${path}`).toBe(405);
    }
  });
});
