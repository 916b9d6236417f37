/**
 * A site with a relay, beside machines that send heartbeats directly.
 *
 * Collecting: an hour of virtual time with the relay itself, from machines that start at random times. Requests: the relay
 * as deployed, machines with keys of their own, and local mode behind a proxy that counts units. All machines of the site
 * send together, as they do after some minutes with an interval of 10 s. Machines and relay are this process, so their CPU time is not counted.
 */

import { createHttpKubeApi, type HttpKubeApi } from '../agent/adapters/http/kube-api.ts';
import { staticToken } from '../agent/adapters/identity/node-identity.ts';
import { makeRelayCertificate, makeSiteAuthority } from '../agent/adapters/relay/certificates.ts';
import { serveRelay } from '../agent/adapters/relay/relay-server.ts';
import { systemTime } from '../agent/adapters/system/time.ts';
import { HeartbeatRelay } from '../agent/app/relay.ts';
import type { Credentials } from '../agent/ports/credentials.ts';
import type { KubeApi, KubeRequest } from '../agent/ports/kube-api.ts';
import { jitteredMs, LEASES_PATH, leasePath } from '../agent/rules/lease.ts';
import { sha256Of } from '../functions/heartbeat/sha256.ts';
import { dollarsOf, PRICE_LIST, SECONDS_A_MONTH } from '../shared/cost/prices.ts';
import type { LeaseBatch } from '../shared/fleet/nodes/lease-batch.ts';
import type { KubeObject } from '../shared/kinds/types.ts';
import { silentLog } from '../test/support/agent-api.ts';
import { startEngine } from '../test/support/engine.ts';
import { type NodeKeyPair, nodeKeyPair, nodeToken } from '../test/support/node-key-pair.ts';
import { randomFrom } from '../test/support/seeded.ts';
import { SteppedTime } from '../test/support/stepped-time.ts';
import {
  type Benchmark,
  percentile,
  type Report,
  readOptions,
  rounded,
  UsageError,
  wholeNumbers,
} from './benchmark.ts';
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts';
import { type LocalHost, startLocalHost } from './local-host.ts';

const SITES = [25, 100];
const INTERVALS_SECONDS = [10, 60];
const COLLECTING_MS = 3_600_000;
/** From then on the heartbeats of a site are one batch. */
const CONVERGED_AFTER_MS = 300_000;
/** Assumed in the hour of collecting: the cluster's answer to a batch. Milliseconds. */
const ASSUMED_ANSWER_MS = 100;
/** On a busy machine the identities of 100 machines are created slowly. Milliseconds. */
const TIMEOUT_MS = 60_000;
const CLUSTER_ID = 'nodekeeper';
const WARM_UP_ROUNDS = 5;
const ROUNDS = 20;
/** A node may send one heartbeat per second. Milliseconds. */
const ROUND_PAUSE_MS = 1_000;
/** As deployed (functions/heartbeat/manifest.ts). */
const MEMORY_MEGABYTES = 256;
/** Memory at which Lambda provides one CPU. */
const MEGABYTES_PER_CPU = 1_769;
/** Assumed, as in bench/cost/bill.ts: waiting for the table, per invocation. Milliseconds. */
const WAIT_MS = 5;

export const relay: Benchmark = {
  name: 'relay',
  about: 'heartbeats of 25 and 100 machines through a relay: batches, delay, bytes, units, CPU and dollars',
  usage: '[--part collecting|requests] [--machines N,N]',
  async run(report, words) {
    const text = { type: 'string' } as const;
    const { part, machines } = readOptions(words, { part: text, machines: text });
    if (part !== undefined && part !== 'collecting' && part !== 'requests') {
      throw new UsageError(`--part expects collecting or requests, not ${part}`);
    }
    const sites = wholeNumbers('machines', machines, { least: 1, most: 100, otherwise: SITES });
    for (const count of part === 'requests' ? [] : sites) {
      for (const intervalSeconds of INTERVALS_SECONDS) await collect(count, intervalSeconds, report);
    }
    for (const count of part === 'collecting' ? [] : sites) await measureSite(count, report);
  },
};

/** How the heartbeats of a site come together. */
async function collect(machines: number, intervalSeconds: number, report: Report): Promise<void> {
  const time = new SteppedTime(0);
  const random = randomFrom(machines);
  const batches: { readonly atMs: number; readonly items: number }[] = [];
  const api: KubeApi = {
    async send({ body }) {
      const { items } = body as LeaseBatch;
      batches.push({ atMs: time.monotonicMs(), items: items.length });
      await time.sleep(ASSUMED_ANSWER_MS);
      return {
        kind: 'answered',
        status: 200,
        body: { kind: 'LeaseBatch', items: items.map(() => ({ status: 200, body: {} })) },
      };
    },
    reconnect: () => {},
  };
  const site = new HeartbeatRelay({ api, time, log: silentLog, meter: { count: () => {} } });
  const beats: { readonly atMs: number; readonly delayMs: number }[] = [];
  const machine = async (path: string): Promise<void> => {
    await time.sleep(intervalSeconds * 1_000 * random());
    for (;;) {
      const sentAtMs = time.monotonicMs();
      await site.relay({ method: 'PUT', path, token: '', body: '' });
      beats.push({ atMs: sentAtMs, delayMs: time.monotonicMs() - sentAtMs - ASSUMED_ANSWER_MS });
      await time.sleep(jitteredMs(intervalSeconds * 1_000, random()));
    }
  };
  for (let index = 0; index < machines; index += 1) void machine(`n${index}`);
  await time.pass(COLLECTING_MS);
  const oneBatch = batches.find(({ items }) => items === machines);
  const delays = beats.filter(({ atMs }) => atMs >= CONVERGED_AFTER_MS).map(({ delayMs }) => delayMs);
  const later = batches.filter(({ atMs }) => atMs >= CONVERGED_AFTER_MS).map(({ items }) => items);
  report({
    part: 'collecting',
    machines,
    intervalSeconds,
    secondsToOneBatch: oneBatch === undefined ? undefined : rounded(oneBatch.atMs / 1_000),
    // A machine counts its interval from the answer.
    meanIntervalSeconds: rounded(((COLLECTING_MS - CONVERGED_AFTER_MS) * machines) / delays.length / 1_000),
    heartbeatsPerBatch: rounded(later.reduce((sum, items) => sum + items, 0) / later.length),
    delayMsP50: rounded(percentile(delays, 0.5)),
    delayMsP99: rounded(percentile(delays, 0.99)),
    delayMsP99FromStart: rounded(
      percentile(
        beats.map(({ delayMs }) => delayMs),
        0.99,
      ),
    ),
  });
}

interface Machine {
  readonly name: string;
  readonly pair: NodeKeyPair;
  lease: KubeObject;
}

async function measureSite(count: number, report: Report): Promise<void> {
  const engine = await startEngine({});
  const proxy = await startCountingProxy(engine.endpoint);
  const local = await startLocalHost({ controllers: false, dynamodbEndpoint: proxy.endpoint });
  try {
    const [relayMachine, ...machines] = await enrolled(local, count + 1);
    const direct = await measureDirect(local, proxy, machines);
    const relayed = await measureRelayed(local, proxy, machines, relayMachine!);
    report({ part: 'direct', machines: count, ...direct, ...dollars(direct) });
    report({ part: 'relayed', machines: count, ...relayed, ...dollars(relayed) });
  } finally {
    await local.stop();
    await proxy.close();
    await engine.stop();
  }
}

interface BeatCounts {
  readonly heartbeats: number;
  readonly invocationsPerHeartbeat: number;
  readonly writeUnitsPerHeartbeat: number;
  readonly readUnits: number;
  /** Of function heartbeat on this machine. */
  readonly cpuMsPerHeartbeat: number;
  readonly answeredBytesPerHeartbeat: number;
}

/**
 * What one heartbeat every 10 s costs per node and month through the URL of the function: price of its parts. With longer
 * intervals the machines of a site do not send together (bench/cost/bill.ts).
 */
function dollars(counts: BeatCounts) {
  const prices = dollarsOf(PRICE_LIST);
  const cpuShare = MEMORY_MEGABYTES / MEGABYTES_PER_CPU;
  const lambdaMs = counts.cpuMsPerHeartbeat / cpuShare + WAIT_MS * counts.invocationsPerHeartbeat;
  const each =
    counts.writeUnitsPerHeartbeat * prices.writeUnit +
    counts.invocationsPerHeartbeat * prices.lambdaRequest +
    (lambdaMs / 1_000) * (MEMORY_MEGABYTES / 1_024) * prices.lambdaGigabyteSecond +
    (counts.answeredBytesPerHeartbeat / 1e9) * prices.dataOutGigabyte;
  return { dollarsPerNodeMonthAt10Seconds: rounded((each * SECONDS_A_MONTH) / 10, 3) };
}

async function counted(
  local: LocalHost,
  proxy: CountingProxy,
  heartbeats: number,
  act: () => Promise<unknown>,
): Promise<BeatCounts> {
  const before = await local.counters();
  proxy.take();
  await act();
  const units = proxy.take();
  const after = await local.counters();
  const [then, now] = [before.functions['heartbeat'], after.functions['heartbeat']];
  return {
    heartbeats,
    invocationsPerHeartbeat: rounded(((now?.invocations ?? 0) - (then?.invocations ?? 0)) / heartbeats),
    writeUnitsPerHeartbeat: rounded(units.writeUnits / heartbeats),
    readUnits: units.readUnits,
    cpuMsPerHeartbeat: rounded(((now?.cpuMs ?? 0) - (then?.cpuMs ?? 0)) / heartbeats),
    answeredBytesPerHeartbeat: rounded((after.http.answeredBytes - before.http.answeredBytes) / heartbeats),
  };
}

async function enrolled(local: LocalHost, count: number): Promise<Machine[]> {
  const admin = client(local, staticToken(local.token));
  try {
    return await Promise.all(
      Array.from({ length: count }, async (_, index): Promise<Machine> => {
        const name = `site-${index}`;
        const pair = nodeKeyPair('ES256');
        const create = async (path: string, body: object): Promise<KubeObject> =>
          objectIn(await admin.send({ method: 'POST', path, body }));
        await create('/apis/nodekeeper.dev/v1alpha1/nodeidentities', {
          apiVersion: 'nodekeeper.dev/v1alpha1',
          kind: 'NodeIdentity',
          metadata: { name },
          spec: { publicKey: pair.publicKey },
        });
        const node = await create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name } });
        const owner = { apiVersion: 'v1', kind: 'Node', name, uid: node.metadata.uid };
        const lease = await create(LEASES_PATH, {
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: { name, namespace: 'kube-node-lease', ownerReferences: [owner] },
          spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: renewTime() },
        });
        return { name, pair, lease };
      }),
    );
  } finally {
    admin.close();
  }
}

const renewTime = (): string => new Date().toISOString().replace('Z', '000Z');

const client = (local: Pick<LocalHost, 'url' | 'ca'>, credentials: Credentials, isRelay = false): HttpKubeApi =>
  createHttpKubeApi({
    endpoint: local.url,
    certificateAuthority: local.ca,
    credentials,
    connectionsMax: 4,
    timeoutMs: TIMEOUT_MS,
    isRelay,
  });

/** Tokens as an agent's: one for minutes, and one per relayed heartbeat. */
function credentialsOf({ name, pair }: Machine): Credentials {
  const sign = (claims: object = {}): string =>
    nodeToken(pair, { nodeName: name, nowMs: Date.now(), clusterId: CLUSTER_ID, claims });
  const beat = sign({ aud: `${CLUSTER_ID}#beat` });
  const all = sign();
  return {
    bearer: async (use) => {
      if (use.kind !== 'boundBeat') return use.kind === 'beat' ? beat : all;
      const iat = Math.floor(Date.now() / 1_000);
      return sign({ aud: `${CLUSTER_ID}#beat`, exp: iat + 30, body_sha256: sha256Of(use.body) });
    },
    answered: () => false,
  };
}

/** One heartbeat of the machine. Answers its duration in milliseconds; undefined if it was not stored (503). */
async function beat(machine: Machine, api: KubeApi): Promise<number | undefined> {
  const { lease } = machine;
  const body = { ...lease, spec: { ...lease.spec, renewTime: renewTime() } };
  const request: KubeRequest = {
    method: 'PUT',
    path: leasePath(machine.name),
    body,
    heartbeat: { intervalMs: 10_000 },
    prefersMinimal: true,
  };
  const startedMs = performance.now();
  const answer = await api.send(request);
  // The function had too little CPU time for the whole batch. An agent sends this heartbeat directly.
  if (answer.kind === 'answered' && answer.status === 503) return undefined;
  const renewed = objectIn(answer);
  const elapsedMs = performance.now() - startedMs;
  machine.lease = { ...body, metadata: { ...lease.metadata, ...renewed.metadata } };
  return elapsedMs;
}

/** All machines, round after round. Answers the durations of their heartbeats. */
async function rounds(
  count: number,
  machines: readonly (Machine & { readonly api: KubeApi })[],
): Promise<(number | undefined)[]> {
  const durations: (number | undefined)[] = [];
  for (let round = 0; round < count; round += 1) {
    durations.push(...(await Promise.all(machines.map((machine) => beat(machine, machine.api)))));
    await systemTime.sleep(ROUND_PAUSE_MS);
  }
  return durations;
}

const bytesOf = (apis: readonly HttpKubeApi[]): { readonly up: number; readonly down: number } =>
  apis
    .map((api) => api.traffic())
    .reduce(({ up, down }, { bytesUp, bytesDown }) => ({ up: up + bytesUp, down: down + bytesDown }), {
      up: 0,
      down: 0,
    });

async function measureDirect(local: LocalHost, proxy: CountingProxy, machines: readonly Machine[]) {
  const apis = machines.map((machine) => client(local, credentialsOf(machine)));
  try {
    const connected = machines.map((machine, index) => Object.assign(machine, { api: apis[index]! }));
    await rounds(WARM_UP_ROUNDS, connected);
    const before = bytesOf(apis);
    const heartbeats = ROUNDS * machines.length;
    const counts = await counted(local, proxy, heartbeats, () => rounds(ROUNDS, connected));
    const after = bytesOf(apis);
    return {
      ...counts,
      bytesUpToClusterPerHeartbeat: rounded((after.up - before.up) / heartbeats),
      bytesDownFromClusterPerHeartbeat: rounded((after.down - before.down) / heartbeats),
    };
  } finally {
    for (const api of apis) api.close();
  }
}

async function measureRelayed(
  local: LocalHost,
  proxy: CountingProxy,
  machines: readonly Machine[],
  relayMachine: Machine,
) {
  const today = { nowMs: Date.now(), validDays: 1 };
  const authority = makeSiteAuthority({ commonName: 'bench', ...today });
  const certificate = makeRelayCertificate(authority, { names: ['127.0.0.1'], ...today });
  const upstream = client(local, credentialsOf(relayMachine));
  const site = new HeartbeatRelay({ api: upstream, time: systemTime, log: silentLog, meter: { count: () => {} } });
  const server = await serveRelay({ address: '127.0.0.1', port: 0, certificate, relay: (item) => site.relay(item) });
  const at = { url: `https://127.0.0.1:${server.port}`, ca: authority.certificatePem };
  const apis = machines.map((machine) => client(at, credentialsOf(machine), true));
  try {
    const connected = machines.map((machine, index) => Object.assign(machine, { api: apis[index]! }));
    await rounds(WARM_UP_ROUNDS, connected);
    const [before, siteBefore] = [bytesOf([upstream]), bytesOf(apis)];
    const heartbeats = ROUNDS * machines.length;
    let durations: (number | undefined)[] = [];
    const counts = await counted(local, proxy, heartbeats, async () => {
      durations = await rounds(ROUNDS, connected);
    });
    const [after, siteAfter] = [bytesOf([upstream]), bytesOf(apis)];
    const stored = durations.filter((each) => each !== undefined);
    return {
      ...counts,
      bytesUpToClusterPerHeartbeat: rounded((after.up - before.up) / heartbeats),
      bytesDownFromClusterPerHeartbeat: rounded((after.down - before.down) / heartbeats),
      bytesInSitePerHeartbeat: rounded((siteAfter.up - siteBefore.up + siteAfter.down - siteBefore.down) / heartbeats),
      notStored: durations.length - stored.length,
      roundMsP50: rounded(percentile(stored, 0.5)),
      roundMsP99: rounded(percentile(stored, 0.99)),
    };
  } finally {
    for (const api of [...apis, upstream]) api.close();
    await server.close();
  }
}

function objectIn(answer: Awaited<ReturnType<KubeApi['send']>>): KubeObject {
  if (answer.kind === 'failed') throw new Error('no answer', { cause: answer.cause });
  if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`);
  return answer.body as KubeObject;
}
