import { beforeEach, describe, expect, it } from 'vitest';
import type { Authenticator } from '../../shared/access/authenticator.ts';
import { defined } from '../../shared/defined.ts';
import { podsChanged } from '../../shared/fleet/nodes/health-store.ts';
import type { BeatTimes } from '../../shared/fleet/nodes/node-profile.ts';
import { leaseChangeOf } from '../../shared/kinds/leases/lease-change.ts';
import { LOGS_VERSION_ANNOTATION, PODS_VERSION_ANNOTATION } from '../../shared/kinds/leases/lease-record.ts';
import { createLease } from '../../shared/kinds/leases/lease-store.ts';
import { LEASE_NAMESPACE } from '../../shared/kinds/leases/resource.ts';
import { logsRequested } from '../../shared/kinds/pods/log-request-store.ts';
import type { HttpResponse } from '../../shared/kubernetes/http.ts';
import { STATUS_BYTES_MAX } from '../../shared/kubernetes/status-object.ts';
import { type ConsumedUnits, StoreFault } from '../../shared/store/item-store.ts';
import { healthKey } from '../../shared/store/layout.ts';
import { type MemoryItemStore, memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { envelope } from '../../test/support/protobuf-body.ts';
import { serveHeartbeat } from './work.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const PATH = `/apis/coordination.k8s.io/v1/namespaces/${LEASE_NAMESPACE}/leases/n1`;
const authenticator: Authenticator = {
  authenticate: async (headers) =>
    headers['authorization'] === 'Bearer good'
      ? { kind: 'authenticated', user: { username: 'fleet', groups: ['system:masters'] } }
      : { kind: 'anonymous' },
};

const lease = (more: { metadata?: object; spec?: object } = {}) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'n1', namespace: LEASE_NAMESPACE, ...more.metadata },
  spec: { holderIdentity: 'n1', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:00.123456Z', ...more.spec },
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
  await createLease(items, { change: leaseChangeOf(lease()), nowMs, tie: 0, uid: 'uid-1' });
  consumed = [];
});

const note = (...line: unknown[]): void => void logged.push(line);

function send(
  method: 'PUT' | 'PATCH',
  body: unknown,
  more: { path?: string; query?: string; headers?: Record<string, string>; beatTimes?: BeatTimes } = {},
): Promise<HttpResponse> {
  const heartbeat = serveHeartbeat({
    items,
    authenticator,
    clock: { nowMs: () => nowMs },
    random: { uuid: () => 'uid-2', fraction: () => 0 },
    log: { debug: note, info: note, warn: note, error: note },
    ...defined({ beatTimes: more.beatTimes }),
  });
  return heartbeat({
    method,
    path: more.path ?? PATH,
    query: new URLSearchParams(more.query ?? ''),
    headers: { authorization: 'Bearer good', 'content-type': 'application/json', ...more.headers },
    body: body instanceof Uint8Array ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    sourceIp: '192.0.2.1',
  });
}

const parsed = (response: HttpResponse) => JSON.parse(response.body as string);
const merge = { 'content-type': 'application/merge-patch+json' };
const stored = async () => parsed(await send('PATCH', {}, { headers: merge }));
const writes = () => consumed.filter((units) => units.writeUnits > 0);

describe('a heartbeat by PUT', () => {
  it('is one write unit, no read and no log line, and returns the stored Lease', async () => {
    nowMs += 10_000;
    const version = String(NOW_MS * 1_000);
    const answer = await send(
      'PUT',
      lease({ metadata: { resourceVersion: version }, spec: { renewTime: '2026-01-01T00:00:10.000001Z' } }),
    );
    expect(answer.status).toBe(200);
    expect(parsed(answer)).toMatchObject({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'n1', namespace: LEASE_NAMESPACE, uid: 'uid-1', resourceVersion: String(nowMs * 1_000) },
      spec: { holderIdentity: 'n1', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:10.000001Z' },
    });
    expect(consumed).toEqual([expect.objectContaining({ table: 'health', readUnits: 0, writeUnits: 1 })]);
    expect(logged).toEqual([]);
  });

  it.each([
    ['JSON', 'application/json', Buffer.from('{"apiVersion":"v1","kind":"Pod","metadata":{"resourceVersion":"1"}}')],
    ['protobuf', 'application/vnd.kubernetes.protobuf', envelope('v1', 'Pod')],
  ])('refuses a body of another kind in %s, with the message of upstream', async (_form, contentType, body) => {
    const answer = await send('PUT', body, { headers: { 'content-type': contentType } });
    expect(answer.status).toBe(400);
    expect(parsed(answer).message).toBe(
      'Pod in version "v1" cannot be handled as a Lease: converting (Pod) to (Lease): unknown conversion',
    );
    expect(consumed).toEqual([]);
  });

  it('stores our receipt time, whatever time the machine writes', async () => {
    nowMs += 10_000;
    await send(
      'PUT',
      lease({
        metadata: { resourceVersion: String(NOW_MS * 1_000) },
        spec: { renewTime: '1999-01-01T00:00:00.000000Z' },
      }),
    );
    const row = await items.get(healthKey('n1'), { consistent: true });
    expect(row?.['r']).toBe(nowMs);
  });

  it('returns only what its sender does not know, if it prefers that', async () => {
    await items.write(podsChanged('n1'));
    const { resourceVersion } = (await stored()).metadata;
    const sent = lease({ metadata: { resourceVersion, labels: { site: 'north' } } });
    const answer = await send('PUT', sent, { headers: { prefer: 'return=minimal' } });
    expect(answer.headers['preference-applied']).toBe('return=minimal');
    expect(parsed(answer)).toEqual({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name: 'n1',
        namespace: LEASE_NAMESPACE,
        resourceVersion: expect.any(String),
        annotations: { [PODS_VERSION_ANNOTATION]: expect.any(String) },
      },
    });
    expect((await stored()).metadata.labels).toEqual({ site: 'north' });
  });

  it('returns the version of the node’s pods, and does not store it in the Lease', async () => {
    const before = await stored();
    expect(before.metadata.annotations).toBeUndefined();
    await items.write(podsChanged('n1'));
    consumed = [];
    const answer = parsed(await send('PUT', before));
    expect(answer.metadata.annotations).toEqual({ [PODS_VERSION_ANNOTATION]: '1' });
    expect(consumed).toEqual([expect.objectContaining({ readUnits: 0, writeUnits: 1 })]);
    await items.write(podsChanged('n1'));
    expect(parsed(await send('PUT', answer)).metadata.annotations).toEqual({ [PODS_VERSION_ANNOTATION]: '2' });
    expect((await items.get(healthKey('n1'), { consistent: true }))?.['x']).toBeUndefined();
  });

  it('stores what the machine used for one write unit, and leaves it out of the answer', async () => {
    const before = await stored();
    consumed = [];
    const annotations = { site: 'a', 'nodekeeper.dev/usage': '0.250 1932735283 60 1767225600' };
    const answer = parsed(await send('PUT', { ...before, metadata: { ...before.metadata, annotations } }));
    expect(answer.metadata.annotations).toEqual({ site: 'a' });
    expect(consumed).toEqual([expect.objectContaining({ readUnits: 0, writeUnits: 1 })]);
    expect((await items.get(healthKey('n1'), { consistent: true }))?.['U']).toBe(annotations['nodekeeper.dev/usage']);
  });

  it('returns the version of the log requests of the node, and does not store it in the Lease', async () => {
    const before = await stored();
    await items.write(logsRequested('n1'));
    await items.write(podsChanged('n1'));
    consumed = [];
    const answer = parsed(await send('PUT', before));
    expect(answer.metadata.annotations).toEqual({ [PODS_VERSION_ANNOTATION]: '1', [LOGS_VERSION_ANNOTATION]: '1' });
    expect(consumed).toEqual([expect.objectContaining({ readUnits: 0, writeUnits: 1 })]);
    await items.write(logsRequested('n1'));
    expect(parsed(await send('PUT', answer)).metadata.annotations[LOGS_VERSION_ANNOTATION]).toBe('2');
    expect((await items.get(healthKey('n1'), { consistent: true }))?.['x']).toBeUndefined();
  });

  it('with another version than the stored one is a Conflict, and changes nothing', async () => {
    const before = await stored();
    const answer = await send('PUT', lease({ metadata: { resourceVersion: '1' }, spec: { holderIdentity: 'thief' } }));
    expect(answer.status).toBe(409);
    expect(parsed(answer)).toMatchObject({
      kind: 'Status',
      reason: 'Conflict',
      details: { name: 'n1', kind: 'leases' },
    });
    expect((await stored()).spec).toEqual(before.spec);
  });

  it('succeeds for exactly one of two with the same version', async () => {
    const body = lease({ metadata: { resourceVersion: String(NOW_MS * 1_000) } });
    nowMs += 1;
    const answers = await Promise.all([
      send('PUT', body),
      send('PUT', { ...body, spec: { ...body.spec, leaseTransitions: 3 } }),
    ]);
    expect(answers.map((answer) => answer.status).sort()).toEqual([200, 409]);
  });

  it('for a node without a Lease is 404: the node then registers again', async () => {
    const path = PATH.replace('n1', 'n2');
    const body = lease({ metadata: { name: 'n2', resourceVersion: '5' } });
    const answer = await send('PUT', body, { path });
    expect(answer.status).toBe(404);
    expect(parsed(answer).message).toBe('leases.coordination.k8s.io "n2" not found');
  });

  it('for a name that no node can have is 404, without a read', async () => {
    const name = 'n'.repeat(2_000);
    const body = lease({ metadata: { name, resourceVersion: '5' } });
    const answer = await send('PUT', body, { path: PATH.replace('n1', name) });
    expect(answer.status).toBe(404);
    expect(consumed).toEqual([]);
  });

  it('without a resourceVersion is Invalid and names the field', async () => {
    const answer = await send('PUT', lease());
    expect(answer.status).toBe(422);
    expect(parsed(answer).details.causes[0].field).toBe('metadata.resourceVersion');
  });

  it.each([
    [{ leaseDurationSeconds: 0 }, 'spec.leaseDurationSeconds'],
    [{ leaseTransitions: -1 }, 'spec.leaseTransitions'],
  ])('with spec %j is Invalid and names the field', async (spec, field) => {
    const answer = await send('PUT', lease({ metadata: { resourceVersion: '1' }, spec }));
    expect(answer.status).toBe(422);
    expect(parsed(answer).details.causes.map((cause: { field: string }) => cause.field)).toEqual([field]);
    expect(writes()).toEqual([]);
  });

  it('that is not JSON, not an object, of a wrong type or for another name is 400, and nothing is written', async () => {
    const bodies = [
      '{',
      '[]',
      '"x"',
      JSON.stringify({ ...lease(), spec: { leaseDurationSeconds: 'forty' } }),
      JSON.stringify(lease({ metadata: { name: 'n9', resourceVersion: '1' } })),
    ];
    for (const body of bodies) {
      const answer = await send('PUT', body);
      expect([answer.status, parsed(answer).reason], body).toEqual([400, 'BadRequest']);
    }
    expect(consumed).toEqual([]);
  });

  it('of over 8 KB is 413 before it is parsed, and nothing is written', async () => {
    for (const method of ['PUT', 'PATCH'] as const) {
      const answer = await send(method, '{'.repeat(8_193), { headers: merge });
      expect([answer.status, parsed(answer).reason]).toEqual([413, 'RequestEntityTooLarge']);
      expect(parsed(answer).message).toBe('Request entity too large: limit is 8192 bytes');
    }
    expect(consumed).toEqual([]);
  });

  it('with as many controllers as it can have is refused with a short answer', async () => {
    const owner = { apiVersion: 'v1', kind: 'P', name: 'x', controller: true };
    const ownerReferences = Array.from({ length: 40 }, (_, index) => ({ ...owner, uid: `${index}` }));
    const answer = await send('PATCH', { metadata: { ownerReferences } }, { headers: merge });
    expect([answer.status, parsed(answer).reason]).toEqual([422, 'Invalid']);
    expect(parsed(answer).message).toContain('Only one reference can have Controller set to true');
    expect((answer.body as string).length).toBeLessThanOrEqual(STATUS_BYTES_MAX);
    expect(consumed).toEqual([]);
  });

  it('with more metadata than one write unit holds is Invalid, and nothing is written', async () => {
    const body = lease({ metadata: { resourceVersion: '1', annotations: { a: 'x'.repeat(500) } } });
    expect((await send('PUT', body)).status).toBe(422);
    expect(consumed).toEqual([]);
  });

  it('as a dry run returns the result and writes nothing', async () => {
    const body = lease({ metadata: { resourceVersion: String(NOW_MS * 1_000) }, spec: { leaseTransitions: 7 } });
    const answer = await send('PUT', body, { query: 'dryRun=All' });
    expect(parsed(answer).spec.leaseTransitions).toBe(7);
    expect((await stored()).spec.leaseTransitions).toBeUndefined();
  });

  it('without credentials is 401, and nothing is written', async () => {
    const answer = await send('PUT', lease(), { headers: { authorization: '' } });
    expect([answer.status, parsed(answer).message]).toEqual([401, 'Unauthorized']);
    expect(consumed).toEqual([]);
  });

  it.each(['impersonate-user', 'impersonate-group', 'impersonate-uid'])(
    'as another user is 403, and nothing is written: %s',
    async (header) => {
      const answer = await send('PUT', lease(), { headers: { [header]: 'ada' } });
      expect([answer.status, parsed(answer).message]).toEqual([
        403,
        expect.stringMatching(/^users "ada" is forbidden: User ".+" cannot impersonate resource "users"/),
      ]);
      expect(consumed).toEqual([]);
    },
  );
});

describe('a heartbeat by PATCH', () => {
  it.each(['application/merge-patch+json', 'application/strategic-merge-patch+json'])(
    'of type %s is one write unit and no read',
    async (type) => {
      nowMs += 10_000;
      const patch = { spec: { renewTime: '2026-01-01T00:00:10.000000Z' } };
      const answer = await send('PATCH', patch, { headers: { 'content-type': type } });
      expect(parsed(answer).spec).toMatchObject({ renewTime: '2026-01-01T00:00:10.000000Z', leaseDurationSeconds: 40 });
      expect(consumed).toEqual([expect.objectContaining({ readUnits: 0, writeUnits: 1 })]);
    },
  );

  it('without a version never conflicts, even with a clock behind the stored version', async () => {
    nowMs = NOW_MS - 5_000;
    expect((await send('PATCH', { spec: { leaseTransitions: 1 } }, { headers: merge })).status).toBe(200);
    expect(Number((await stored()).metadata.resourceVersion)).toBeGreaterThan(NOW_MS * 1_000);
  });

  it('of labels keeps the spec, and a JSON patch works too', async () => {
    await send('PATCH', { metadata: { labels: { a: 'b' } } }, { headers: merge });
    const operations = [{ op: 'replace', path: '/spec/leaseDurationSeconds', value: 60 }];
    const answer = await send('PATCH', operations, { headers: { 'content-type': 'application/json-patch+json' } });
    expect(parsed(answer)).toMatchObject({
      metadata: { labels: { a: 'b' } },
      spec: { leaseDurationSeconds: 60, holderIdentity: 'n1' },
    });
  });

  it('that removes a field by null removes it', async () => {
    const answer = await send('PATCH', { spec: { leaseDurationSeconds: null } }, { headers: merge });
    expect(parsed(answer).spec).not.toHaveProperty('leaseDurationSeconds');
  });

  it('with a value of the wrong type or out of range writes nothing', async () => {
    expect((await send('PATCH', { spec: { renewTime: 7 } }, { headers: merge })).status).toBe(422);
    expect((await send('PATCH', { spec: { leaseDurationSeconds: 0 } }, { headers: merge })).status).toBe(422);
    expect(writes()).toEqual([]);
  });

  it('of an unknown type is 415', async () => {
    expect((await send('PATCH', {}, { headers: { 'content-type': 'text/yaml' } })).status).toBe(415);
  });

  it('of an absent Lease is 404 and creates none', async () => {
    const path = PATH.replace('n1', 'n2');
    expect((await send('PATCH', { spec: {} }, { path, headers: merge })).status).toBe(404);
    const operations = [{ op: 'test', path: '/kind', value: 'Lease' }];
    const json = { 'content-type': 'application/json-patch+json' };
    expect((await send('PATCH', operations, { path, headers: json })).status).toBe(404);
  });
});

describe('heartbeats while the store is unreachable', () => {
  it('return 503 each, and log one line per minute with their number', async () => {
    const heartbeat = serveHeartbeat({
      items: {
        write: async () => {
          throw new StoreFault('unreachable', 'the table health cannot be reached', { retryable: true });
        },
      },
      authenticator,
      clock: { nowMs: () => nowMs },
      random: { uuid: () => 'uid-2', fraction: () => 0 },
      log: { debug: note, info: note, warn: note, error: note },
    });
    const beat = async (node: number) => {
      nowMs += 100;
      const { status } = await heartbeat({
        method: 'PATCH',
        path: PATH.replace('n1', `n${node}`),
        query: new URLSearchParams(),
        headers: { authorization: 'Bearer good', ...merge },
        body: Buffer.from(JSON.stringify({ spec: { leaseDurationSeconds: 40 } })),
        sourceIp: '192.0.2.1',
      });
      return status;
    };
    for (let node = 1; node <= 1_201; node += 1) expect(await beat(node)).toBe(503);
    const line = (node: number, repeated: number) => [
      'heartbeat failed',
      { error: expect.objectContaining({ code: 'unreachable' }), path: PATH.replace('n1', `n${node}`), repeated },
    ];
    expect(logged).toEqual([line(1, 0), line(601, 599), line(1_201, 599)]);
  });
});

describe('dryRun', () => {
  it.each(['Never', 'all', 'true', ''])('%j is refused, and nothing is written', async (value) => {
    for (const [method, body, contentType] of [
      ['PUT', lease({ metadata: { resourceVersion: '1' } }), 'application/json'],
      ['PATCH', { spec: { leaseDurationSeconds: 50 } }, 'application/merge-patch+json'],
    ] as const) {
      const query = `dryRun=${value}`;
      const answer = await send(method, body, { query, headers: { 'content-type': contentType } });
      expect(answer.status).toBe(422);
      expect(String(answer.body)).toContain('supported values: \\"All\\"');
    }
    expect(consumed).toEqual([]);
  });
});

describe('the times of a profile', () => {
  const INTERVAL = 'nodekeeper.dev/beat-interval-seconds';
  const DURATION = 'nodekeeper.dev/lease-duration-seconds';
  const beatTimes = { cell: [60, 180], default: [10, 40] } as const;
  const setProfile = (name: string) => items.write({ kind: 'update', key: healthKey('n1'), set: { P: name } });

  it.each([
    ['cell', '60', '180'],
    ['removed', '10', '40'],
    ['constructor', '10', '40'],
  ])('are in the answer to a heartbeat of a node with profile %s, for one write unit and no read', async (...given) => {
    const [profile, interval, duration] = given;
    await setProfile(profile);
    consumed = [];
    const answer = parsed(await send('PATCH', { spec: {} }, { headers: merge, beatTimes }));
    expect(answer.metadata.annotations).toMatchObject({ [INTERVAL]: interval, [DURATION]: duration });
    expect(consumed).toMatchObject([{ readUnits: 0, writeUnits: 1 }]);
  });

  it('are the top-level ones for a node without a profile, and are never stored', async () => {
    const first = parsed(await send('PATCH', { spec: {} }, { headers: merge, beatTimes }));
    expect(first.metadata.annotations).toMatchObject({ [INTERVAL]: '10', [DURATION]: '40' });
    const second = parsed(await send('PUT', first));
    expect(second.metadata.annotations).toBeUndefined();
  });
});
