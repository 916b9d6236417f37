import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { answered, refused, scriptedApi, silentLog, timedOut, virtualTime } from '../../test/support/agent-api.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { type ClockReading, clockReading } from '../rules/offline-stop.ts';
import { LeaseClient } from './lease-client.ts';

const node = { kind: 'Node', metadata: { name: 'n1', uid: 'u1' } };
const lease = (more: object = {}): KubeObject => ({
  kind: 'Lease',
  metadata: {
    name: 'n1',
    resourceVersion: '1',
    ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1' }],
    ...more,
  },
  spec: {},
});
const unowned = lease({ ownerReferences: [] });
const relayed = (answer: KubeAnswer): KubeAnswer =>
  answer.kind === 'answered' ? { ...answer, isRelayed: true } : answer;

/** `answers` by method and kind, such as `GET node`, each used once. */
function world(answers: Readonly<Record<string, readonly KubeAnswer[]>>, registered?: boolean) {
  const stopper = new AbortController();
  const left = new Map(Object.entries(answers).map(([request, each]) => [request, [...each]]));
  const time = virtualTime(1_700_000_000_000);
  const sent: string[] = [];
  const api = scriptedApi(({ method, path }) => {
    const request = `${method} ${path.includes('leases') ? 'lease' : 'node'}`;
    sent.push(request);
    return left.get(request)?.shift();
  });
  const accepted: [string | undefined, boolean][] = [];
  const sentAt: ClockReading[] = [];
  const warnings: string[] = [];
  const errors: string[] = [];
  let registrations = 0;
  const client = new LeaseClient({
    nodeName: 'n1',
    durationSeconds: () => 40,
    intervalMs: () => 10_000,
    api,
    time,
    fraction: () => 0.5,
    log: { ...silentLog, warn: (message) => warnings.push(message), error: (message) => errors.push(message) },
    stop: stopper.signal,
    timeoutMs: 7_000,
    async registerAgain() {
      registrations += 1;
      return registered ?? false;
    },
    onAccepted(given, isRelayed, at) {
      accepted.push([given.metadata.resourceVersion, isRelayed]);
      sentAt.push(at);
    },
  });
  return { client, api, time, sent, accepted, sentAt, warnings, errors, stopper, registrations: () => registrations };
}

describe('to ensure the Lease', () => {
  it('returns the one that exists, which is no heartbeat', async () => {
    const { client, accepted, time } = world({ 'GET lease': [answered(200, lease())] });
    expect(await client.ensure()).toEqual({ kind: 'found', lease: lease() });
    expect([accepted, time.waits]).toEqual([[], []]);
  });

  it('creates one for the Node, which is a heartbeat', async () => {
    const { client, accepted, api, sent } = world({
      'GET lease': [refused(404, 'NotFound')],
      'GET node': [answered(200, node)],
      'POST lease': [answered(201, lease({ resourceVersion: '7' }))],
    });
    expect(await client.ensure()).toMatchObject({ kind: 'created' });
    expect(accepted).toEqual([['7', false]]);
    expect(sent).toEqual(['GET lease', 'GET node', 'POST lease']);
    expect(api.requests.map(({ timeoutMs }) => timeoutMs)).toEqual([7_000, 7_000, 7_000]);
    expect(api.requests[2]?.body).toMatchObject({
      metadata: { name: 'n1', ownerReferences: [{ name: 'n1', uid: 'u1' }] },
      spec: { holderIdentity: 'n1', leaseDurationSeconds: 40, renewTime: '2023-11-14T22:13:20.000000Z' },
    });
  });

  it('waits longer after each failure, and at least as long as the server asks', async () => {
    const busy: KubeAnswer = { kind: 'answered', status: 503, body: {}, retryAfterMs: 2_000 };
    const { client, time, warnings } = world({
      'GET lease': [timedOut, timedOut, busy, answered(200, 'a page'), answered(200, lease())],
    });
    expect(await client.ensure()).toMatchObject({ kind: 'found' });
    expect(time.waits).toEqual([200, 400, 2_500, 1_600]);
    expect(warnings).toHaveLength(4);
  });

  it('tries again when a creation is refused', async () => {
    const { client } = world({
      'GET lease': [refused(404, 'NotFound'), answered(200, lease())],
      'GET node': [answered(200, node)],
      'POST lease': [refused(409, 'AlreadyExists')],
    });
    expect(await client.ensure()).toMatchObject({ kind: 'found' });
  });

  it('sends nothing after a stop', async () => {
    const { client, stopper, sent } = world({});
    stopper.abort();
    expect(await client.ensure()).toBeUndefined();
    expect(await client.renew(lease())).toBe(false);
    expect(sent).toEqual([]);
  });
});

describe('the owner of the Lease', () => {
  const withoutLease = { 'GET lease': [refused(404, 'NotFound')] };

  it.each([
    {
      of: 'cannot be read',
      answer: timedOut,
      registrations: 0,
      warnings: ['the Node that owns the Lease cannot be read'],
    },
    {
      of: 'is a page',
      answer: answered(200, 'x'),
      registrations: 0,
      warnings: ['the Node that owns the Lease cannot be read'],
    },
    { of: 'never existed', answer: refused(404, 'NotFound'), registrations: 1, warnings: [] },
  ])('is missing for this round when it $of', async ({ answer, registrations, warnings }) => {
    const given = world({ ...withoutLease, 'GET node': [answer] });
    expect(await given.client.ensure()).toBeUndefined();
    expect(given.registrations()).toBe(registrations);
    expect(given.warnings).toEqual(warnings);
    expect(given.sent).toEqual(['GET lease', 'GET node']);
  });

  it('is registered again, and then read', async () => {
    const answers = {
      ...withoutLease,
      'GET node': [refused(404, 'NotFound'), answered(200, node)],
      'POST lease': [answered(201, lease())],
    };
    const given = world(answers, true);
    expect(await given.client.ensure()).toMatchObject({ kind: 'created' });
    expect(given.sent).toEqual(['GET lease', 'GET node', 'GET node', 'POST lease']);
  });

  it('is missed aloud when it was there before', async () => {
    const notFound = refused(404, 'NotFound');
    const { client, warnings } = world({
      'GET lease': [notFound, notFound],
      'GET node': [answered(200, node), notFound],
      'POST lease': [answered(201, lease())],
    });
    await client.ensure();
    expect(warnings).toEqual([]);
    expect(await client.ensure()).toBeUndefined();
    expect(warnings).toEqual(['the Node no longer exists']);
  });
});

describe('a renewal', () => {
  it('asks for a short answer, and says when the last one was stored', async () => {
    const ok = answered(200, lease({ resourceVersion: '2' }));
    const { client, api, accepted, time } = world({ 'PUT lease': [ok, relayed(ok), ok] });
    await time.sleep(60_000);
    for (let beat = 0; beat < 3; beat += 1) {
      expect(await client.renew(lease())).toBe(true);
      await time.sleep(10_000);
    }
    expect(accepted).toEqual([
      ['2', false],
      ['2', true],
      ['2', false],
    ]);
    const heartbeats = api.requests.map(({ heartbeat }) => heartbeat);
    expect(heartbeats[0]).toEqual({ intervalMs: 10_000, storedAtMs: undefined });
    expect(heartbeats[1]).toEqual({ intervalMs: 10_000, storedAtMs: 60_000 });
    expect(api.requests.every(({ prefersMinimal, timeoutMs }) => prefersMinimal === true && timeoutMs === 7_000)).toBe(
      true,
    );
  });

  it('and a creation report the time before they were sent, of the attempt that was answered', async () => {
    const ok = answered(200, lease());
    const { client, api, time, sentAt } = world({
      'PUT lease': [timedOut, ok],
      'GET lease': [refused(404, 'NotFound')],
      'GET node': [answered(200, node)],
      'POST lease': [relayed(answered(201, lease()))],
    });
    const send = api.send.bind(api);
    const before: ClockReading[] = [];
    api.send = async (request) => {
      if (request.method !== 'GET') before.push(clockReading(time));
      const answer = await send(request);
      await time.sleep(2_000);
      return answer;
    };
    await client.renew(lease());
    await client.ensure();
    expect(sentAt).toEqual(before.slice(1));
  });

  it('is tried five times, on a new connection from the third one on', async () => {
    const { client, api, sent, time, accepted, errors } = world({
      'PUT lease': new Array<KubeAnswer>(5).fill(timedOut),
    });
    expect(await client.renew(lease())).toBe(false);
    expect(sent).toHaveLength(5);
    expect(api.reconnects()).toBe(4);
    expect(time.waits).toEqual([]);
    expect(accepted).toEqual([]);
    expect(errors).toEqual(['failed 5 attempts to update lease']);
  });

  it('waits as the server asks between attempts, and not after the last one', async () => {
    const busy: KubeAnswer = { kind: 'answered', status: 429, body: {}, retryAfterMs: 1_000 };
    const { client, time } = world({ 'PUT lease': new Array<KubeAnswer>(5).fill(busy) });
    await client.renew(lease());
    expect(time.waits).toEqual([1_250, 1_250, 1_250, 1_250]);
  });

  it('is repeated on the stored Lease after a conflict, on the same connection', async () => {
    const { client, api } = world({
      'PUT lease': [refused(409, 'Conflict'), answered(200, lease({ resourceVersion: '6' }))],
      'GET lease': [answered(200, lease({ resourceVersion: '5' }))],
    });
    expect(await client.renew(lease())).toBe(true);
    expect(api.requests[2]?.body).toMatchObject({ metadata: { resourceVersion: '5' } });
    expect(api.reconnects()).toBe(0);
  });

  it('sends nothing without a base', async () => {
    const { client, sent } = world({
      'PUT lease': [refused(409, 'Conflict')],
      'GET lease': [refused(404, 'NotFound')],
      'GET node': [timedOut],
    });
    expect(await client.renew(lease())).toBe(false);
    expect(sent).toEqual(['PUT lease', 'GET lease', 'GET node']);
  });

  it('adds an owner that is missing, and waits for one that cannot be read', async () => {
    const { client, api, sent } = world({
      'GET node': [timedOut, answered(200, node)],
      'PUT lease': [answered(200, lease())],
    });
    expect(await client.renew(unowned)).toBe(true);
    expect(sent).toEqual(['GET node', 'GET node', 'PUT lease']);
    const owner = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1' };
    expect(api.requests[2]?.body).toMatchObject({ metadata: { ownerReferences: [owner] } });
  });
});
