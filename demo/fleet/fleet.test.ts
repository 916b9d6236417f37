import { describe, expect, it } from 'vitest';
import { firstWaitMs } from '../../agent/rules/lease.ts';
import { batchRequest } from '../../agent/rules/relay.ts';
import { parseUsage, USAGE_ANNOTATION } from '../../shared/fleet/nodes/node-usage.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { upstream } from '../../shared/kinds/upstream.ts';
import { applyStrategicMergePatch } from '../../shared/kubernetes/patch/strategic.ts';
import type { ApiAnswer, ApiRequest } from './api-client.ts';
import { type FleetOptions, startFleet } from './fleet.ts';

const nodeSchema = upstream.struct('core/v1.Node');

const START_MS = Date.parse('2026-01-01T00:00:00Z');
const NODE = '/api/v1/nodes/edge-a-0';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const LEASE = `${LEASES}/edge-a-0`;
const BATCHES = batchRequest([]).path;

function patchedNode(node: KubeObject, patch: KubeObject): KubeObject {
  const result = applyStrategicMergePatch(node, patch, nodeSchema);
  if (result.kind !== 'patched') throw new Error(`patch refused: ${result.kind}`);
  return result.object as unknown as KubeObject;
}

/** The part of a Kubernetes API that a machine uses, in memory, with a log of the requests. */
function fakeApi(clock: { nowMs: () => number }) {
  const objects = new Map<string, KubeObject>();
  const log: string[] = [];
  const requests: (ApiRequest & { atMs: number })[] = [];
  let version = 0;
  let down = false;
  let hold: Promise<void> | undefined;
  const put = (path: string, object: KubeObject): KubeObject => {
    version += 1;
    const stored = structuredClone(object);
    stored.metadata = { uid: `uid-${version}`, ...stored.metadata, resourceVersion: String(version) };
    objects.set(path, stored);
    return structuredClone(stored);
  };
  const respond = (request: ApiRequest): ApiAnswer => {
    if (down) return { kind: 'failed', cause: new Error('connection refused') };
    if (request.path === BATCHES) return { kind: 'answered', status: 404, body: { message: 'not found' } };
    const body = request.body as KubeObject;
    const object = request.method === 'POST' ? undefined : objects.get(request.path.replace(/\/status$/, ''));
    if (request.method === 'POST') {
      const path = `${request.path}/${body.metadata.name}`;
      if (objects.has(path)) return { kind: 'answered', status: 409, body: { reason: 'AlreadyExists' } };
      return { kind: 'answered', status: 201, body: put(path, body) };
    }
    if (object === undefined) return { kind: 'answered', status: 404, body: { message: 'not found' } };
    switch (request.method) {
      case 'GET':
        return { kind: 'answered', status: 200, body: structuredClone(object) };
      case 'PUT':
        if (body.metadata.resourceVersion !== object.metadata.resourceVersion) {
          return { kind: 'answered', status: 409, body: { message: 'modified' } };
        }
        return { kind: 'answered', status: 200, body: put(request.path, body) };
      default:
        return {
          kind: 'answered',
          status: 200,
          body: put(request.path.replace(/\/status$/, ''), patchedNode(object, body)),
        };
    }
  };
  return {
    objects,
    log,
    requests,
    put,
    setDown(value: boolean) {
      down = value;
    },
    holdAnswers(until: Promise<void>) {
      hold = until;
    },
    async send(request: ApiRequest): Promise<ApiAnswer> {
      log.push(`${request.method} ${request.path}`);
      requests.push({ ...request, atMs: clock.nowMs() - START_MS });
      const answer = respond(request);
      await hold;
      return answer;
    },
  };
}

function stage(options: Partial<FleetOptions> = {}) {
  let nowMs = START_MS;
  const clock = { nowMs: () => nowMs };
  const waiting = new Map<number, { atMs: number; callback: () => void }>();
  let handles = 0;
  const timers = {
    set(callback: () => void, delayMs: number) {
      handles += 1;
      waiting.set(handles, { atMs: nowMs + delayMs, callback });
      return handles;
    },
    clear: (handle: unknown) => waiting.delete(handle as number),
  };
  const api = fakeApi(clock);
  /** Lets promises settle that need no timer. */
  const settle = async () => {
    for (let round = 0; round < 100; round += 1) await Promise.resolve();
  };
  return {
    api,
    settle,
    atMs: () => nowMs - START_MS,
    waiting,
    start: (more: Partial<FleetOptions> = {}) =>
      startFleet({
        url: 'https://unused.invalid',
        token: 'unused',
        nodes: 1,
        clock,
        timers,
        random: { fraction: () => 0.5 },
        send: api.send,
        lookIntervalSeconds: 3_600,
        ...options,
        ...more,
      }),
    async runTo(seconds: number) {
      await settle();
      for (let steps = 0; steps < 10_000; steps += 1) {
        const [handle, next] = [...waiting].sort(([, a], [, b]) => a.atMs - b.atMs)[0] ?? [];
        if (handle === undefined || next === undefined || next.atMs > START_MS + seconds * 1_000) break;
        waiting.delete(handle);
        nowMs = Math.max(nowMs, next.atMs);
        next.callback();
        await settle();
      }
      nowMs = START_MS + seconds * 1_000;
    },
  };
}

const readyOf = (object: KubeObject | undefined) =>
  ((object?.status?.['conditions'] ?? []) as { type: string; status: string; lastTransitionTime: string }[]).find(
    (condition) => condition.type === 'Ready',
  );

describe('a machine that starts', () => {
  it('registers, creates its Lease and posts status once', async () => {
    const world = stage();
    world.start();
    await world.settle();
    expect(world.api.log).toEqual([`POST /api/v1/nodes`, `GET ${LEASE}`, `POST ${LEASES}`, `PATCH ${NODE}/status`]);
    const node = world.api.objects.get(NODE)!;
    expect(node.metadata.labels).toMatchObject({
      'kubernetes.io/hostname': 'edge-a-0',
      'topology.kubernetes.io/zone': 'local-a',
      'topology.kubernetes.io/region': 'local',
    });
    expect(readyOf(node)?.status).toBe('True');
    expect(node.status?.['conditions']).toHaveLength(5);
    const lease = world.api.objects.get(LEASE)!;
    expect(lease.spec).toEqual({
      holderIdentity: 'edge-a-0',
      leaseDurationSeconds: 40,
      renewTime: '2026-01-01T00:00:00.000000Z',
    });
    expect(lease.metadata.ownerReferences).toEqual([
      { apiVersion: 'v1', kind: 'Node', name: 'edge-a-0', uid: node.metadata.uid },
    ]);
  });

  it('takes over a Node that exists, correcting default labels and nothing else', async () => {
    const world = stage();
    world.api.put(NODE, {
      kind: 'Node',
      metadata: { name: 'edge-a-0', labels: { 'kubernetes.io/os': 'plan9', mine: 'yes' } },
      spec: { unschedulable: true },
    });
    world.start();
    await world.settle();
    expect(world.api.log.slice(0, 3)).toEqual(['POST /api/v1/nodes', `GET ${NODE}`, `PATCH ${NODE}/status`]);
    const node = world.api.objects.get(NODE)!;
    expect(node.metadata.labels).toMatchObject({ 'kubernetes.io/os': 'linux', mine: 'yes' });
    expect(node.spec).toEqual({ unschedulable: true });
    expect(readyOf(node)?.status).toBe('True');
  });

  it('tries again with growing waits while the API cannot be reached', async () => {
    const world = stage();
    world.api.setDown(true);
    const fleet = world.start();
    await world.runTo(20);
    expect(world.api.requests.map((request) => request.atMs)).toEqual([
      0, 200, 600, 1_400, 3_000, 6_200, 12_600, 19_600,
    ]);
    expect(fleet.list()[0]).toMatchObject({
      registered: false,
      failures: 8,
      lastFailure: 'registering: connection refused',
    });
    world.api.setDown(false);
    await world.runTo(27);
    expect(fleet.list()[0]).toMatchObject({ registered: true, failures: 0 });
  });
});

describe('a machine that beats', () => {
  it('renews each interval, jittered, with one request per beat', async () => {
    const world = stage();
    world.start();
    await world.runTo(30);
    const renewals = world.api.requests.filter((request) => request.method === 'PUT');
    // The first wait follows from the name; later ones are 10 s and half of 4 %.
    const firstMs = Math.round(firstWaitMs(10_000, 'edge-a-0'));
    expect(renewals.map((request) => Math.round(request.atMs))).toEqual([firstMs, firstMs + 10_200]);
    expect(world.api.log.length).toBe(4 + 2);
  });

  it('reports its usage with a beat once it ran for a minute, and again a minute after a power cut', async () => {
    const world = stage();
    const fleet = world.start();
    const usages = () =>
      world.api.requests
        .filter(({ method }) => method === 'PUT')
        .map(({ body }) => parseUsage((body as KubeObject).metadata.annotations?.[USAGE_ANNOTATION])?.atSeconds);
    await world.runTo(130);
    const minute = START_MS / 1_000 + 60;
    expect([...new Set(usages())]).toEqual([undefined, minute, minute + 60]);
    fleet.silence(['edge-a-0']);
    await world.runTo(200);
    const before = usages().length;
    fleet.beat(['edge-a-0']);
    await world.runTo(270);
    expect([...new Set(usages().slice(before))]).toEqual([minute + 60, START_MS / 1_000 + 260]);
  });

  it('posts status every five minutes, reading its Node first', async () => {
    const world = stage();
    const fleet = world.start();
    await world.runTo(300);
    expect(fleet.status().statusPosts).toBe(1);
    await world.runTo(306);
    expect(fleet.status().statusPosts).toBe(2);
    expect(world.api.log.slice(-3)).toEqual([`PUT ${LEASE}`, `GET ${NODE}`, `PATCH ${NODE}/status`]);
  });

  it('reads its Lease and renews it when somebody else wrote it', async () => {
    const world = stage();
    const fleet = world.start();
    await world.settle();
    world.api.put(LEASE, world.api.objects.get(LEASE)!);
    await world.runTo(10);
    expect(world.api.log.slice(-3)).toEqual([`PUT ${LEASE}`, `GET ${LEASE}`, `PUT ${LEASE}`]);
    expect(fleet.status()).toMatchObject({ conflicts: 1, failedTurns: 0, beats: 2 });
  });

  it('creates its Lease again when it was deleted', async () => {
    const world = stage();
    world.start();
    await world.settle();
    world.api.objects.delete(LEASE);
    await world.runTo(10);
    expect(world.api.log.slice(-4)).toEqual([`PUT ${LEASE}`, `GET ${LEASE}`, `GET ${NODE}`, `POST ${LEASES}`]);
  });

  it('registers again when its Node was deleted', async () => {
    const world = stage();
    world.start();
    await world.settle();
    const before = world.api.objects.get(NODE)!.metadata.uid;
    world.api.objects.delete(LEASE);
    world.api.objects.delete(NODE);
    await world.runTo(10);
    const after = world.api.objects.get(NODE)!;
    expect(after.metadata.uid).not.toBe(before);
    expect(world.api.objects.get(LEASE)!.metadata.ownerReferences?.[0]?.uid).toBe(after.metadata.uid);
    expect(readyOf(after)?.status).toBe('True');
  });

  it('posts at once after trouble when its conditions were overwritten', async () => {
    const world = stage();
    world.start();
    await world.settle();
    world.api.setDown(true);
    await world.runTo(20);
    const node = world.api.objects.get(NODE)!;
    for (const condition of node.status!['conditions'] as { status: string }[]) condition.status = 'Unknown';
    world.api.setDown(false);
    await world.runTo(27);
    expect(readyOf(world.api.objects.get(NODE))).toMatchObject({ status: 'True' });
    expect(Date.parse(readyOf(world.api.objects.get(NODE))!.lastTransitionTime)).toBeGreaterThan(START_MS + 20_000);
  });

  it('finds out by looking that its conditions were overwritten though no beat failed', async () => {
    const world = stage({ lookIntervalSeconds: 10 });
    const fleet = world.start();
    await world.runTo(10);
    readyOf(world.api.objects.get(NODE))!.status = 'Unknown';
    await world.runTo(26);
    expect(readyOf(world.api.objects.get(NODE))?.status).toBe('True');
    expect(fleet.status()).toMatchObject({ statusPosts: 2, failedTurns: 0 });
    await world.runTo(60);
    expect(fleet.status().statusPosts).toBe(2);
  });

  it('posts nothing after trouble when its conditions stand', async () => {
    const world = stage();
    const fleet = world.start();
    await world.settle();
    world.api.setDown(true);
    await world.runTo(20);
    world.api.setDown(false);
    await world.runTo(30);
    expect(fleet.status().statusPosts).toBe(1);
    expect(world.api.log.filter((line) => line === `GET ${NODE}`).length).toBe(1);
  });
});

describe('a machine with a relay in its zone', () => {
  it.each([
    { beatIntervalSeconds: 9, way: 'direct', sent: `PUT ${LEASE}` },
    { beatIntervalSeconds: 10, way: 'relay', sent: `POST ${BATCHES}` },
  ])('with an interval of $beatIntervalSeconds s sends heartbeats $way, as an agent does', async (of) => {
    const { beatIntervalSeconds, way, sent } = of;
    const world = stage({ beatIntervalSeconds, followsProfile: false });
    const fleet = world.start();
    expect(fleet.relay(['*'], 'start')).toMatchObject({ kind: 'done' });
    expect(fleet.list()).toMatchObject([{ way }]);
    await world.runTo(15);
    const first = world.api.log.find((request) => request.startsWith('PUT') || request.endsWith(BATCHES));
    expect(first).toBe(sent);
  });
});

describe('a machine that is throttled', () => {
  it('waits as long as a 429 asks, as the agent does', async () => {
    const world = stage();
    let refusals = 2;
    const send = async (request: ApiRequest): Promise<ApiAnswer> => {
      const answer = await world.api.send(request);
      refusals -= 1;
      return refusals < 0 ? answer : { kind: 'answered', status: 429, body: {}, retryAfterMs: 4_000 };
    };
    world.start({ send });
    await world.runTo(20);
    // Half of a quarter longer, at random: (1 + 0.5 / 2) × 4 s.
    expect(world.api.requests.slice(0, 3).map((request) => request.atMs)).toEqual([0, 5_000, 10_000]);
  });
});

describe('silence and beat', () => {
  it('makes no request after silence', async () => {
    const world = stage();
    const fleet = world.start();
    await world.runTo(6);
    const count = world.api.log.length;
    expect(fleet.silence(['edge-a-*'])).toEqual({ kind: 'done', names: ['edge-a-0'] });
    await world.runTo(120);
    expect(world.api.log.length).toBe(count);
    expect(fleet.list()[0]?.beating).toBe(false);
    expect(world.waiting.size).toBe(0);
  });

  it('does not go on with a turn that silence cut short', async () => {
    const world = stage();
    let release: () => void = () => undefined;
    world.api.holdAnswers(new Promise((resolve) => (release = resolve)));
    const fleet = world.start();
    await world.settle();
    expect(world.api.log).toEqual(['POST /api/v1/nodes']);
    fleet.silence(['*']);
    release();
    await world.runTo(60);
    expect(world.api.log).toEqual(['POST /api/v1/nodes']);
  });

  it('beats and posts in the same instant on beat', async () => {
    const world = stage();
    const fleet = world.start();
    await world.runTo(6);
    fleet.silence(['edge-a-0']);
    await world.runTo(60);
    const ready = readyOf(world.api.objects.get(NODE))!;
    ready.status = 'Unknown';
    const before = world.api.log.length;
    fleet.beat(['edge-a-0']);
    await world.settle();
    expect(world.api.log.slice(before)).toEqual([
      `PUT ${LEASE}`,
      `GET ${NODE}`,
      `PATCH ${NODE}/status`,
      'POST /api/v1/namespaces/default/events',
    ]);
    expect(readyOf(world.api.objects.get(NODE))?.status).toBe('True');
    await world.runTo(70.3);
    expect(world.api.requests.filter((request) => request.method === 'PUT').at(-1)?.atMs).toBe(70_200);
  });

  it('does nothing at all when one of the names is unknown', async () => {
    const world = stage({ nodes: 2 });
    const fleet = world.start();
    await world.settle();
    expect(fleet.silence(['edge-a-0', 'edge-x-9'])).toEqual({ kind: 'unknown', names: ['edge-x-9'] });
    expect(fleet.status().beating).toBe(2);
  });

  it('leaves no timer behind when stopped', async () => {
    const world = stage({ nodes: 20 });
    const fleet = world.start();
    await world.runTo(15);
    await fleet.stop();
    expect(world.waiting.size).toBe(0);
    expect(fleet.status()).toMatchObject({ machines: 20, beating: 0, registered: 20 });
  });
});
