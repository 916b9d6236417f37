/** What invented names in the batches of a relay cost: reads of keys, through the function and the real token check. */
import { beforeEach, describe, expect, it } from 'vitest';
import { bearerSchemes } from '../../shared/access/bearer.ts';
import { nodeTokens } from '../../shared/access/node-tokens.ts';
import { LEASE_BATCH_API_VERSION, LEASE_BATCH_KIND, LEASE_BATCHES_PATH } from '../../shared/fleet/nodes/lease-batch.ts';
import { leaseChangeOf } from '../../shared/kinds/leases/lease-change.ts';
import { createLease } from '../../shared/kinds/leases/lease-store.ts';
import { LEASE_NAMESPACE } from '../../shared/kinds/leases/resource.ts';
import type { HttpRequest, HttpResponse } from '../../shared/kubernetes/http.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { nodeKeyPair, nodeToken } from '../../test/support/node-key-pair.ts';
import { serveHeartbeat } from './work.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const pair = nodeKeyPair('EdDSA');
const KNOWN = Array.from({ length: 50 }, (_, index) => `n${index}`);
const RELAYS = ['relay', 'other'];
const invented = (from: number, count: number) => Array.from({ length: count }, (_, index) => `x${from + index}`);

let nowMs: number;
let keyReads: number;
let serve: (request: HttpRequest) => Promise<HttpResponse>;

const lease = (name: string) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, namespace: LEASE_NAMESPACE },
  spec: { holderIdentity: name, leaseDurationSeconds: 40 },
});

beforeEach(async () => {
  nowMs = NOW_MS;
  keyReads = 0;
  const items = memoryItemStore();
  for (const name of KNOWN) await createLease(items, { change: leaseChangeOf(lease(name)), nowMs, tie: 0, uid: name });
  const names = new Set([...KNOWN, ...RELAYS]);
  const { keyId, publicKey } = pair;
  const keys = {
    async keysOf(name: string) {
      keyReads += 1;
      return names.has(name) ? [{ keyId, publicKey, addedAtMs: NOW_MS }] : [];
    },
  };
  const note = () => {};
  serve = serveHeartbeat({
    items,
    authenticator: bearerSchemes(
      [nodeTokens({ keys, clusterId: 'here', keysLiveMs: 300_000, acceptsBeatTokens: true })],
      { authenticate: async () => ({ kind: 'anonymous' }) },
    ),
    clock: { nowMs: () => nowMs },
    random: { uuid: () => 'uid', fraction: () => 0 },
    log: { debug: note, info: note, warn: note, error: note },
  });
});

const tokenOf = (nodeName: string): string => nodeToken(pair, { nodeName, nowMs, clusterId: 'here' });

/** Status codes of one batch, and the reads of keys that it cost. */
async function send(names: readonly string[], relay = 'relay') {
  const before = keyReads;
  const beats = names.map((name) => ({
    method: 'PATCH',
    path: `/apis/coordination.k8s.io/v1/namespaces/${LEASE_NAMESPACE}/leases/${name}`,
    token: tokenOf(name),
    body: JSON.stringify({ spec: { leaseDurationSeconds: 40 } }),
  }));
  const { status, body } = await serve({
    method: 'POST',
    path: LEASE_BATCHES_PATH,
    query: new URLSearchParams(),
    headers: { authorization: `Bearer ${tokenOf(relay)}`, 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify({ apiVersion: LEASE_BATCH_API_VERSION, kind: LEASE_BATCH_KIND, items: beats })),
    sourceIp: '192.0.2.1',
  });
  expect(status).toBe(200);
  const { items } = JSON.parse(String(body)) as { readonly items: readonly { readonly status: number }[] };
  const codes: Record<number, number> = {};
  for (const each of items) codes[each.status] = (codes[each.status] ?? 0) + 1;
  return { codes, reads: keyReads - before };
}

describe('invented names in the batches of a relay', () => {
  it('cost at most two reads for each of some forty names, and then none', async () => {
    const first = await send(invented(0, 100));
    // The limit, and the items that are checked at the same time.
    expect(first.codes[401]).toBeGreaterThanOrEqual(32);
    expect(first.codes[401]).toBeLessThanOrEqual(32 + 15);
    expect(first.codes[503]).toBe(100 - first.codes[401]!);
    // One read is of the keys of the relay.
    expect(first.reads).toBeLessThanOrEqual(1 + 2 * (32 + 15));
    expect(await send(invented(100, 100))).toEqual({ codes: { 503: 100 }, reads: 0 });
  });

  it('cost twenty names per minute from then on', async () => {
    for (let batches = 0; batches < 4; batches += 1) await send(invented(100 * batches, 100));
    const before = keyReads;
    for (let seconds = 1; seconds <= 60; seconds += 1) {
      nowMs += 1_000;
      await send(invented(1_000 * seconds, 16));
    }
    // One batch each three seconds is checked until its first refusal; its 16 items begin together.
    expect(keyReads - before).toBeLessThanOrEqual(2 * 16 * 20);
  });

  it('do not affect another relay; machines of this one are answered 503, and send directly', async () => {
    await send(invented(0, 100));
    expect((await send(KNOWN.slice(0, 10))).codes).toEqual({ 503: 10 });
    expect((await send(KNOWN, 'other')).codes).toEqual({ 200: 50 });
    nowMs += 3_000;
    expect((await send(KNOWN.slice(0, 10))).codes).toEqual({ 200: 10 });
  });

  it('are not suspected in the first batch of a new process: each machine costs one read', async () => {
    expect(await send(KNOWN)).toEqual({ codes: { 200: 50 }, reads: 51 });
    expect(await send(KNOWN)).toEqual({ codes: { 200: 50 }, reads: 0 });
  });
});
