import { expect, it } from 'vitest';
import { readYaml } from '../../../functions/api/read-yaml.ts';
import { serveWatch } from '../../../functions/watch/work.ts';
import { type ApiInMemory, apiInMemory, MERGE, NODES, node } from '../../../test/support/api-in-memory.ts';
import { linesOfWatch } from '../../../test/support/watch-lines.ts';
import { defaultPolicy } from '../../fleet/policy.ts';
import { gzip } from '../../gzip.ts';
import type { ItemStore } from '../../store/item-store.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';
import { redirectWatches } from './watch-redirect.ts';

const ADMIN = { username: 'tester', groups: ['system:masters'] };

/** Lines of a watch of all nodes, from their state on. `onFirst` runs after the first line was received. */
async function watched(
  items: ItemStore,
  api: ApiInMemory,
  onFirst: () => Promise<unknown> = async () => {},
  query = new URLSearchParams({ watch: '1' }),
) {
  let nowMs = api.nowMs();
  const serve = serveWatch({
    items,
    authenticator: {
      authenticate: async () => ({ kind: 'authenticated', user: ADMIN }),
    },
    tickets: { verify: async () => ({ kind: 'valid', user: ADMIN }) },
    nodeKeys: { keysOf: async () => [] },
    clock: { nowMs: () => nowMs },
    random: { uuid: () => 'u', fraction: () => 0.5 },
    pause: async (milliseconds) => {
      nowMs += milliseconds;
    },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    policy: defaultPolicy,
    readYaml,
    gzip,
  });
  const { lines } = await serve(
    {
      method: 'GET',
      path: NODES,
      query,
      headers: {},
      body: new Uint8Array(),
      sourceIp: '192.0.2.1',
    },
    nowMs + 10_000,
  );
  const received: string[] = [];
  for await (const line of linesOfWatch(lines)) {
    const { type, object } = JSON.parse(line) as { type: string; object: { metadata: { name: string } } };
    received.push(`${type} ${object.metadata.name}`);
    if (received.length === 1) await onFirst();
  }
  return received;
}

it('a change made while the state is being sent follows as an event', async () => {
  const items = memoryItemStore();
  const api = apiInMemory({ items });
  await api.send('POST', NODES, { body: node('a') });
  // The state has been read, and this line is the first of it: the next one is written only when the loop continues.
  const received = await watched(items, api, () => api.send('POST', NODES, { body: node('b') }));
  expect(received).toEqual(['ADDED a', 'ADDED b']);
});

it('an object of the state is not sent again, although it was written after the version of the state', async () => {
  const items = memoryItemStore();
  const api = apiInMemory({ items });
  await api.send('POST', NODES, { body: node('z') });
  let creation: Promise<unknown> | undefined;
  const late: ItemStore = {
    ...items,
    async query(asked) {
      if (asked.pk.startsWith('o#nodes')) {
        creation ??= api.send('POST', NODES, { body: node('b') });
        await creation;
      }
      return items.query(asked);
    },
  };
  const received = await watched(late, api, () =>
    api.send('PATCH', `${NODES}/b`, { body: { metadata: { labels: { a: 'b' } } }, contentType: MERGE }),
  );
  // Also in the order of the writes, and not of the names.
  expect(received).toEqual(['ADDED z', 'ADDED b', 'MODIFIED b']);
});

it('a redirected watch receives what happened since the API received it, in the order of the writes', async () => {
  const items = memoryItemStore();
  const answerWatch = redirectWatches('https://watch', { issue: async () => 'ticket' });
  const api = apiInMemory({ items, answerWatch });
  await api.send('POST', NODES, { body: node('old') });
  const { headers } = await api.send('GET', `${NODES}?watch=1`);
  // The streaming function starts.
  await api.send('POST', NODES, { body: node('b') });
  await api.send('POST', NODES, { body: node('short') });
  await api.send('PATCH', `${NODES}/old`, { body: { metadata: { labels: { a: 'b' } } }, contentType: MERGE });
  await api.send('PATCH', `${NODES}/b`, { body: { metadata: { labels: { a: 'b' } } }, contentType: MERGE });
  await api.send('DELETE', `${NODES}/short`);
  await api.send('POST', NODES, { body: node('a') });
  const { searchParams } = new URL(headers['location'] ?? '');
  expect(await watched(items, api, async () => {}, searchParams)).toEqual([
    'ADDED old',
    'ADDED b',
    'ADDED short',
    'MODIFIED b',
    'DELETED short',
    'ADDED a',
  ]);
});

it('a redirect of a watch from a version names no other version', async () => {
  const api = apiInMemory({ answerWatch: redirectWatches('https://watch', { issue: async () => 'ticket' }) });
  const { headers } = await api.send('GET', `${NODES}?watch=1&resourceVersion=5`);
  expect(headers['location']).toBe('https://watch/api/v1/nodes?watch=1&resourceVersion=5&nodekeeper-ticket=ticket');
});

it('a redirect of a watch that begins with the state makes what every cluster has', async () => {
  const api = apiInMemory({ answerWatch: redirectWatches('https://watch', { issue: async () => 'ticket' }) });
  const madeAt = new Date(api.nowMs()).toISOString().replace(/\.\d+Z/, 'Z');
  for (const path of ['/api/v1/services', '/api/v1/namespaces']) await api.send('GET', `${path}?watch=1`);
  api.advance(60_000);
  for (const path of ['/api/v1/namespaces/default/services/kubernetes', '/api/v1/namespaces/default']) {
    expect((await api.send('GET', path)).body.metadata.creationTimestamp).toBe(madeAt);
  }
});
