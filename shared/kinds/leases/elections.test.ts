/** Leases of leader elections, as client-go's leaderelection renews them. */
import { describe, expect, it } from 'vitest';
import { apiInMemory } from '../../../test/support/api-in-memory.ts';
import type { ConsumedUnits } from '../../store/item-store.ts';
import { memoryItemStore } from '../../store/memory/item-store.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
const LEASE = `${LEASES}/operator`;
const CLIENT_GO = { 'user-agent': 'manager/v0.31.0 (linux/amd64)' };

const lease = (holderIdentity: string, renewed: number) => ({
  metadata: { name: 'operator' },
  spec: {
    holderIdentity,
    leaseDurationSeconds: 15,
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: new Date(Date.UTC(2026, 0, 1) + renewed * 1_000).toISOString().replace('Z', '000Z'),
    leaseTransitions: 0,
  },
});

function election() {
  const consumed = { write: 0, read: 0 };
  const count = (units: ConsumedUnits) => {
    consumed.write += units.writeUnits;
    consumed.read += units.readUnits;
  };
  const items = memoryItemStore({ changesOf: ['objects'], onConsumed: count });
  const api = apiInMemory({ items });
  const send = (method: string, path: string, body?: unknown) =>
    api.send(method, path, { headers: CLIENT_GO, ...(body === undefined ? {} : { body }) });
  return {
    api,
    items,
    consumed,
    send,
    /** GET and PUT. */
    async renew(seconds: number, holder = 'one') {
      const { body } = await send('GET', LEASE);
      return send('PUT', LEASE, { ...body, spec: { ...body.spec, ...lease(holder, seconds).spec } });
    },
  };
}

describe('the Lease of an election', () => {
  it('is renewed at one write unit, in the rounds of client-go', async () => {
    const { send, consumed, renew } = election();
    expect((await send('POST', LEASES, lease('one', 0))).code).toBe(201);
    await renew(2);
    consumed.write = 0;
    consumed.read = 0;
    for (let round = 2; round < 12; round += 1) expect((await renew(2 * round)).code).toBe(200);
    expect(consumed.write / 10).toBe(1);
    expect(consumed.read / 10).toBeLessThanOrEqual(2);
  });

  it('has one holder of two that write on one version', async () => {
    const { send } = election();
    await send('POST', LEASES, lease('one', 0));
    const { body } = await send('GET', LEASE);
    const take = (holder: string) => send('PUT', LEASE, { ...body, spec: lease(holder, 20).spec });
    const codes = (await Promise.all([take('two'), take('three')])).map(({ code }) => code);
    expect(codes.sort()).toEqual([200, 409]);
    expect((await send('PUT', LEASE, { ...body, spec: lease('one', 21).spec })).code).toBe(409);
  });

  it('has a version that rises, also when a commit with an earlier clock follows', async () => {
    const { api, send, renew } = election();
    await send('POST', LEASES, lease('one', 0));
    api.advance(60_000);
    const renewed = Number((await renew(60)).body.metadata.resourceVersion);
    api.advance(-30_000);
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'u' };
    const body = { metadata: { ownerReferences: [owner] } };
    const contentType = 'application/merge-patch+json';
    const committed = await api.send('PATCH', LEASE, { body, contentType });
    expect(Number(committed.body.metadata.resourceVersion)).toBeGreaterThan(renewed);
    expect((await send('GET', LEASE)).body.metadata.ownerReferences).toEqual([owner]);
  });

  it('is no work for the controllers, and can be listed and deleted', async () => {
    const { items, send, renew } = election();
    const owned = { ...lease('one', 0), metadata: { name: 'operator', ownerReferences: [] } };
    await send('POST', LEASES, owned);
    await renew(2);
    const [last] = items.changes('objects', 0).slice(-1);
    expect(last?.newImage).not.toHaveProperty('w');
    expect((await send('GET', LEASES)).body.items).toMatchObject([{ spec: lease('one', 2).spec }]);
    expect((await send('DELETE', LEASE)).code).toBe(200);
    expect((await send('GET', LEASE)).code).toBe(404);
    expect((await send('POST', LEASES, lease('two', 3))).code).toBe(201);
  });

  it('is seen by watches when it is renewed', async () => {
    const { send, renew } = election();
    await send('POST', LEASES, lease('one', 0));
    const { body } = await send('GET', LEASES);
    await renew(2);
    const { text } = await send(
      'GET',
      `${LEASES}?watch=1&timeoutSeconds=1&resourceVersion=${body.metadata.resourceVersion}`,
    );
    const events = text
      .trim()
      .split('\n')
      .map((line: string) => JSON.parse(line));
    expect(events).toMatchObject([{ type: 'MODIFIED', object: { spec: lease('one', 2).spec } }]);
  });
});
