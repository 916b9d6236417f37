/**
 * Rounds in which many workers get the same records: late, twice and several at once. Their transactions conflict, and
 * some of them are killed between two calls, or after a call without its answer.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { conflictingStore } from './conflicting-store.ts';
import { dyingStore } from './failing-store.ts';
import type { WorkloadCluster } from './workload-cluster.ts';

const WORKERS = 16;
/** Calls after which a worker that is killed ends, at most. */
const CALLS_MAX = 40;
const ROUND_MS = 1_000;

type Cluster = Pick<WorkloadCluster, 'tables' | 'makeControllers' | 'records' | 'advance'>;

export interface RaceCounts {
  readonly deaths: number;
  readonly conflicts: number;
}

export interface Race {
  /** Between 0 and 1, seeded. */
  readonly random: () => number;
  /** At most. */
  readonly rounds: number;
  /** The race has happened often enough: no more rounds follow. Absent: all rounds. */
  readonly isEnough?: (counts: RaceCounts) => boolean;
  /** Changes the world while the workers run. */
  readonly disturb: () => Promise<void>;
  /** Virtual time of a round. Milliseconds; absent: a second. */
  readonly roundMs?: number;
  /** One worker more per round, after the others. */
  readonly thenWorker?: (worker: ReturnType<Cluster['makeControllers']>) => Promise<unknown>;
}

export async function raceWorkers(cluster: Cluster, race: Race): Promise<RaceCounts> {
  const { random, rounds, isEnough = () => false, disturb, roundMs, thenWorker } = race;
  const pause = async (): Promise<void> => {
    for (let turns = Math.floor(random() * 4); turns >= 0; turns -= 1) await turn();
  };
  const shared = conflictingStore(cluster.tables, { transactionMs: 5, pause, random });
  let deaths = 0;
  /** A worker that may die at some call, with or without its effect. */
  const worker = () => {
    const dies = random() < 0.3;
    const items: ItemStore = dies ? dyingStore(shared, Math.floor(random() * CALLS_MAX), random() < 0.5).items : shared;
    if (dies) deaths += 1;
    return cluster.makeControllers(items);
  };
  const counts = (): RaceCounts => ({ deaths, conflicts: shared.counters.conflicts });
  for (let round = 0; round < rounds && !isEnough(counts()); round += 1) {
    const batch = await cluster.records();
    const deliveries = Array.from({ length: WORKERS }, () => batch.filter(() => random() < 0.5));
    await Promise.allSettled([
      ...[...deliveries, batch].filter((part) => part.length > 0).map((part) => worker().onWorkloadRecords(part)),
      disturb(),
    ]);
    cluster.advance(roundMs ?? ROUND_MS);
    if (thenWorker !== undefined) await thenWorker(worker()).catch(() => undefined);
  }
  return counts();
}
