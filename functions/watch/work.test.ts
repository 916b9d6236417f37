import { createHash, randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { ticketKeys } from '../../shared/access/process-key-store.ts';
import { type WatchTicketVerifier, watchTicketVerifier } from '../../shared/access/watch-tickets.ts';
import { TICKET_PARAMETER } from '../../shared/api/watch/watch-redirect.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { gzip } from '../../shared/gzip.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { apiInMemory } from '../../test/support/api-in-memory.ts';
import { linesOfWatch } from '../../test/support/watch-lines.ts';
import { readYaml } from '../api/read-yaml.ts';
import { serveWatch } from './work.ts';

const START_MS = Date.UTC(2026, 0, 1);
/** Names of machines, each also its token. */
const MACHINES = ['n1', 'n2', 'n3'];
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

function watcher(
  verify: WatchTicketVerifier['verify'] = async () => ({ kind: 'refused', reason: 'invalid' }),
  policy: Partial<Policy> = {},
  store?: ItemStore,
) {
  const items = memoryItemStore();
  const warned: string[] = [];
  const failed: string[] = [];
  let nowMs = START_MS;
  const watch = serveWatch({
    items: store ?? items,
    authenticator: staticTokenAuthenticator([
      ...['key', 'other'].map((key) => ({ sha256: sha256(key), user: `admin-${key}`, groups: ['system:masters'] })),
      ...MACHINES.map((name) => ({ sha256: sha256(name), user: `system:node:${name}`, groups: ['system:nodes'] })),
    ]),
    tickets: { verify },
    nodeKeys: { keysOf: async () => [] },
    clock: { nowMs: () => nowMs },
    random: { uuid: () => randomUUID(), fraction: () => 0.5 },
    pause: async (milliseconds) => {
      nowMs += milliseconds;
    },
    log: { debug() {}, info() {}, warn: (message) => warned.push(message), error: (message) => failed.push(message) },
    policy: { ...defaultPolicy, ...policy },
    readYaml,
    gzip,
  });
  const request = (path: string, key: string, more: Record<string, string> = {}) => ({
    method: 'GET',
    path,
    query: new URLSearchParams({ watch: '1', timeoutSeconds: '2', ...more }),
    headers: { authorization: `Bearer ${key}` },
    body: new Uint8Array(),
    sourceIp: '192.0.2.1',
  });
  return {
    items,
    warned,
    failed,
    nowMs: () => nowMs,
    /** A watch without a timeout of its own; its function times out after 15 minutes. */
    openLong: (
      query: Record<string, string> = {},
      key = 'key',
      headers: Record<string, string> = {},
      gone?: AbortSignal,
    ) => {
      const asked = request('/api/v1/nodes', key, { timeoutSeconds: '0', ...query });
      return watch({ ...asked, headers: { ...asked.headers, ...headers } }, nowMs + 900_000, gone);
    },
    /** The watch of a kubelet on its own Node. */
    openAsMachine: (name: string) =>
      watch(
        request('/api/v1/nodes', name, { timeoutSeconds: '0', fieldSelector: `metadata.name=${name}` }),
        nowMs + 900_000,
      ),
    open: (path: string, key: string) => watch(request(path, key), START_MS + 10_000),
    /** Another request than a watch, as an administrator or with a ticket. */
    ask: (method: string, path: string, query: Record<string, string>, body: unknown) =>
      watch(
        {
          ...request(path, 'key'),
          method,
          query: new URLSearchParams(query),
          headers: { authorization: 'Bearer key', 'content-type': 'application/json' },
          body: Buffer.from(JSON.stringify(body)),
        },
        START_MS + 10_000,
      ),
    openByTicket: (path: string, more: Record<string, string> = {}) => {
      const asked = request(path, '', { [TICKET_PARAMETER]: 'of the API' });
      return watch({ ...asked, headers: { ...asked.headers, ...more } }, START_MS + 10_000);
    },
  };
}

it.each(['/api/v1/namespaces', '/apis/scheduling.k8s.io/v1/priorityclasses'])(
  'a watch of %s in a new cluster writes no object: its function may not',
  async (path) => {
    const { items, open } = watcher();
    const { head, lines } = await open(path, 'key');
    expect(head.status).toBe(200);
    const told: string[] = [];
    for await (const line of lines ?? []) told.push(line);
    expect(told.join('')).not.toContain('ERROR');
    expect(items.items('objects').filter(({ pk }) => !String(pk).startsWith('h#'))).toEqual([]);
  },
);

it.each([
  ['GET', '/api/v1/nodes', {}],
  ['GET', '/api/v1/nodes', { watch: 'false' }],
  ['GET', '/api/v1/nodes/n1', {}],
  ['GET', '/api/v1/nodes/n1', { watch: '1' }],
  ['GET', '/api', { watch: '1' }],
  ['POST', '/api/v1/nodes', { watch: '1' }],
  ['PUT', '/api/v1/namespaces/default', { watch: '1' }],
  ['PATCH', '/api/v1/namespaces/default', { watch: '1' }],
  ['DELETE', '/api/v1/namespaces/default', { watch: '1' }],
  ['DELETE', '/api/v1/nodes', { watch: '1' }],
] as const)('%s %s with %j is 404 here, also to an administrator and with a ticket', async (method, path, query) => {
  const user = { username: 'admin', groups: ['system:masters'] };
  const { items, ask, failed } = watcher(async () => ({ kind: 'valid', user }));
  const body = { kind: path.endsWith('nodes') ? 'Node' : 'Namespace', metadata: { name: 'n1' } };
  for (const by of [{}, { [TICKET_PARAMETER]: 'of the API' }]) {
    const { head, lines } = await ask(method, path, { ...query, ...by }, body);
    expect([head.status, lines]).toEqual([404, undefined]);
  }
  expect(items.items('objects')).toEqual([]);
  expect(failed).toEqual([]);
});

it('a client that retries with a wrong token is logged once', async () => {
  const { warned, open } = watcher();
  for (let knock = 0; knock < 3; knock += 1) {
    expect((await open('/api/v1/nodes', 'wrong')).head.status).toBe(401);
  }
  expect(warned).toEqual(['a sign-in was refused']);
});

it('watches that fail during an outage of the store are logged once', async () => {
  const { failed, openByTicket } = watcher(async () => {
    throw new StoreFault('unreachable', 'the keys of tickets cannot be read', { retryable: true });
  });
  for (let attempt = 0; attempt < 3; attempt += 1) {
    expect((await openByTicket('/api/v1/nodes')).head.status).toBe(503);
  }
  expect(failed).toEqual(['request failed']);
});

async function linesOf(lines: AsyncIterable<string> | undefined): Promise<readonly string[]> {
  const collected: string[] = [];
  for await (const line of linesOfWatch(lines)) collected.push(line);
  return collected;
}

it('a watch without events ends after watchQuietSeconds, with a bookmark from which the client resumes', async () => {
  const quiet = watcher(undefined, { watchQuietSeconds: 40 });
  const { lines } = await quiet.openLong({ allowWatchBookmarks: 'true' });
  const [bookmark, ...more] = await linesOf(lines);
  expect((quiet.nowMs() - START_MS) / 1_000).toBe(40);
  expect(JSON.parse(bookmark ?? '')).toMatchObject({
    type: 'BOOKMARK',
    object: { kind: 'Node', metadata: { resourceVersion: expect.stringMatching(/^\d+$/) } },
  });
  expect(more).toEqual([]);
});

it('a client that did not ask for bookmarks receives none at the end of a quiet watch', async () => {
  const quiet = watcher(undefined, { watchQuietSeconds: 40 });
  expect(await linesOf((await quiet.openLong()).lines)).toEqual([]);
});

it('a watch above concurrentWatchesMax is 429 with Retry-After until another watch has ended', async () => {
  const { openLong } = watcher(undefined, { concurrentWatchesMax: 2, watchQuietSeconds: 60 });
  const held = [await openLong(), await openLong()];
  const refused = await openLong();
  expect([refused.head.status, refused.head.headers['retry-after'], refused.lines]).toEqual([429, '5', undefined]);
  expect(JSON.parse(String(refused.head.body))).toMatchObject({
    reason: 'TooManyRequests',
    message: '"admin-key" holds 2 watches, the most that concurrentWatchesMax allows one user; try again later',
    details: { retryAfterSeconds: 5 },
  });
  await linesOf(held[0]?.lines);
  expect((await openLong()).head.status).toBe(200);
});

it('a watch that its transport abandons releases its slot at once', async () => {
  const { openLong } = watcher(undefined, { concurrentWatchesMax: 1 });
  const lines = (
    await openLong({ sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: 'true' })
  ).lines;
  for await (const _ of lines ?? []) break;
  expect((await openLong()).head.status).toBe(200);
});

it('a watch without events releases its slot when its client has left', async () => {
  const { openLong, nowMs } = watcher(undefined, { concurrentWatchesMax: 1, watchQuietSeconds: 3_600 });
  const gone = new AbortController();
  const { lines } = await openLong({}, 'key', {}, gone.signal);
  const openedMs = nowMs();
  gone.abort();
  await expect(linesOf(lines)).rejects.toThrow();
  expect(nowMs() - openedMs).toBeLessThan(10_000);
  expect((await openLong()).head.status).toBe(200);
});

it('a person finds a watch while one machine opens 60, and while machines hold all that they may', async () => {
  const { openLong, openAsMachine } = watcher();
  const statuses: number[] = [];
  for (let count = 0; count < 60; count += 1) statuses.push((await openAsMachine('n1')).head.status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(10);
  const refused = await openAsMachine('n1');
  expect(JSON.parse(String(refused.head.body))).toMatchObject({
    code: 429,
    message: '"system:node:n1" holds 10 watches, the most that concurrentWatchesMax allows one user; try again later',
  });
  expect((await openLong()).head.status).toBe(200);
  for (let count = 0; count < 10; count += 1) expect((await openAsMachine('n2')).head.status).toBe(200);
  expect(JSON.parse(String((await openAsMachine('n3')).head.body))).toMatchObject({
    code: 429,
    message: 'the 20 watches that concurrentWatchesMax allows machines are held; try again later',
  });
  for (const key of ['key', 'other']) expect((await openLong({}, key)).head.status).toBe(200);
});

it('a machine and another person find a watch while one person opens 60', async () => {
  const { openLong, openAsMachine } = watcher();
  const statuses: number[] = [];
  for (let count = 0; count < 60; count += 1) statuses.push((await openLong()).head.status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(20);
  for (let count = 0; count < 10; count += 1) {
    expect((await openLong({}, 'other')).head.status).toBe(200);
    expect((await openAsMachine('n1')).head.status).toBe(200);
  }
});

it('opens a watch for the user of its ticket, who may be an impersonated one', async () => {
  const user = { username: 'otto', groups: ['nodekeeper:viewers', 'system:authenticated'] };
  const { openByTicket, open } = watcher(async () => ({ kind: 'valid', user }));
  // The client follows the redirect with the headers of its first request.
  const { head } = await openByTicket('/api/v1/nodes', { 'impersonate-user': 'otto' });
  expect(head.status).toBe(200);
  expect((await openByTicket('/api/v1/secrets', { 'impersonate-user': 'admin-key' })).head.status).toBe(403);
  expect((await open('/api/v1/nodes', 'n1')).head.status).toBe(403);
});

it('checks a ticket before anything else: a stranger costs no read of a table, and learns of no other fault', async () => {
  const calls: unknown[] = [];
  const counted = new Proxy(memoryItemStore(), {
    get: (items, name: keyof ItemStore) => (first: never, second: never) => {
      calls.push([name, first]);
      return items[name](first, second);
    },
  });
  const { verify } = watchTicketVerifier(ticketKeys(counted));
  const { openLong } = watcher(verify, {}, counted);
  const faults = { fieldSelector: 'a=b', labelSelector: '((', resourceVersion: 'x', timeoutSeconds: '-1' };
  const unknownKey = ['k'.repeat(43), 'payload', 's'.repeat(86)].join('.');
  for (const ticket of ['', 'x', 'x'.repeat(9_000), '..', `${unknownKey}.x`]) {
    expect((await openLong({ ...faults, [TICKET_PARAMETER]: ticket })).head.status, ticket).toBe(401);
  }
  expect((await openLong(faults, 'wrong')).head.status).toBe(401);
  expect(calls).toEqual([]);
  // The key of a ticket that looks right is looked up, once for all such tickets.
  for (let count = 0; count < 3; count += 1) {
    expect((await openLong({ ...faults, [TICKET_PARAMETER]: unknownKey })).head.status).toBe(401);
  }
  expect(calls).toEqual([['get', expect.objectContaining({ pk: 'ticket-keys' })]]);
  // Only then the request is read.
  expect((await openLong(faults)).head.status).toBe(400);
});

it('the watches of one process read the roles of the cluster once', async () => {
  const api = apiInMemory();
  const rbac = '/apis/rbac.authorization.k8s.io/v1';
  const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list', 'watch'] }];
  await api.send('POST', `${rbac}/clusterroles`, { body: { metadata: { name: 'reads' }, rules } });
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'reads' };
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'otto' }];
  await api.send('POST', `${rbac}/clusterrolebindings`, { body: { metadata: { name: 'otto' }, roleRef, subjects } });
  let lists = 0;
  const counted = {
    ...api.items,
    query: (request: Parameters<ItemStore['query']>[0]) => {
      if (request.pk.startsWith('o#clusterrole')) lists += 1;
      return api.items.query(request);
    },
  };
  const user = { username: 'otto', groups: ['system:authenticated'] };
  const { openByTicket } = watcher(async () => ({ kind: 'valid', user }), {}, counted);
  expect((await openByTicket('/api/v1/configmaps')).head.status).toBe(200);
  const ofFirst = lists;
  expect(ofFirst).toBeGreaterThan(0);
  for (let count = 0; count < 5; count += 1) expect((await openByTicket('/api/v1/configmaps')).head.status).toBe(200);
  expect(lists).toBe(ofFirst);
  expect((await openByTicket('/api/v1/secrets')).head.status).toBe(403);
});

it.each([
  'application/vnd.kubernetes.protobuf;stream=watch,application/json;stream=watch',
  'application/vnd.kubernetes.protobuf,application/json',
  'application/cbor-seq,application/json',
])('a watch that accepts %s is JSON: white space would break its frames', async (accept) => {
  const { openLong } = watcher(undefined, { watchQuietSeconds: 40 });
  const { head, lines } = await openLong({ allowWatchBookmarks: 'true' }, 'key', { accept });
  expect(head.headers['content-type']).toBe('application/json');
  for (const line of await linesOf(lines)) expect(JSON.parse(line)).toMatchObject({ type: expect.any(String) });
});
