/**
 * Requests that mean harm, at the API and at the heartbeat: all are refused with a 4xx, and nothing is written. Forged node
 * tokens have a test of their own.
 */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { memoryItemStore } from '../../shared/adapters/memory/item-store.ts';
import { staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { serveHeartbeat } from '../../shared/app/renew-lease.ts';
import type { HttpRequest } from '../../shared/ports/http.ts';
import { APPLY, apiInMemory, JSON_PATCH, MERGE, NODES, node, STRATEGIC } from '../support/api-in-memory.ts';

const MACHINE = { machine: { name: 'system:node:n1', groups: ['system:nodes'] } };
const asMachine = { authorization: 'Bearer machine' };
const MEGABYTE = 1_048_576;

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
  ])('%s opens nothing to anybody', async (path) => {
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
  ])('%s makes nobody an administrator', async (_, headers) => {
    const { api, writes } = await world();
    const answer = await api.send('DELETE', `${NODES}/n2`, { headers });
    expect([401, 403]).toContain(answer.code);
    expect(writes()).toBe(0);
  });

  it('a method in a header makes no request another one', async () => {
    const { api, writes } = await world();
    for (const header of ['x-http-method-override', 'x-http-method', 'x-method-override']) {
      expect((await api.send('GET', `${NODES}/n2`, { headers: { [header]: 'DELETE' } })).code).toBe(200);
    }
    expect(writes()).toBe(0);
  });

  it('impersonation of extra fields or uids is refused like that of users', async () => {
    const { api } = await world();
    for (const header of ['impersonate-uid', 'impersonate-extra-scopes']) {
      expect((await api.send('GET', NODES, { headers: { [header]: 'x' } })).code).toBe(403);
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
  it('hold no token, whatever goes wrong', async () => {
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
