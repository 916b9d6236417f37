import { createHash } from 'node:crypto';
import { expect, it } from 'vitest';
import { gzip } from '../../adapters/gzip/gzip.ts';
import { memoryItemStore } from '../../adapters/memory/item-store.ts';
import { staticTokenAuthenticator } from '../../adapters/tokens/static-tokens.ts';
import { readYaml } from '../../adapters/yaml/read-yaml.ts';
import { defaultPolicy } from '../../domain/policy.ts';
import { serveWatch } from './serve-watch.ts';

const START_MS = Date.UTC(2026, 0, 1);
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

it.each(['/api/v1/namespaces', '/apis/scheduling.k8s.io/v1/priorityclasses'])(
  'a watch of %s in a new cluster writes no object: its function may not',
  async (path) => {
    const items = memoryItemStore();
    let nowMs = START_MS;
    const watch = serveWatch({
      items,
      authenticator: staticTokenAuthenticator([{ sha256: sha256('key'), user: 'admin', groups: ['system:masters'] }]),
      tickets: {
        issue: () => '',
        verify: () => ({ kind: 'refused', reason: 'invalid' }),
      },
      clock: { nowMs: () => nowMs },
      random: { uuid: () => 'u', fraction: () => 0.5 },
      pause: async (milliseconds) => {
        nowMs += milliseconds;
      },
      log: { debug() {}, info() {}, warn() {}, error() {} },
      policy: defaultPolicy,
      hash: sha256,
      readYaml,
      gzip,
    });
    const { head, lines } = await watch(
      {
        method: 'GET',
        path,
        query: new URLSearchParams({ watch: '1', timeoutSeconds: '2' }),
        headers: { authorization: 'Bearer key' },
        body: new Uint8Array(),
        sourceIp: '192.0.2.1',
      },
      START_MS + 10_000,
    );
    expect(head.status).toBe(200);
    const told: string[] = [];
    for await (const line of lines ?? []) told.push(line);
    expect(told.join('')).not.toContain('ERROR');
    expect(items.items('objects').filter(({ pk }) => !String(pk).startsWith('h#'))).toEqual([]);
  },
);
