/**
 * Random histories of machines and EC2 instances under the real controllers (simulation/cloud-histories.ts): how many
 * live Nodes are deleted, and how long the Node of a terminated instance stays. Each CPU core runs a share of the
 * seeds. The result lists them: any history can be run again.
 */
import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { defaultPolicy } from '../shared/domain/policy.ts';
import { type CloudHistory, runCloudHistory } from '../simulation/cloud-histories.ts';
import { type Benchmark, percentile, rounded } from './benchmark.ts';

const HISTORIES = Number(process.env['HISTORIES'] ?? 100_000);
const FIRST_SEED = Number(process.env['FIRST_SEED'] ?? 1);

interface Share {
  readonly cloudHistories: { readonly from: number; readonly step: number; readonly through: number };
}

interface Sums {
  histories: number;
  nodes: number;
  ticks: number;
  describeCalls: number;
  deleted: number;
  liveDeleted: number;
  late: number;
  shutdownTaints: number;
  /** Seeds of histories that broke a law. */
  broken: number[];
  polls: number[];
}

const noSums = (): Sums => ({
  histories: 0,
  nodes: 0,
  ticks: 0,
  describeCalls: 0,
  deleted: 0,
  liveDeleted: 0,
  late: 0,
  shutdownTaints: 0,
  broken: [],
  polls: [],
});

function add(sums: Sums, history: CloudHistory): void {
  sums.histories += 1;
  sums.nodes += history.nodes;
  sums.ticks += history.ticks;
  sums.describeCalls += history.describeCalls;
  sums.deleted += history.deleted;
  sums.liveDeleted += history.liveDeleted.length;
  sums.late += history.late.length;
  sums.shutdownTaints += history.shutdownTaints;
  if (history.liveDeleted.length + history.late.length > 0) sums.broken.push(history.seed);
  sums.polls.push(...history.pollsToGo);
}

async function runShare({ from, step, through }: Share['cloudHistories']): Promise<Sums> {
  const sums = noSums();
  for (let seed = from; seed <= through; seed += step) add(sums, await runCloudHistory(seed, defaultPolicy));
  return sums;
}

const runInWorker = (share: Share): Promise<Sums> =>
  new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: share });
    worker.once('message', resolve);
    worker.once('error', reject);
  });

export const cloudHistories: Benchmark = {
  name: 'cloud-histories',
  about: 'random histories of EC2 instances: live Nodes deleted, time to the end of dead ones',
  async run(report) {
    const startedMs = performance.now();
    const step = Math.max(1, availableParallelism());
    const through = FIRST_SEED + HISTORIES - 1;
    const parts = await Promise.all(
      Array.from({ length: step }, (_, index) =>
        runInWorker({ cloudHistories: { from: FIRST_SEED + index, step, through } }),
      ),
    );
    const sum = (of: (part: Sums) => number): number => parts.reduce((total, part) => total + of(part), 0);
    const polls = parts.flatMap((part) => part.polls);
    report({
      histories: sum((part) => part.histories),
      firstSeed: FIRST_SEED,
      nodes: sum((part) => part.nodes),
      ticks: sum((part) => part.ticks),
      ec2Calls: sum((part) => part.describeCalls),
      nodesDeleted: sum((part) => part.deleted),
      liveNodesDeleted: sum((part) => part.liveDeleted),
      terminatedNodesLate: sum((part) => part.late),
      brokenSeeds: parts
        .flatMap((part) => part.broken)
        .slice(0, 20)
        .join(' '),
      terminatedNodesGone: polls.length,
      pollsP50: percentile(polls, 0.5),
      pollsP99: percentile(polls, 0.99),
      pollsMax: percentile(polls, 1),
      tookSeconds: rounded((performance.now() - startedMs) / 1_000),
    });
  },
};

const share = workerData as Share | null;
if (!isMainThread && share?.cloudHistories !== undefined) parentPort?.postMessage(await runShare(share.cloudHistories));
