import { describe, expect, it } from 'vitest';
import { bootstrapTokenStore } from '../../../shared/access/bootstrap-token-store.ts';
import { KEY_ID_EXTRA } from '../../../shared/access/node-identity.ts';
import { nodeKeyStore } from '../../../shared/access/node-key-store.ts';
import { readPublicKey } from '../../../shared/access/public-keys.ts';
import type { UserInfo } from '../../../shared/access/user-info.ts';
import type { Call } from '../../../shared/api/call.ts';
import { negotiateShape } from '../../../shared/api/response-body.ts';
import { nodeidentities } from '../../../shared/kinds/identities/serve.ts';
import type { ItemStore } from '../../../shared/store/item-store.ts';
import { memoryItemStore } from '../../../shared/store/memory/item-store.ts';
import { ACCOUNT, IDENTITIES, IdentityCluster, identityBody, REGION } from '../../../test/support/identity-cluster.ts';
import { nodeKeyPair } from '../../../test/support/node-key-pair.ts';
import { pkcs7Of } from '../../../test/support/pkcs7.ts';
import { answerEnrolment } from './enrolment.ts';

const [pair, second] = [nodeKeyPair('ES256'), nodeKeyPair('EdDSA')];
const identity = (by: string, more: object = {}, keys = [pair]) => ({
  apiVersion: 'nodekeeper.dev/v1alpha1',
  kind: 'NodeIdentity',
  metadata: {
    name: 'n1',
    uid: expect.any(String),
    resourceVersion: expect.any(String),
    creationTimestamp: '2026-01-01T00:00:00Z',
  },
  spec: {
    keys: keys.map(({ keyId, publicKey }) => ({ keyId, publicKey, addedAt: '2026-01-01T00:00:00Z' })),
    source: by,
    ...more,
  },
});
const post = (cluster: IdentityCluster, body: unknown, query = '') =>
  cluster.asAdmin('POST', `${IDENTITIES}${query}`, body);

describe('an enrolment', () => {
  it('by an administrator has the labels of its request, and is 201 at first, then 200', async () => {
    const cluster = new IdentityCluster();
    const body = identityBody('n1', pair, { nodeLabels: { site: 'north' } });
    const expected = identity('user/admin', { nodeLabels: { site: 'north' } });
    expect(await post(cluster, body)).toEqual({ code: 201, body: expected });
    expect(await post(cluster, body)).toEqual({ code: 200, body: expected });
    expect(await post(cluster, identityBody('n1', second))).toMatchObject({
      code: 409,
      body: { reason: 'AlreadyExists', details: { name: 'n1', kind: 'nodeidentities' } },
    });
  });

  it('by a bootstrap token has the labels of the token', async () => {
    const cluster = new IdentityCluster();
    const token = await cluster.bootstrapToken({ nodeLabels: { site: 'south' } });
    const answer = await cluster.enrol(token, 'n1', pair, { nodeLabels: { site: 'north' } });
    const source = `bootstraptoken/${token.split('.')[0]}`;
    expect(answer).toEqual({ code: 201, body: identity(source, { nodeLabels: { site: 'south' } }) });
    expect(await cluster.enrol(await cluster.bootstrapToken({ nodeNamePattern: 'x*' }), 'n2', pair)).toMatchObject({
      code: 403,
      body: {
        message: expect.stringMatching(/^nodeidentities.nodekeeper.dev "n2" is forbidden: .* is for names like/),
      },
    });
  });

  it('that is a dry run stores nothing', async () => {
    const cluster = new IdentityCluster();
    const { code, body } = await post(cluster, identityBody('n1', pair), '?dryRun=All');
    expect([code, body.metadata.name, body.metadata.resourceVersion]).toEqual([201, 'n1', undefined]);
    expect((await cluster.asAdmin('GET', `${IDENTITIES}/n1`)).code).toBe(404);
  });

  it('may leave out its kind and its version, and has no other ones', async () => {
    const cluster = new IdentityCluster();
    const { apiVersion: _a, kind: _k, ...bare } = identityBody('n1', pair);
    expect((await post(cluster, bare)).code).toBe(201);
    for (const other of [{ kind: 'BootstrapToken' }, { apiVersion: 'v1' }, { kind: 'Node', apiVersion: 'v1' }]) {
      expect(await post(cluster, { ...bare, metadata: { name: 'n2' }, ...other })).toMatchObject({ code: 400 });
    }
    expect((await cluster.asAdmin('GET', `${IDENTITIES}/n2`)).code).toBe(404);
  });

  it.each([
    ['a key that is no point', { publicKey: { ...pair.publicKey, y: pair.publicKey.x } }, 'spec.publicKey'],
    ['a label that a node may not set', { nodeLabels: { 'k8s.io/x': 'y' } }, 'spec.nodeLabels'],
  ])('with %s is refused', async (_, spec, field) => {
    expect(await post(new IdentityCluster(), identityBody('n1', pair, spec))).toMatchObject({
      code: 422,
      body: { details: { kind: 'NodeIdentity', name: 'n1', causes: [{ field }] } },
    });
  });

  it('of more than 16 KiB is refused by its size', async () => {
    const annotations = { filling: 'x'.repeat(16_384) };
    const body = { ...identityBody('n1', pair), metadata: { name: 'n1', annotations } };
    expect(await post(new IdentityCluster(), body)).toMatchObject({
      code: 413,
      body: { reason: 'RequestEntityTooLarge' },
    });
  });
});

describe('a node', () => {
  it('adds a key to its own identity, and to no other', async () => {
    const cluster = new IdentityCluster();
    for (const name of ['n1', 'n2']) await cluster.enrol(await cluster.bootstrapToken(), name, pair);
    const answer = await cluster.enrol(cluster.signed(pair, 'n1'), 'n1', second);
    expect(answer).toEqual({ code: 200, body: identity(expect.any(String) as never, {}, [pair, second]) });
    const other = await cluster.enrol(cluster.signed(pair, 'n1'), 'n2', second);
    expect(other).toMatchObject({ code: 403, body: { message: expect.stringContaining('only to its own identity') } });
  });
});

describe('an instance', () => {
  const instanceId = 'i-0123456789abcdef0';
  const started = () => {
    const cluster = new IdentityCluster();
    const zone = `${REGION}a`;
    cluster.cloud.put({ instanceId, instanceType: 't4g.small', zone, launchedAtMs: cluster.nowMs } as never);
    const pendingTime = new Date(cluster.nowMs).toISOString();
    const document = JSON.stringify({ accountId: ACCOUNT, region: REGION, instanceId, pendingTime });
    return { cluster, token: `ec2.${pkcs7Of(document, cluster.documents).toString('base64url')}` };
  };

  it('enrols by its identity document', async () => {
    const { cluster, token } = started();
    expect(await cluster.enrol(token, instanceId, pair)).toMatchObject({
      code: 201,
      body: { metadata: { name: instanceId }, spec: { source: `instance/${instanceId}` } },
    });
  });

  it('is asked to try again in five seconds when EC2 does not respond', async () => {
    const { cluster, token } = started();
    cluster.cloud.fail('timeout');
    expect(await cluster.enrol(token, instanceId, pair)).toMatchObject({
      code: 503,
      body: { reason: 'ServiceUnavailable', details: { retryAfterSeconds: 5 } },
    });
  });
});

describe('the answer', () => {
  const admin = { username: 'ada', groups: ['nodekeeper:admins'] };

  function answerTo(user: UserInfo, { body = {}, query = '', items = memoryItemStore() as ItemStore } = {}) {
    const call = {
      request: {
        ...{ method: 'POST', path: IDENTITIES, query: new URLSearchParams(query), sourceIp: '192.0.2.9' },
        ...{ headers: { 'content-type': 'application/json' }, body: Buffer.from(JSON.stringify(body)) },
      },
      ...{ user, nowMs: Date.UTC(2026, 0, 1), descriptor: nodeidentities },
      shape: negotiateShape('application/json', new URLSearchParams()),
    } as Partial<Call> as Call;
    return answerEnrolment({
      identities: nodeKeyStore(items),
      tokens: bootstrapTokenStore(items),
      hasNode: async () => false,
      random: { uuid: () => 'u', fraction: () => 0 },
      pause: async () => {},
      readPublicKey,
    })(call);
  }

  it('warns of fields that are not known', async () => {
    const body = identityBody('n1', pair, { colour: 'red' });
    await expect(answerTo(admin, { body, query: 'fieldValidation=Strict' })).rejects.toMatchObject({
      status: { code: 400 },
    });
    const { status, headers } = await answerTo(admin, { body, query: 'fieldValidation=Warn' });
    expect([status, headers['warning']]).toEqual([201, expect.stringContaining('spec.colour')]);
    expect((await answerTo(admin, { body: identityBody('n1', pair) })).headers['warning']).toBeUndefined();
  });

  it.each([
    ['without a key', { username: 'system:node:n1', groups: ['system:nodes'] }],
    ['with other extra values', { username: 'system:node:n1', groups: ['system:nodes'], extra: { other: ['k'] } }],
    ['of another name', { username: 'system:node:n2', groups: ['system:nodes'], extra: { [KEY_ID_EXTRA]: ['k'] } }],
    ['without a name', { username: 'n1', groups: ['system:nodes'], extra: { [KEY_ID_EXTRA]: ['k'] } }],
  ])('to a node that signed in %s is a refusal', async (_, user) => {
    await expect(answerTo(user, { body: identityBody('n1', pair) })).rejects.toMatchObject({
      status: { code: 403, message: expect.stringContaining('only to its own identity') },
    });
  });

  it('is to send it again when others changed the identity at every attempt', async () => {
    const items = memoryItemStore();
    let attempts = 0;
    const transact: ItemStore['transact'] = async () => {
      attempts += 1;
      return { kind: 'refused', failures: [{ index: 0 }] };
    };
    await expect(
      answerTo(admin, { body: identityBody('n1', pair), items: { ...items, transact } }),
    ).rejects.toMatchObject({
      status: { code: 500, reason: 'ServerTimeout', details: { kind: 'nodeidentities', retryAfterSeconds: 1 } },
    });
    expect(attempts).toBe(6);
  });
});
