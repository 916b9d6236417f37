/** The heartbeat function over a map, with Leases `n0`, `n1`, … Its tokens are the names of nodes. */

import { serveHeartbeat } from '../../functions/heartbeat/work.ts';
import { NODES_GROUP } from '../../shared/access/authorize.ts';
import { leaseChangeOf } from '../../shared/kinds/leases/lease-change.ts';
import { createLease } from '../../shared/kinds/leases/lease-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import type { Send } from './api-in-memory.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const NODE = /^Bearer (n\d+)$/;
const ignore = (): void => undefined;

export async function heartbeatInMemory(leases: number) {
  const items = memoryItemStore();
  for (let index = 0; index < leases; index += 1) {
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: `n${index}` }, spec: {} };
    await createLease(items, { change: leaseChangeOf(lease), nowMs: NOW_MS, tie: 0, uid: `uid-${index}` });
  }
  const serve = serveHeartbeat({
    items,
    authenticator: {
      authenticate: async ({ authorization = '' }) => {
        const [, name] = NODE.exec(authorization) ?? [];
        if (name === undefined) return { kind: 'anonymous' };
        return { kind: 'authenticated', user: { username: `system:node:${name}`, groups: [NODES_GROUP] } };
      },
    },
    clock: { nowMs: () => NOW_MS },
    random: { uuid: () => 'uid', fraction: () => 0 },
    log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
  });
  return {
    async send(method: string, pathAndQuery: string, { body = '', contentType, headers }: Send = {}) {
      const [path = '', query = ''] = pathAndQuery.split('?', 2);
      const answer = await serve({
        ...{ method, path, query: new URLSearchParams(query), sourceIp: '192.0.2.9' },
        headers: {
          authorization: 'Bearer n0',
          ...(contentType === undefined ? {} : { 'content-type': contentType }),
          ...headers,
        },
        body: body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
      });
      const bytes = typeof answer.body === 'string' ? Buffer.from(answer.body) : answer.body;
      return { code: answer.status, bytes, text: Buffer.from(bytes).toString('utf8') };
    },
  };
}
