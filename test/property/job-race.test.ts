/**
 * Many workers on one Job, with records delivered late, twice and to several workers at once, pods that succeed, fail
 * and are evicted, transactions that conflict, and workers that are killed between two calls or after a call without
 * its answer.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { isActive, ownedPodOf } from '../../functions/workloads/owned-pods.rule.ts';
import type { JobSpec, KubeJob } from '../../shared/kinds/types.ts';
import type { ItemChange } from '../../shared/store/memory/item-changes.ts';
import { objectOf } from '../../shared/store/object-record.ts';
import { type JobCluster, jobCluster, TRACKING } from '../support/job-cluster.ts';
import { raceWorkers } from '../support/racing-workers.ts';
import { randomFrom } from '../support/seeded.ts';

const ROUNDS = 40;
const PARALLELISM = 20;
const COMPLETIONS = 60;
const INDEX = 'batch.kubernetes.io/job-completion-index';

interface Seen {
  /** Pods, by how they ended when they lost the finalizer. */
  readonly succeeded: number;
  readonly failed: number;
  readonly found: readonly string[];
}

/**
 * The law, in the order of the commits: a pod is created only while fewer are active than may run, of each index one at
 * a time, and the status counts exactly the pods that lost the finalizer.
 */
function observe(changes: readonly ItemChange[], isIndexed: boolean): Seen {
  const active = new Map<string, string>();
  const found: string[] = [];
  const counted = { succeeded: 0, failed: 0 };
  const indexes = new Set<string>();
  for (const { key, newImage, oldImage, sequence } of changes) {
    if (!key.pk.startsWith('o#pods#')) continue;
    const pod = newImage === undefined ? undefined : objectOf(newImage);
    const before = oldImage === undefined ? undefined : objectOf(oldImage);
    const index = (pod ?? before)?.metadata.annotations?.[INDEX] ?? key.sk;
    const wasTracked = before?.metadata.finalizers?.includes(TRACKING) === true;
    if (wasTracked && pod?.metadata.finalizers?.includes(TRACKING) !== true) {
      if (before.status?.['phase'] === 'Succeeded') {
        counted.succeeded += 1;
        if (isIndexed && indexes.has(index)) found.push(`change ${sequence}: index ${index} succeeded twice`);
        indexes.add(index);
      } else counted.failed += 1;
    }
    if (pod === undefined || !isActive(ownedPodOf(pod))) active.delete(key.sk);
    else {
      const isNew = !active.has(key.sk);
      if (isNew && isIndexed && [...active.values()].includes(index)) found.push(`change ${sequence}: two of ${index}`);
      active.set(key.sk, index);
      if (isNew && active.size > PARALLELISM) found.push(`change ${sequence}: ${active.size} active`);
    }
  }
  return { ...counted, found };
}

async function race(seed: number, spec: JobSpec) {
  const random = randomFrom(seed);
  const cluster = jobCluster();
  await cluster.createJob({ parallelism: PARALLELISM, completions: COMPLETIONS, backoffLimit: 100_000, ...spec });
  const { deaths, conflicts } = await raceWorkers(cluster, {
    random,
    rounds: ROUNDS,
    disturb: () => disturb(cluster, random),
    // Beyond the longest wait after failures.
    roundMs: 601_000,
    thenWorker: (worker) => worker.tickWorkloads(Math.floor(cluster.now() / 5_000)),
  });
  await finish(cluster);
  const job = await cluster.job();
  const changes = cluster.tables.changes('objects', 0);
  return { seen: observe(changes, spec.completionMode === 'Indexed'), job, deaths, cluster, conflicts };
}

/** Pods that run, succeed, fail and are evicted. */
async function disturb(cluster: JobCluster, random: () => number): Promise<void> {
  for (let turns = Math.floor(random() * 30); turns >= 0; turns -= 1) await turn();
  for (const pod of await cluster.pods()) {
    // A phase is final.
    const isTerminal = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
    if (isTerminal || random() > 0.2) continue;
    const draw = random();
    // Another writer may win: the pod is left as it is.
    const act =
      draw < 0.5
        ? cluster.end(pod, 'Succeeded')
        : draw < 0.8
          ? cluster.end(pod, 'Failed')
          : cluster.markPod(pod.metadata.name ?? '');
    await act.catch(() => undefined);
  }
}

/** What dead workers left is found by the sweep; all pods succeed from now on. */
async function finish(cluster: JobCluster): Promise<void> {
  for (let round = 0; round < 12; round += 1) {
    await cluster.runPods();
    for (const pod of await cluster.pods()) if (pod.status?.phase === 'Running') await cluster.end(pod, 'Succeeded');
    await cluster.settle();
    await cluster.confirmDeletions();
    cluster.advance(901_000);
    await cluster.tick();
    await cluster.settle();
  }
}

const isComplete = ({ status }: KubeJob): boolean =>
  status?.conditions?.some(({ type, status: value }) => type === 'Complete' && value === 'True') === true;

describe('sixteen workers on one Job', () => {
  it.each([
    ['count each pod once', 2, {}],
    ['run one pod of each index', 4, { completionMode: 'Indexed' }],
  ])(
    '%s, seed %i',
    async (_what, seed, spec) => {
      const { seen, job, deaths, cluster, conflicts } = await race(seed, spec);
      expect(seen.found).toEqual([]);
      expect(isComplete(job)).toBe(true);
      expect(await cluster.tracked()).toBe(0);
      expect({ succeeded: job.status?.succeeded, failed: job.status?.failed }).toEqual({
        succeeded: seen.succeeded,
        failed: seen.failed,
      });
      expect(job.status?.succeeded).toBe(COMPLETIONS);
      // The race took place.
      expect(seen.failed).toBeGreaterThan(20);
      expect(deaths).toBeGreaterThan(50);
      expect(conflicts).toBeGreaterThan(50);
    },
    120_000,
  );
});
