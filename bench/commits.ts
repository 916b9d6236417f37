/**
 * Commits per second on one head of the change log, on virtual time. Transactions of the store conflict as in
 * DynamoDB. Writers are processes with one commit at a time each, such as executions of the API, or one process with many
 * commits at once, such as a controller.
 */
import { conflictingStore } from '../shared/adapters/memory/conflicting-store.ts';
import { memoryItemStore } from '../shared/adapters/memory/item-store.ts';
import { type ObjectStore, objectStore } from '../shared/store/object-store.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import type { Benchmark } from './benchmark.ts';
import { stormTime } from './storm-time.ts';

const START_MS = Date.UTC(2026, 0, 1);
const SECONDS = 30;
const TRANSACTION_MS = 10;
/** Between two commits of a writer, on average. */
const THINK_MS = 20;

export const commits: Benchmark = {
  name: 'commits',
  about: 'commits per second on one head of the change log, with transactions that conflict (virtual time)',
  async run(print) {
    for (const [processes, parallel] of [
      [1, 1],
      [8, 1],
      [32, 1],
      [100, 1],
      [1, 8],
      [1, 32],
      [4, 16],
    ] as const) {
      print(await measure(processes, parallel));
    }
  },
};

async function measure(processes: number, parallel: number): Promise<Record<string, number>> {
  const time = stormTime(START_MS);
  const pause = (milliseconds: number): Promise<void> => time.sleep(milliseconds);
  const random = seededFraction(7);
  const items = conflictingStore(memoryItemStore(), { transactionMs: TRANSACTION_MS, pause, random });
  const endMs = START_MS + SECONDS * 1_000;
  const tally = { committed: 0, contended: 0 };
  const waitsMs: number[] = [];
  const write = async (objects: ObjectStore, writer: string): Promise<void> => {
    for (let count = 0; time.nowMs() < endMs; count += 1) {
      const ref = { resource: 'nodes', namespace: '', name: `${writer}-${count}` };
      const startedMs = time.nowMs();
      const outcome = await objects.commit({
        writes: [{ kind: 'create', ref, object: { apiVersion: 'v1', kind: 'Node', metadata: { name: ref.name } } }],
      });
      if (outcome.kind === 'committed') tally.committed += 1;
      else tally.contended += 1;
      waitsMs.push(time.nowMs() - startedMs);
      // The answer, and the reads before the next commit.
      await pause(2 * THINK_MS * random());
    }
  };
  const running = Array.from({ length: processes }, (_, process) => {
    const objects = objectStore({ items, clock: time, shardsOf: () => 1, random, pause });
    return Array.from({ length: parallel }, (__, index) => write(objects, `n${process}-${index}`));
  }).flat();
  await time.passUntil(endMs + 600_000);
  await Promise.all(running);
  waitsMs.sort((a, b) => a - b);
  return {
    processes,
    parallel,
    commitsPerSecond: Math.round(tally.committed / SECONDS),
    transactionsPerCommit: Math.round((items.counters.transactions / Math.max(1, tally.committed)) * 100) / 100,
    contended: tally.contended,
    p50Ms: waitsMs[Math.floor(waitsMs.length / 2)] ?? 0,
    p99Ms: waitsMs[Math.floor(waitsMs.length * 0.99)] ?? 0,
  };
}
