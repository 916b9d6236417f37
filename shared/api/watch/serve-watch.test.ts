import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { gzip } from '../../adapters/gzip/gzip.ts';
import { memoryItemStore } from '../../adapters/memory/item-store.ts';
import { staticTokenAuthenticator } from '../../adapters/tokens/static-tokens.ts';
import { readYaml } from '../../adapters/yaml/read-yaml.ts';
import { defaultPolicy } from '../../domain/policy.ts';
import { StoreFault } from '../../ports/item-store.ts';
import type { WatchTicketVerifier } from '../../ports/watch-tickets.ts';
import { serveWatch } from './serve-watch.ts';
import { TICKET_PARAMETER } from './watch-redirect.ts';

const START_MS = Date.UTC(2026, 0, 1);
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

function watcher(verify: WatchTicketVerifier['verify'] = async () => ({ kind: 'refused', reason: 'invalid' })) {
  const items = memoryItemStore();
  const warned: string[] = [];
  const failed: string[] = [];
  let nowMs = START_MS;
  const watch = serveWatch({
    items,
    authenticator: staticTokenAuthenticator([{ sha256: sha256('key'), user: 'admin', groups: ['system:masters'] }]),
    tickets: { verify },
    nodeKeys: { keysOf: async () => [] },
    clock: { nowMs: () => nowMs },
    random: { uuid: () => 'u', fraction: () => 0.5 },
    pause: async (milliseconds) => {
      nowMs += milliseconds;
    },
    log: { debug() {}, info() {}, warn: (message) => warned.push(message), error: (message) => failed.push(message) },
    policy: defaultPolicy,
    hash: sha256,
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
    openByTicket: (path: string) => watch(request(path, '', { [TICKET_PARAMETER]: 'of the API' }), START_MS + 10_000),
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
    expect((await openByTicket('/api/v1/nodes')).head.status).toBe(500);
  }
  expect(failed).toEqual(['request failed']);
});
