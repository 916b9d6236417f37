import { expect, it } from 'vitest';
import { apiInMemory, NODES, node } from '../../../test/support/api-in-memory.ts';
import { gzip } from '../../adapters/gzip/gzip.ts';
import { memoryItemStore } from '../../adapters/memory/item-store.ts';
import { readYaml } from '../../adapters/yaml/read-yaml.ts';
import { defaultPolicy } from '../../domain/policy.ts';
import { serveWatch } from './serve-watch.ts';

it('a change made while the state is being sent follows as an event', async () => {
  const items = memoryItemStore();
  const api = apiInMemory({ items });
  await api.send('POST', NODES, { body: node('a') });
  let nowMs = api.nowMs();
  const serve = serveWatch({
    items,
    authenticator: {
      authenticate: async () => ({ kind: 'authenticated', user: { username: 'tester', groups: ['system:masters'] } }),
    },
    tickets: { verify: async () => ({ kind: 'refused', reason: 'invalid' }) },
    nodeKeys: { keysOf: async () => [] },
    clock: { nowMs: () => nowMs },
    random: { uuid: () => 'u', fraction: () => 0.5 },
    pause: async (milliseconds) => {
      nowMs += milliseconds;
    },
    log: { debug() {}, info() {}, warn() {}, error() {} },
    policy: defaultPolicy,
    hash: (text) => text,
    readYaml,
    gzip,
  });
  const { lines } = await serve(
    {
      method: 'GET',
      path: NODES,
      query: new URLSearchParams({ watch: '1' }),
      headers: {},
      body: new Uint8Array(),
      sourceIp: '192.0.2.1',
    },
    nowMs + 10_000,
  );
  const received: string[] = [];
  for await (const line of lines ?? []) {
    const { type, object } = JSON.parse(line) as { type: string; object: { metadata: { name: string } } };
    received.push(`${type} ${object.metadata.name}`);
    // The state has been read, and this line is the first of it: the next one is written only when this loop continues.
    if (received.length === 1) await api.send('POST', NODES, { body: node('b') });
  }
  expect(received).toEqual(['ADDED a', 'ADDED b']);
});
