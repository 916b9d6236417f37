/**
 * Many workers on one StatefulSet, and on one DaemonSet, with records delivered late, twice and to several workers at
 * once, owners and nodes that change meanwhile, machines that fall silent, transactions that conflict, and workers that
 * are killed between two calls or after a call without its answer.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { targetNodeOf } from '../../functions/workloads/daemonsets/placement.rule.ts';
import { countsForNode } from '../../functions/workloads/daemonsets/rule.ts';
import { ownedPodOf } from '../../functions/workloads/owned-pods.rule.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { ItemChange } from '../../shared/store/memory/item-changes.ts';
import { objectOf } from '../../shared/store/object-record.ts';
import { type DaemonCluster, daemonCluster } from '../support/daemon-cluster.ts';
import { raceWorkers } from '../support/racing-workers.ts';
import { randomFrom } from '../support/seeded.ts';
import { type StatefulCluster, statefulCluster } from '../support/stateful-cluster.ts';
import type { WorkloadCluster } from '../support/workload-cluster.ts';

/** At most: they end when the race has happened twice as often as it must. */
const DAEMON_ROUNDS = 60;
/** A set in order acts once per round at most. */
const STATEFUL_ROUNDS = 120;
const ENOUGH = {
  stateful: { created: 15, deleted: 5, deaths: 50, conflicts: 20 },
  daemon: { created: 30, deaths: 50, conflicts: 20 },
} as const;

/** Whether each figure is above so many times the one that is enough. */
const isAbove = <Name extends string>(
  enough: Readonly<Record<Name, number>>,
  figures: Readonly<Record<NoInfer<Name>, number>>,
  times: number,
): boolean => Object.entries<number>(enough).every(([name, figure]) => figures[name as Name] > times * figure);
const REPLICAS_MAX = 6;

type Random = () => number;

/** What dead workers left is found by the sweep. */
async function settleAll(cluster: WorkloadCluster, settle: () => Promise<unknown>): Promise<void> {
  for (let sweeps = 0; sweeps < 3; sweeps += 1) {
    cluster.advance(900_000);
    await cluster.tick();
    await settle();
  }
}

interface PodChange {
  readonly sequence: number;
  readonly before: KubePod | undefined;
  readonly after: KubePod | undefined;
}

function podChanges(changes: readonly ItemChange[]): readonly PodChange[] {
  return changes.flatMap(({ key, oldImage, newImage, sequence }) =>
    key.pk.startsWith('o#pods#')
      ? [
          {
            sequence,
            before: oldImage === undefined ? undefined : objectOf(oldImage),
            after: newImage === undefined ? undefined : objectOf(newImage),
          },
        ]
      : [],
  );
}

const ordinalIn = (name: string): number => Number(name.slice(name.lastIndexOf('-') + 1));

/**
 * Laws of a StatefulSet in order, at every change of a pod in the order of the commits. A pod that ran is removed by
 * its machine alone: the controller never frees a name. The controller deletes a pod only if each one that it deleted
 * before has been removed, or if the set became so small that neither is wanted; then the higher one leaves, as
 * upstream.
 */
function statefulViolations(changes: readonly ItemChange[], removedByMachine: ReadonlySet<string>) {
  const found: string[] = [];
  const leaving = new Set<string>();
  let created = 0;
  let deleted = 0;
  const sizes = changes.filter(({ key, newImage }) => key.pk.startsWith('o#statefulsets#') && newImage !== undefined);
  for (const { sequence, before, after } of podChanges(changes)) {
    const name = (after ?? before)?.metadata.name ?? '';
    if (before === undefined) {
      created += 1;
    } else if (after === undefined) {
      leaving.delete(name);
      const uid = before.metadata.uid ?? '';
      const hasRun = before.spec?.nodeName !== undefined;
      if (hasRun && !removedByMachine.has(uid)) found.push(`change ${sequence}: the controller removed ${name}`);
    } else if (before.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined) {
      deleted += 1;
      const owner = sizes.findLast((change) => change.sequence < sequence)?.newImage;
      const replicas = Number((owner === undefined ? undefined : objectOf(owner))?.spec?.['replicas'] ?? 0);
      const isShrinking = [...leaving].every((other) => ordinalIn(other) >= replicas && other < name);
      if (leaving.size > 0 && !isShrinking)
        found.push(`change ${sequence}: ${name} deleted beside ${[...leaving].join(', ')}`);
      leaving.add(name);
    }
  }
  return { found, created, deleted };
}

async function raceStatefulSet(seed: number) {
  const random = randomFrom(seed);
  const cluster = statefulCluster();
  const removedByMachine = new Set<string>();
  let image = 'v1';
  await cluster.createStatefulSet();
  const silent = new Set<string>();
  const disturb = async (): Promise<void> => {
    for (let turns = Math.floor(random() * 30); turns >= 0; turns -= 1) await turn();
    if (random() < 0.15) await cluster.changeSpec({ replicas: Math.floor(random() * REPLICAS_MAX) });
    if (random() < 0.15) {
      image = `v${Math.floor(random() * 3)}`;
      await cluster.setImage(image);
    }
    await actAsMachines(cluster, { random, silent, removedByMachine });
  };
  const violations = () => statefulViolations(cluster.tables.changes('objects', 0), removedByMachine);
  const counts = await raceWorkers(cluster, {
    random,
    rounds: STATEFUL_ROUNDS,
    isEnough: (each) => isAbove(ENOUGH.stateful, { ...each, ...violations() }, 2),
    disturb,
  });
  silent.clear();
  await settleAll(cluster, async () => {
    for (let round = 0; round < 100; round += 1) {
      const batches = await cluster.settle();
      const acts = await actAsMachines(cluster, { random: () => 0.9, silent, removedByMachine });
      if (batches + acts === 0) return;
    }
    throw new Error('the set does not settle');
  });
  const set = await cluster.set();
  const replicas = set.spec?.replicas ?? 0;
  const images = await cluster.images();
  expect(Object.keys(images).sort()).toEqual(Array.from({ length: replicas }, (_, index) => `web-${index}`));
  expect(new Set(Object.values(images)).size).toBeLessThanOrEqual(1);
  return { ...counts, ...violations() };
}

/**
 * Machines start pods and end those that are being deleted. Some fall silent for a while. Returns the number of acts.
 */
async function actAsMachines(
  cluster: StatefulCluster,
  world: { readonly random: Random; readonly silent: Set<string>; readonly removedByMachine: Set<string> },
): Promise<number> {
  const { random, silent, removedByMachine } = world;
  let acts = 0;
  for (const pod of await cluster.list<KubePod>('pods')) {
    const name = pod.metadata.name ?? '';
    if (random() < 0.02) silent.add(name);
    else if (random() < 0.5) silent.delete(name);
    if (silent.has(name)) continue;
    try {
      if (pod.metadata.deletionTimestamp !== undefined) {
        removedByMachine.add(pod.metadata.uid ?? '');
        await cluster.remove('pods', name);
      } else if (!isReady(pod)) await cluster.runPod(name);
      else if (random() < 0.1) await cluster.runPod(name, { ready: false });
      else continue;
      acts += 1;
    } catch {
      // A worker was faster: the next round finds what is stored then.
    }
  }
  return acts;
}

const isReady = ({ status }: KubePod): boolean =>
  status?.phase === 'Running' &&
  status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;

/** The law of a DaemonSet without a surge: a pod is created only if its node has none that counts. */
function daemonViolations(changes: readonly ItemChange[]) {
  const found: string[] = [];
  const byNode = new Map<string, Set<string>>();
  let created = 0;
  for (const { sequence, before, after } of podChanges(changes)) {
    const pod = after ?? before;
    if (pod === undefined) continue;
    const node = targetNodeOf(pod) ?? '';
    const present = byNode.get(node) ?? new Set<string>();
    byNode.set(node, present);
    const name = pod.metadata.name ?? '';
    if (before === undefined) {
      created += 1;
      if (present.size > 0)
        found.push(`change ${sequence}: ${name} created on ${node} beside ${[...present].join(', ')}`);
    }
    if (after !== undefined && countsForNode(ownedPodOf(after))) present.add(name);
    else present.delete(name);
  }
  return { found, created };
}

async function raceDaemonSet(seed: number) {
  const random = randomFrom(seed);
  const cluster = daemonCluster();
  await cluster.createNodes(6);
  await cluster.createDaemonSet({
    updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 0, maxUnavailable: 2 } },
  });
  let nodes = 6;
  const disturb = async (): Promise<void> => {
    for (let turns = Math.floor(random() * 30); turns >= 0; turns -= 1) await turn();
    if (random() < 0.2) {
      await cluster.createNode(`n${nodes}`);
      nodes += 1;
    }
    if (random() < 0.15) await cluster.setImage(`v${Math.floor(random() * 3)}`);
    const node = `n${Math.floor(random() * nodes)}`;
    if (random() < 0.3) {
      const taints = random() < 0.5 ? [{ key: 'maintenance', effect: 'NoExecute' as const }] : [];
      await cluster.setTaints(node, taints).catch(() => undefined);
    }
    await actAsDaemonMachines(cluster, random);
  };
  const violations = () => daemonViolations(cluster.tables.changes('objects', 0));
  const counts = await raceWorkers(cluster, {
    random,
    rounds: DAEMON_ROUNDS,
    isEnough: (each) => isAbove(ENOUGH.daemon, { ...each, ...violations() }, 2),
    disturb,
  });
  for (let index = 0; index < nodes; index += 1) await cluster.setTaints(`n${index}`, []);
  await settleAll(cluster, async () => {
    for (let round = 0; round < 60; round += 1) {
      await cluster.settleDeleted();
      await cluster.runOnTargets();
      if ((await cluster.settle()) === 0) break;
    }
  });
  const targets = await cluster.targets();
  expect([...targets.keys()].sort()).toEqual(Array.from({ length: nodes }, (_, index) => `n${index}`).sort());
  const images = (await cluster.pods()).map(({ spec }) => spec?.containers?.[0]?.image);
  expect(images).toHaveLength(nodes);
  expect(new Set(images).size).toBe(1);
  return { ...counts, ...violations() };
}

async function actAsDaemonMachines(cluster: DaemonCluster, random: Random): Promise<void> {
  try {
    if (random() < 0.7) await cluster.runOnTargets();
    for (const pod of await cluster.list<KubePod>('pods')) {
      const name = pod.metadata.name ?? '';
      if (pod.metadata.deletionTimestamp !== undefined && random() < 0.6) await cluster.remove('pods', name);
      else if (random() < 0.03) await cluster.failPod(name);
    }
  } catch {
    // A worker was faster: the next round finds what is stored then.
  }
}

describe('sixteen workers on one StatefulSet', () => {
  it.each([3, 10])(
    'never free a name, and delete one pod after the other, seed %i',
    async (seed) => {
      const { found, ...figures } = await raceStatefulSet(seed);
      expect(found).toEqual([]);
      // The race took place.
      expect(isAbove(ENOUGH.stateful, figures, 1), JSON.stringify(figures)).toBe(true);
    },
    120_000,
  );
});

describe('sixteen workers on one DaemonSet', () => {
  it.each([2, 3])(
    'never create a second pod on a node, seed %i',
    async (seed) => {
      const { found, ...figures } = await raceDaemonSet(seed);
      expect(found).toEqual([]);
      // The race took place.
      expect(isAbove(ENOUGH.daemon, figures, 1), JSON.stringify(figures)).toBe(true);
    },
    120_000,
  );
});
