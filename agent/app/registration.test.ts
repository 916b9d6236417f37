import { describe, expect, it } from 'vitest';
import { answered, refused, scriptedApi, silentLog, virtualTime } from '../../test/support/agent-api.ts';
import type { KubeAnswer } from '../ports/kube-api.ts';
import { createRegistration, registerOnce } from './registration.ts';

const node = { kind: 'Node', metadata: { name: 'edge-7', uid: 'u1' } };

function world(answer: () => KubeAnswer, { registerNode = true, sleepsMax = 20 } = {}) {
  const stopper = new AbortController();
  const api = scriptedApi(answer);
  const time = virtualTime(0, (waits) => {
    if (waits.length >= sleepsMax) stopper.abort();
  });
  const registration = createRegistration(
    { nodeName: 'edge-7', registerNode },
    {
      api,
      time,
      fraction: () => 0,
      log: silentLog,
      stop: stopper.signal,
      timeoutMs: 10_000,
      buildNode: async () => node,
    },
  );
  return { api, time, registration };
}

describe('registration', () => {
  it('registers once per process, however often it is requested', async () => {
    const { api, registration } = world(() => answered(201, node));
    expect(await Promise.all([registration.ensure(), registration.ensure()])).toEqual([true, true]);
    await registration.ensure();
    expect(api.requests).toHaveLength(1);
  });

  it('registers a deleted Node again, and notifies each time', async () => {
    const { api, registration } = world(() => answered(201, node));
    const told: (string | undefined)[] = [];
    registration.onRegistered(({ metadata }) => told.push(metadata.uid));
    await registration.ensure();
    expect(await Promise.all([registration.again(), registration.again()])).toEqual([true, true]);
    expect(api.requests).toHaveLength(2);
    expect(told).toEqual(['u1', 'u1']);
  });

  it('has failed when the agent stops before it succeeds', async () => {
    const { api, registration } = world(() => refused(503, 'later'), { sleepsMax: 3 });
    expect(await registration.ensure()).toBe(false);
    expect(api.requests).toHaveLength(2);
  });

  it('sends nothing where the Node is registered by others', async () => {
    const { api, registration } = world(() => answered(201, node), { registerNode: false });
    expect(await registration.ensure()).toBe(true);
    expect(await registration.again()).toBe(false);
    expect(api.requests).toEqual([]);
  });

  it('waits as long as a Retry-After asks', async () => {
    let requests = 0;
    const { time, registration } = world(() => {
      requests += 1;
      return requests === 1 ? { kind: 'answered', status: 429, body: {}, retryAfterMs: 4_000 } : answered(201, node);
    });
    await registration.ensure();
    expect(time.waits).toEqual([100, 4_000]);
  });

  it.each([
    ['a page of a captive portal', '<html>log in</html>'],
    ['an object without a kind', { metadata: node.metadata }],
    ['another Node', { kind: 'Node', metadata: { name: 'edge-8', uid: 'u2' } }],
    ['a Node without a uid', { kind: 'Node', metadata: { name: 'edge-7' } }],
  ])('does not accept %s as the Node', async (_what, body) => {
    let requests = 0;
    const { api, registration } = world(() => {
      requests += 1;
      return requests === 1 ? answered(200, body) : answered(201, node);
    });
    expect(await registration.ensure()).toBe(true);
    expect(api.requests).toHaveLength(2);
  });

  it('resolves without a Node when it is stopped', async () => {
    const { registration, api } = world(() => refused(500, 'InternalError'), { sleepsMax: 3 });
    expect(await registration.ensure()).toBe(false);
    expect(api.requests).toHaveLength(2);
  });
});

it('is tried again when the Node cannot be built', async () => {
  let builds = 0;
  const api = scriptedApi(() => answered(201, node));
  const time = virtualTime(0);
  const registration = createRegistration(
    { nodeName: 'edge-7', registerNode: true },
    {
      ...{ api, time, fraction: () => 0, log: silentLog, stop: new AbortController().signal, timeoutMs: 10_000 },
      async buildNode() {
        builds += 1;
        if (builds === 1) throw new Error('no disk');
        return node;
      },
    },
  );
  expect(await registration.ensure()).toBe(true);
  expect([builds, api.requests.length, time.waits.length]).toEqual([2, 1, 2]);
});

describe('a Node that exists', () => {
  const labels = { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'arm64' };
  const initial = { ...node, metadata: { ...node.metadata, labels }, status: { capacity: { cpu: '4' } } };
  const exists = refused(409, 'AlreadyExists');
  const old = { kind: 'Node', metadata: { name: 'edge-7', uid: 'u9' }, status: { capacity: { cpu: '2' } } };

  async function registered(creation: KubeAnswer, read: KubeAnswer, correction?: KubeAnswer) {
    const api = scriptedApi(({ method }) => ({ POST: creation, GET: read, PATCH: correction })[method as 'POST']);
    const parts = { api, stop: new AbortController().signal, timeoutMs: 7_000 };
    const attempt = await registerOnce(initial, parts);
    return { attempt, requests: api.requests };
  }

  it.each([
    ['409', exists],
    ['403, as an admission rule forbids its creation', refused(403, 'Forbidden')],
  ])('is read and corrected: %s', async (_, creation) => {
    const corrected = { ...old, metadata: { ...old.metadata, labels } };
    const { attempt, requests } = await registered(creation, answered(200, old), answered(200, corrected));
    expect(attempt).toEqual({ kind: 'registered', node: corrected });
    expect(requests.map(({ method, path, timeoutMs }) => [method, path, timeoutMs])).toEqual([
      ['POST', '/api/v1/nodes', 7_000],
      ['GET', '/api/v1/nodes/edge-7', 7_000],
      ['PATCH', '/api/v1/nodes/edge-7/status', 7_000],
    ]);
    expect(requests[2]).toMatchObject({ contentType: 'application/strategic-merge-patch+json' });
    expect(requests[2]?.body).toMatchObject({ metadata: { labels } });
  });

  it('is not written when nothing is to be corrected', async () => {
    const same = { ...old, metadata: { ...old.metadata, labels }, status: initial.status };
    const { attempt, requests } = await registered(exists, answered(200, same));
    expect(attempt).toEqual({ kind: 'registered', node: same });
    expect(requests).toHaveLength(2);
  });

  it.each<[string, KubeAnswer, KubeAnswer, KubeAnswer | undefined, string]>([
    ['another conflict', refused(409, 'Conflict'), answered(200, old), undefined, 'create: 409'],
    ['it cannot be read', exists, refused(404, 'NotFound'), undefined, 'read: 404'],
    [
      'it is another Node',
      exists,
      answered(200, { ...old, metadata: { name: 'x', uid: 'u' } }),
      undefined,
      'read: 200',
    ],
    ['it cannot be corrected', exists, answered(200, old), refused(500, 'InternalError'), 'correct: 500'],
    ['its correction is forbidden', exists, answered(200, old), refused(403, 'Forbidden'), 'correct: 403'],
  ])('is not registered when there is a fault: %s', async (_, creation, read, correction, why) => {
    const { attempt } = await registered(creation, read, correction);
    expect(attempt).toMatchObject({ kind: 'failed', why });
  });
});
