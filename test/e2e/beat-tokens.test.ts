/** Tokens for heartbeats alone, single and through a relay, and what a relay that holds them cannot do. */
import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  LEASE_BATCHES_PATH,
  type LeaseBatchAnswer,
  type LeaseBatchItem,
} from '../../shared/fleet/nodes/lease-batch.ts';
import { CLUSTER_ID, IdentityCluster, leaseBody, NODE_LEASES } from '../support/identity-cluster.ts';
import { type NodeKeyPair, nodeKeyPair } from '../support/node-key-pair.ts';

const AUDIENCE = `${CLUSTER_ID}#beat`;
const MACHINES = ['edge-1', 'edge-2', 'edge-3'] as const;
const RELAY = 'edge-1';
const pairs = Object.fromEntries(MACHINES.map((name) => [name, nodeKeyPair('ES256')])) as Record<string, NodeKeyPair>;

let cluster: IdentityCluster;
beforeEach(async () => {
  cluster = new IdentityCluster();
  for (const name of MACHINES) {
    expect((await cluster.enrol(await cluster.bootstrapToken(), name, pairs[name]!)).code).toBe(201);
    const token = signed(name);
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name } };
    expect((await cluster.send('POST', '/api/v1/nodes', token, node)).code).toBe(201);
    expect((await cluster.send('POST', NODE_LEASES, token, leaseBody(name))).code).toBe(201);
  }
  cluster.nowMs += 10_000;
});
afterEach(() => {
  expect(cluster.takeFaults()).toEqual([]);
});

const signed = (name: string, claims: object = {}): string => cluster.signed(pairs[name]!, name, { claims });
const beatToken = (name: string): string => signed(name, { aud: AUDIENCE });
const sha256 = (text: string): string => createHash('sha256').update(text).digest('base64url');

/** What an agent sends to its relay: a PUT with the version that it knows, and a token bound to it. */
async function relayedBeat(name: string): Promise<LeaseBatchItem> {
  const { body: stored } = await cluster.send('GET', `${NODE_LEASES}/${name}`, signed(name));
  const body = JSON.stringify({ ...stored, spec: { ...stored.spec, renewTime: '2026-01-01T00:00:10.000000Z' } });
  return { method: 'PUT', path: `${NODE_LEASES}/${name}`, token: bound(name, body), body };
}
const bound = (name: string, body: string): string => {
  const iat = Math.floor(cluster.nowMs / 1_000);
  return signed(name, { aud: AUDIENCE, exp: iat + 30, body_sha256: sha256(body) });
};

async function batch(items: readonly LeaseBatchItem[], token = signed(RELAY)) {
  const body = { apiVersion: 'nodekeeper.dev/v1alpha1', kind: 'LeaseBatch', items };
  return cluster.send('POST', LEASE_BATCHES_PATH, token, body);
}
const statusesOf = async (items: readonly LeaseBatchItem[]) => {
  const { code, body } = await batch(items);
  expect(code).toBe(200);
  return (body as LeaseBatchAnswer).items.map(({ status }) => status);
};
const receivedAtMs = (name: string) =>
  cluster.items.items('health').find(({ sk }) => sk === name)?.['r'] as number | undefined;

describe('a token for heartbeats', () => {
  it('renews the Lease of its own node', async () => {
    expect((await cluster.beat(beatToken('edge-1'), 'edge-1')).code).toBe(200);
    expect(receivedAtMs('edge-1')).toBe(cluster.nowMs);
  });

  it('renews no other Lease', async () => {
    expect((await cluster.beat(beatToken('edge-1'), 'edge-2')).code).toBe(403);
  });

  it.each([
    ['GET', `${NODE_LEASES}/edge-1`, undefined],
    ['GET', '/api/v1/nodes/edge-1', undefined],
    ['PATCH', '/api/v1/nodes/edge-1/status', { status: {} }],
    ['POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {}],
    ['POST', NODE_LEASES, leaseBody('edge-1')],
    ['DELETE', `${NODE_LEASES}/edge-1`, undefined],
  ])('is refused for %s %s', async (method, path, body) => {
    expect((await cluster.send(method, path, beatToken('edge-1'), body)).code).toBe(401);
  });

  it('sends no batch', async () => {
    const { code, body } = await batch([await relayedBeat('edge-2')], beatToken(RELAY));
    expect([code, body.reason]).toEqual([403, 'Forbidden']);
    expect(body.message).toContain('its token is for renewing the lease of its node only');
  });
});

describe('a relayed heartbeat', () => {
  it('is stored, with one write and no read per machine once the keys are known', async () => {
    expect(await statusesOf([await relayedBeat('edge-2'), await relayedBeat('edge-3')])).toEqual([200, 200]);
    cluster.nowMs += 10_000;
    const again = [await relayedBeat('edge-2'), await relayedBeat('edge-3')];
    cluster.consumed();
    expect(await statusesOf(again)).toEqual([200, 200]);
    expect(cluster.consumed()).toEqual([
      expect.objectContaining({ table: 'health', readUnits: 0, writeUnits: 1 }),
      expect.objectContaining({ table: 'health', readUnits: 0, writeUnits: 1 }),
    ]);
    expect(receivedAtMs('edge-3')).toBe(cluster.nowMs);
  });

  it('cannot be replayed', async () => {
    const beat = await relayedBeat('edge-2');
    expect(await statusesOf([beat])).toEqual([200]);
    const storedAtMs = cluster.nowMs;
    cluster.nowMs += 1_000;
    expect(await statusesOf([beat])).toEqual([409]);
    expect(receivedAtMs('edge-2')).toBe(storedAtMs);
  });

  it('cannot be forged from the token of another one', async () => {
    const beat = await relayedBeat('edge-2');
    expect(await statusesOf([beat])).toEqual([200]);
    const storedAtMs = cluster.nowMs;
    cluster.nowMs += 1_000;
    const newest = await relayedBeat('edge-2');
    // The relay knows the newest version from the answer, and has a token of the second before.
    expect(await statusesOf([{ ...newest, token: beat.token }])).toEqual([401]);
    expect(await statusesOf([{ ...beat, method: 'PATCH', body: '{"spec":{}}' }])).toEqual([401]);
    const direct = await cluster.send('PATCH', beat.path, beat.token, { spec: {} });
    expect(direct.code).toBe(401);
    expect(receivedAtMs('edge-2')).toBe(storedAtMs);
  });

  it('cannot be sent under the name of another node', async () => {
    const beat = await relayedBeat('edge-2');
    expect(await statusesOf([{ ...beat, path: `${NODE_LEASES}/edge-3` }])).toEqual([403]);
  });

  it('can be delayed by a minute and a half at most', async () => {
    const [early, late] = [await relayedBeat('edge-2'), await relayedBeat('edge-3')];
    cluster.nowMs += 89_000;
    expect(await statusesOf([early])).toEqual([200]);
    cluster.nowMs += 1_000;
    expect(await statusesOf([late])).toEqual([401]);
  });

  it('with a revoked key is refused, and the others of its batch are stored', async () => {
    const foreign = nodeKeyPair('ES256');
    const beats = [await relayedBeat('edge-2'), await relayedBeat('edge-3')];
    const own = pairs['edge-2']!;
    pairs['edge-2'] = foreign;
    const forged = { ...beats[0]!, token: bound('edge-2', beats[0]!.body) };
    pairs['edge-2'] = own;
    expect(await statusesOf([forged, beats[1]!])).toEqual([401, 200]);
  });
});
