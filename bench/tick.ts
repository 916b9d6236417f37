/**
 * One tick of node-monitor over fleets of up to 100,000 nodes on the embedded engine: time, CPU, units and memory,
 * quiet and in trouble, beside the time of reading the same rows with nothing but the SDK; and how all that grows with
 * the fleet.
 *
 * Rows are written to the engine as beats and status posts leave them. Nodes that have to be marked exist as objects,
 * too; the others are rows alone, because a tick never reads their objects.
 */
import { fileURLToPath } from 'node:url';
import { type Engine, engineBinary, startEngine } from '../aws-local/engine/engine.ts';
import { itemToWire } from '../shared/aws/dynamodb-expression.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { shardsOf } from '../shared/kinds/resources.ts';
import { type Item, type ItemKey, itemBytes, type TableName } from '../shared/store/item-store.ts';
import { healthKey } from '../shared/store/layout.ts';
import { objectText } from '../shared/store/object-record.ts';
import { objectKey } from '../shared/store/object-store.ts';
import { readyNode } from '../simulation/ready-node.ts';
import { seededFraction, seededUuid } from '../simulation/seeded-random.ts';
import { sideBySide } from '../simulation/side-by-side.ts';
import {
  type Benchmark,
  percentile,
  type Report,
  readOptions,
  rounded,
  UsageError,
  wholeNumbers,
} from './benchmark.ts';
import { slopeOf } from './slope.ts';
import { measureTicks, type TickFigures, type TickOutcome } from './tick-process.ts';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));
const ZONES = ['zone-a', 'zone-b', 'zone-c', 'zone-d'];
const START_MS = Date.UTC(2026, 0, 1);
const SEED = 6_611;
/** The limit of a BatchWriteItem. */
const ITEMS_PER_BATCH = 25;
const BATCHES_AT_ONCE = 8;
/** Quiet ticks: one of a process that just started, the others warm. */
const QUIET_TICKS = 6;
const QUIET_READS = 4;
/** Ticks before the one at which the silent nodes are due: it must find an open gate and known zones. */
const TICKS_BEFORE = 3;
/** The due one and its followers; no more, or those that still beat would have to beat in between. */
const TROUBLED_TICKS = 3;
const PERIOD_MS = defaultPolicy.nodeMonitorPeriodSeconds * 1_000;
const GRACE_MS = defaultPolicy.nodeMonitorGracePeriodSeconds * 1_000;
const BEAT_MS = defaultPolicy.beatIntervalSeconds * 1_000;

const CASES = {
  quiet: () => false,
  '1% late': (index: number) => index % 100 === 0,
  'half dark': (index: number) => index % ZONES.length < ZONES.length / 2,
  'all dark': () => true,
} as const;
type Case = keyof typeof CASES;

/** Quiet ticks alone make the curve. */
const CURVE = [1_000, 10_000, 50_000, 100_000];
const TROUBLED = [10_000, 100_000];

export const tick: Benchmark = {
  name: 'tick',
  about: 'one tick of node-monitor over up to 100,000 nodes, quiet and dark: seconds, CPU, units, memory',
  smallest: ['--nodes', '10', '--troubled', '0'],
  usage: '[--nodes 1000,10000,…] [--troubled 10000,…|0] [--profile DIRECTORY]',
  async run(report, words) {
    const values = readOptions(words, {
      nodes: { type: 'string' },
      troubled: { type: 'string' },
      profile: { type: 'string' },
    });
    const sizes = wholeNumbers('nodes', values.nodes, { least: 10, most: 1_000_000, otherwise: CURVE });
    const troubled = wholeNumbers('troubled', values.troubled, { least: 0, most: 1_000_000, otherwise: TROUBLED });
    if (troubled.length > 1 && troubled.includes(0)) throw new UsageError('--troubled is 0 or sizes');
    const nodeOptions = values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${values.profile}`];
    await measure(
      report,
      sizes,
      troubled.filter((size) => size > 0),
      nodeOptions,
    );
  },
};

async function measure(
  report: Report,
  sizes: readonly number[],
  troubled: readonly number[],
  nodeOptions: readonly string[],
): Promise<void> {
  const engine = await startEngine(engineBinary(PROJECT), undefined);
  try {
    const curve: { readonly nodes: number; readonly outcome: TickOutcome }[] = [];
    for (const nodes of sizes) {
      const outcome = await measureCase(report, engine, 'quiet', nodes, nodeOptions);
      curve.push({ nodes, outcome });
      reportQuiet(report, nodes, outcome);
    }
    if (curve.length > 1) reportGrowth(report, curve);
    for (const nodes of troubled) {
      for (const name of ['1% late', 'half dark', 'all dark'] as const) {
        reportTroubled(report, name, nodes, await measureCase(report, engine, name, nodes, nodeOptions));
      }
    }
  } finally {
    await engine.stop();
  }
}

async function measureCase(
  report: Report,
  engine: Engine,
  name: Case,
  nodes: number,
  nodeOptions: readonly string[],
): Promise<TickOutcome> {
  const tables = await makeTables(engine, `${name}-${nodes}`.replaceAll(/[^a-z0-9-]/g, '-'));
  const startedMs = performance.now();
  const { rowBytes } = await fill(engine, tables, nodes, CASES[name]);
  report({
    part: 'rows written',
    case: name,
    nodes,
    rowBytes: rounded(rowBytes),
    seconds: rounded((performance.now() - startedMs) / 1_000),
  });
  try {
    const quiet = name === 'quiet';
    const count = quiet ? QUIET_TICKS : TICKS_BEFORE + TROUBLED_TICKS;
    return await measureTicks(
      {
        endpoint: engine.endpoint,
        tables,
        tickAtMs: Array.from({ length: count }, (_, index) => START_MS + index * PERIOD_MS),
        plainReads: quiet ? QUIET_READS : 0,
        nodes,
      },
      nodeOptions,
    );
  } finally {
    for (const table of Object.values(tables)) {
      await engine.client.call('DynamoDB_20120810.DeleteTable', { TableName: table });
    }
  }
}

function reportQuiet(
  report: Report,
  nodes: number,
  { ticks, reads, rssMegabytes, idleRssMegabytes }: TickOutcome,
): void {
  const [first] = ticks;
  const warm = ticks.slice(-reads.length);
  // The machine does other things, too: the least time of each is the one least disturbed.
  const least = (values: readonly { readonly seconds: number }[]) => Math.min(...values.map(({ seconds }) => seconds));
  const median = (values: readonly TickFigures[] | TickOutcome['reads'], of: 'seconds' | 'cpuSeconds'): number =>
    percentile(
      values.map((each) => each[of]),
      0.5,
    );
  const last = warm.at(-1)!;
  report({
    case: 'quiet',
    nodes,
    secondsP50: rounded(median(warm, 'seconds')),
    secondsMin: rounded(least(warm)),
    cpuSecondsP50: rounded(median(warm, 'cpuSeconds')),
    coldSeconds: rounded(first!.seconds),
    coldCpuSeconds: rounded(first!.cpuSeconds),
    readSecondsP50: rounded(median(reads, 'seconds')),
    readSecondsMin: rounded(least(reads)),
    readCpuSecondsP50: rounded(median(reads, 'cpuSeconds')),
    ratioOfMin: rounded(least(warm) / least(reads), 3),
    ratioOfP50: rounded(median(warm, 'seconds') / median(reads, 'seconds'), 3),
    cpuRatio: rounded(median(warm, 'cpuSeconds') / median(reads, 'cpuSeconds'), 3),
    readUnits: rounded(last.readUnits, 6),
    writeUnits: rounded(last.writeUnits, 6),
    rssMegabytes: rounded(rssMegabytes),
    idleRssMegabytes: rounded(idleRssMegabytes),
  });
}

function reportTroubled(report: Report, name: Case, nodes: number, { ticks, rssMegabytes }: TickOutcome): void {
  const silent = countSilent(name, nodes);
  let marked = 0;
  ticks.slice(TICKS_BEFORE).forEach((each, index) => {
    marked += each.marked;
    if (index > 0 && each.decisions === 0) return;
    report({
      case: name,
      nodes,
      dueTick: index + 1,
      silent,
      seconds: rounded(each.seconds),
      cpuSeconds: rounded(each.cpuSeconds),
      decisions: each.decisions,
      marked: each.marked,
      markedInAll: marked,
      left: each.left,
      marksPerSecond: rounded(each.marked / each.seconds),
      readUnits: rounded(each.readUnits, 6),
      writeUnits: rounded(each.writeUnits, 6),
      writeUnitsPerMark: each.marked === 0 ? undefined : rounded(each.writeUnits / each.marked),
      rssMegabytes: rounded(rssMegabytes),
    });
  });
  if (marked === 0) throw new Error(`${name}: none of ${silent} silent nodes was marked, so this measured nothing`);
}

const countSilent = (name: Case, nodes: number): number =>
  Array.from({ length: nodes }, (_, index) => CASES[name](index)).filter(Boolean).length;

/** Exponent b of figure = a · nodes^b, by least squares over the logarithms; 1 is proportional. */
export function growthExponent(points: readonly { readonly nodes: number; readonly value: number }[]): number {
  return slopeOf(points.map(({ nodes, value }) => [Math.log(nodes), Math.log(value)] as const));
}

function reportGrowth(report: Report, curve: readonly { nodes: number; outcome: TickOutcome }[]): void {
  const exponentOf = (figure: (outcome: TickOutcome) => number): number =>
    rounded(growthExponent(curve.map(({ nodes, outcome }) => ({ nodes, value: figure(outcome) }))), 3);
  const warm = ({ ticks, reads }: TickOutcome) => ticks.slice(-reads.length);
  report({
    part: 'growth',
    fit: 'figure = a · nodes^exponent',
    nodes: curve.map(({ nodes }) => nodes).join(' '),
    secondsExponent: exponentOf((outcome) => Math.min(...warm(outcome).map(({ seconds }) => seconds))),
    cpuSecondsExponent: exponentOf((outcome) => Math.min(...warm(outcome).map(({ cpuSeconds }) => cpuSeconds))),
    readUnitsExponent: exponentOf((outcome) => warm(outcome)[0]!.readUnits),
    rssExponent: exponentOf(({ rssMegabytes, idleRssMegabytes }) => rssMegabytes - idleRssMegabytes),
  });
}

/** Empty tables of our layout, in the engine; their names begin with `prefix`. */
export async function makeTables(engine: Engine, prefix: string): Promise<Record<TableName, string>> {
  const tables = { health: `${prefix}-health`, objects: `${prefix}-objects`, control: `${prefix}-control` };
  for (const table of Object.values(tables)) {
    await engine.client.call('DynamoDB_20120810.CreateTable', {
      TableName: table,
      BillingMode: 'PAY_PER_REQUEST',
      AttributeDefinitions: ['pk', 'sk'].map((key) => ({ AttributeName: key, AttributeType: 'S' })),
      KeySchema: [
        { AttributeName: 'pk', KeyType: 'HASH' },
        { AttributeName: 'sk', KeyType: 'RANGE' },
      ],
    });
  }
  return tables;
}

async function fill(
  engine: Engine,
  tables: Record<TableName, string>,
  nodes: number,
  isSilent: (index: number) => boolean,
): Promise<{ rowBytes: number }> {
  const fraction = seededFraction(SEED);
  let bytes = 0;
  function* puts(): Generator<{ table: string; key: ItemKey; item: Item }> {
    for (let index = 0; index < nodes; index += 1) {
      const name = `edge-${String(index).padStart(6, '0')}`;
      const uid = seededUuid(fraction);
      const zone = ZONES[index % ZONES.length]!;
      const silent = isSilent(index);
      // Due between the last tick before trouble and the first of it.
      const silentMs = GRACE_MS - TICKS_BEFORE * PERIOD_MS + PERIOD_MS * (0.1 + 0.8 * fraction());
      const renewedAtMs = Math.floor(START_MS - (silent ? silentMs : BEAT_MS * fraction()));
      const createdAtMs = START_MS - 3_600_000;
      const key = healthKey(name);
      const row: Item = {
        ...{ u: uid, z: zone, y: 'T', b: createdAtMs, l: START_MS - 60_000 - Math.floor(240_000 * fraction()) },
        ...{ v: renewedAtMs * 1_000, i: seededUuid(fraction), c: createdAtMs / 1_000, t: renewedAtMs * 1_000 },
        ...{ d: 40, o: 1, r: renewedAtMs },
      };
      bytes += itemBytes({ ...row, pk: key.pk, sk: key.sk });
      yield { table: tables.health, key, item: row };
      if (!silent) continue;
      const node = readyNode(name, zone, createdAtMs, uid);
      yield {
        table: tables.objects,
        key: objectKey({ resource: 'nodes', namespace: '', name }, shardsOf('nodes')),
        item: { o: objectText(node), rv: createdAtMs * 1_000 + 1, k: 'Node', n: name },
      };
    }
  }
  let batch: { table: string; key: ItemKey; item: Item }[] = [];
  let batches: (typeof batch)[] = [];
  const flush = async (): Promise<void> => {
    await sideBySide(batches, BATCHES_AT_ONCE, (each) => writeBatch(engine, each));
    batches = [];
  };
  for (const put of puts()) {
    batch.push(put);
    if (batch.length < ITEMS_PER_BATCH) continue;
    batches.push(batch);
    batch = [];
    if (batches.length === BATCHES_AT_ONCE * 8) await flush();
  }
  if (batch.length > 0) batches.push(batch);
  await flush();
  return { rowBytes: bytes / nodes };
}

async function writeBatch(
  engine: Engine,
  batch: readonly { readonly table: string; readonly key: ItemKey; readonly item: Item }[],
): Promise<void> {
  const requests: Record<string, unknown[]> = {};
  for (const { table, key, item } of batch) {
    requests[table] ??= [];
    requests[table].push({ PutRequest: { Item: itemToWire({ ...item, pk: key.pk, sk: key.sk }) } });
  }
  const answer = await engine.client.call('DynamoDB_20120810.BatchWriteItem', { RequestItems: requests });
  if (Object.keys((answer['UnprocessedItems'] as object | undefined) ?? {}).length > 0) {
    throw new Error('the engine left items of a batch unwritten');
  }
}
