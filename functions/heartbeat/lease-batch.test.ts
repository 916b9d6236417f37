import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Authenticator } from '../../shared/access/authenticator.ts';
import { HEARTBEAT_LIMITS, requestThrottle } from '../../shared/access/request-throttle.ts';
import { defined } from '../../shared/defined.ts';
import { HEARTBEAT_URL_ANNOTATION, HEARTBEAT_URL_HEADER } from '../../shared/fleet/nodes/heartbeat-url.ts';
import {
  LEASE_BATCH_API_VERSION,
  LEASE_BATCH_BYTES_MAX,
  LEASE_BATCH_KIND,
  LEASE_BATCHES_PATH,
  type LeaseBatchAnswer,
} from '../../shared/fleet/nodes/lease-batch.ts';
import { leaseChangeOf } from '../../shared/kinds/leases/lease-change.ts';
import { createLease } from '../../shared/kinds/leases/lease-store.ts';
import { LEASE_NAMESPACE } from '../../shared/kinds/leases/resource.ts';
import type { HttpResponse } from '../../shared/kubernetes/http.ts';
import { type ConsumedUnits, type ItemUpdater, StoreFault } from '../../shared/store/item-store.ts';
import { healthKey } from '../../shared/store/layout.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { type RenewLeaseDependencies, serveHeartbeat } from './work.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const NODES = ['n1', 'n2', 'n3'];
const leasePath = (name: string) => `/apis/coordination.k8s.io/v1/namespaces/${LEASE_NAMESPACE}/leases/${name}`;

/** The token of a node is its name. */
const authenticator: Authenticator = {
  authenticate: async ({ authorization = '' }) => {
    const name = authorization.replace('Bearer ', '');
    return name.startsWith('n') || name === 'relay'
      ? {
          kind: 'authenticated',
          user: { username: `system:node:${name}`, groups: ['system:nodes', 'system:authenticated'] },
        }
      : { kind: 'refused', reason: 'unknown' };
  },
};

const lease = (name: string, resourceVersion?: string) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name, namespace: LEASE_NAMESPACE, ...defined({ resourceVersion }) },
  spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.123456Z' },
});
const version = String(NOW_MS * 1_000);
const beat = (name: string, more: object = {}) => ({
  method: 'PUT',
  path: leasePath(name),
  token: name,
  body: JSON.stringify(lease(name, version)),
  ...more,
});

let items: MemoryItemStore;
let consumed: ConsumedUnits[];
let logged: unknown[];
let nowMs: number;

beforeEach(async () => {
  consumed = [];
  logged = [];
  nowMs = NOW_MS;
  items = memoryItemStore({ onConsumed: (units) => consumed.push(units) });
  for (const name of NODES) {
    await createLease(items, { change: leaseChangeOf(lease(name)), nowMs, tie: 0, uid: `uid-${name}` });
  }
  consumed = [];
  nowMs += 10_000;
});

const note = (...line: unknown[]): void => void logged.push(line);

type Limits = Pick<RenewLeaseDependencies, 'throttle' | 'batchThrottle' | 'startTimeLimit'>;

async function post(
  body: unknown,
  more: {
    token?: string;
    headers?: Record<string, string>;
    items?: ItemUpdater;
    authenticator?: Authenticator;
  } & Limits = {},
): Promise<HttpResponse> {
  const serve = serveHeartbeat({
    items: more.items ?? items,
    authenticator: more.authenticator ?? authenticator,
    ...defined({ throttle: more.throttle, batchThrottle: more.batchThrottle, startTimeLimit: more.startTimeLimit }),
    clock: { nowMs: () => nowMs },
    random: { uuid: () => 'uid', fraction: () => 0 },
    log: { debug: note, info: note, warn: note, error: note },
  });
  return serve({
    method: 'POST',
    path: LEASE_BATCHES_PATH,
    query: new URLSearchParams(),
    headers: { authorization: `Bearer ${more.token ?? 'relay'}`, 'content-type': 'application/json', ...more.headers },
    body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    sourceIp: '192.0.2.1',
  });
}

const batch = (beats: unknown) => ({ apiVersion: LEASE_BATCH_API_VERSION, kind: LEASE_BATCH_KIND, items: beats });
const parsed = (response: HttpResponse) => JSON.parse(response.body as string);
const answersOf = async (beats: unknown, more: Parameters<typeof post>[1] = {}) => {
  const response = await post(batch(beats), more);
  expect(response.status).toBe(200);
  return (parsed(response) as LeaseBatchAnswer).items;
};
const statusesOf = async (beats: unknown, more: Parameters<typeof post>[1] = {}) =>
  (await answersOf(beats, more)).map(({ status }) => status);
const receivedAtMs = async (name: string) => (await items.get(healthKey(name), { consistent: true }))?.['r'];

describe('a batch of heartbeats', () => {
  it('renews each Lease for one write unit, without a read or a log line, and answers each', async () => {
    const answers = await answersOf(NODES.map((name) => beat(name)));
    expect(answers).toEqual(
      NODES.map(() => ({
        status: 200,
        body: { metadata: { resourceVersion: String(nowMs * 1_000) } },
      })),
    );
    expect(consumed).toEqual(NODES.map(() => expect.objectContaining({ readUnits: 0, writeUnits: 1 })));
    expect(logged).toEqual([]);
    for (const name of NODES) expect(await receivedAtMs(name)).toBe(nowMs);
  });

  it('accepts merge patches', async () => {
    expect(await statusesOf([beat('n1', { method: 'PATCH', body: '{"spec":{}}' })])).toEqual([200]);
  });

  it.each([
    ['a wrong token', { token: 'forged' }, 401],
    ['the token of another node', { token: 'n3' }, 403],
    ['a stale version', { body: JSON.stringify(lease('n2', '7')) }, 409],
    [
      'a Lease that does not exist',
      { path: leasePath('n9'), token: 'n9', body: JSON.stringify(lease('n9', '7')) },
      404,
    ],
    ['malformed JSON', { body: '{"spec":' }, 400],
    ['a body nested too deeply', { body: '['.repeat(5_000) }, 400],
    ['a body of over 8 KB', { body: '{'.repeat(8_193) }, 413],
    ['no body', { body: undefined }, 400],
    ['another method', { method: 'DELETE' }, 400],
    ['another resource', { path: '/api/v1/nodes/n2' }, 404],
    ['a malformed path', { path: '/apis/%zz' }, 400],
    ['another batch', { method: 'POST', path: LEASE_BATCHES_PATH, body: JSON.stringify(batch([beat('n2')])) }, 400],
  ])('answers %s by itself, and stores the others', async (_, wrong, status) => {
    const answers = await answersOf([beat('n1'), beat('n2', wrong), beat('n3')]);
    expect(answers.map((each) => each.status)).toEqual([200, status, 200]);
    expect(answers[1]?.body).toMatchObject({ kind: 'Status', code: status });
    expect([await receivedAtMs('n1'), await receivedAtMs('n2'), await receivedAtMs('n3')]).toEqual([
      nowMs,
      NOW_MS,
      nowMs,
    ]);
  });

  it.each([[null], [7], ['text'], [[]]])('answers the item %j by itself', async (wrong) => {
    expect(await statusesOf([wrong, beat('n1')])).toEqual([400, 200]);
  });

  it('answers 400 with the field of an item, and never repeats its token', async () => {
    const [answer] = await answersOf([beat('n1', { method: 'GET', token: 's3cret' })]);
    expect(answer?.body).toMatchObject({ message: 'items[0].method: "GET": expected PUT or PATCH' });
    expect(JSON.stringify(answer)).not.toContain('s3cret');
  });

  it('refuses a batch that was sent again', async () => {
    const beats = NODES.map((name) => beat(name));
    await answersOf(beats);
    nowMs += 1_000;
    expect(await statusesOf(beats)).toEqual([409, 409, 409]);
    expect(await receivedAtMs('n1')).toBe(nowMs - 1_000);
  });

  it('names the URL of the function once, and in no item', async () => {
    const headers = { [HEARTBEAT_URL_HEADER]: 'https://u.example/' };
    const answer = parsed(await post(batch([beat('n1')]), { headers })) as LeaseBatchAnswer;
    expect(answer.metadata?.annotations).toEqual({ [HEARTBEAT_URL_ANNOTATION]: 'https://u.example' });
    expect(JSON.stringify(answer.items)).not.toContain('u.example');
  });

  it('answers 503 to the items that a fault of the table concerns, and logs it once', async () => {
    const failing: ItemUpdater = {
      write: (write, wanted) =>
        JSON.stringify(write).includes('"n2"')
          ? Promise.reject(new StoreFault('throttled', 'no capacity', { retryable: true }))
          : items.write(write, wanted),
    };
    const answers = await answersOf([beat('n1'), beat('n2'), beat('n2'), beat('n3')], { items: failing });
    expect(answers.map(({ status }) => status)).toEqual([200, 503, 503, 200]);
    expect(answers[1]?.retryAfterSeconds).toBe(1);
    expect(logged).toHaveLength(1);
  });

  it('answers 503 to items that would start too late, without storing them', async () => {
    // Each update lasts a second, and 16 run at a time.
    let running = 0;
    let atOnceMax = 0;
    const slow: ItemUpdater = {
      async write(write, wanted) {
        running += 1;
        atOnceMax = Math.max(atOnceMax, running);
        await Promise.resolve();
        if (running >= 16) nowMs += 1_000;
        running -= 1;
        return items.write(write, wanted);
      },
    };
    const patches = Array.from({ length: 100 }, () => beat('n1', { method: 'PATCH', body: '{"spec":{}}' }));
    const statuses = await statusesOf(patches, { items: slow });
    expect(new Set(statuses)).toEqual(new Set([200, 503]));
    expect(statuses.lastIndexOf(200)).toBeLessThan(64);
    expect(atOnceMax).toBe(16);
  });

  it('answers the others while one item waits for the table', async () => {
    const limits: number[] = [];
    const hanging: ItemUpdater = {
      write: (write, wanted) =>
        JSON.stringify(write).includes('"n2"') ? new Promise(() => {}) : items.write(write, wanted),
    };
    const startTimeLimit = (milliseconds: number) => {
      limits.push(milliseconds);
      return { reached: new Promise<void>((reached) => void setImmediate(reached)), cancel: () => {} };
    };
    const statuses = await statusesOf([beat('n1'), beat('n2'), beat('n3')], { items: hanging, startTimeLimit });
    expect(statuses).toEqual([200, 503, 200]);
    expect(limits).toEqual([2_500]);
  });

  it('cancels the time limit of a batch that is complete', async () => {
    const cancel = vi.fn();
    const startTimeLimit = () => ({ reached: new Promise<void>(() => {}), cancel });
    expect(await statusesOf([beat('n1')], { startTimeLimit })).toEqual([200]);
    expect(cancel).toHaveBeenCalledOnce();
  });

  it('stores nothing if the check of its sender lasts longer than the relay waits', async () => {
    const slow: Authenticator = {
      authenticate(headers, atMs) {
        nowMs += 3_000;
        return authenticator.authenticate(headers, atMs);
      },
    };
    expect(await statusesOf([beat('n1'), beat('n2')], { authenticator: slow })).toEqual([503, 503]);
    expect(await receivedAtMs('n1')).toBe(NOW_MS);
  });

  it('shortens the answer to a Lease with hundreds of faults; the others receive theirs', async () => {
    const annotations = Object.fromEntries(Array.from({ length: 700 }, (_, index) => [`!${index}`, '']));
    const { metadata, ...rest } = lease('n2', version);
    const faulty = { ...rest, metadata: { ...metadata, annotations } };
    const response = await post(batch([beat('n2', { body: JSON.stringify(faulty) }), beat('n1')]));
    expect((response.body as string).length).toBeLessThan(8_192);
    const [refused, stored] = (parsed(response) as LeaseBatchAnswer).items;
    expect(refused).toMatchObject({ status: 422, body: { kind: 'Status', reason: 'Invalid', code: 422 } });
    expect(JSON.stringify(refused?.body)).toContain('metadata.annotations: Invalid value');
    expect(stored?.status).toBe(200);
  });

  it('does not use up the requests of the own heartbeats of its relay', async () => {
    const throttle = requestThrottle({
      ...HEARTBEAT_LIMITS,
      node: { ...HEARTBEAT_LIMITS.node, rate: { ratePerSecond: 1, burst: 2 } },
    });
    const batchThrottle = requestThrottle({
      ...HEARTBEAT_LIMITS,
      node: { ...HEARTBEAT_LIMITS.node, rate: { ratePerSecond: 1, burst: 2 } },
    });
    const token = 'n3';
    const sent = () => post(batch([beat('n1', { token: 'forged' })]), { token, throttle, batchThrottle });
    expect([(await sent()).status, (await sent()).status, (await sent()).status]).toEqual([200, 200, 429]);
    expect(await statusesOf([beat('n3')], { throttle })).toEqual([200]);
  });
});

describe('a request that is no batch', () => {
  it.each([
    ['without a token', batch([beat('n1')]), { token: '' }, 401],
    ['of another kind', { ...batch([beat('n1')]), kind: 'Lease' }, {}, 400],
    ['of another version', { ...batch([beat('n1')]), apiVersion: 'v1' }, {}, 400],
    ['that is no JSON', '{', {}, 400],
    ['that is a list', [], {}, 400],
    ['without items', batch(undefined), {}, 422],
    ['with an empty list', batch([]), {}, 422],
    ['with 101 items', batch(Array.from({ length: 101 }, () => beat('n1'))), {}, 413],
    ['of more than 256 KB', batch([beat('n1', { body: ' '.repeat(LEASE_BATCH_BYTES_MAX) })]), {}, 413],
    ['in YAML', batch([beat('n1')]), { headers: { 'content-type': 'application/yaml' } }, 415],
  ])('%s is refused as a whole', async (_, body, more, status) => {
    const response = await post(body, more);
    expect([response.status, parsed(response).kind]).toEqual([status, 'Status']);
    expect(consumed.filter(({ writeUnits }) => writeUnits > 0)).toEqual([]);
  });

  it('with 100 items is accepted', async () => {
    const patches = Array.from({ length: 100 }, () => beat('n1', { method: 'PATCH', body: '{"spec":{}}' }));
    expect((await statusesOf(patches)).every((status) => status === 200)).toBe(true);
  });
});
