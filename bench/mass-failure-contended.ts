/**
 * A zone that fails at once while other processes write Nodes, on virtual time. Transactions conflict as in DynamoDB,
 * and each call to the tables needs some milliseconds. What is counted does not depend on the speed of the machine:
 * ticks until all nodes are marked, transactions, those that were cancelled, and what failed.
 */
import { conflictingStore } from '../shared/adapters/memory/conflicting-store.ts';
import { memoryItemStore } from '../shared/adapters/memory/item-store.ts';
import { clusterObjects } from '../shared/api/storage/cluster-objects.ts';
import { fleetControllers } from '../shared/controllers/index.ts';
import { defaultPolicy } from '../shared/domain/policy.ts';
import { slotOf } from '../shared/domain/tick.ts';
import type { RandomSource } from '../shared/ports/clock.ts';
import type { ItemStore } from '../shared/ports/item-store.ts';
import { healthKey } from '../shared/store/health-row.ts';
import { scanHealth } from '../shared/store/health-store.ts';
import { healthWritesFor } from '../shared/store/node-writes.ts';
import { readyNode } from '../simulation/ready-node.ts';
import { seededFraction, seededUuid } from '../simulation/seeded-random.ts';
import {
  type Benchmark,
  percentile,
  type Report,
  readOptions,
  rounded,
  wholeNumber,
  wholeNumbers,
} from './benchmark.ts';
import { type StormTime, stormTime } from './storm-time.ts';

const START_MS = Date.UTC(2026, 0, 1);
const SEED = 4_022;
const DEAD = 5_000;
const ALIVE = 100;
/** Of a read, and of a transaction, as on AWS. Milliseconds. */
const READ_MS = 5;
const TRANSACTION_MS = 10;
/** Between two writes of a writer, on average: the rest of a request. */
const THINK_MS = 50;
const WRITERS = [0, 8, 32];
const NODES_PER_COMMIT = 16;
const TICKS_MAX = 60;

export const massFailureContended: Benchmark = {
  name: 'mass-failure-contended',
  about: 'a zone that fails at once while others write Nodes, with transactions that conflict (virtual time)',
  usage: '[--nodes 5000] [--writers 0,8,32]',
  async run(report, words) {
    const text = { type: 'string' } as const;
    const values = readOptions(words, { nodes: text, writers: text });
    const nodes = wholeNumber('nodes', values.nodes, { least: 1, most: 100_000, otherwise: DEAD });
    for (const writers of wholeNumbers('writers', values.writers, { least: 0, most: 500, otherwise: WRITERS })) {
      await measure(report, { nodes, writers });
    }
  },
};

/** Reads that need time. Writes alone are applied at once; transactions have their own time. */
function timed(items: ItemStore, time: StormTime): ItemStore {
  const after = async <T>(run: () => Promise<T>): Promise<T> => {
    await time.sleep(READ_MS);
    return run();
  };
  return {
    ...items,
    get: (...of) => after(() => items.get(...of)),
    getMany: (...of) => after(() => items.getMany(...of)),
    query: (...of) => after(() => items.query(...of)),
    scan: (...of) => after(() => items.scan(...of)),
  };
}

async function measure(report: Report, { nodes, writers }: { readonly nodes: number; readonly writers: number }) {
  const time = stormTime(START_MS);
  const fraction = seededFraction(SEED);
  const random: RandomSource = { fraction, uuid: () => seededUuid(fraction) };
  const pause = (milliseconds: number): Promise<void> => time.sleep(milliseconds);
  const tables = memoryItemStore();
  const shared = conflictingStore(timed(tables, time), { transactionMs: TRANSACTION_MS, pause, random: fraction });
  await makeFleet(tables, time, { random, nodes });
  const policy = { ...defaultPolicy, ingestGate: 'off' } as const;
  const faults: string[] = [];
  const quiet = { debug() {}, info() {}, warn() {}, error() {} };
  const controllers = fleetControllers({
    ...{ items: shared, clock: time, random, policy, log: quiet, meter: { add() {} }, pause },
  });
  const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
  const tick = async (): Promise<void> => {
    await controllers
      .tickNodeMonitor(slotOf(time.nowMs(), policy.nodeMonitorPeriodSeconds))
      .catch((fault: AggregateError) => faults.push(...fault.errors.map(String)));
  };
  const passPeriod = async (): Promise<void> => {
    await beatAll(tables, 'alive', ALIVE, time.nowMs());
    void tick();
    await time.passUntil(time.nowMs() + periodMs);
  };
  const unknown = async (): Promise<number> =>
    (await scanHealth(tables, { consistent: true })).filter(({ ready }) => ready === 'Unknown').length;

  const dueMs = START_MS + policy.nodeMonitorGracePeriodSeconds * 1_000 + periodMs;
  while (time.nowMs() < dueMs) await passPeriod();
  const others = startWriters({ shared, time, random, count: writers });
  const before = { ...shared.counters };
  const markedPerTick: number[] = [];
  for (let marked = 0; marked < nodes && markedPerTick.length < TICKS_MAX; ) {
    await passPeriod();
    const now = await unknown();
    markedPerTick.push(now - marked);
    marked = now;
  }
  const written = others.stop();
  const falselyMarked = (await scanHealth(tables, { consistent: true })).filter(
    ({ ready, nodeName }) => ready === 'Unknown' && nodeName.startsWith('alive'),
  ).length;
  report({
    nodes,
    writers,
    ticks: markedPerTick.length,
    markedPerTick: markedPerTick.slice(0, 10).join(' '),
    unmarked: nodes - markedPerTick.reduce((sum, each) => sum + each, 0),
    falselyMarked,
    transactions: shared.counters.transactions - before.transactions,
    conflicts: shared.counters.conflicts - before.conflicts,
    failedEffects: faults.length,
    ...(faults[0] === undefined ? {} : { firstFault: faults[0].slice(0, 200) }),
    othersCommitted: written.waitsMs.length,
    othersContended: written.contended,
    othersVersionConflicts: written.versionConflicts,
    ...(writers === 0
      ? {}
      : {
          othersP50Ms: rounded(percentile(written.waitsMs, 0.5)),
          othersP99Ms: rounded(percentile(written.waitsMs, 0.99)),
        }),
  });
}

/** Processes that change labels of live Nodes, such as environments of the API. */
function startWriters(at: {
  readonly shared: ItemStore;
  readonly time: StormTime;
  readonly random: RandomSource;
  readonly count: number;
}) {
  const { shared, time, random, count } = at;
  const written = { waitsMs: [] as number[], contended: 0, versionConflicts: 0 };
  let isStopped = false;
  const write = async (writer: number): Promise<void> => {
    const pause = (milliseconds: number): Promise<void> => time.sleep(milliseconds);
    const objects = clusterObjects({ items: shared, clock: time, random, pause });
    for (let turn = 0; !isStopped; turn += 1) {
      const ref = { resource: 'nodes', namespace: '', name: `alive-${Math.floor(random.fraction() * ALIVE)}` };
      const previous = await objects.get(ref);
      if (previous === undefined) throw new Error(`${ref.name} has no Node`);
      const { metadata } = previous;
      const object = {
        ...previous,
        metadata: { ...metadata, labels: { ...metadata.labels, turn: `${writer}-${turn}` } },
      };
      const beganMs = time.nowMs();
      const { kind } = await objects.commit({ writes: [{ kind: 'update', ref, object, previous }] });
      if (kind === 'committed') written.waitsMs.push(time.nowMs() - beganMs);
      else if (kind === 'contended') written.contended += 1;
      else written.versionConflicts += 1;
      await pause(2 * THINK_MS * random.fraction());
    }
  };
  for (let writer = 0; writer < count; writer += 1) void write(writer);
  return {
    stop() {
      isStopped = true;
      return written;
    },
  };
}

async function makeFleet(
  tables: ItemStore,
  time: StormTime,
  { random, nodes }: { readonly random: RandomSource; readonly nodes: number },
): Promise<void> {
  const nowMs = time.nowMs();
  const objects = clusterObjects({ items: tables, clock: time, random });
  const all = [
    ...Array.from({ length: nodes }, (_, index) => readyNode(`dead-${index}`, 'zone-dark', nowMs, random.uuid())),
    ...Array.from({ length: ALIVE }, (_, index) => readyNode(`alive-${index}`, 'zone-lit', nowMs, random.uuid())),
  ];
  for (let first = 0; first < all.length; first += NODES_PER_COMMIT) {
    const part = all.slice(first, first + NODES_PER_COMMIT);
    const outcome = await objects.commit({
      writes: part.map((object) => ({
        kind: 'create',
        ref: { resource: 'nodes', namespace: '', name: object.metadata.name ?? '' },
        object,
      })),
      extra: part.flatMap((next) => healthWritesFor({ kind: 'create', next, statusPost: true, nowMs })),
    });
    if (outcome.kind !== 'committed') throw new Error(`the fleet could not be made: ${outcome.kind}`);
  }
  await beatAll(tables, 'dead', nodes, nowMs);
}

/** What a heartbeat leaves in the rows of these nodes. */
async function beatAll(tables: ItemStore, prefix: string, count: number, nowMs: number): Promise<void> {
  for (let index = 0; index < count; index += 1) {
    const set = { v: nowMs * 1_000, i: `${prefix}-${index}`, t: nowMs * 1_000, d: 40, o: 1, r: nowMs };
    await tables.write({ kind: 'update', key: healthKey(`${prefix}-${index}`), set });
  }
}
