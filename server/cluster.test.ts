import { createHash } from 'node:crypto';
import { beforeAll, expect, it, vi } from 'vitest';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { type Authority, makeAuthority } from '../shared/host/certificate.ts';
import { memoryItemStore } from '../shared/store/memory/item-store.ts';
import { DEFINITIONS, widget, widgetDefinition, widgetsIn } from '../test/support/custom-definition.ts';
import { composeCluster } from './cluster.ts';
import { changeSignals } from './watches/change-signals.ts';
import { reportingCommits } from './watches/own-commits.ts';

const TOKEN = 'a'.repeat(43);

let authority: Authority;
beforeAll(async () => {
  authority = await makeAuthority({ commonName: 'test', nowMs: Date.now(), validDays: 1 });
});

function cluster(user: string, ...groups: readonly string[]) {
  const signals = changeSignals();
  const store = memoryItemStore();
  const reads = { count: 0, onRead: (): void => {} };
  const counted: typeof store = {
    ...store,
    query(request) {
      reads.count += 1;
      reads.onRead();
      return store.query(request);
    },
  };
  const items = reportingCommits(counted, signals.changed);
  const nothing = (): void => {};
  const { serve, heldWatches } = composeCluster({
    items,
    signals,
    policy: defaultPolicy,
    clusterId: 'c',
    staticTokens: [{ sha256: createHash('sha256').update(TOKEN).digest('hex'), user, groups }],
    authorities: () => '',
    apiAddress: () => undefined,
    authority,
    isServerName: () => false,
    log: { debug: nothing, info: nothing, warn: nothing, error: nothing },
    meter: { add: nothing },
    waker: { wake: async () => [] },
    auditTrail: { record: async () => undefined },
    processFamilies: () => [],
    checks: [{ name: 'store', fault: () => 'no space' }],
    probe: { url: 'https://127.0.0.1:1', fetch: globalThis.fetch },
  });
  const open = async (
    method: string,
    target: string,
    body = '',
    token: string | undefined = TOKEN,
    gone = new AbortController().signal,
  ) => {
    const { pathname: path, searchParams: query } = new URL(`https://c${target}`);
    const headers = {
      'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    };
    const request = { method, path, query, headers, body: Buffer.from(body), sourceIp: '192.0.2.1' };
    return await serve(request, gone);
  };
  const send = async (...request: Parameters<typeof open>) => (await open(...request)).head;
  return { items, reads, signals, open, send, heldWatches };
}

it('refuses heartbeats above the rate of their node, and counts them by its identity', async () => {
  const { items, send } = cluster('system:node:n1', 'system:nodes');
  const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1';
  const statuses: number[] = [];
  for (let beats = 0; beats < 40; beats += 1) statuses.push((await send('PATCH', path, '{"spec":{}}')).status);
  expect(statuses.filter((status) => status === 429).length).toBeGreaterThan(10);
  const { items: refusals } = await items.query({ table: 'control', pk: 'refusals', consistent: true });
  expect(refusals).toHaveLength(1);
});

it('shows why it is not ready to those who may ask, as for every path', async () => {
  const { send } = cluster('ada', 'system:masters');
  expect(await send('GET', '/readyz')).toMatchObject({ status: 500, body: expect.stringContaining('no space') });
  expect((await send('GET', '/livez')).status).toBe(200);
  expect((await send('GET', '/metrics', '', 'unknown')).status).toBe(401);
});

it('frees the slot of a watch when its client leaves, although it waits for a change', async () => {
  const { open, heldWatches } = cluster('ada', 'system:masters');
  const { lines } = await open('GET', '/api/v1/nodes?watch=1&resourceVersion=1');
  const parts = lines![Symbol.asyncIterator]();
  await parts.next();
  const waiting = parts.next();
  expect(heldWatches()).toBe(1);
  await parts.return?.();
  expect(heldWatches()).toBe(0);
  void waiting;
});

// Nothing else would run if it did not wait.
it('a watch of the leases of nodes waits again after a commit of another lease', async () => {
  const { open, send, signals } = cluster('ada', 'system:masters');
  const { wait } = signals;
  let waits = 0;
  signals.wait = (...at) => {
    waits += 1;
    if (waits > 10) throw new Error('it does not wait');
    return wait(...at);
  };
  const leases = '/apis/coordination.k8s.io/v1/namespaces';
  const { lines } = await open('GET', `${leases}/kube-node-lease/leases?watch=1`);
  const parts = lines![Symbol.asyncIterator]();
  // White space twice, then the first wait.
  for (let part = 0; part < 3; part += 1) void parts.next();
  await vi.waitFor(() => expect(waits).toBe(1));
  expect((await send('POST', `${leases}/default/leases`, '{"metadata":{"name":"a"}}')).status).toBe(201);
  await vi.waitFor(() => expect(waits).toBe(2));
  expect(await send('GET', `${leases}/default/leases/a`)).toMatchObject({ status: 200 });
  expect(waits).toBe(2);
  void parts.return?.();
});

// Otherwise it would read the log after a minute.
it('a commit wakes the watches of its custom resource', async () => {
  const { open, send } = cluster('ada', 'system:masters');
  expect((await send('POST', DEFINITIONS, JSON.stringify(widgetDefinition()))).status).toBe(201);
  const { lines } = await open('GET', `${widgetsIn('default')}?watch=1`);
  const nextLine = async (): Promise<string> => {
    for await (const part of lines!) if (part.trim() !== '') return part;
    return '';
  };
  const next = nextLine();
  await new Promise((resolve) => setImmediate(resolve));
  expect((await send('POST', widgetsIn('default'), JSON.stringify(widget('w')))).status).toBe(201);
  expect(JSON.parse(await next)).toMatchObject({ type: 'ADDED', object: { metadata: { name: 'w' } } });
});

it.each([
  ['/api/v1/services', 'kubernetes'],
  ['/api/v1/namespaces', 'default'],
  ['/apis/scheduling.k8s.io/v1/priorityclasses', 'system-node-critical'],
])('the first watch of a new cluster begins with what every cluster has: %s', async (path, name) => {
  const { open } = cluster('ada', 'system:masters');
  const state = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
  const { lines } = await open('GET', `${path}?${state}`);
  let text = '';
  for await (const part of lines!) {
    text += part;
    if (text.includes('initial-events-end')) break;
  }
  expect(text).toContain(`"name":"${name}"`);
});

it('a list ends with the page in which its client has left', async () => {
  const { reads, send } = cluster('ada', 'system:masters');
  const path = '/api/v1/namespaces/default/configmaps';
  for (const name of 'abcdefgh') await send('POST', path, JSON.stringify({ metadata: { name } }));
  const left = new AbortController();
  const pages = async (leaves: boolean): Promise<number> => {
    const before = reads.count;
    reads.onRead = () => leaves && left.abort();
    await send('GET', `${path}?limit=1&labelSelector=none`, '', TOKEN, left.signal);
    return reads.count - before;
  };
  const whole = await pages(false);
  expect(whole).toBeGreaterThan(3);
  expect(await pages(true)).toBeLessThan(whole - 1);
});
