/**
 * The process that measures the walks: the deployed handlers over the embedded engine, in one process with coverage.
 * Its clock is moved forward: nothing waits. Lines of the handlers' loggers are dropped.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { connectEngine, type Engine } from '../local/engine/engine.ts';
import { dynamoDbClient } from '../shared/adapters/dynamodb/client.ts';
import { dynamoDbItemStore } from '../shared/adapters/dynamodb/item-store.ts';
import type { TableName } from '../shared/ports/item-store.ts';
import { nodeKeyStore } from '../shared/store/node-key-store.ts';
import { type NodeKeyPair, nodeKeyPair, nodeToken } from '../test/support/node-key-pair.ts';
import { type EnteredFiles, startCoverage } from './entered-files.ts';

export interface WalkOrder {
  readonly endpoint: string;
  readonly tables: Readonly<Record<TableName, string>>;
}

export interface Walk {
  readonly name: string;
  /** Paths of the files that were entered. */
  readonly files: readonly string[];
}

const CLUSTER_ID = 'walks';
const ADMIN_TOKEN = 'administrator';
const REGION = 'eu-central-1';
const PERIOD_MS = 5_000;
const NODES = ['walk-0', 'walk-1', 'walk-2', 'walk-3', 'walk-4'];
const SILENT = 'walk-4';
/** Until a silent node is tainted and its pod is deleted: some 12 are needed. */
const TICKS_MAX = 40;
const ROUNDS_MAX = 10;
const BUDGET_MS = 10_000;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const MERGE = 'application/merge-patch+json';

/** Forks, waits, and answers what the process entered. */
export async function takeWalks(order: WalkOrder): Promise<readonly Walk[]> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(order)], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  return await new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as readonly Walk[]));
    child.once('exit', (code) => reject(new Error(`the walks ended with code ${code}`)));
    child.once('error', reject);
  });
}

type Invoke = (event: object, context?: object) => Promise<{ statusCode?: number; body?: string }>;
type WireItem = Readonly<Record<string, { readonly S?: string }>>;

/** The deployed handlers and what calls them. */
interface World {
  readonly engine: Engine;
  readonly objectsTable: string;
  readonly coverage: EnteredFiles;
  readonly handlers: Readonly<Record<'api' | 'heartbeat' | 'nodeMonitor' | 'evictor' | 'objectStream', Invoke>>;
  readonly pair: NodeKeyPair;
  /** Rows of Nodes and pods that object-stream has received. */
  seen: ReadonlyMap<string, WireItem>;
}

let aheadMs = 0;
const machineNowMs = Date.now.bind(Date);

async function run(order: WalkOrder): Promise<readonly Walk[]> {
  Date.now = () => machineNowMs() + aheadMs;
  const world = await compose(order);
  await fill(world, order);
  return [await walkBeat(world), await walkTick(world), await walkEviction(world), await walkPatch(world)];
}

async function compose({ endpoint, tables }: WalkOrder): Promise<World> {
  const aws = await startServices();
  Object.assign(process.env, {
    CLUSTER_ID,
    NODEKEEPER_POLICY: '{}',
    POWERTOOLS_SERVICE_NAME: 'walks',
    POWERTOOLS_METRICS_NAMESPACE: 'walks',
    POWERTOOLS_LOG_LEVEL: 'WARN',
    HEALTH_TABLE: tables.health,
    OBJECTS_TABLE: tables.objects,
    CONTROL_TABLE: tables.control,
    STATIC_TOKENS: JSON.stringify([
      { sha256: createHash('sha256').update(ADMIN_TOKEN).digest('hex'), user: 'admin', groups: ['system:masters'] },
    ]),
    AUDIT_LOG_GROUP: 'audit',
    AUDIT_LOG_STREAM: 'audit',
    PROBE_URL: aws,
    AWS_REGION: REGION,
    AWS_ACCESS_KEY_ID: 'local',
    AWS_SECRET_ACCESS_KEY: 'local',
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_ENDPOINT_URL_CLOUDWATCH_LOGS: aws,
  });
  const coverage = await startCoverage();
  const [api, heartbeat, nodeMonitor, evictor, objectStream] = await Promise.all([
    import('../functions/api/handler.ts'),
    import('../functions/heartbeat/handler.ts'),
    import('../functions/node-monitor/handler.ts'),
    import('../functions/evictor/handler.ts'),
    import('../functions/object-stream/handler.ts'),
  ]);
  const invoker = (module: { readonly handler: unknown }) => module.handler as Invoke;
  return {
    engine: await connectEngine(endpoint),
    objectsTable: tables.objects,
    coverage,
    handlers: {
      api: invoker(api),
      heartbeat: invoker(heartbeat),
      nodeMonitor: invoker(nodeMonitor),
      evictor: invoker(evictor),
      objectStream: invoker(objectStream),
    },
    pair: nodeKeyPair(),
    seen: new Map(),
  };
}

/** Accepts the audit trail's lines and the probe's beats. Answers its address. */
async function startServices(): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    incoming.resume().on('end', () => outgoing.writeHead(200).end('{}'));
  }).listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  server.unref();
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function fill(world: World, { endpoint, tables }: WalkOrder): Promise<void> {
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const client = dynamoDbClient({ region: REGION, endpoint, credentials });
  const keys = nodeKeyStore(dynamoDbItemStore({ client, tables }));
  const nowMs = Date.now();
  for (const name of NODES) {
    const key = { keyId: world.pair.keyId, publicKey: world.pair.publicKey, addedAtMs: nowMs };
    const identity = { nodeName: name, uid: name, createdAtMs: nowMs, keys: [key], source: 'user/bench' };
    await keys.enrol(identity, { nowMs, along: [], pause: async () => {} });
    const labels = { 'topology.kubernetes.io/zone': 'zone-a' };
    await asAdmin(world, 'POST', '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } });
    const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' }];
    await asAdmin(world, 'PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions } });
    await asAdmin(world, 'POST', LEASES, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, namespace: 'kube-node-lease' },
      spec: { holderIdentity: name, leaseDurationSeconds: 40 },
    });
  }
  client.destroy();
  const tolerations = ['not-ready', 'unreachable'].map((taint) => ({
    ...{ key: `node.kubernetes.io/${taint}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1 },
  }));
  await asAdmin(world, 'POST', '/api/v1/namespaces/default/pods', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'walk', namespace: 'default' },
    spec: { nodeName: SILENT, containers: [{ name: 'walk', image: 'walk' }], tolerations },
  });
  await deliverChanges(world);
}

async function walkBeat(world: World): Promise<Walk> {
  // The first one reads keys and checks the signature of the token; those that follow do not.
  await beat(world, NODES[0]!);
  return { name: 'beat', files: await world.coverage.during(() => beat(world, NODES[0]!)) };
}

async function walkTick(world: World): Promise<Walk> {
  for (let ticks = 0; ticks < 3; ticks += 1) await passPeriod(world);
  await passBeats(world);
  return { name: 'tick', files: await world.coverage.during(() => tick(world.handlers.nodeMonitor)) };
}

/** From the taint to the deleted pod: runs of evictor that changed something, and what object-stream did after each. */
async function walkEviction(world: World): Promise<Walk> {
  const files = new Set<string>();
  for (let ticks = 0; ticks < TICKS_MAX; ticks += 1) {
    await passPeriod(world);
    let changes = 0;
    const entered = await world.coverage.during(async () => {
      await tick(world.handlers.evictor);
      changes = await deliverChanges(world);
    });
    if (changes === 0) continue;
    for (const path of entered) files.add(path);
    const pod = JSON.parse(await asAdmin(world, 'GET', '/api/v1/namespaces/default/pods/walk'));
    if (pod.metadata.deletionTimestamp !== undefined) return { name: 'eviction', files: [...files].sort() };
  }
  throw new Error(`no pod was evicted in ${TICKS_MAX} ticks`);
}

async function walkPatch(world: World): Promise<Walk> {
  const patchLabel = (value: string) => () =>
    asAdmin(world, 'PATCH', `/api/v1/nodes/${NODES[0]}`, { metadata: { labels: { walk: value } } });
  await patchLabel('first')();
  return { name: 'patch', files: await world.coverage.during(patchLabel('second')) };
}

/** A period passes, in which all nodes but the silent one beat. */
async function passBeats(world: World): Promise<void> {
  aheadMs += PERIOD_MS;
  for (const name of NODES) if (name !== SILENT) await beat(world, name);
}

/** The same, a tick of node-monitor, and its changes are delivered. */
async function passPeriod(world: World): Promise<void> {
  await passBeats(world);
  await tick(world.handlers.nodeMonitor);
  await deliverChanges(world);
}

async function beat({ handlers, pair }: World, nodeName: string): Promise<void> {
  const nowMs = Date.now();
  const token = nodeToken(pair, { nodeName, nowMs, clusterId: CLUSTER_ID });
  const renewTime = new Date(nowMs).toISOString().replace('Z', '000Z');
  await send(handlers.heartbeat, 'PATCH', `${LEASES}/${nodeName}`, token, { spec: { renewTime } });
}

async function tick(handler: Invoke): Promise<void> {
  const nowMs = Date.now();
  const minuteMs = Math.floor(nowMs / 60_000) * 60_000;
  const offsetSeconds = Math.floor((nowMs - minuteMs) / PERIOD_MS) * (PERIOD_MS / 1_000);
  const body = JSON.stringify({ scheduledAt: new Date(minuteMs).toISOString(), offsetSeconds });
  const outcome = await handler(
    { Records: [{ messageId: 'tick', body }] },
    { getRemainingTimeInMillis: () => BUDGET_MS },
  );
  const { batchItemFailures } = outcome as { readonly batchItemFailures: readonly unknown[] };
  if (batchItemFailures.length > 0) throw new Error('a tick failed');
}

const asAdmin = (world: World, method: string, path: string, body?: object): Promise<string> =>
  send(world.handlers.api, method, path, ADMIN_TOKEN, body);

/** One request as API Gateway passes it on. Answers the body of a response. Throws on any status but 2xx. */
async function send(handler: Invoke, method: string, path: string, token: string, body?: object): Promise<string> {
  const response = await handler({
    rawPath: path,
    rawQueryString: '',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': method === 'PATCH' ? MERGE : 'application/json',
    },
    body: JSON.stringify(body),
    isBase64Encoded: false,
    requestContext: { http: { method, path, sourceIp: '192.0.2.1' } },
  });
  if (response.statusCode === undefined || response.statusCode >= 300) {
    throw new Error(`${method} ${path}: ${response.statusCode} ${response.body}`);
  }
  return response.body ?? '';
}

/**
 * Sends changes of Nodes and pods to object-stream, and those that it makes, until there are none. Answers how many.
 */
async function deliverChanges(world: World): Promise<number> {
  let delivered = 0;
  for (let round = 0; round < ROUNDS_MAX; round += 1) {
    const current = await rowsOf(world);
    const records = [...new Set([...world.seen.keys(), ...current.keys()])].flatMap((key) =>
      recordOf(world.seen.get(key), current.get(key)),
    );
    world.seen = current;
    if (records.length === 0) return delivered;
    delivered += records.length;
    await world.handlers.objectStream({ Records: records }, {});
  }
  throw new Error('object-stream never comes to rest');
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

/** One page: a handful of objects. */
async function rowsOf({ engine, objectsTable }: World): Promise<ReadonlyMap<string, WireItem>> {
  const answer = await engine.client.call('DynamoDB_20120810.Scan', { TableName: objectsTable, ConsistentRead: true });
  const rows = answer['Items'] as readonly WireItem[];
  return new Map(
    rows
      .filter(({ pk }) => /^o#(nodes|pods)#/.test(pk?.S ?? ''))
      .map((row) => [`${row['pk']?.S} ${row['sk']?.S}`, row]),
  );
}

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  process.send(await run(JSON.parse(process.argv[2] ?? '{}') as WalkOrder));
  process.disconnect?.();
}
