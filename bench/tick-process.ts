/**
 * The process of one tick measurement: node-monitor over tables that its parent filled. The clock stands still between
 * ticks and runs within them. It is a separate process: CPU and memory are those of the ticks, as in a Lambda. The task
 * is JSON in the first argument; the figures are sent to the parent.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb';
import { dynamoDbClient } from '../shared/aws/dynamodb-client.ts';
import { dynamoDbItemStore } from '../shared/aws/dynamodb-store.ts';
import { fleetStore } from '../shared/fleet/fleet-store.ts';
import { decideGate, UNTRIED_GATE } from '../shared/fleet/gate.ts';
import { DIGEST_ATTRIBUTES } from '../shared/fleet/nodes/health.ts';
import { scanSegmentsFor } from '../shared/fleet/nodes/health-store.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { NO_DISRUPTION } from '../shared/fleet/zone-state.ts';
import type { ItemStore, TableName } from '../shared/store/item-store.ts';
import { slotOf } from '../shared/ticks/tick.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import { sideBySide } from '../simulation/side-by-side.ts';
import { controllersOf } from './system.ts';

export interface TickOrder {
  readonly endpoint: string;
  readonly tables: Readonly<Record<TableName, string>>;
  /** Moments of the ticks, in order. Epoch milliseconds. */
  readonly tickAtMs: readonly number[];
  /** Plain reads of the same rows, each after one of the last ticks. */
  readonly plainReads: number;
  /** The rows of every node, for the bounds of the plain read. */
  readonly nodes: number;
}

export interface TickFigures {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly readUnits: number;
  readonly writeUnits: number;
  readonly decisions: number;
  readonly marked: number;
  readonly left: number;
}

export interface TickOutcome {
  readonly ticks: readonly TickFigures[];
  readonly reads: readonly { readonly seconds: number; readonly cpuSeconds: number }[];
  /** Most memory the process ever held, before the plain reads. Megabytes. */
  readonly rssMegabytes: number;
  /** The same before the first tick: Node, the SDK and our code. */
  readonly idleRssMegabytes: number;
}

const SEED = 5_501;
/** The concurrency of scanHealth. */
const READS_AT_ONCE = 16;
const REQUEST_TIMEOUT_MS = 20_000;

/** Forks, waits, and answers what the process measured. */
export async function measureTicks(order: TickOrder, nodeOptions: readonly string[] = []): Promise<TickOutcome> {
  const child = fork(fileURLToPath(import.meta.url), [JSON.stringify(order)], { execArgv: [...nodeOptions] });
  return await new Promise((resolve, reject) => {
    child.once('message', (message) => resolve(message as TickOutcome));
    child.once('exit', (code) => reject(new Error(`the ticks ended with code ${code}`)));
    child.once('error', reject);
  });
}

async function run(order: TickOrder): Promise<TickOutcome> {
  const connection = {
    region: 'eu-central-1',
    endpoint: order.endpoint,
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  };
  const plainClient = new DynamoDBClient(connection);
  const client = dynamoDbClient({
    ...connection,
    connectionTimeoutMs: REQUEST_TIMEOUT_MS,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
  });
  let readUnits = 0;
  let writeUnits = 0;
  const items = dynamoDbItemStore({
    client,
    tables: order.tables,
    onConsumed: (units) => {
      readUnits += units.readUnits;
      writeUnits += units.writeUnits;
    },
  });
  let baseMs = 0;
  let startedMs = 0;
  const fraction = seededFraction(SEED);
  const controllers = controllersOf({
    items,
    fraction,
    clock: { nowMs: () => Math.floor(baseMs + performance.now() - startedMs) },
    onError: console.error,
    probe: { beat: async () => ({ kind: 'accepted' }) },
    pause: (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds)),
  });

  await tickBefore(items, order);
  const idleRssMegabytes = peakMegabytes();
  let rssMegabytes = 0;
  const ticks: TickFigures[] = [];
  const reads: TickOutcome['reads'][number][] = [];
  const firstRead = order.tickAtMs.length - order.plainReads;
  for (const [index, atMs] of order.tickAtMs.entries()) {
    readUnits = 0;
    writeUnits = 0;
    baseMs = atMs;
    const cpu = process.cpuUsage();
    startedMs = performance.now();
    const report = await controllers.tickNodeMonitor(slotOf(atMs, defaultPolicy.nodeMonitorPeriodSeconds));
    const seconds = (performance.now() - startedMs) / 1_000;
    if (report.kind !== 'ran') throw new Error(`a tick was ${report.kind}`);
    const { decisions, marked, left } = report;
    ticks.push({ seconds, cpuSeconds: cpuSince(cpu), readUnits, writeUnits, decisions, marked, left });
    if (index < firstRead) continue;
    if (reads.length === 0) rssMegabytes = peakMegabytes();
    reads.push(await plainRead(plainClient, order));
  }
  client.destroy();
  plainClient.destroy();
  return { ticks, reads, rssMegabytes: rssMegabytes || peakMegabytes(), idleRssMegabytes };
}

/** What ticks have left behind that ran for long: at the first there ever was everybody would have a fresh grace. */
async function tickBefore(items: ItemStore, { tickAtMs, nodes }: TickOrder): Promise<void> {
  const policy = defaultPolicy;
  const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
  const sinceMs = tickAtMs[0]! - 2 * policy.nodeMonitorGracePeriodSeconds * 1_000;
  let gate = UNTRIED_GATE;
  for (let nowMs = sinceMs; nowMs < tickAtMs[0]!; nowMs += periodMs) {
    const probes = [{ sentAtMs: nowMs, accepted: true }];
    gate = { ...decideGate(gate, { nowMs, probes, policy }), lastTickAtMs: nowMs };
  }
  const nowMs = gate.lastTickAtMs!;
  const { nodeMonitorPeriodSeconds: periodSeconds } = policy;
  const slot = slotOf(nowMs, periodSeconds);
  const claim = {
    slot,
    periodSeconds,
    seenFence: 0,
    nowMs,
    claimId: 'before',
    gate,
    disruption: NO_DISRUPTION,
    nodes,
    finished: true,
  };
  const { kind } = await fleetStore(items).claim(claim);
  if (kind !== 'claimed') throw new Error(`the tick before was ${kind}`);
}

/**
 * The same rows, attributes, segments and number of requests at once, by the SDK as it comes, and nothing done with the
 * answers.
 */
async function plainRead(client: DynamoDBClient, { tables, nodes }: TickOrder): Promise<TickOutcome['reads'][number]> {
  const names = Object.fromEntries(['pk', 'sk', ...DIGEST_ATTRIBUTES].map((name) => [`#${name}`, name]));
  let rows = 0;
  const cpu = process.cpuUsage();
  const startMs = performance.now();
  const segments = scanSegmentsFor(nodes);
  await sideBySide(
    Array.from({ length: segments }, (_, segment) => segment),
    READS_AT_ONCE,
    async (segment) => {
      // A page holds a row at least.
      let start: Record<string, never> | undefined;
      for (let page = 0; page < nodes; page += 1) {
        const answer = await client.send(
          new ScanCommand({
            TableName: tables.health,
            Segment: segment,
            TotalSegments: segments,
            ExpressionAttributeNames: names,
            ProjectionExpression: Object.keys(names).join(', '),
            ...(start === undefined ? {} : { ExclusiveStartKey: start }),
          }),
        );
        rows += answer.Items?.length ?? 0;
        if (answer.LastEvaluatedKey === undefined) return;
        start = answer.LastEvaluatedKey as Record<string, never>;
      }
    },
  );
  if (rows !== nodes) throw new Error(`${rows} rows where ${nodes} were expected`);
  return { seconds: (performance.now() - startMs) / 1_000, cpuSeconds: cpuSince(cpu) };
}

function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

const peakMegabytes = (): number => process.resourceUsage().maxRSS / 1_024;

if (process.send !== undefined && process.argv[1] === fileURLToPath(import.meta.url)) {
  process.send(await run(JSON.parse(process.argv[2] ?? '{}') as TickOrder));
  process.disconnect?.();
}
