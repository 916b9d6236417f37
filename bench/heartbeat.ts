/**
 * Beats through the whole local mode: TLS, routes, the bundled heartbeat handler, the embedded store.
 *
 * CPU is counted where it is spent: threads of the local process and of the engine below it, by name. The load generator
 * is this process and not counted. Units come from a second run with a proxy before the engine, whose own time would
 * spoil the first.
 */
import { type ApiAnswer, type ApiClient, createApiClient } from '../local/fleet/api-client.ts';
import type { KubeObject } from '../shared/kube/types.ts';
import { startEngine } from '../test/support/engine.ts';
import { type LocalForTest, startLocalForTest } from '../test/support/local.ts';
import { type Benchmark, percentile, type Report, rounded } from './benchmark.ts';
import { startCountingProxy } from './counting-proxy.ts';
import { cpuUsedBetween, cpuUseOf } from './process-cpu.ts';

const CONNECTIONS = [1, 16, 64];
/** Machines a connection speaks for, so that one connection does not always write the same item. */
const MACHINES_PER_CONNECTION = 4;
const WARM_UP_MS = 3_000;
const MEASURE_MS = 10_000;
const COUNTED_BEATS = 1_000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

export const heartbeat: Benchmark = {
  name: 'heartbeat',
  about: 'beats a second, latency, CPU and capacity units of a lease renewal through local mode',
  async run(report) {
    const local = await startLocalForTest({ nodes: 0, controllers: false });
    try {
      const leases = await registerMachines(local.client, Math.max(...CONNECTIONS) * MACHINES_PER_CONNECTION);
      for (const connections of CONNECTIONS) await measureLoad(local, leases, connections, report);
    } finally {
      await local.stop();
    }
    await countUnits(report);
  },
};

async function measureLoad(
  local: LocalForTest,
  leases: KubeObject[],
  connections: number,
  report: Report,
): Promise<void> {
  const client = clientOf(local, connections);
  try {
    await beatFor(client, leases, connections, WARM_UP_MS);
    const before = cpuUseOf(local.pid);
    const startedMs = performance.now();
    const latencies = await beatFor(client, leases, connections, MEASURE_MS);
    const seconds = (performance.now() - startedMs) / 1_000;
    const used = cpuUsedBetween(before, cpuUseOf(local.pid));
    const beats = latencies.length;
    report({
      connections,
      beats,
      beatsPerSecond: rounded(beats / seconds),
      p50Ms: rounded(percentile(latencies, 0.5)),
      p99Ms: rounded(percentile(latencies, 0.99)),
      cpuMsPerBeat: rounded([...used.values()].reduce((sum, ms) => sum + ms, 0) / beats),
      ...Object.fromEntries([...used].map(([name, ms]) => [`cpuMsPerBeat:${name}`, rounded(ms / beats)])),
    });
  } finally {
    client.close();
  }
}

/** One unit run: a fixed number of beats with every request to the engine seen. */
async function countUnits(report: Report): Promise<void> {
  const engine = await startEngine();
  const proxy = await startCountingProxy(engine.endpoint);
  let local: LocalForTest | undefined;
  try {
    local = await startLocalForTest({ nodes: 0, controllers: false, dynamoDbEndpoint: proxy.endpoint });
    const leases = await registerMachines(local.client, 16);
    const client = clientOf(local, 16);
    try {
      await beatTimes(client, leases, 16, 100);
      proxy.take();
      await beatTimes(client, leases, 16, COUNTED_BEATS);
    } finally {
      client.close();
    }
    const { requests, readUnits, writeUnits } = proxy.take();
    const total = Object.values(requests).reduce((sum, count) => sum + count, 0);
    report({
      countedBeats: COUNTED_BEATS,
      writeUnitsPerBeat: rounded(writeUnits / COUNTED_BEATS),
      readUnitsPerBeat: rounded(readUnits / COUNTED_BEATS),
      storeRequestsPerBeat: rounded(total / COUNTED_BEATS),
      ...Object.fromEntries(Object.entries(requests).map(([operation, count]) => [`requests:${operation}`, count])),
    });
  } finally {
    await local?.stop();
    await proxy.close();
    await engine.stop();
  }
}

const clientOf = (local: LocalForTest, connectionsMax: number): ApiClient =>
  createApiClient({
    url: local.access.url,
    ...(local.access.ca === undefined ? {} : { ca: local.access.ca }),
    token: local.access.token,
    connectionsMax,
    timeoutMs: 30_000,
  });

/** Nodes with a Ready condition and a Lease each, as after some minutes of a quiet fleet. */
async function registerMachines(client: ApiClient, count: number): Promise<KubeObject[]> {
  return await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const name = `bench-${index}`;
      const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'bench' }];
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { conditions } };
      const created = objectIn(await client.send({ method: 'POST', path: '/api/v1/nodes', body: node }));
      const owner = { apiVersion: 'v1', kind: 'Node', name, uid: created.metadata.uid };
      const lease = {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: { name, namespace: 'kube-node-lease', ownerReferences: [owner] },
        spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: renewTime() },
      };
      const answer = await client.send({ method: 'POST', path: LEASES, body: lease });
      return objectIn(answer);
    }),
  );
}

const renewTime = (): string => new Date().toISOString().replace('Z', '000Z');

async function beatFor(client: ApiClient, leases: KubeObject[], connections: number, ms: number): Promise<number[]> {
  const untilMs = performance.now() + ms;
  return await beatWhile(client, leases, connections, () => performance.now() < untilMs);
}

async function beatTimes(client: ApiClient, leases: KubeObject[], connections: number, beats: number): Promise<void> {
  let left = beats;
  await beatWhile(client, leases, connections, () => left-- > 0);
}

/** Each connection renews its own machines in turn, one request at a time. Yields the latencies in milliseconds. */
async function beatWhile(
  client: ApiClient,
  leases: KubeObject[],
  connections: number,
  goOn: () => boolean,
): Promise<number[]> {
  const latencies: number[] = [];
  const loop = async (connection: number): Promise<void> => {
    for (let turn = 0; goOn(); turn += 1) {
      const own = Math.floor(leases.length / connections);
      const at = connection * own + (turn % own);
      const lease = leases[at]!;
      const name = lease.metadata.name!;
      const startedMs = performance.now();
      const answer = await client.send({
        method: 'PUT',
        path: `${LEASES}/${name}`,
        body: { ...lease, spec: { ...lease.spec, renewTime: renewTime() } },
      });
      latencies.push(performance.now() - startedMs);
      leases[at] = objectIn(answer);
    }
  };
  await Promise.all(Array.from({ length: connections }, (_, connection) => loop(connection)));
  return latencies;
}

function objectIn(answer: ApiAnswer): KubeObject {
  if (answer.kind === 'failed') throw new Error('no answer', { cause: answer.cause });
  if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`);
  return answer.body as KubeObject;
}
