/**
 * Up to 100,000 nodes that fail in one instant, on virtual time: from silence to Ready=Unknown with node-marker, and
 * without it. The tables are in memory. Requests need time, and transactions that overlap conflict as in DynamoDB.
 *
 * The CPU of a process is modelled by fixed times per node, because virtual time does not pass while code runs. The
 * report has the CPU that this machine really used.
 */
import type { FleetControllers } from '../server/fleet-controllers.ts';
import { defined } from '../shared/defined.ts';
import type { PartQueue } from '../shared/fleet/mark-parts.ts';
import { defaultPolicy } from '../shared/fleet/policy.ts';
import { shardsOf } from '../shared/kinds/resources.ts';
import type { ConsumedUnits, ItemStore, TransactWrite } from '../shared/store/item-store.ts';
import { healthKey } from '../shared/store/layout.ts';
import { type MemoryItemStore, memoryItemStore } from '../shared/store/memory/item-store.ts';
import { objectText, packText } from '../shared/store/object-record.ts';
import { objectKey } from '../shared/store/object-store.ts';
import { slotOf, TickFault } from '../shared/ticks/tick.ts';
import { readyNode } from '../simulation/ready-node.ts';
import { seededFraction, seededUuid } from '../simulation/seeded-random.ts';
import { conflictingStore } from '../test/support/conflicting-store.ts';
import {
  type Benchmark,
  percentile,
  type Report,
  readOptions,
  rounded,
  wholeNumber,
  wholeNumbers,
} from './benchmark.ts';
import { type MarkWorkers, markWorkers } from './mark-workers.ts';
import { type StormTime, stormTime } from './storm-time.ts';
import { controllersOf, faultLog } from './system.ts';

const START_MS = Date.UTC(2026, 0, 1);
const SEED = 4_022;
const ZONES = ['zone-a', 'zone-b', 'zone-c', 'zone-d'];
/** Nodes of zone-lit, which beat on. */
const ALIVE = 100;
const REQUEST_MS = 5;
const SCAN_MS_PER_NODE = 0.028;
/** Reading, deciding and writing the mark of one node. */
const MARK_CPU_MS = 0.5;
const PERIOD_MS = defaultPolicy.nodeMonitorPeriodSeconds * 1_000;
const GRACE_MS = defaultPolicy.nodeMonitorGracePeriodSeconds * 1_000;
const BEAT_MS = defaultPolicy.beatIntervalSeconds * 1_000;
/** After the first tick at which nodes are due. */
const TICKS_MAX = 120;

export const massFailure: Benchmark = {
  name: 'mass-failure',
  about: 'nodes that fail at once, 5,000 and 100,000: silence to Ready=Unknown with workers and without (virtual time)',
  usage: '[--nodes 5000,100000] [--workers 32; 0: the tick marks] [--spread 0|10 SECONDS] [--transaction 10 MS]',
  smallest: ['--nodes', '50'],
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, { nodes: text, workers: text, spread: text, transaction: text });
    const sizes = wholeNumbers('nodes', values.nodes, { least: 1, most: 200_000, otherwise: [5_000, 100_000] });
    const workers = wholeNumber('workers', values.workers, { least: 0, most: 1_000, otherwise: 32 });
    const spreadMs = 1_000 * wholeNumber('spread', values.spread, { least: 0, most: 10, otherwise: 0 });
    const transactionMs = wholeNumber('transaction', values.transaction, { least: 1, most: 1_000, otherwise: 10 });
    for (const nodes of sizes) await measure(report, { nodes, workers, spreadMs, transactionMs });
  },
};

interface Options {
  readonly nodes: number;
  readonly workers: number;
  /** The last heartbeats of the nodes lie in this time. */
  readonly spreadMs: number;
  readonly transactionMs: number;
}

/** When each node was marked, by name. */
type MarkTimes = Map<string, number>;

async function measure(report: Report, options: Options): Promise<void> {
  const { nodes, workers, spreadMs, transactionMs } = options;
  const time = stormTime(START_MS);
  const fraction = seededFraction(SEED);
  const units = { readUnits: 0, writeUnits: 0 };
  const tables = memoryItemStore({ onConsumed: (each) => addUnits(units, each) });
  const lastBeatMs = await fill(tables, nodes, spreadMs, fraction);
  Object.assign(units, { readUnits: 0, writeUnits: 0 });
  const pause = (milliseconds: number): Promise<void> => time.sleep(milliseconds);
  const conflicting = conflictingStore(tables, { transactionMs, pause, random: fraction });
  const markedAtMs: MarkTimes = new Map();
  const written = { items: 0 };
  const items = observed(delayed(conflicting, time), time, markedAtMs, written);
  const errors: string[] = [];
  const policy = { ...defaultPolicy, ingestGate: 'off' } as const;
  const compose = (partQueue?: PartQueue): FleetControllers =>
    controllersOf({
      ...{ items: inProcess(items, time), clock: time, fraction, pause, policy },
      onError: (message) => errors.push(message),
      ...defined({ partQueue }),
    });
  const marker = markWorkers({
    time,
    fraction,
    concurrencyMax: Math.max(1, workers),
    log: faultLog((message) => errors.push(message)),
    compose,
  });
  const controllers = compose(workers > 0 ? marker.queue : undefined);
  const cpu = process.cpuUsage();
  const ticks = await runTicks({ time, tables, controllers, nodes, markedAtMs });
  const { user, system } = process.cpuUsage(cpu);
  report({
    ...figuresOf(markedAtMs, lastBeatMs, ticks),
    nodes,
    workers,
    spreadSeconds: spreadMs / 1_000,
    transactionMs,
    ...conflicting.counters,
    itemWritesPerNode: rounded(written.items / nodes),
    writeUnitsPerNode: rounded(units.writeUnits / nodes),
    readUnitsPerNode: rounded(units.readUnits / nodes),
    ...messagesOf(marker),
    errors: errors.length,
    ...(errors[0] === undefined ? {} : { firstError: errors[0] }),
    cpuMsPerNode: rounded((user + system) / 1_000 / nodes),
  });
}

const messagesOf = ({ counters }: MarkWorkers) => ({
  messages: counters.sent,
  invocations: counters.batches,
  failedMessages: counters.failed,
  concurrentExecutions: counters.most,
});

function addUnits(sum: { readUnits: number; writeUnits: number }, { readUnits, writeUnits }: ConsumedUnits): void {
  sum.readUnits += readUnits;
  sum.writeUnits += writeUnits;
}

interface Ticks {
  readonly dueAtMs: number;
  /** Ticks until every node was marked. */
  readonly count: number;
  readonly seconds: number[];
}

async function runTicks(of: {
  readonly time: StormTime;
  readonly tables: MemoryItemStore;
  readonly controllers: FleetControllers;
  readonly nodes: number;
  readonly markedAtMs: MarkTimes;
}): Promise<Ticks> {
  const { time, controllers, nodes, markedAtMs } = of;
  const seconds: number[] = [];
  const dueAtMs = START_MS + GRACE_MS;
  let count = 0;
  for (let atMs = START_MS; count < TICKS_MAX && markedAtMs.size < nodes; atMs += PERIOD_MS) {
    await time.passUntil(atMs);
    await beatAlive(of.tables, atMs);
    void controllers
      .tickNodeMonitor(slotOf(atMs, defaultPolicy.nodeMonitorPeriodSeconds))
      .catch((fault: unknown) => {
        if (!(fault instanceof TickFault)) throw fault;
      })
      .finally(() => seconds.push((time.nowMs() - atMs) / 1_000));
    if (atMs > dueAtMs) count += 1;
  }
  // The follow-up parts of the last marks.
  await time.passUntil(time.nowMs() + 60_000);
  return { dueAtMs, count, seconds };
}

function figuresOf(markedAtMs: MarkTimes, lastBeatMs: ReadonlyMap<string, number>, ticks: Ticks) {
  const silences = [...markedAtMs].map(([name, atMs]) => (atMs - (lastBeatMs.get(name) ?? atMs)) / 1_000);
  const alive = [...markedAtMs.keys()].filter((name) => name.startsWith('alive')).length;
  const last = Math.max(...(silences.length === 0 ? [0] : [silences.reduce((most, each) => Math.max(most, each), 0)]));
  return {
    marked: markedAtMs.size,
    falselyMarked: alive,
    silenceToUnknownP50Seconds: rounded(percentile(silences, 0.5)),
    silenceToUnknownP99Seconds: rounded(percentile(silences, 0.99)),
    silenceToUnknownMaxSeconds: rounded(last),
    ticksUntilMarked: ticks.count,
    tickSecondsMax: rounded(Math.max(...ticks.seconds)),
  };
}

/** One process, with one CPU: rows that a scan reads and marks need its time. */
function inProcess(items: ItemStore, time: StormTime): ItemStore {
  let freeAtMs = 0;
  const compute = (milliseconds: number): Promise<unknown> => {
    freeAtMs = Math.max(freeAtMs, time.nowMs()) + milliseconds;
    return time.sleep(freeAtMs - time.nowMs());
  };
  return {
    ...items,
    async scan(...call) {
      const page = await items.scan(...call);
      await compute(page.items.length * SCAN_MS_PER_NODE);
      return page;
    },
    async transact(writes) {
      await compute(marksIn(writes).length * MARK_CPU_MS);
      return items.transact(writes);
    },
  };
}

/** Names of the nodes that a transaction marks. */
const marksIn = (writes: readonly TransactWrite[]): string[] =>
  writes.flatMap((write) =>
    write.key.table === 'health' && write.kind === 'update' && write.set?.['m'] !== undefined ? [write.key.sk] : [],
  );

/** A store in which each request but a transaction needs time. */
const delayed = (items: ItemStore, time: StormTime): ItemStore => ({
  ...items,
  async get(...call) {
    await time.sleep(REQUEST_MS);
    return items.get(...call);
  },
  async getMany(...call) {
    await time.sleep(REQUEST_MS);
    return items.getMany(...call);
  },
  async query(...call) {
    await time.sleep(REQUEST_MS);
    return items.query(...call);
  },
  async scan(...call) {
    await time.sleep(REQUEST_MS);
    return items.scan(...call);
  },
  async write(...call) {
    await time.sleep(REQUEST_MS);
    return items.write(...call);
  },
});

/** Notes when a mark is stored, and counts the items that are written. */
const observed = (items: ItemStore, time: StormTime, markedAtMs: MarkTimes, written: { items: number }): ItemStore => ({
  ...items,
  async write(...call) {
    const outcome = await items.write(...call);
    if (outcome.kind === 'written') written.items += 1;
    return outcome;
  },
  async transact(writes) {
    const outcome = await items.transact(writes);
    if (outcome.kind !== 'written') return outcome;
    written.items += writes.filter(({ kind }) => kind !== 'check').length;
    for (const name of marksIn(writes)) markedAtMs.set(name, time.nowMs());
    return outcome;
  },
});

/** Rows and Nodes as heartbeats and status posts leave them. Returns the last heartbeat of each node that fails. */
async function fill(
  tables: ItemStore,
  nodes: number,
  spreadMs: number,
  fraction: () => number,
): Promise<ReadonlyMap<string, number>> {
  const lastBeatMs = new Map<string, number>();
  const createdAtMs = START_MS - 3_600_000;
  const add = async (name: string, zone: string, renewedAtMs: number): Promise<void> => {
    const uid = seededUuid(fraction);
    await tables.write({
      kind: 'put',
      key: healthKey(name),
      item: {
        ...{ u: uid, z: zone, y: 'T', b: createdAtMs, l: START_MS - 60_000, v: renewedAtMs * 1_000 },
        ...{ i: uid, c: createdAtMs / 1_000, t: renewedAtMs * 1_000, d: 40, o: 1, r: renewedAtMs },
      },
    });
    await tables.write({
      kind: 'put',
      key: objectKey({ resource: 'nodes', namespace: '', name }, shardsOf('nodes')),
      item: {
        o: packText(objectText(readyNode(name, zone, createdAtMs, uid))),
        ...{ rv: createdAtMs * 1_000 + 1, k: 'Node', n: name },
      },
    });
  };
  for (let index = 0; index < nodes; index += 1) {
    const name = `dead-${String(index).padStart(6, '0')}`;
    const renewedAtMs = START_MS + 1 + Math.floor(spreadMs * fraction());
    lastBeatMs.set(name, renewedAtMs);
    await add(name, ZONES[index % ZONES.length]!, renewedAtMs);
  }
  for (let index = 0; index < ALIVE; index += 1) await add(`alive-${index}`, 'zone-lit', START_MS);
  return lastBeatMs;
}

async function beatAlive(tables: ItemStore, nowMs: number): Promise<void> {
  if ((nowMs - START_MS) % BEAT_MS !== 0) return;
  for (let index = 0; index < ALIVE; index += 1) {
    await tables.write({ kind: 'update', key: healthKey(`alive-${index}`), set: { r: nowMs, v: nowMs * 1_000 } });
  }
}
