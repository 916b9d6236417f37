/**
 * Requests that mean harm, at the API, at the heartbeat and at the watch function: all are refused with a 4xx, and
 * nothing is written. Forged node tokens have a test of their own.
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { readYaml } from '../../functions/api/read-yaml.ts';
import { serveHeartbeat } from '../../functions/heartbeat/work.ts';
import { serveWatch } from '../../functions/watch/work.ts';
import { staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { nodeKeys } from '../../shared/access/node-key-store.ts';
import { PROBE_LEASE, PROBE_USER } from '../../shared/access/probe-identity.ts';
import { keepTicketKey, ticketKeys } from '../../shared/access/process-key-store.ts';
import { processKeys } from '../../shared/access/process-keys.ts';
import { watchTicketIssuer, watchTicketVerifier } from '../../shared/access/watch-tickets.ts';
import { TICKET_PARAMETER, watchTarget } from '../../shared/api/watch/watch-redirect.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { gzip } from '../../shared/gzip.ts';
import type { HttpRequest } from '../../shared/kubernetes/http.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { APPLY, apiInMemory, JSON_PATCH, MERGE, NODES, node, STRATEGIC } from '../support/api-in-memory.ts';
import {
  API_KEYS_LIVE_MS,
  HEARTBEAT_KEYS_LIVE_MS,
  IDENTITIES,
  IdentityCluster,
  identityBody,
  leaseBody,
  NODE_LEASES,
} from '../support/identity-cluster.ts';
import { base64url, nodeKeyPair } from '../support/node-key-pair.ts';

const MACHINE = { machine: { name: 'system:node:n1', groups: ['system:nodes'] } };
const asMachine = { authorization: 'Bearer machine' };
const MEGABYTE = 1_048_576;
const PROBE_KEYS = { table: 'control', pk: 'probe-keys', sk: '-' } as const;

/** The API with a node and a lease in it; `writes` counts what is written from then on. */
async function world() {
  let writeUnits = 0;
  const items = memoryItemStore({
    onConsumed: (consumed) => {
      writeUnits += consumed.writeUnits;
    },
  });
  const api = apiInMemory({ items, users: MACHINE });
  for (const name of ['n1', 'n2']) await api.send('POST', NODES, { body: node(name) });
  writeUnits = 0;
  return { api, items, writes: () => writeUnits };
}

describe('paths', () => {
  it.each([
    '/api/v1/nodes/../nodes/n2',
    '/api/v1/nodes/n1/../n2',
    '/api/v1/nodes/%2e%2e/nodes/n2',
    '/api/v1/nodes/n1%2F..%2Fn2',
    '/api/v1/nodes/n1%2Fstatus',
    '/api/v1/nodes/n1%00',
    '/api/v1/nodes/%',
    '/api/v1//nodes/n2',
    '//api/v1/nodes/n2',
    '/api//v1/nodes/n2',
    '/api/v1/nodes/./n2',
    '/API/v1/nodes/n2',
    '/api/V1/nodes/n2',
    '/api/v1/Nodes/n2',
    '/api/v1/nodes/n2;x=y',
    '/api/v1/nodes/N2',
    '/api/v1/namespaces/default/nodes/n2',
    '/apis/v1/nodes/n2',
    '/api/v1/nodes/n2/status/x/y/z/a/b',
    `/api/v1/nodes/${'n'.repeat(9_000)}`,
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/../../default/leases/n1',
    '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease%2F/leases/n1',
  ])('%.60s opens nothing to anybody', async (path) => {
    const { api, writes } = await world();
    for (const headers of [asMachine, undefined]) {
      for (const [method, body] of [['DELETE'], ['PATCH', { metadata: { labels: { a: 'b' } } }]] as const) {
        const answer = await api.send(method, path, {
          ...(headers === undefined ? {} : { headers }),
          ...(body === undefined ? {} : { body, contentType: MERGE }),
        });
        expect(answer.code, `${method} ${path}`).toBeGreaterThanOrEqual(400);
        expect(answer.code, `${method} ${path}`).toBeLessThan(500);
      }
    }
    expect(writes()).toBe(0);
    expect(api.faults).toEqual([]);
  });
});

describe('names that are longer than any object may have', () => {
  const long = 'n'.repeat(9_000);

  it.each([
    ['GET', `/api/v1/nodes/${long}`],
    ['DELETE', `/api/v1/nodes/${long}`],
    ['PUT', `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${long}`],
    ['GET', `/api/v1/namespaces/${long}`],
    ['GET', `/api/v1/namespaces/${long}/pods`],
    ['DELETE', `/api/v1/namespaces/${long}/pods/a`],
  ])('%s of one is not found', async (method, path) => {
    const { api } = await world();
    const body = { metadata: { name: long }, spec: {} };
    const answer = await api.send(method, path, method === 'PUT' ? { body } : {});
    expect(answer).toMatchObject({ code: 404, body: { reason: 'NotFound' } });
    expect(api.faults).toEqual([]);
  });

  it.each(['spec.nodeName', 'metadata.name', 'metadata.namespace'])('select nothing by %s', async (field) => {
    const { api } = await world();
    const answer = await api.send('GET', `/api/v1/pods?fieldSelector=${field}=${long}`);
    expect(answer).toMatchObject({ code: 200, body: { items: [] } });
    expect(api.faults).toEqual([]);
  });
});

describe('headers', () => {
  it.each<[string, Record<string, string>]>([
    ['no token', { authorization: '' }],
    ['another scheme', { authorization: 'Basic bWFjaGluZQ==' }],
    ['two tokens in one header', { authorization: 'Bearer machine, Bearer token' }],
    ['a token with a line break', { authorization: 'Bearer machine\r\nimpersonate-user: admin' }],
    ['a token that is too long', { authorization: `Bearer ${'x'.repeat(9_000)}` }],
    ['impersonation of a user', { ...asMachine, 'impersonate-user': 'admin' }],
    ['impersonation of a group', { ...asMachine, 'impersonate-group': 'system:masters' }],
    ['a front proxy’s user', { authorization: '', 'x-remote-user': 'admin', 'x-remote-group': 'system:masters' }],
  ])('%s does not make a user an administrator', async (_, headers) => {
    const { api, writes } = await world();
    const answer = await api.send('DELETE', `${NODES}/n2`, { headers });
    expect([400, 401, 403]).toContain(answer.code);
    expect(writes()).toBe(0);
  });

  it('a method in a header makes no request another one', async () => {
    const { api, writes } = await world();
    for (const header of ['x-http-method-override', 'x-http-method', 'x-method-override']) {
      expect((await api.send('GET', `${NODES}/n2`, { headers: { [header]: 'DELETE' } })).code).toBe(200);
    }
    expect(writes()).toBe(0);
  });

  it('impersonation of extra fields or uids alone is refused', async () => {
    const { api } = await world();
    for (const header of ['impersonate-uid', 'impersonate-extra-scopes']) {
      expect((await api.send('GET', NODES, { headers: { [header]: 'x' } })).code).toBe(400);
    }
  });
});

describe('bodies', () => {
  const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
  const level = (depth: number): string =>
    `a${depth}: &a${depth} [${Array(10)
      .fill(`*a${depth - 1}`)
      .join(', ')}]`;
  const yamlBomb = ['kind: Node', 'a0: &a0 [x]', ...[1, 2, 3, 4, 5, 6, 7, 8, 9].map(level)].join('\n');
  it.each<[string, string, string, unknown, string]>([
    [
      'of seven megabytes',
      'POST',
      NODES,
      `{"metadata":{"name":"x","annotations":{"a":"${'x'.repeat(7 * MEGABYTE)}"}}}`,
      'application/json',
    ],
    [
      'with annotations beyond 256 KB',
      'POST',
      NODES,
      node('x', { metadata: { annotations: { a: 'x'.repeat(300_000) } } }),
      'application/json',
    ],
    [
      'with a label value of 64 characters',
      'POST',
      NODES,
      node('x', { metadata: { labels: { a: 'x'.repeat(64) } } }),
      'application/json',
    ],
    ['with a name of 254 characters', 'POST', NODES, node('x'.repeat(254)), 'application/json'],
    ['nested ten thousand levels', 'POST', NODES, deep(10_000), 'application/json'],
    ['that is no JSON', 'POST', NODES, '{"metadata":', 'application/json'],
    ['that is a list', 'POST', NODES, '[]', 'application/json'],
    [
      'of another kind',
      'POST',
      NODES,
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' } },
      'application/json',
    ],
    ['in YAML with aliases that multiply', 'PATCH', `${NODES}/n1?fieldManager=x`, yamlBomb, APPLY],
    [
      'a JSON patch of 10,001 operations',
      'PATCH',
      `${NODES}/n1`,
      Array.from({ length: 10_001 }, () => ({ op: 'add', path: '/metadata/labels/a', value: 'b' })),
      JSON_PATCH,
    ],
    [
      'a JSON patch of the prototype',
      'PATCH',
      `${NODES}/n1`,
      [{ op: 'add', path: '/__proto__/polluted', value: 'yes' }],
      JSON_PATCH,
    ],
    ['a merge patch of another uid', 'PATCH', `${NODES}/n1`, { metadata: { uid: 'other' } }, MERGE],
    ['a strategic patch of another name', 'PATCH', `${NODES}/n1`, { metadata: { name: 'n2' } }, STRATEGIC],
    ['in an unknown media type', 'POST', NODES, '<xml/>', 'text/xml'],
  ])('%s is refused, and nothing is written', async (_, method, path, body, contentType) => {
    const { api, writes } = await world();
    const answer = await api.send(method, path, { body, contentType });
    expect(answer.code).toBeGreaterThanOrEqual(400);
    expect(answer.code).toBeLessThan(500);
    expect(answer.body).toMatchObject({ kind: 'Status', status: 'Failure' });
    expect(writes()).toBe(0);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(api.faults).toEqual([]);
  });
});

describe('answers and logs', () => {
  it('contain no token, whatever fails', async () => {
    const { api } = await world();
    const secret = 'a-token-that-nobody-may-see';
    const answer = await api.send('GET', NODES, { headers: { authorization: `Bearer ${secret}` } });
    expect(answer.code).toBe(401);
    expect(answer.text + JSON.stringify(answer.headers) + api.faults.join()).not.toContain(secret);
  });

  it('let no browser in: there is no answer to a preflight', async () => {
    const { api } = await world();
    const answer = await api.send('OPTIONS', NODES, { headers: { origin: 'https://evil.example' } });
    expect(answer.code).toBe(405);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });
});

describe('the heartbeat', () => {
  const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  async function heartbeat() {
    const { items, writes } = await world();
    const serve = serveHeartbeat({
      items,
      authenticator: staticTokenAuthenticator([
        {
          sha256: createHash('sha256').update('machine').digest('hex'),
          user: 'system:node:n1',
          groups: ['system:nodes'],
        },
      ]),
      clock: { nowMs: () => 0 },
      random: { uuid: () => 'u', fraction: () => 0.5 },
      log: { debug() {}, info() {}, warn() {}, error() {} },
    });
    const put = (path: string, body: unknown, more: Partial<HttpRequest> = {}) =>
      serve({
        method: 'PUT',
        path,
        query: new URLSearchParams(),
        headers: { ...asMachine, 'content-type': 'application/json' },
        body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
        sourceIp: '192.0.2.9',
        ...more,
      });
    return { put, writes };
  }
  const lease = (name: string) => ({
    metadata: { name, namespace: 'kube-node-lease' },
    spec: { holderIdentity: name },
  });

  it.each<[string, string, unknown]>([
    ['another node’s lease', `${LEASES}/n2`, lease('n2')],
    ['its own name in the path, another’s in the body', `${LEASES}/n1`, lease('n2')],
    ['another’s name in the path, its own in the body', `${LEASES}/n2`, lease('n1')],
    ['a lease of another namespace', `${LEASES.replace('kube-node-lease', 'default')}/n1`, lease('n1')],
    ['a path that climbs', `${LEASES}/../leases/n2`, lease('n2')],
    ['an escaped path', `${LEASES}/n1%2F..%2Fn2`, lease('n2')],
    [
      'a body of a megabyte',
      `${LEASES}/n1`,
      `{"metadata":{"name":"n1"},"spec":{"holderIdentity":"${'x'.repeat(MEGABYTE)}"}}`,
    ],
    ['no body', `${LEASES}/n1`, ''],
    ['a lease that is none', `${LEASES}/n1`, '[]'],
  ])('refuses %s, and writes nothing', async (_, path, body) => {
    const { put, writes } = await heartbeat();
    const { status } = await put(path, body);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(writes()).toBe(0);
  });
});

describe('the probe of node-monitor', () => {
  /** Signed in, with its Lease there, and a machine beside it. */
  async function beating() {
    const cluster = new IdentityCluster();
    const credentials = cluster.probe();
    const token = await credentials.bearer(cluster.nowMs);
    expect((await cluster.send('POST', NODE_LEASES, token, leaseBody(PROBE_LEASE))).code).toBe(201);
    expect((await cluster.beat(token, PROBE_LEASE)).code).toBe(200);
    const pair = nodeKeyPair('EdDSA');
    expect((await cluster.enrol(await cluster.bootstrapToken(), 'n1', pair)).code).toBe(201);
    const asNode = cluster.signed(pair, 'n1');
    expect((await cluster.send('POST', NODE_LEASES, asNode, leaseBody('n1'))).code).toBe(201);
    return { cluster, credentials, token, pair, stored: cluster.stored() };
  }
  const keyIdOf = (token: string): string =>
    JSON.parse(Buffer.from(token.split('.')[0]!, 'base64url').toString('utf8')).kid;
  const probeClaims = { iss: PROBE_USER, sub: PROBE_USER };

  it('costs one read for its key, and none afterwards', async () => {
    const { cluster, token } = await beating();
    cluster.consumed();
    for (let beat = 0; beat < 3; beat += 1) {
      cluster.nowMs += 5_000;
      expect((await cluster.beat(token, PROBE_LEASE)).code).toBe(200);
    }
    expect(cluster.consumed().map(({ operation }) => operation)).toEqual(['UpdateItem', 'UpdateItem', 'UpdateItem']);
  });

  it.each<[string, string, string, unknown?]>([
    ['the lease of a node', 'PATCH', `${NODE_LEASES}/n1`, { spec: { leaseDurationSeconds: 1 } }],
    ['a new lease of another name', 'POST', NODE_LEASES, leaseBody('n2')],
    ['a new lease without a name', 'POST', NODE_LEASES, { ...leaseBody('n2'), metadata: { generateName: 'n' } }],
    ['a lease elsewhere', 'POST', NODE_LEASES.replace('kube-node-lease', 'default'), leaseBody(PROBE_LEASE)],
    ['its own lease, to delete it', 'DELETE', `${NODE_LEASES}/${PROBE_LEASE}`],
    ['the list of leases', 'GET', NODE_LEASES],
    ['the nodes', 'GET', NODES],
    ['a Node of its own', 'POST', NODES, node('n2')],
    ['an identity of a node', 'POST', IDENTITIES, identityBody('n2', nodeKeyPair())],
  ])('does not open %s', async (_, method, path, body) => {
    const { cluster, token, stored } = await beating();
    expect((await cluster.send(method, path, token, body)).code).toBe(403);
    expect(cluster.stored()).toBe(stored);
    expect(cluster.takeFaults()).toEqual([]);
  });

  it('has a name that no Node and no identity can have, whoever asks', async () => {
    const { cluster, stored } = await beating();
    const bootstrap = await cluster.bootstrapToken({ nodeNamePattern: '*' });
    const before = cluster.stored();
    expect(before).not.toBe(stored);
    expect((await cluster.enrol(bootstrap, PROBE_LEASE, nodeKeyPair())).code).toBe(422);
    expect((await cluster.asAdmin('POST', IDENTITIES, identityBody(PROBE_LEASE, nodeKeyPair()))).code).toBe(422);
    expect((await cluster.asAdmin('POST', NODES, node(PROBE_LEASE))).code).toBe(422);
    expect(cluster.stored()).toBe(before);
  });

  it.each<[string, (made: Awaited<ReturnType<typeof beating>>) => string]>([
    ['signed by a stranger', ({ cluster }) => cluster.signed(nodeKeyPair('EdDSA'), 'n1', { claims: probeClaims })],
    [
      'signed by a stranger under the key id of the probe',
      ({ cluster, token }) =>
        cluster.signed(nodeKeyPair('EdDSA'), 'n1', { claims: probeClaims, header: { kid: keyIdOf(token) } }),
    ],
    ['signed by a node', ({ cluster, pair }) => cluster.signed(pair, 'n1', { claims: probeClaims })],
    [
      'of a node under the key id of the probe',
      ({ cluster, pair, token }) => cluster.signed(pair, 'n1', { header: { kid: keyIdOf(token) } }),
    ],
    ['of a node that calls itself as the lease', ({ cluster, pair }) => cluster.signed(pair, PROBE_LEASE)],
    [
      'without a signature',
      ({ token }) => `${base64url({ alg: 'none', kid: keyIdOf(token) })}.${token.split('.')[1]}.`,
    ],
  ])('is not believed by a token %s', async (_, forged) => {
    const made = await beating();
    const token = forged(made);
    expect((await made.cluster.beat(token, PROBE_LEASE)).code).toBe(401);
    expect((await made.cluster.beat(token, 'n1')).code).toBe(401);
    expect(made.cluster.stored()).toBe(made.stored);
  });

  it('is not believed by a key that has ended', async () => {
    const { cluster, credentials } = await beating();
    const item = (await cluster.items.get(PROBE_KEYS, { consistent: true }))!;
    const [key] = JSON.parse(item['keys'] as string);
    const keys = JSON.stringify([{ ...key, throughMs: cluster.nowMs + 1_000 }]);
    await cluster.items.write({ kind: 'update', key: PROBE_KEYS, set: { keys } });
    cluster.nowMs += HEARTBEAT_KEYS_LIVE_MS;
    expect((await cluster.beat(await credentials.bearer(cluster.nowMs), PROBE_LEASE)).code).toBe(401);
  });

  it('is not believed by a key that was removed, once it is forgotten', async () => {
    const { cluster, credentials } = await beating();
    await cluster.items.write({ kind: 'delete', key: PROBE_KEYS });
    expect((await cluster.beat(await credentials.bearer(cluster.nowMs), PROBE_LEASE)).code).toBe(200);
    cluster.nowMs += HEARTBEAT_KEYS_LIVE_MS;
    expect((await cluster.beat(await credentials.bearer(cluster.nowMs), PROBE_LEASE)).code).toBe(401);
  });
});

describe('a node token in another spelling', () => {
  /** Order of P-256. */
  const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  /** The other of the two ECDSA signatures that verify. */
  function twin(token: string): string {
    const [header, payload, signature = ''] = token.split('.');
    const bytes = Buffer.from(signature, 'base64url');
    const s = (ORDER - BigInt(`0x${bytes.subarray(32).toString('hex')}`)).toString(16).padStart(64, '0');
    return [header, payload, Buffer.concat([bytes.subarray(0, 32), Buffer.from(s, 'hex')]).toString('base64url')].join(
      '.',
    );
  }

  it.each<[string, (token: string) => string]>([
    ['with spaces around it', (token) => ` ${token} `],
    ['with padding', (token) => `${token}==`],
    ['with the twin of its signature', twin],
  ])('%s opens what the token opens, and ends with it', async (_, spelt) => {
    const cluster = new IdentityCluster();
    const pair = nodeKeyPair();
    await cluster.enrol(await cluster.bootstrapToken(), 'n1', pair);
    await cluster.asAdmin('POST', NODES, node('n1'));
    await cluster.asAdmin('POST', NODES, node('n2'));
    const plain = cluster.signed(pair, 'n1');
    const read = async (name: string, token: string) => (await cluster.send('GET', `${NODES}/${name}`, token)).code;
    expect(await read('n1', plain)).toBe(200);
    expect([200, 401]).toContain(await read('n1', spelt(plain)));
    expect([401, 403]).toContain(await read('n2', spelt(plain)));
    expect((await cluster.asAdmin('DELETE', `${IDENTITIES}/n1`)).code).toBe(200);
    cluster.nowMs += API_KEYS_LIVE_MS;
    expect(await read('n1', spelt(plain))).toBe(401);
    expect(await read('n1', spelt(cluster.signed(pair, 'n1')))).toBe(401);
  });
});

describe('a watch elsewhere', () => {
  const NOW_MS = Date.UTC(2026, 0, 1);
  const user = { username: 'eve', groups: ['system:masters'] };
  const query = new URLSearchParams({ watch: '1' });
  const target = watchTarget(NODES, query);
  function door() {
    const items = memoryItemStore();
    let nowMs = NOW_MS;
    const serve = serveWatch({
      items,
      authenticator: staticTokenAuthenticator([]),
      tickets: watchTicketVerifier(ticketKeys(items)),
      nodeKeys: nodeKeys(items),
      clock: { nowMs: () => nowMs },
      random: { uuid: () => 'u', fraction: () => 0.5 },
      pause: async () => {},
      log: { debug() {}, info() {}, warn() {}, error() {} },
      policy: defaultPolicy,
      readYaml,
      gzip,
    });
    const open = async (ticket: string, atMs = NOW_MS): Promise<number> => {
      nowMs = atMs;
      const asked = new URLSearchParams({ watch: '1', [TICKET_PARAMETER]: ticket });
      const request = { method: 'GET', path: NODES, query: asked, headers: {}, body: new Uint8Array(), sourceIp: '' };
      return (await serve(request, atMs)).head.status;
    };
    return { items, open, issuer: watchTicketIssuer(processKeys(keepTicketKey(items))) };
  }
  const madeElsewhere = () => watchTicketIssuer(processKeys(async () => {}));

  it('opens by a ticket of the API, any number of times until it expires', async () => {
    const { open, issuer } = door();
    const ticket = await issuer.issue({ user, target }, NOW_MS);
    for (const afterMs of [0, 0, 59_000]) expect(await open(ticket, NOW_MS + afterMs)).toBe(200);
    expect(await open(ticket, NOW_MS + 60_001)).toBe(401);
  });

  it.each<[string, (given: ReturnType<typeof door>) => Promise<string>]>([
    ['of a key that was never stored', () => madeElsewhere().issue({ user, target }, NOW_MS)],
    [
      'of a foreign key under the id of a stored one',
      async ({ issuer }) => {
        const [keyId] = (await issuer.issue({ user, target }, NOW_MS)).split('.');
        const [, ...rest] = (await madeElsewhere().issue({ user, target }, NOW_MS)).split('.');
        return [keyId, ...rest].join('.');
      },
    ],
    ['for another watch', ({ issuer }) => issuer.issue({ user, target: watchTarget('/api/v1/pods', query) }, NOW_MS)],
    ['that has expired', ({ issuer }) => issuer.issue({ user, target }, NOW_MS - 60_001)],
    [
      'of a key that has ended',
      async ({ items, issuer }) => {
        const ticket = await issuer.issue({ user, target }, NOW_MS);
        const key = { table: 'control', pk: 'ticket-keys', sk: ticket.split('.')[0]! } as const;
        await items.write({
          kind: 'update',
          key,
          set: { throughMs: NOW_MS - 1 },
          when: { kind: 'has', attribute: 'publicKey' },
        });
        return ticket;
      },
    ],
    [
      'with the name of another partition for a key id',
      async () => `${'node-keys#00'.padEnd(43, '-')}.e30.${'A'.repeat(86)}`,
    ],
    ['that is empty', async () => ''],
  ])('opens by no ticket %s', async (_, made) => {
    const given = door();
    expect(await given.open(await made(given))).toBe(401);
  });
});
