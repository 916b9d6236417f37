/** What one identity may use of the heartbeat function, through the code that serves its requests. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Authenticator } from '../../shared/access/authenticator.ts';
import { NODES_GROUP } from '../../shared/access/authorize.ts';
import { refusalsAdded, refusalsOf } from '../../shared/access/refusal-store.ts';
import { refusedRequests } from '../../shared/access/refused-requests.ts';
import { HEARTBEAT_LIMITS, requestThrottle } from '../../shared/access/request-throttle.ts';
import { LEASE_BATCH_API_VERSION, LEASE_BATCH_KIND, LEASE_BATCHES_PATH } from '../../shared/fleet/nodes/lease-batch.ts';
import { leaseChangeOf } from '../../shared/kinds/leases/lease-change.ts';
import { createLease } from '../../shared/kinds/leases/lease-store.ts';
import { LEASE_NAMESPACE } from '../../shared/kinds/leases/resource.ts';
import type { HttpRequest, HttpResponse } from '../../shared/kubernetes/http.ts';
import type { ItemUpdater } from '../../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { serveHeartbeat } from './work.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const PATH = `/apis/coordination.k8s.io/v1/namespaces/${LEASE_NAMESPACE}/leases`;
const NODES = ['greedy', 'n1', 'n2', 'relay'];
const BEAT = '{"spec":{}}';

/** The token is the name of a node. */
const authenticator: Authenticator = {
  authenticate: async ({ authorization = '' }) => {
    const name = authorization.replace('Bearer ', '');
    if (!NODES.includes(name)) return { kind: 'anonymous' };
    return { kind: 'authenticated', user: { username: `system:node:${name}`, groups: [NODES_GROUP] } };
  },
};

let items: MemoryItemStore;
let nowMs: number;
let busyMs: number;
/** What the next write of this Lease computes. Milliseconds. */
let costOf: (name: string) => number;
let lines: unknown[];
let serve: (request: HttpRequest) => Promise<HttpResponse>;

beforeEach(async () => {
  [nowMs, busyMs, lines] = [NOW_MS, 0, []];
  costOf = () => 2;
  items = memoryItemStore();
  for (const name of NODES) {
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec: {} };
    await createLease(items, { change: leaseChangeOf(lease), nowMs, tie: 0, uid: `uid-${name}` });
  }
  const costly: ItemUpdater = {
    write: (write, options) => {
      if (write.key.table === 'health') {
        busyMs += costOf(write.key.sk);
        nowMs += costOf(write.key.sk);
      }
      return items.write(write, options);
    },
  };
  const note = (...line: unknown[]): void => void lines.push(line);
  const log = { debug: note, info: note, warn: note, error: note };
  const onRefused = refusedRequests({ log, store: refusalsAdded(items), noteFault: note });
  const throttle = () => requestThrottle(HEARTBEAT_LIMITS, { busyMs: () => busyMs, onRefused });
  serve = serveHeartbeat({
    ...{ items: costly, authenticator, log, throttle: throttle(), batchThrottle: throttle() },
    clock: { nowMs: () => nowMs },
    random: { uuid: () => 'uid', fraction: () => 0 },
  });
});

const request = (method: string, path: string, token: string, body: string): HttpRequest => ({
  ...{ method, path, query: new URLSearchParams(), sourceIp: '192.0.2.1', body: Buffer.from(body) },
  headers: { authorization: `Bearer ${token}`, 'content-type': 'application/merge-patch+json' },
});
const beat = async (name: string, body = BEAT) => (await serve(request('PATCH', `${PATH}/${name}`, name, body))).status;

describe('a node with slow requests', () => {
  beforeEach(async () => {
    costOf = (name) => (name === 'greedy' ? 300 : 2);
    expect([await beat('greedy'), await beat('greedy')]).toEqual([200, 200]);
  });

  it('is refused before its body is parsed, and no other node is', async () => {
    const before = nowMs;
    for (let sent = 0; sent < 500; sent += 1) expect(await beat('greedy', '{')).toBe(429);
    expect(nowMs).toBe(before);
    expect([await beat('n1'), await beat('n2'), await beat('relay')]).toEqual([200, 200, 200]);
  });

  it('is served again after the time that it used', async () => {
    expect(await beat('greedy')).toBe(429);
    nowMs += 10_000;
    expect(await beat('greedy')).toBe(200);
  });

  it('leaves one line and one write per minute, which count its refusals', async () => {
    lines.length = 0;
    for (let sent = 0; sent < 500; sent += 1) await beat('greedy');
    nowMs += 60_000;
    costOf = () => 100_000;
    await beat('greedy');
    await beat('greedy');
    const refusals = [...(await refusalsOf(items, NOW_MS)), ...(await refusalsOf(items, NOW_MS + 120_000))];
    expect(refusals.map(({ username, count }) => [username, count])).toEqual([
      ['system:node:greedy', 1],
      ['system:node:greedy', 500],
    ]);
    expect(lines).toHaveLength(2);
  });
});

describe('a batch', () => {
  const batch = (names: readonly string[]) => {
    const items = names.map((name) => ({ method: 'PATCH', path: `${PATH}/${name}`, token: name, body: BEAT }));
    const body = JSON.stringify({ apiVersion: LEASE_BATCH_API_VERSION, kind: LEASE_BATCH_KIND, items });
    const posted = request('POST', LEASE_BATCHES_PATH, 'relay', body);
    return serve({ ...posted, headers: { ...posted.headers, 'content-type': 'application/json' } });
  };

  it('of several nodes uses a part of the share of each', async () => {
    costOf = () => 150;
    const answers = [];
    for (let sent = 0; sent < 3; sent += 1) answers.push((await batch(['n1', 'n2', 'relay'])).status);
    expect(answers).toEqual([200, 200, 200]);
  });

  it('of one node many times uses the share of one', async () => {
    costOf = () => 150;
    const answers = [];
    for (let sent = 0; sent < 3; sent += 1) answers.push((await batch(['n1', 'n1', 'n1'])).status);
    expect(answers).toEqual([200, 200, 429]);
  });

  it('uses no time of its nodes: their own heartbeats are served', async () => {
    costOf = () => 900;
    await batch(['n1', 'n2']);
    await batch(['n1', 'n2']);
    costOf = () => 2;
    expect([await beat('n1'), await beat('n2')]).toEqual([200, 200]);
  });
});
