/**
 * Counts what local mode does: requests of simulated machines, the bundled functions, the template's schedules, queues
 * and streams, and the consumed units of each request. First an idle cluster, then fleets with heartbeats, then single
 * operations.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { ScanCommand } from '@aws-sdk/client-dynamodb';
import { leasePath } from '../../agent/rules/lease.ts';
import { readAssembly } from '../../aws-local/assembly/assembly.ts';
import { synthesise } from '../../aws-local/assembly/synthesise.ts';
import { tendStreamRecords } from '../../aws-local/engine/stream-records.ts';
import type { LocalCounters } from '../../aws-local/runtime.ts';
import { type ApiAnswer, type ApiClient, createApiClient } from '../../demo/fleet/api-client.ts';
import type { Fleet } from '../../demo/fleet/fleet.ts';
import { startFleet } from '../../demo/fleet/index.ts';
import { itemFromWire } from '../../shared/aws/dynamodb-expression.ts';
import { COST_DOLLARS_PER_DAY, TICK_UNITS } from '../../shared/fleet/mark-metrics.ts';
import { LEASE_BATCH_API_VERSION, LEASE_BATCH_KIND, LEASE_BATCHES_PATH } from '../../shared/fleet/nodes/lease-batch.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeNode, KubeObject } from '../../shared/kinds/types.ts';
import { formatMicroTime } from '../../shared/kubernetes/time.ts';
import { itemBytes } from '../../shared/store/item-store.ts';
import { startEngine, type TestEngine } from '../../test/support/engine.ts';
import { secondsUntil } from '../benchmark.ts';
import { type CountingProxy, startCountingProxy, type UnitCounts } from '../counting-proxy.ts';
import { type LocalHost, startLocalHost } from '../local-host.ts';
import { type Measurement, NOTHING, notNegative, plus, type Taken, times, type Window } from './measurement.ts';
import { standingOf } from './standing.ts';

export interface MeasureOptions {
  /** Sizes of the fleets, ascending. */
  readonly fleets: readonly number[];
  /** Measured time of each fleet. Seconds. */
  readonly seconds: number;
  readonly idleSeconds: number;
  onStep(line: string): void;
}

const ZONES = 3;
const REGISTRATION_LIMIT_MS = 60_000;
/** Time until registrations, first taints and events have passed through the streams. */
const SETTLE_MS = 25_000;
/** Time until schedules have fired and pod-gc has made its first sweep, one per quarter of an hour. */
const SETTLE_IDLE_MS = 90_000;
/** Time until the streams are read after the last operation. */
const STREAM_LAG_MS = 3_000;
const ACTS = 200;
const ACTS_AT_ONCE = 4;
/** Batches of heartbeats per size, and their sizes. */
const BATCHES = 60;
const BATCH_SIZES = [5, 25];
const PODS = 40;
/** A machine receives a pod with its next heartbeat, posts, and sends another heartbeat. */
const POD_STEP_MS = 30_000;
const WATCH_MS = 20_000;
const QUIET_SECONDS = 1_000_000;
/** Emitted so rarely that a measured minute contains them only by chance (shared/cost/running-cost.ts). */
const QUARTERLY_METRICS: readonly string[] = [COST_DOLLARS_PER_DAY, TICK_UNITS];
const TABLES = { health: /health/i, objects: /objects/i, control: /control/i } as const;
const NODES = '/api/v1/nodes';
const PODS_PATH = '/api/v1/namespaces/default/pods';
const STRATEGIC = 'application/strategic-merge-patch+json';

export async function measureCost(options: MeasureOptions): Promise<Measurement> {
  const projectDirectory = fileURLToPath(new URL('../..', import.meta.url));
  const { directory } = await synthesise({ projectDirectory, context: {}, inputFiles: [], mode: 'auto' });
  const standing = standingOf(readAssembly(directory).template);
  const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-cost-'));
  const dbPath = join(folder, 'engine.sqlite');
  const engine = await startEngine({ dbPath });
  const proxy = await startCountingProxy(engine.endpoint);
  let local: LocalHost | undefined;
  try {
    local = await startLocalHost({
      assemblyDirectory: directory,
      dynamodbEndpoint: proxy.endpoint,
      dataDirectory: join(folder, 'data'),
    });
    tendStreamRecords(dbPath, Date.now());
    const run = new Run(options, { engine, proxy, local, metricsFile: join(folder, 'data', 'metrics.jsonl') });
    return { ...(await run.all()), standing };
  } finally {
    await local?.stop();
    await proxy.close();
    await engine.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Parts {
  readonly engine: TestEngine;
  readonly proxy: CountingProxy;
  readonly local: LocalHost;
  readonly metricsFile: string;
}

class Run {
  readonly #options: MeasureOptions;
  readonly #parts: Parts;
  #tableNames: readonly string[] = [];

  constructor(options: MeasureOptions, parts: Parts) {
    this.#options = options;
    this.#parts = parts;
  }

  async all(): Promise<Omit<Measurement, 'standing'>> {
    const { onStep, seconds, idleSeconds, fleets: sizes } = this.#options;
    await pause(SETTLE_IDLE_MS);
    onStep(`an idle cluster for ${idleSeconds} s`);
    const metricsBefore = this.#metricLines();
    const idle = await this.#window(() => pause(idleSeconds * 1_000));
    const fixedMetrics = this.#seriesSince(metricsBefore);
    const fleets: (Window & { nodes: number; beats: number })[] = [];
    let steadyFrom = 0;
    let fleet: Fleet | undefined;
    try {
      for (const nodes of sizes) {
        fleet = await this.#grown(fleet, nodes);
        onStep(`${nodes} nodes for ${seconds} s`);
        const beats = fleet.status().beats;
        steadyFrom = this.#metricLines();
        const window = await this.#window(() => pause(seconds * 1_000));
        fleets.push({ nodes, beats: fleet.status().beats - beats, ...window });
      }
      const metricsOfFleet = this.#seriesSince(steadyFrom);
      const background = backgroundOf(fleet!, idle, fleets.at(-1)!);
      const { each, bytes } = await this.#acts(background);
      // Batches renew the Leases. A machine would then read its Lease and repeat its heartbeat.
      await fleet?.stop();
      fleet = undefined;
      const batches = await this.#batches(background);
      return {
        measuredOn: new Date().toISOString().slice(0, 10),
        machine: `${cpus()[0]?.model ?? 'unknown'}, ${cpus().length} cores, Node ${process.version}`,
        tickSeconds: defaultPolicy.nodeMonitorPeriodSeconds,
        zones: ZONES,
        metrics: {
          fixed: fixedMetrics.size,
          perZone: Math.max(0, metricsOfFleet.size - fixedMetrics.size) / ZONES,
          quarterly: QUARTERLY_METRICS.length,
        },
        bytes,
        idle,
        fleets,
        batches,
        each,
      };
    } finally {
      await fleet?.stop();
    }
  }

  async #grown(before: Fleet | undefined, nodes: number): Promise<Fleet> {
    await before?.stop();
    const { url, ca, fleetToken } = this.#parts.local;
    const fleet = startFleet({
      url,
      ca,
      token: fleetToken,
      nodes,
      statusIntervalSeconds: QUIET_SECONDS,
      lookIntervalSeconds: QUIET_SECONDS,
    });
    if ((await secondsUntil(() => fleet.status().registered >= nodes, REGISTRATION_LIMIT_MS)) === undefined) {
      throw new Error(`${fleet.status().registered} of ${nodes} machines could register`);
    }
    await pause(SETTLE_MS);
    return fleet;
  }

  async #acts(background: Background): Promise<Pick<Measurement, 'each' | 'bytes'>> {
    const { local } = this.#parts;
    const { onStep } = this.#options;
    const client = createApiClient({
      url: local.url,
      ca: local.ca,
      token: local.fleetToken,
      connectionsMax: ACTS_AT_ONCE,
      timeoutMs: 30_000,
    });
    try {
      const nodes = await listedNodes(client);
      const nameAt = (index: number): string => nodes[index % nodes.length]!.metadata.name!;
      const many = (what: string, act: (index: number) => Promise<unknown>) => {
        onStep(`${ACTS} ${what}`);
        return this.#each(background, ACTS, () => actsOf(ACTS, act));
      };
      // The first of each may have something else to report.
      const post = (index: number) =>
        postStatus(client, nodes[index % nodes.length]!, Math.floor(index / nodes.length));
      await actsOf(nodes.length, (index) => post(index));
      const statusPost = await many('status posts', (index) => post(index + nodes.length));
      const podLife = await this.#podLives(background, client, nameAt);
      const podList = await many('lists of pods', async (index) =>
        objectIn(
          await client.send({ method: 'GET', path: `/api/v1/pods?fieldSelector=spec.nodeName%3D${nameAt(index)}` }),
        ),
      );
      onStep('a watch');
      const end = await holdWatch(local);
      await pause(2_000);
      const watchSecond = await this.#each(background, WATCH_MS / 1_000, () => pause(WATCH_MS - STREAM_LAG_MS));
      end();
      return {
        each: {
          statusPost,
          podList,
          podLife: podLife.taken,
          // Its time is that of one open environment.
          watchSecond: { ...NOTHING, tables: { objects: watchSecond.tables['objects']! } },
        },
        bytes: {
          healthRow: await this.#healthRowBytes(),
          node: JSON.stringify(nodes[0]).length,
          pod: podLife.bytes,
        },
      };
    } finally {
      client.close();
    }
  }

  /** Batches renew the Leases of machines that are stopped. */
  async #batches(background: Background): Promise<NonNullable<Measurement['batches']>> {
    const { local } = this.#parts;
    const { url, ca, fleetToken: token } = local;
    const client = createApiClient({ url, ca, token, connectionsMax: ACTS_AT_ONCE, timeoutMs: 30_000 });
    try {
      const nodes = await listedNodes(client);
      const nameAt = (index: number): string => nodes[index % nodes.length]!.metadata.name!;
      const batches: { items: number; taken: Taken }[] = [];
      for (const items of BATCH_SIZES) {
        this.#options.onStep(`${BATCHES} batches of ${items} heartbeats`);
        const taken = await this.#each(background, BATCHES, () =>
          actsOf(BATCHES, (index) => sendBatch(client, token, { items, index, nameAt })),
        );
        batches.push({ items, taken });
      }
      return batches;
    } finally {
      client.close();
    }
  }

  async #podLives(
    background: Background,
    client: ApiClient,
    nodeName: (index: number) => string,
  ): Promise<{ readonly taken: Taken; readonly bytes: number }> {
    this.#options.onStep(`${PODS} pods from creation to end`);
    let bytes = 0;
    const taken = await this.#each(background, PODS, async () => {
      await actsOf(PODS, async (index) => {
        const spec = { nodeName: nodeName(index), containers: [{ name: 'c', image: 'registry.example/app:1' }] };
        const body = { metadata: { name: `cost-${index}` }, spec };
        objectIn(await client.send({ method: 'POST', path: PODS_PATH, body }));
      });
      await pause(POD_STEP_MS);
      bytes = JSON.stringify(objectIn(await client.send({ method: 'GET', path: `${PODS_PATH}/cost-0` }))).length;
      await actsOf(PODS, async (index) => {
        objectIn(await client.send({ method: 'DELETE', path: `${PODS_PATH}/cost-${index}?gracePeriodSeconds=1` }));
      });
      await pause(POD_STEP_MS);
    });
    return { taken, bytes };
  }

  /** The counts of one of `count` operations, without the background load. */
  async #each(background: Background, count: number, acts: () => Promise<unknown>): Promise<Taken> {
    const beats = background.beats();
    const { taken, seconds } = await this.#window(async () => {
      await acts();
      await pause(STREAM_LAG_MS);
    });
    const meanwhile = background.of(seconds, background.beats() - beats);
    return notNegative(times(plus(taken, meanwhile, -1), 1 / count));
  }

  async #window(what: () => Promise<unknown>): Promise<Window> {
    const { local, proxy } = this.#parts;
    const before = await local.counters();
    proxy.take();
    const startedMs = performance.now();
    await what();
    const after = await local.counters();
    const units = proxy.take();
    this.#tableNames = [...new Set([...this.#tableNames, ...Object.keys(units.tables)])];
    return { seconds: (performance.now() - startedMs) / 1_000, taken: takenBetween(before, after, units) };
  }

  #metricLines(): number {
    return existsSync(this.#parts.metricsFile) ? readFileSync(this.#parts.metricsFile, 'utf8').split('\n').length : 0;
  }

  #seriesSince(line: number): Set<string> {
    const { metricsFile } = this.#parts;
    if (!existsSync(metricsFile)) return new Set();
    const lines = readFileSync(metricsFile, 'utf8').split('\n');
    return seriesOf(lines.slice(Math.max(0, line - 1)), (name) => !QUARTERLY_METRICS.includes(name));
  }

  async #healthRowBytes(): Promise<number> {
    const { engine } = this.#parts;
    const TableName = this.#tableNames.find((name) => TABLES.health.test(name));
    if (TableName === undefined) throw new Error('nothing was written to the health table');
    const { Items: items = [] } = await engine.client.send(new ScanCommand({ TableName }));
    return items.reduce((sum, item) => sum + itemBytes(itemFromWire(item)), 0) / Math.max(1, items.length);
  }
}

/** Background load during an operation: the ticks of that time, and its heartbeats. */
interface Background {
  beats(): number;
  of(seconds: number, beats: number): Taken;
}

function backgroundOf(fleet: Fleet, idle: Window, beating: Window & { readonly beats: number }): Background {
  const aSecond = times(idle.taken, 1 / idle.seconds);
  const aBeat = times(plus(beating.taken, aSecond, -beating.seconds), 1 / beating.beats);
  return {
    beats: () => fleet.status().beats,
    of: (seconds, beats) => plus(times(aSecond, seconds), aBeat, beats),
  };
}

/** Each combination of name and dimensions is billed as a metric. */
export function seriesOf(lines: readonly string[], counts = (_name: string): boolean => true): Set<string> {
  const series = new Set<string>();
  for (const line of lines.filter((text) => text.startsWith('{'))) {
    const record = JSON.parse(line) as Record<string, unknown> & {
      _aws?: { CloudWatchMetrics?: { Namespace: string; Dimensions: string[][]; Metrics: { Name: string }[] }[] };
    };
    for (const { Namespace, Dimensions, Metrics } of record._aws?.CloudWatchMetrics ?? []) {
      for (const names of Dimensions) {
        const dimensions = names.map((name) => `${name}=${String(record[name])}`).join(',');
        for (const { Name } of Metrics) if (counts(Name)) series.add(`${Namespace} ${Name} ${dimensions}`);
      }
    }
  }
  return series;
}

function takenBetween(before: LocalCounters, after: LocalCounters, units: UnitCounts): Taken {
  const functions = Object.entries(after.functions).map(([name, report]) => {
    const then = before.functions[name];
    const invocations = report.invocations - (then?.invocations ?? 0);
    const billedMs = report.billedMs - (then?.billedMs ?? 0);
    // Less than before when an environment was replaced.
    const cpuMs = Math.max(0, report.cpuMs - (then?.cpuMs ?? 0));
    return [name, { invocations, billedMs, cpuMs }];
  });
  const sum = <Each>(of: (counters: LocalCounters) => Readonly<Record<string, Each>>, pick: (each: Each) => number) =>
    [after, before].reduce(
      (total, counters, index) =>
        total + (index === 0 ? 1 : -1) * Object.values(of(counters)).reduce((all, each) => all + pick(each), 0),
      0,
    );
  const tables = Object.entries(TABLES).map(([table, pattern]) => {
    const own = Object.entries(units.tables).filter(([name]) => pattern.test(name));
    return [
      table,
      {
        readUnits: own.reduce((all, [, each]) => all + each.readUnits, 0),
        writeUnits: own.reduce((all, [, each]) => all + each.writeUnits, 0),
      },
    ];
  });
  return {
    httpRequests: after.http.requests - before.http.requests,
    answeredBytes: after.http.answeredBytes - before.http.answeredBytes,
    schedulerInvocations: after.schedulesFired - before.schedulesFired,
    messages: sum(
      ({ queues }) => queues,
      ({ deleted }) => deleted,
    ),
    streamRecords: sum(
      ({ streams }) => streams,
      ({ read }) => read,
    ),
    logBytes: sum(
      ({ functions: all }) => all,
      ({ logBytes }) => logBytes,
    ),
    functions: Object.fromEntries(functions),
    tables: Object.fromEntries(tables),
  };
}

async function actsOf(count: number, act: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      await act(next - 1);
    }
  };
  await Promise.all(Array.from({ length: ACTS_AT_ONCE }, work));
}

/** Posts a status as a kubelet does when nothing changed for five minutes. */
async function postStatus(client: ApiClient, { metadata, status }: KubeNode, round: number): Promise<void> {
  const lastHeartbeatTime = new Date(Date.now() + (round + 1) * 300_000).toISOString().replace(/\.\d+/, '');
  const conditions = (status?.conditions ?? []).map((condition) => ({ ...condition, lastHeartbeatTime }));
  objectIn(
    await client.send({
      method: 'PATCH',
      path: `${NODES}/${metadata.name}/status`,
      contentType: STRATEGIC,
      body: { status: { conditions } },
    }),
  );
}

async function listedNodes(client: ApiClient): Promise<readonly KubeNode[]> {
  const list = objectIn(await client.send({ method: 'GET', path: `${NODES}?limit=500` }));
  return (list as { items?: readonly KubeNode[] }).items ?? [];
}

interface BatchOfHeartbeats {
  readonly items: number;
  readonly index: number;
  nameAt(index: number): string;
}

/** Sends, as a relay does, the heartbeats of some machines in one request, each with a token. */
async function sendBatch(client: ApiClient, token: string, { items, index, nameAt }: BatchOfHeartbeats): Promise<void> {
  const renewTime = formatMicroTime(Date.now());
  const answer = objectIn(
    await client.send({
      method: 'POST',
      path: LEASE_BATCHES_PATH,
      body: {
        apiVersion: LEASE_BATCH_API_VERSION,
        kind: LEASE_BATCH_KIND,
        items: Array.from({ length: items }, (_, offset) => {
          const name = nameAt(index * items + offset);
          const body = JSON.stringify({ spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime } });
          return { method: 'PATCH', path: leasePath(name), token, body };
        }),
      },
    }),
  ) as KubeObject & { readonly items: readonly { readonly status: number }[] };
  const refused = answer.items.find(({ status }) => status !== 200);
  if (refused !== undefined) throw new Error(`an item of a batch was answered ${refused.status}`);
}

function objectIn(answer: ApiAnswer): KubeObject {
  if (answer.kind === 'failed') throw new Error('no answer', { cause: answer.cause });
  if (answer.status >= 300) throw new Error(`${answer.status} ${JSON.stringify(answer.body).slice(0, 300)}`);
  return answer.body as KubeObject;
}

/** Follows the redirect to the streaming function and stays connected. Returns a callback that closes it. */
function holdWatch(local: LocalHost, url = new URL(`${NODES}?watch=true`, local.url), hops = 2): Promise<() => void> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${local.token}` };
    const sent = httpsRequest(url, { ca: local.ca, headers }, (answer) => {
      answer.resume().on('error', () => {});
      const { location } = answer.headers;
      if (answer.statusCode === 307 && location !== undefined && hops > 0) {
        resolve(holdWatch(local, new URL(location), hops - 1));
      } else if (answer.statusCode === 200) resolve(() => sent.destroy());
      else reject(new Error(`a watch was answered ${answer.statusCode}`));
    });
    sent.on('error', reject);
    sent.end();
  });
}
