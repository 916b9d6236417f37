import { beforeEach, describe, expect, it } from 'vitest';
import type { Authenticator } from '../../shared/access/authenticator.ts';
import { LEASE_BATCH_API_VERSION, LEASE_BATCH_KIND, LEASE_BATCHES_PATH } from '../../shared/fleet/nodes/lease-batch.ts';
import { SILENT_MACHINES_ANNOTATION } from '../../shared/fleet/silent-machines.ts';
import { leaseChangeOf } from '../../shared/kinds/leases/lease-change.ts';
import { createLease } from '../../shared/kinds/leases/lease-store.ts';
import { LEASE_NAMESPACE } from '../../shared/kinds/leases/resource.ts';
import { type ConsumedUnits, type ItemUpdater, StoreFault } from '../../shared/store/item-store.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { serveHeartbeat } from './work.ts';

const START_MS = Date.UTC(2026, 0, 1);
const PATH = `/apis/coordination.k8s.io/v1/namespaces/${LEASE_NAMESPACE}/leases/hub`;
const NODE_GROUPS = ['system:nodes', 'system:authenticated'];

/** The token is the name of the user. */
const authenticator: Authenticator = {
  authenticate: async ({ authorization = '' }) => {
    const username = authorization.replace('Bearer ', '');
    return {
      kind: 'authenticated',
      user: { username, groups: username === 'admin' ? ['system:masters'] : NODE_GROUPS },
    };
  },
};

let items: MemoryItemStore;
let consumed: ConsumedUnits[];
let logged: unknown[];
let nowMs: number;
/** Of the stored Lease. */
let version: number;

beforeEach(async () => {
  logged = [];
  consumed = [];
  version = START_MS * 1_000;
  nowMs = START_MS;
  items = memoryItemStore({ onConsumed: (units) => consumed.push(units) });
  const change = leaseChangeOf({ ...leaseOf(undefined), metadata: { name: 'hub', namespace: LEASE_NAMESPACE } });
  await createLease(items, { change, nowMs, tie: 0, uid: 'uid-1' });
  consumed = [];
});

const leaseOf = (report: string | undefined) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    name: 'hub',
    namespace: LEASE_NAMESPACE,
    resourceVersion: String(version),
    annotations: { site: 'a', ...(report === undefined ? {} : { [SILENT_MACHINES_ANNOTATION]: report }) },
  },
  spec: { holderIdentity: 'hub', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.000000Z' },
});

const note = (...line: unknown[]): void => void logged.push(line);
const serving = (store: ItemUpdater) =>
  serveHeartbeat({
    items: store,
    authenticator,
    clock: { nowMs: () => nowMs },
    random: { uuid: () => 'uid-2', fraction: () => 0 },
    log: { debug: note, info: note, warn: note, error: note },
  });

async function beat(report: string | undefined, more: { afterMs?: number; user?: string; store?: ItemUpdater } = {}) {
  nowMs += more.afterMs ?? 10_000;
  const answer = await serving(more.store ?? items)({
    method: 'PUT',
    path: PATH,
    query: new URLSearchParams(),
    headers: { authorization: `Bearer ${more.user ?? 'system:node:hub'}`, 'content-type': 'application/json' },
    body: Buffer.from(JSON.stringify(leaseOf(report))),
    sourceIp: '192.0.2.1',
  });
  const lease = JSON.parse(String(answer.body));
  version = Number(lease.metadata.resourceVersion);
  return { status: answer.status, annotations: lease.metadata.annotations };
}

async function row() {
  const item = await items.get({ table: 'control', pk: 'witnesses', sk: 'hub' }, { consistent: true });
  if (item === undefined) return undefined;
  const { pk: _pk, sk: _sk, ttl: _ttl, ...rest } = item;
  return Object.fromEntries(
    Object.entries(rest).map(([name, value]) => [name, typeof value === 'number' ? (value - START_MS) / 1_000 : value]),
  );
}

describe('a heartbeat with a report of silent machines', () => {
  it('stores it with our receipt time, for one write more, and not with the Lease', async () => {
    expect(await beat('hub node-a,node-b')).toEqual({ status: 200, annotations: { site: 'a' } });
    expect(consumed.map(({ table, readUnits, writeUnits }) => [table, readUnits, writeUnits])).toEqual([
      ['health', 0, 1],
      ['control', 0, 1],
    ]);
    expect(await row()).toEqual({ role: 'hub', names: 'node-a,node-b', at: 10, 's#node-a': 10, 's#node-b': 10 });
  });

  it('keeps since when a machine is reported while reports follow each other', async () => {
    await beat('hub node-a');
    await beat('hub node-a,node-b');
    expect(await row()).toEqual({ role: 'hub', names: 'node-a,node-b', at: 20, 's#node-a': 10, 's#node-b': 20 });
    await beat('hub node-a,node-b', { afterMs: 31_000 });
    expect(await row()).toMatchObject({ at: 51, 's#node-a': 51, 's#node-b': 51 });
  });

  it('withdraws what it does not repeat, and remembers that for 30 s', async () => {
    await beat('hub node-a,node-b');
    await beat('hub node-b');
    expect(await row()).toEqual({ role: 'hub', names: 'node-b', at: 20, 's#node-b': 10, 'w#node-a': 20 });
    await beat('hub ');
    expect(await row()).toEqual({ role: 'hub', names: '', at: 30, 'w#node-a': 20, 'w#node-b': 30 });
    await beat('hub node-a', { afterMs: 21_000 });
    expect(await row()).toEqual({ role: 'hub', names: 'node-a', at: 51, 's#node-a': 51, 'w#node-b': 30 });
  });

  it('of a machine that lies does not grow the row without a bound', async () => {
    for (let round = 0; round < 6; round += 1) {
      const names = Array.from({ length: 32 }, (_, index) => `n-${round}-${String(index).padStart(26, '0')}`);
      await beat(`hub ${names.join(',')}`, { afterMs: 1_000 });
    }
    expect(Object.keys((await row()) ?? {}).filter((name) => name.startsWith('w#'))).toHaveLength(33);
  });

  it.each(['hub', 'relay node-a', ''])('ignores %j', async (report) => {
    expect(await beat(report)).toEqual({ status: 200, annotations: { site: 'a' } });
    expect(await row()).toBeUndefined();
  });

  it('is stored only for the machine itself', async () => {
    expect((await beat('hub node-a', { user: 'admin' })).status).toBe(200);
    expect(await row()).toBeUndefined();
    expect((await beat('hub node-a', { user: 'system:node:thief' })).status).toBe(403);
    expect(await row()).toBeUndefined();
  });

  it('is not stored when the heartbeat is refused', async () => {
    version -= 1;
    expect((await beat('hub node-a')).status).toBe(409);
    expect(await row()).toBeUndefined();
  });

  it('is answered as any other when the report cannot be stored, and logs that once', async () => {
    const store: ItemUpdater = {
      write: (write, wanted) =>
        write.key.table === 'control'
          ? Promise.reject(new StoreFault('throttled', 'no capacity', { retryable: true }))
          : items.write(write, wanted),
    };
    expect((await beat('hub node-a', { store })).status).toBe(200);
    expect(logged).toHaveLength(1);
  });

  it('is not stored when its heartbeat used most of the time of the function', async () => {
    const store: ItemUpdater = {
      async write(write, wanted) {
        const outcome = await items.write(write, wanted);
        nowMs += 4_001;
        return outcome;
      },
    };
    expect((await beat('hub node-a', { store })).status).toBe(200);
    expect(await row()).toBeUndefined();
  });

  it('is stored from a batch', async () => {
    nowMs += 10_000;
    const body = {
      apiVersion: LEASE_BATCH_API_VERSION,
      kind: LEASE_BATCH_KIND,
      items: [{ method: 'PUT', path: PATH, token: 'system:node:hub', body: JSON.stringify(leaseOf('hub node-a')) }],
    };
    const answer = await serving(items)({
      method: 'POST',
      path: LEASE_BATCHES_PATH,
      query: new URLSearchParams(),
      headers: { authorization: 'Bearer system:node:relay', 'content-type': 'application/json' },
      body: Buffer.from(JSON.stringify(body)),
      sourceIp: '192.0.2.1',
    });
    expect(answer.status).toBe(200);
    expect(await row()).toMatchObject({ names: 'node-a', 's#node-a': 10 });
  });
});

it('a heartbeat without a report writes nothing else, and keeps the report before', async () => {
  await beat('hub node-a');
  const before = await row();
  consumed = [];
  await beat(undefined);
  expect(consumed).toEqual([expect.objectContaining({ table: 'health', readUnits: 0, writeUnits: 1 })]);
  expect(await row()).toEqual(before);
});
