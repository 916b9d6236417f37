/** Areas LI, LB, LO and LR of the agent: the Lease heartbeat. */
import { describe, expect, it } from 'vitest';
import { createLeaseLoop } from '../../../agent/app/lease-loop.ts';
import type { KubeAnswer, KubeRequest } from '../../../agent/ports/kube-api.ts';
import {
  jitteredMs,
  leaseDurationSeconds,
  newLease,
  renewedLease,
  renewIntervalMs,
} from '../../../agent/rules/lease.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { answered, inOrder, refused, scriptedApi, silentLog, timedOut, virtualTime } from '../../support/agent-api.ts';

const T = Date.parse('2024-05-01T10:00:00Z');
const owner = { apiVersion: 'v1', kind: 'Node', name: 'foo', uid: 'foo-uid' };
const node: KubeObject = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'foo', uid: 'foo-uid' } };
const notFound = refused(404, 'NotFound');
const serverError = refused(500, 'InternalError');

const leaseOf = (resourceVersion: string, ownerReferences: (typeof owner)[] = [owner]): KubeObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    name: 'foo',
    namespace: 'kube-node-lease',
    resourceVersion,
    ...(ownerReferences.length === 0 ? {} : { ownerReferences }),
  },
  spec: { holderIdentity: 'foo', leaseDurationSeconds: 40, renewTime: '2024-05-01T09:59:50.000000Z' },
});

interface Given {
  /** To requests on the Lease, in order. */
  readonly lease: () => KubeAnswer | undefined;
  readonly node?: KubeAnswer;
  readonly durationSeconds?: number | undefined;
  /** Sleeps after which the loop is stopped. */
  readonly sleepsMax?: number;
  readonly fraction?: number;
}

function world(given: Given) {
  const stopper = new AbortController();
  const api = scriptedApi((request) =>
    request.path.startsWith('/api/v1/nodes') ? (given.node ?? answered(200, node)) : given.lease(),
  );
  const time = virtualTime(T, (waits) => {
    if (waits.length >= (given.sleepsMax ?? 100)) stopper.abort();
  });
  const loop = createLeaseLoop(
    { nodeName: 'foo', nodeLeaseDurationSeconds: given.durationSeconds ?? 40 },
    {
      api,
      time,
      fraction: () => given.fraction ?? 0,
      log: silentLog,
      stop: stopper.signal,
      timeoutMs: 10_000,
      registerAgain: async () => false,
    },
  );
  const sent = () => api.requests.filter(({ path }) => path.includes('/leases')).map(({ method }) => method);
  const bodies = () => api.requests.filter(({ body }) => body !== undefined).map(({ body }) => body as KubeObject);
  return { api, time, loop, sent, bodies };
}

/** The gaps a running loop leaves, without the first: that one depends on the node's name. */
async function gaps(durationSeconds: number | undefined, fraction: number): Promise<readonly number[]> {
  const { loop, time } = world({ lease: () => answered(200, leaseOf('1')), durationSeconds, fraction, sleepsMax: 4 });
  await loop.run();
  return time.waits.slice(1);
}

describe('the renewal interval', () => {
  it.each([
    ['LI-01 a lease of 40 s, the default,', undefined, 10_000, 10_400],
    ['LI-03 a lease of 60 s', 60, 15_000, 15_600],
    ['LI-05 a lease of 0 s, which is unset,', 0, 10_000, 10_400],
  ])(
    '%s is renewed a quarter of it after the last round ended, or up to 4 % later',
    async (_, configured, from, to) => {
      const intervalMs = renewIntervalMs(leaseDurationSeconds(configured));
      expect(jitteredMs(intervalMs, 0)).toBe(from);
      expect(jitteredMs(intervalMs, 0.999_999)).toBeGreaterThan(from);
      expect(jitteredMs(intervalMs, 0.999_999)).toBeLessThan(to);
      expect(await gaps(configured, 0)).toEqual([from, from, from]);
      for (const gap of await gaps(configured, 0.999_999)) {
        expect(gap).toBeGreaterThanOrEqual(from);
        expect(gap).toBeLessThan(to);
      }
    },
  );

  it('LI-07 the first renewal happens at once', async () => {
    const { loop, time, sent, bodies } = world({ lease: () => answered(200, leaseOf('1')), sleepsMax: 1 });
    await loop.run();
    expect(sent()).toEqual(['GET', 'PUT']);
    expect(bodies()[0]?.spec?.['renewTime']).toBe('2024-05-01T10:00:00.000000Z');
    expect(time.waits).toHaveLength(1);
  });
});

describe('waits while making sure that the Lease exists', () => {
  const times = <T>(count: number, value: T): T[] => new Array<T>(count).fill(value);
  const sum = (waits: readonly number[]): number => waits.reduce((total, wait) => total + wait, 0);

  it.each([
    {
      id: 'LB-01',
      answers: [serverError, answered(200, leaseOf('1')), answered(200, leaseOf('2'))],
      waits: [200],
      totalMs: 200,
      requests: ['GET', 'GET', 'PUT'],
    },
    {
      id: 'LB-03',
      answers: [...times(6, serverError), notFound, answered(201, leaseOf('1'))],
      waits: [200, 400, 800, 1_600, 3_200, 6_400],
      totalMs: 12_600,
      requests: [...times(7, 'GET'), 'POST'],
    },
    {
      id: 'LB-05',
      answers: [...times(3, [notFound, serverError]).flat(), notFound, answered(201, leaseOf('1'))],
      waits: [200, 400, 800],
      totalMs: 1_400,
      requests: times(4, ['GET', 'POST']).flat(),
    },
    {
      id: 'LB-07',
      answers: [...times(10, serverError), answered(200, leaseOf('1')), answered(200, leaseOf('2'))],
      waits: [200, 400, 800, 1_600, 3_200, 6_400, 7_000, 7_000, 7_000, 7_000],
      totalMs: 40_600,
      requests: [...times(11, 'GET'), 'PUT'],
    },
  ])('$id waits $waits ms between tries', async ({ answers, waits, totalMs, requests }) => {
    const { loop, time, sent } = world({ lease: inOrder(answers) });
    await loop.round();
    expect(time.waits).toEqual(waits);
    expect(sum(time.waits)).toBe(totalMs);
    expect(sent()).toEqual(requests);
  });
});

describe('the Lease object', () => {
  const timing = { leaseDurationSeconds: 10, nowMs: T };
  const atT = '2024-05-01T10:00:00.000000Z';

  it('LO-01 is created with holder, duration, time and owner', async () => {
    const { loop, sent, bodies } = world({
      lease: inOrder([notFound, answered(201, leaseOf('1'))]),
      durationSeconds: 10,
    });
    await loop.round();
    expect(sent()).toEqual(['GET', 'POST']);
    expect(bodies()).toEqual([newLease(node, timing)]);
    expect(bodies()[0]).toEqual({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'foo', namespace: 'kube-node-lease', ownerReferences: [owner] },
      spec: { holderIdentity: 'foo', leaseDurationSeconds: 10, renewTime: atT },
    });
  });

  it('LO-03 an existing one without owner gets it', async () => {
    const stored = leaseOf('1', []);
    const { loop, bodies } = world({
      lease: inOrder([answered(200, stored), answered(200, leaseOf('2'))]),
      durationSeconds: 10,
    });
    await loop.round();
    expect(bodies()).toEqual([
      {
        ...stored,
        metadata: { ...stored.metadata, ownerReferences: [owner] },
        spec: { ...stored.spec, leaseDurationSeconds: 10, renewTime: atT },
      },
    ]);
  });

  it('LO-05 one with an owner is renewed without looking at the Node', async () => {
    const { loop, api, bodies } = world({
      lease: inOrder([answered(200, leaseOf('1')), answered(200, leaseOf('2'))]),
      node: serverError,
      durationSeconds: 10,
    });
    await loop.round();
    expect(api.requests.filter(({ path }) => path.startsWith('/api/v1/nodes'))).toEqual([]);
    expect(bodies()).toHaveLength(1);
    expect(bodies()[0]?.spec?.['renewTime']).toBe(atT);
  });

  it('LO-07 the duration follows the configuration', () => {
    expect(renewedLease(leaseOf('1'), timing).spec).toMatchObject({ leaseDurationSeconds: 10, holderIdentity: 'foo' });
  });
});

describe('renewal rounds', () => {
  const put = (version: string) => answered(200, leaseOf(version));
  const conflict = refused(409, 'Conflict');
  const fiveTimeouts = new Array<KubeAnswer>(5).fill(timedOut);
  const puts = (count: number): KubeRequest['method'][] => new Array<KubeRequest['method']>(count).fill('PUT');

  it.each([
    {
      id: 'LR-01',
      cached: undefined,
      answers: [notFound, answered(201, leaseOf('1'))],
      requests: ['GET', 'POST'],
      calls: 0,
      after: '1',
    },
    { id: 'LR-03', cached: '1', answers: [put('2')], requests: ['PUT'], calls: 0, after: '2' },
    {
      id: 'LR-05',
      cached: '1',
      answers: [timedOut, conflict, put('5'), put('6')],
      requests: ['PUT', 'PUT', 'GET', 'PUT'],
      calls: 0,
      after: '6',
    },
    {
      id: 'LR-07',
      cached: '1',
      answers: [conflict, put('4'), put('5')],
      requests: ['PUT', 'GET', 'PUT'],
      calls: 0,
      after: '5',
    },
    {
      id: 'LR-09',
      cached: '1',
      answers: [...fiveTimeouts, put('1'), put('2')],
      requests: [...puts(5), 'GET', 'PUT'],
      calls: 4,
      after: '2',
    },
    {
      id: 'LR-11',
      cached: undefined,
      answers: [put('1'), ...fiveTimeouts],
      requests: ['GET', ...puts(5)],
      calls: 4,
      after: '1',
    },
  ])('$id sends $requests', async ({ cached, answers, requests, calls, after }) => {
    const before = cached === undefined ? [] : [notFound, answered(201, leaseOf(cached))];
    const { loop, sent, api, time } = world({ lease: inOrder([...before, ...answers]) });
    if (cached !== undefined) await loop.round();
    expect(loop.cached()?.metadata.resourceVersion).toBe(cached);
    const sentBefore = sent().length;
    await loop.round();
    expect(sent().slice(sentBefore)).toEqual(requests);
    expect(api.reconnects()).toBe(calls);
    expect(loop.cached()?.metadata.resourceVersion).toBe(after);
    expect(time.waits).toEqual([]);
  });
});
