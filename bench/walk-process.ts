/**
 * The process that measures the walks: handlers over the embedded engine, in one process with coverage. Its clock is
 * virtual: nothing waits. Changes of objects reach each function by its stream filter.
 */
import { fork } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { connectEngine, type Engine } from '../aws-local/engine/engine.ts';
import { compileFilters, type EventFilter } from '../aws-local/streams/filter.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import { type NodeKeyPair, nodeKeyPair, nodeToken } from '../test/support/node-key-pair.ts';
import { type EnteredFiles, startCoverage } from './entered-files.ts';

export interface WalkOrder {
  readonly endpoint: string;
  readonly adminToken: string;
  /** By name of the function. */
  readonly environments: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly streams: readonly {
    readonly tableName: string;
    readonly functionName: string;
    readonly filterPatterns: readonly string[];
  }[];
}

export interface Walk {
  readonly name: string;
  /** Paths of the files that were entered. */
  readonly files: readonly string[];
}

const FUNCTIONS = [
  'api',
  'heartbeat',
  'node-monitor',
  'evictor',
  'object-stream',
  'health-stream',
  'workloads',
  'scheduler',
] as const;
type FunctionName = (typeof FUNCTIONS)[number];

const SEED = 3_001;
const PERIOD_MS = 5_000;
const NODES = ['walk-0', 'walk-1', 'walk-2', 'walk-3', 'walk-4'];
const SILENT = 'walk-4';
/** Until a silent node is tainted and its pod is deleted, or a pod is bound. */
const TICKS_MAX = 40;
const ROUNDS_MAX = 20;
const BUDGET_MS = 10_000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const PODS = '/api/v1/namespaces/default/pods';
const MERGE = 'application/merge-patch+json';

/** Forks, waits, and answers what the process entered. */
export async function takeWalks(order: WalkOrder): Promise<readonly Walk[]> {
  // The output of the handlers is dropped.
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(order)], {
    // Code from the cache has no positions, so the functions that it enters are not counted.
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: '1' },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  return await new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as readonly Walk[]));
    child.once('exit', (code) => reject(new Error(`the walks ended with code ${code}`)));
    child.once('error', reject);
  });
}

type Handler = (event: unknown, context: object) => Promise<{ statusCode?: number; body?: string } | undefined>;
type WireItem = Readonly<Record<string, { readonly S?: string }>>;

/** Stands still while code runs: what runs does not depend on the machine. No work of an hour or a quarter is due. */
let nowMs = Date.UTC(2026, 0, 1, 0, 7, 10);

class World {
  readonly #order: WalkOrder;
  readonly #engine: Engine;
  readonly #coverage: EnteredFiles;
  readonly #requests: ReturnType<typeof openRequests>;
  readonly #handlers: ReadonlyMap<FunctionName, Handler>;
  readonly #streams: readonly { readonly tableName: string; readonly to: FunctionName; readonly passes: EventFilter }[];
  readonly #pair: NodeKeyPair = nodeKeyPair();
  /** As an agent does, a node signs a token and sends it with each heartbeat until it expires. */
  readonly #tokens = new Map<string, string>();
  /** Rows of each table as the streams have reported them. */
  readonly #seen = new Map<string, ReadonlyMap<string, WireItem>>();

  constructor(of: {
    readonly order: WalkOrder;
    readonly engine: Engine;
    readonly coverage: EnteredFiles;
    readonly requests: ReturnType<typeof openRequests>;
    readonly handlers: ReadonlyMap<FunctionName, Handler>;
  }) {
    const { order } = of;
    this.#order = order;
    this.#engine = of.engine;
    this.#coverage = of.coverage;
    this.#requests = of.requests;
    this.#handlers = of.handlers;
    this.#streams = order.streams.map(({ tableName, functionName, filterPatterns }) => ({
      tableName,
      to: functionName as FunctionName,
      passes: compileFilters(filterPatterns, functionName),
    }));
  }

  async fill(): Promise<void> {
    for (const name of NODES) {
      await this.asAdmin('POST', '/apis/nodekeeper.dev/v1alpha1/nodeidentities', {
        metadata: { name },
        spec: { publicKey: this.#pair.publicKey },
      });
      const labels = { 'topology.kubernetes.io/zone': 'zone-a' };
      await this.asAdmin('POST', '/api/v1/nodes', { metadata: { name, labels } });
      const status = {
        conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }],
        allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
      };
      await this.asAdmin('PATCH', `/api/v1/nodes/${name}/status`, { status });
      const spec = { holderIdentity: name, leaseDurationSeconds: 40 };
      await this.asAdmin('POST', LEASES, { metadata: { name }, spec });
    }
    const tolerations = ['not-ready', 'unreachable'].map((taint) => ({
      ...{ key: `node.kubernetes.io/${taint}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1 },
    }));
    const spec = { nodeName: SILENT, containers: [{ name: 'walk', image: 'walk' }], tolerations };
    await this.asAdmin('POST', PODS, { metadata: { name: 'walk' }, spec });
    await this.deliver();
  }

  async heartbeat(): Promise<Walk> {
    // The first one reads keys and checks the signature of the token; those that follow do not.
    await this.#beat(NODES[0]!);
    return this.#walk('heartbeat', () => this.#beat(NODES[0]!));
  }

  async quietTick(): Promise<Walk> {
    for (let ticks = 0; ticks < 3; ticks += 1) await this.#passPeriod();
    await this.#passBeats();
    return this.#walk('quiet tick of node-monitor', () => this.#tickNodeMonitor());
  }

  async patch(): Promise<Walk> {
    const patchLabel = (value: string) => () =>
      this.asAdmin('PATCH', `/api/v1/nodes/${NODES[0]}`, { metadata: { labels: { walk: value } } });
    await patchLabel('first')();
    return this.#walk('label patch of a Node', patchLabel('second'));
  }

  /** From the request to the bound pod. */
  async deployment(): Promise<Walk> {
    const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'walk', image: 'walk' }] } };
    const spec = { replicas: 1, selector: { matchLabels: { app: 'web' } }, template };
    await this.#passPeriod();
    return this.#walk('Deployment, until its pod is bound', async () => {
      await this.asAdmin('POST', '/apis/apps/v1/namespaces/default/deployments', { metadata: { name: 'web' }, spec });
      await this.deliver();
      for (let ticks = 0; ticks < TICKS_MAX; ticks += 1) {
        await this.#wake('scheduler');
        await this.deliver();
        const { items } = JSON.parse(await this.asAdmin('GET', `${PODS}?labelSelector=app%3Dweb`));
        if (items.length === 1 && items[0].spec.nodeName !== undefined) return;
        await this.#passPeriod();
      }
      throw new Error(`no pod was bound in ${TICKS_MAX} ticks`);
    });
  }

  /** From the taint to the deleted pod: runs of evictor that changed something, and what the streams did after each. */
  async eviction(): Promise<Walk> {
    const files = new Set<string>();
    for (let ticks = 0; ticks < TICKS_MAX; ticks += 1) {
      await this.#passPeriod();
      await this.#requests.quiet();
      let changes = 0;
      const entered = await this.#coverage.during(async () => {
        await this.#wake('evictor');
        changes = await this.deliver();
      });
      if (changes === 0) continue;
      for (const path of entered) files.add(path);
      const pod = JSON.parse(await this.asAdmin('GET', `${PODS}/walk`));
      if (pod.metadata.deletionTimestamp === undefined) continue;
      return { name: 'eviction: taint, timer of its pod, deletion', files: [...files].sort() };
    }
    throw new Error(`no pod was evicted in ${TICKS_MAX} ticks`);
  }

  async #walk(name: string, work: () => Promise<unknown>): Promise<Walk> {
    // A tick does not wait for its probe, nor a request for its audit line.
    await this.#requests.quiet();
    return { name, files: await this.#coverage.during(work) };
  }

  /** A period passes, in which all nodes but the silent one send heartbeats. */
  async #passBeats(): Promise<void> {
    nowMs += PERIOD_MS;
    for (const name of NODES) if (name !== SILENT) await this.#beat(name);
  }

  /** The same, a tick of node-monitor, and its changes are delivered. */
  async #passPeriod(): Promise<void> {
    await this.#passBeats();
    await this.#tickNodeMonitor();
    await this.deliver();
  }

  async #beat(nodeName: string): Promise<void> {
    const clusterId = this.#order.environments['heartbeat']?.['CLUSTER_ID'] ?? '';
    const token = this.#tokens.get(nodeName) ?? nodeToken(this.#pair, { nodeName, nowMs, clusterId });
    this.#tokens.set(nodeName, token);
    const renewTime = new Date(nowMs).toISOString().replace('Z', '000Z');
    await this.#send('heartbeat', 'PATCH', `${LEASES}/${nodeName}`, token, { spec: { renewTime } });
  }

  async #tickNodeMonitor(): Promise<void> {
    const body = JSON.stringify({ slot: Math.floor(nowMs / PERIOD_MS) });
    const outcome = await this.#invoke('node-monitor', { Records: [{ messageId: 'tick', body }] });
    const { batchItemFailures } = outcome as { readonly batchItemFailures: readonly unknown[] };
    if (batchItemFailures.length > 0) throw new Error('a tick failed');
  }

  #wake = (name: FunctionName) => this.#invoke(name, { wakeUpAtMs: nowMs });

  #invoke(name: FunctionName, event: object) {
    return this.#handlers.get(name)!(event, { getRemainingTimeInMillis: () => BUDGET_MS });
  }

  asAdmin(method: string, path: string, body?: object): Promise<string> {
    return this.#send('api', method, path, this.#order.adminToken, body);
  }

  /** One request as API Gateway passes it on. Answers the body. @throws on any status but 2xx */
  async #send(to: FunctionName, method: string, path: string, token: string, body?: object): Promise<string> {
    const [rawPath, rawQueryString = ''] = path.split('?');
    const type = method === 'PATCH' ? MERGE : 'application/json';
    const response = await this.#invoke(to, {
      rawPath,
      rawQueryString,
      headers: { authorization: `Bearer ${token}`, 'content-type': type },
      body: JSON.stringify(body),
      isBase64Encoded: false,
      requestContext: { http: { method, path: rawPath, sourceIp: '192.0.2.1' } },
    });
    if (response?.statusCode === undefined || response.statusCode >= 300) {
      throw new Error(`${method} ${path}: ${response?.statusCode} ${response?.body}`);
    }
    return response.body ?? '';
  }

  /**
   * Sends changes to the functions of the streams, and those that they make, until there are none. Answers how many.
   */
  async deliver(): Promise<number> {
    let delivered = 0;
    for (let round = 0; round < ROUNDS_MAX; round += 1) {
      const before = delivered;
      for (const table of new Set(this.#streams.map(({ tableName }) => tableName))) {
        delivered += await this.#deliverFrom(table);
      }
      if (delivered === before) return delivered;
    }
    throw new Error('the streams never come to rest');
  }

  async #deliverFrom(table: string): Promise<number> {
    const seen = this.#seen.get(table) ?? new Map<string, WireItem>();
    const current = await this.#rowsOf(table);
    this.#seen.set(table, current);
    const keys = new Set([...seen.keys(), ...current.keys()]);
    const records = [...keys].flatMap((key) => recordOf(seen.get(key), current.get(key)));
    let delivered = 0;
    for (const { tableName, to, passes } of this.#streams) {
      const passed = tableName === table ? records.filter(passes) : [];
      if (passed.length === 0) continue;
      delivered += passed.length;
      await this.#invoke(to, { Records: passed });
    }
    return delivered;
  }

  /** One page: a handful of objects. */
  async #rowsOf(table: string): Promise<ReadonlyMap<string, WireItem>> {
    const answer = await this.#engine.client.call('DynamoDB_20120810.Scan', { TableName: table, ConsistentRead: true });
    return new Map((answer['Items'] as WireItem[]).map((row) => [`${row['pk']?.S} ${row['sk']?.S}`, row]));
  }
}

function recordOf(before: WireItem | undefined, after: WireItem | undefined): readonly object[] {
  const present = after ?? before;
  if (present === undefined || isDeepStrictEqual(before, after)) return [];
  return [
    {
      eventName: before === undefined ? 'INSERT' : after === undefined ? 'REMOVE' : 'MODIFY',
      dynamodb: {
        Keys: { pk: present['pk'], sk: present['sk'] },
        ...(before === undefined ? {} : { OldImage: before }),
        ...(after === undefined ? {} : { NewImage: after }),
        SequenceNumber: '1',
      },
    },
  ];
}

/** Of the event loop, from an answer until its client has read it. */
const TURNS_OF_CLIENT = 50;

/** Requests of this process, from their creation until their answer was received, by fetch and by node:http. */
function openRequests(): { quiet(): Promise<void> } {
  let open = 0;
  const end = (): void => {
    open -= 1;
  };
  const begin = (): void => {
    open += 1;
  };
  for (const name of ['undici:request:create', 'http.client.request.start']) subscribe(name, begin);
  for (const name of ['undici:request:trailers', 'undici:request:error', 'http.client.request.error']) {
    subscribe(name, end);
  }
  subscribe('http.client.response.finish', (message) => {
    (message as { readonly response: IncomingMessage }).response.once('close', end);
  });
  return {
    async quiet() {
      for (let turns = 0; turns < TURNS_OF_CLIENT; turns = open === 0 ? turns + 1 : 0) {
        await new Promise(setImmediate);
      }
    },
  };
}

/** Accepts audit lines, wake-ups, events, and heartbeats of the probe. Answers its address. */
async function startServices(): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().on('end', () => outgoing.writeHead(200).end('{}'));
  }).listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function run(order: WalkOrder): Promise<readonly Walk[]> {
  Date.now = () => nowMs;
  Math.random = seededFraction(SEED);
  const requests = openRequests();
  const services = await startServices();
  const endpoints = Object.fromEntries(
    ['CLOUDWATCH_LOGS', 'EVENTBRIDGE', 'SQS', 'LAMBDA'].map((name) => [`AWS_ENDPOINT_URL_${name}`, services]),
  );
  const coverage = await startCoverage();
  const handlers = new Map<FunctionName, Handler>();
  for (const name of FUNCTIONS) {
    // A handler reads its environment when it loads.
    Object.assign(process.env, order.environments[name], endpoints, {
      AWS_REGION: 'eu-central-1',
      AWS_ACCESS_KEY_ID: 'local',
      AWS_SECRET_ACCESS_KEY: 'local',
      AWS_ENDPOINT_URL_DYNAMODB: order.endpoint,
      POWERTOOLS_LOG_LEVEL: 'WARN',
      PROBE_URL: services,
    });
    // A file of the bundle.
    delete process.env['ACCESS_ENTRIES_FILE'];
    const { handler } = (await import(`../functions/${name}/handler.ts`)) as { readonly handler: Handler };
    handlers.set(name, handler);
  }
  const world = new World({ order, engine: await connectEngine(order.endpoint), coverage, requests, handlers });
  await world.fill();
  return [
    await world.heartbeat(),
    await world.quietTick(),
    await world.patch(),
    await world.deployment(),
    await world.eviction(),
  ];
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  process.send(await run(JSON.parse(process.argv[2] ?? '{}') as WalkOrder));
  process.disconnect?.();
}
