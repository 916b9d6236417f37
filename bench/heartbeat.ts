/**
 * Heartbeats through the whole local mode: TLS, routes, the bundled heartbeat handler, the embedded store.
 *
 * Three runs. Load: CPU is counted per process; the load generator is this process and not counted. Units: with a proxy
 * before the engine; its CPU time would distort the first run. Quiet: with controllers, the stream work of a
 * thousand steady heartbeats.
 */
import { type ApiAnswer, type ApiClient, createApiClient } from '../demo/fleet/api-client.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import { startEngine } from '../test/support/engine.ts';
import { type Benchmark, oneOrAll, percentile, type Report, readOptions, rounded, wholeNumber } from './benchmark.ts';
import { startCountingProxy } from './counting-proxy.ts';
import { type LocalHost, startLocalHost } from './local-host.ts';
import { cpuUsedBetween, cpuUseOf } from './process-cpu.ts';

const CONNECTIONS = [1, 16, 64];
/** Machines per connection: one connection does not always write the same item. */
const MACHINES_PER_CONNECTION = 4;
const WARM_UP_MS = 3_000;
/** Time for machines to become Ready, be announced and lose their first taint. */
const SETTLE_MS = 20_000;
const STREAM_LAG_MS = 3_000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';

export const heartbeat: Benchmark = {
  name: 'heartbeat',
  about: 'heartbeats per second, latency, CPU and capacity units of a lease renewal through local mode',
  usage: '[--part load|units|streams] [--seconds 10] [--beats 1000]',
  smallest: ['--part', 'units', '--beats', '20'],
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, { part: text, seconds: text, beats: text });
    const seconds = wholeNumber('seconds', values.seconds, { least: 1, most: 3_600, otherwise: 10 });
    const beats = wholeNumber('beats', values.beats, { least: 1, most: 100_000, otherwise: 1_000 });
    const parts = {
      load: () => measureLoad(report, seconds * 1_000),
      units: () => countUnits(report, beats),
      streams: () => countStreamWork(report, beats),
    };
    for (const part of oneOrAll('part', values.part, parts)) await part();
  },
};

async function measureLoad(report: Report, measureMs: number): Promise<void> {
  const local = await startLocalHost({ controllers: false });
  try {
    const leases = await registered(local, Math.max(...CONNECTIONS) * MACHINES_PER_CONNECTION);
    for (const connections of CONNECTIONS) {
      await measureConnections(local, leases, connections, { report, measureMs });
    }
  } finally {
    await local.stop();
  }
}

async function measureConnections(
  local: LocalHost,
  leases: KubeObject[],
  connections: number,
  { report, measureMs }: { readonly report: Report; readonly measureMs: number },
): Promise<void> {
  const client = clientOf(local, connections);
  try {
    await beatFor(client, leases, connections, WARM_UP_MS);
    const handlerBeforeMs = await handlerCpuMs(local);
    const before = cpuUseOf(local.pid);
    const startedMs = performance.now();
    const latencies = await beatFor(client, leases, connections, measureMs);
    const seconds = (performance.now() - startedMs) / 1_000;
    const used = cpuUsedBetween(before, cpuUseOf(local.pid));
    const handlerMs = (await handlerCpuMs(local)) - handlerBeforeMs;
    const beats = latencies.length;
    const engineMs = [...used].reduce((sum, [name, ms]) => sum + (isEngine(name) ? ms : 0), 0);
    const allMs = [...used.values()].reduce((sum, ms) => sum + ms, 0);
    report({
      connections,
      beats,
      beatsPerSecond: rounded(beats / seconds),
      p50Ms: rounded(percentile(latencies, 0.5)),
      p99Ms: rounded(percentile(latencies, 0.99)),
      handlerCpuMsPerBeat: rounded(handlerMs / beats),
      storeCpuMsPerBeat: rounded(engineMs / beats),
      handlerAndStoreCpuMsPerBeat: rounded((handlerMs + engineMs) / beats),
      // TLS, routing and the copy to and from the handler's thread: what API Gateway and Lambda do in AWS.
      frontCpuMsPerBeat: rounded((allMs - handlerMs - engineMs) / beats),
    });
  } finally {
    client.close();
  }
}

const isEngine = (name: string): boolean => name.startsWith('dynoxide/');

const handlerCpuMs = async (local: LocalHost): Promise<number> =>
  (await local.counters()).functions['heartbeat']?.cpuMs ?? Number.NaN;

async function countUnits(report: Report, beats: number): Promise<void> {
  const engine = await startEngine();
  const proxy = await startCountingProxy(engine.endpoint);
  let local: LocalHost | undefined;
  try {
    local = await startLocalHost({ controllers: false, dynamodbEndpoint: proxy.endpoint });
    const leases = await registered(local, 16);
    const client = clientOf(local, 16);
    try {
      await beatTimes(client, leases, 16, 100);
      proxy.take();
      await beatTimes(client, leases, 16, beats);
    } finally {
      client.close();
    }
    const { requests, readUnits, writeUnits } = proxy.take();
    const total = Object.values(requests).reduce((sum, count) => sum + count, 0);
    report({
      countedBeats: beats,
      writeUnitsPerBeat: rounded(writeUnits / beats),
      readUnitsPerBeat: rounded(readUnits / beats),
      storeRequestsPerBeat: rounded(total / beats),
      ...Object.fromEntries(Object.entries(requests).map(([operation, count]) => [`requests:${operation}`, count])),
    });
  } finally {
    await local?.stop();
    await proxy.close();
    await engine.stop();
  }
}

/** With ticks and streams: machines that have been announced, then a thousand beats, then time for the streams. */
async function countStreamWork(report: Report, beats: number): Promise<void> {
  const local = await startLocalHost({});
  try {
    const leases = await registered(local, 16);
    const client = clientOf(local, 16);
    try {
      await beatSlowly(client, leases, SETTLE_MS);
      const before = await local.counters();
      await beatTimes(client, leases, 16, beats);
      await pause(STREAM_LAG_MS);
      const after = await local.counters();
      for (const [name, { read, filtered, delivered, batches }] of Object.entries(after.streams)) {
        const then = before.streams[name];
        report({
          steadyBeats: beats,
          stream: name,
          recordsRead: read - (then?.read ?? 0),
          recordsFiltered: filtered - (then?.filtered ?? 0),
          recordsDelivered: delivered - (then?.delivered ?? 0),
          invocations: batches - (then?.batches ?? 0),
        });
      }
    } finally {
      client.close();
    }
  } finally {
    await local.stop();
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

async function registered(local: LocalHost, count: number): Promise<KubeObject[]> {
  const client = clientOf(local, 16);
  try {
    return await registerMachines(client, count);
  } finally {
    client.close();
  }
}

export const clientOf = (local: LocalHost, connectionsMax: number): ApiClient =>
  createApiClient({
    url: local.url,
    ca: local.ca,
    token: local.token,
    connectionsMax,
    timeoutMs: 30_000,
  });

/** Nodes with a Ready condition and a Lease each, as after some minutes of a quiet fleet. */
export async function registerMachines(client: ApiClient, count: number): Promise<KubeObject[]> {
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

/** One heartbeat per machine and second. */
async function beatSlowly(client: ApiClient, leases: KubeObject[], ms: number): Promise<void> {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs) {
    await beatTimes(client, leases, leases.length, leases.length);
    await pause(1_000);
  }
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
