/**
 * A zone of 5,000 nodes that fails in one instant, on the embedded engine: how many ticks until all are marked, and the
 * duration of each tick with the parts that it sends. Ticks start on time. Within a tick the machine's clock runs: a tick
 * stops where it would for lack of time. Parts are worked on by four processes that share this machine.
 */

import { clusterObjects } from '../shared/api/storage/cluster-objects.ts';
import { type FleetControllers, fleetControllers } from '../shared/controllers/index.ts';
import { defaultPolicy } from '../shared/domain/policy.ts';
import { slotOf } from '../shared/domain/tick.ts';
import type { Clock, RandomSource } from '../shared/ports/clock.ts';
import type { ConsumedUnits, ItemStore, TransactWrite, Write } from '../shared/ports/item-store.ts';
import type { PartQueue } from '../shared/ports/part-queue.ts';
import { healthKey } from '../shared/store/health-row.ts';
import { scanHealth } from '../shared/store/health-store.ts';
import { healthWritesFor } from '../shared/store/node-writes.ts';
import { startEngineStores } from '../simulation/engine-store.ts';
import { readyNode } from '../simulation/ready-node.ts';
import { seededFraction, seededUuid } from '../simulation/seeded-random.ts';
import type { Benchmark, Report } from './benchmark.ts';
import { rounded } from './benchmark.ts';

const DEAD = 5_000;
const ALIVE = 100;
const START_MS = Date.UTC(2026, 0, 1);
const SEED = 4_021;
/** Nodes written in one commit during the setup. */
const NODES_PER_COMMIT = 16;
const BEATS_AT_ONCE = 32;
const PART_WORKERS = 4;
/** Ticks after the first due one until the bench gives up. */
const TICKS_MAX = 20;

export const massFailure: Benchmark = {
  name: 'mass-failure',
  about: `a zone of ${DEAD} nodes dying at once, on the embedded engine: ticks, writes, units and seconds`,
  run: measure,
};

interface Counters {
  readUnits: number;
  writeUnits: number;
  /** Items written, one for each action of a transaction. */
  itemWrites: number;
  requests: number;
}

const noCounters = (): Counters => ({ readUnits: 0, writeUnits: 0, itemWrites: 0, requests: 0 });

/** Runs with the machine's clock from a given moment on; stands still otherwise. */
function steppedClock(): Clock & { at(nowMs: number): void; run(): void } {
  let baseMs = START_MS;
  let startedMs: number | undefined;
  return {
    nowMs: () => Math.floor(baseMs + (startedMs === undefined ? 0 : performance.now() - startedMs)),
    at(nowMs) {
      baseMs = nowMs;
      startedMs = undefined;
    },
    run() {
      startedMs = performance.now();
    },
  };
}

function counting(items: ItemStore, counters: () => Counters): ItemStore {
  const written = (writes: readonly (Write | TransactWrite)[]): void => {
    counters().requests += 1;
    counters().itemWrites += writes.filter(({ kind }) => kind !== 'check').length;
  };
  return {
    ...items,
    write(write, wanted) {
      written([write]);
      return items.write(write, wanted);
    },
    transact(writes) {
      written(writes);
      return items.transact(writes);
    },
  };
}

async function measure(report: Report): Promise<void> {
  const engine = await startEngineStores(process.env);
  try {
    let counters = noCounters();
    const onConsumed = ({ readUnits, writeUnits }: ConsumedUnits): void => {
      counters.readUnits += readUnits;
      counters.writeUnits += writeUnits;
    };
    const { items: plain } = await engine.open({ onConsumed });
    const items = counting(plain, () => counters);
    const clock = steppedClock();
    const fraction = seededFraction(SEED);
    const random: RandomSource = { fraction, uuid: () => seededUuid(fraction) };
    const startedMs = performance.now();
    await makeFleet(items, clock, random);
    report({ part: 'fleet made', nodes: DEAD + ALIVE, seconds: seconds(startedMs) });

    const policy = { ...defaultPolicy, ingestGate: 'off' } as const;
    const quiet = { debug() {}, info() {}, warn() {}, error: console.error };
    const shared = { items, clock, random, policy, log: quiet, meter: { add() {} } };
    const parts = partWorkers((partQueue) => fleetControllers({ ...shared, partQueue }));
    const controllers = fleetControllers({ ...shared, partQueue: parts.queue });
    const periodMs = policy.nodeMonitorPeriodSeconds * 1_000;
    const graceMs = policy.nodeMonitorGracePeriodSeconds * 1_000;
    const tick = async (nowMs: number) => {
      clock.at(nowMs);
      await beatAll(items, 'alive', ALIVE, nowMs);
      counters = noCounters();
      const beganMs = performance.now();
      clock.run();
      await controllers.tickNodeMonitor(slotOf(nowMs, policy.nodeMonitorPeriodSeconds));
      const tickSeconds = seconds(beganMs);
      await parts.finished();
      const took = seconds(beganMs);
      const counted = counters;
      counters = noCounters();
      const fleet = await scanHealth(items, { consistent: true });
      const marked = fleet.filter(({ ready }) => ready === 'Unknown').length;
      return { counted, tickSeconds, seconds: took, markedInAll: marked };
    };

    // Ticks from the start: the gate is open and the zones are known when the grace period is over.
    const dueMs = START_MS + graceMs + periodMs;
    for (let nowMs = START_MS; nowMs < dueMs; nowMs += periodMs) await tick(nowMs);
    let marked = 0;
    let sum = noCounters();
    for (let ticks = 1; ticks <= TICKS_MAX && marked < DEAD; ticks += 1) {
      const { counted, tickSeconds, seconds: took, markedInAll } = await tick(dueMs + (ticks - 1) * periodMs);
      const now = markedInAll - marked;
      marked = markedInAll;
      sum = {
        readUnits: sum.readUnits + counted.readUnits,
        writeUnits: sum.writeUnits + counted.writeUnits,
        itemWrites: sum.itemWrites + counted.itemWrites,
        requests: sum.requests + counted.requests,
      };
      report({
        part: 'tick',
        tick: ticks,
        marked: now,
        markedInAll: marked,
        tickSeconds,
        seconds: took,
        readUnits: rounded(counted.readUnits),
        writeUnits: rounded(counted.writeUnits),
        itemWrites: counted.itemWrites,
        writeRequests: counted.requests,
      });
    }
    const fleet = await scanHealth(items, { consistent: true });
    report({
      part: 'sum',
      seed: SEED,
      unknown: fleet.filter(({ ready }) => ready === 'Unknown').length,
      falselyMarked: fleet.filter(({ ready, nodeName }) => ready === 'Unknown' && nodeName.startsWith('alive')).length,
      itemWritesPerNode: rounded(sum.itemWrites / DEAD),
      writeRequestsPerNode: rounded(sum.requests / DEAD),
      writeUnitsPerNode: rounded(sum.writeUnits / DEAD),
      failedParts: parts.failed(),
    });
  } finally {
    await engine.stop();
  }
}

/** Works on parts as soon as they are sent. */
function partWorkers(compose: (queue: PartQueue) => FleetControllers) {
  const waiting: { readonly body: string; receives: number }[] = [];
  const idle: FleetControllers[] = [];
  const underWay = new Set<Promise<void>>();
  let failed = 0;
  const queue: PartQueue = {
    async send(bodies) {
      waiting.push(...bodies.map((body) => ({ body, receives: 0 })));
      while (underWay.size < PART_WORKERS) {
        const done = work().finally(() => underWay.delete(done));
        underWay.add(done);
      }
      return [];
    },
    postpone: () => Promise.resolve(),
  };
  async function work(): Promise<void> {
    const controllers = idle.pop() ?? compose(queue);
    for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
      part.receives += 1;
      const outcome = await controllers.onMarkPart(part);
      if (outcome.kind === 'failed') {
        failed += 1;
        if (outcome.retrySeconds !== undefined) waiting.push(part);
      }
    }
    idle.push(controllers);
  }
  return {
    queue,
    failed: () => failed,
    /** Waits for all parts. */
    async finished(): Promise<void> {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

const seconds = (sinceMs: number): number => rounded((performance.now() - sinceMs) / 1_000);

async function makeFleet(items: ItemStore, clock: Clock, random: RandomSource): Promise<void> {
  const nowMs = clock.nowMs();
  const objects = clusterObjects({ items, clock, random });
  const all = [
    ...Array.from({ length: DEAD }, (_, index) => readyNode(`dead-${index}`, 'zone-dark', nowMs, random.uuid())),
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
  await beatAll(items, 'dead', DEAD, nowMs);
}

/** What a beat leaves behind in the rows of these nodes. */
async function beatAll(items: ItemStore, prefix: string, count: number, nowMs: number): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const name = `${prefix}-${next}`;
      next += 1;
      await items.write({
        kind: 'update',
        key: healthKey(name),
        set: { v: nowMs * 1_000, i: name, t: nowMs * 1_000, d: 40, o: 1, r: nowMs },
      });
    }
  };
  await Promise.all(Array.from({ length: BEATS_AT_ONCE }, worker));
}
