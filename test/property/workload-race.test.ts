/**
 * Many workers on one ReplicaSet, with records delivered late, twice and to several workers at once, a size that
 * changes meanwhile, pods that turn Ready and not Ready, transactions that conflict, and workers that are killed
 * between two calls or after a call without its answer.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { isActive, ownedPodOf } from '../../functions/workloads/owned-pods.rule.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import type { ItemChange } from '../../shared/store/memory/item-changes.ts';
import { objectOf } from '../../shared/store/object-record.ts';
import { raceWorkers } from '../support/racing-workers.ts';
import { randomFrom } from '../support/seeded.ts';
import { type WorkloadCluster, workloadCluster } from '../support/workload-cluster.ts';

const ROUNDS = 60;
const REPLICAS_MAX = 60;

/**
 * The law, at every change of a pod in the order of the commits: a pod is created only while fewer are active than
 * wanted, and deleted only while more are. All deletions here are the controller's.
 */
function violations(changes: readonly ItemChange[]): { readonly checked: number; readonly found: readonly string[] } {
  const active = new Set<string>();
  const found: string[] = [];
  let replicas = 0;
  let checked = 0;
  for (const { key, newImage, sequence } of changes) {
    if (key.pk.startsWith('o#replicasets#') && newImage !== undefined) {
      replicas = Number(objectOf(newImage).spec?.['replicas'] ?? 0);
    }
    if (!key.pk.startsWith('o#pods#')) continue;
    const was = active.has(key.sk);
    const is = newImage !== undefined && isActive(ownedPodOf(objectOf(newImage)));
    if (was === is) continue;
    checked += 1;
    if (is) active.add(key.sk);
    else active.delete(key.sk);
    const isBroken = is ? active.size > replicas : active.size < replicas;
    if (isBroken) found.push(`change ${sequence}: ${active.size} active, ${replicas} wanted`);
  }
  return { checked, found };
}

async function race(seed: number) {
  const random = randomFrom(seed);
  const cluster = workloadCluster();
  await cluster.createSet(0);
  const raced = await raceWorkers(cluster, { random, rounds: ROUNDS, disturb: () => disturb(cluster, random) });
  // What dead workers left is found by the sweep.
  for (let sweeps = 0; sweeps < 3; sweeps += 1) {
    cluster.advance(900_000);
    await cluster.tick();
    await cluster.settle();
  }
  const [set] = await cluster.sets();
  expect(await cluster.pods()).toHaveLength(set?.spec?.replicas ?? 0);
  return { ...violations(cluster.tables.changes('objects', 0)), ...raced };
}

/** A person who changes the size, and pods that change their readiness. */
async function disturb(cluster: WorkloadCluster, random: () => number): Promise<void> {
  for (let turns = Math.floor(random() * 30); turns >= 0; turns -= 1) await turn();
  if (random() < 0.3) {
    const replicas = Math.floor(random() * REPLICAS_MAX);
    await cluster.change('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas } }));
  }
  const pods = await cluster.pods();
  const pod = pods[Math.floor(random() * pods.length)];
  if (pod === undefined) return;
  const status = random() < 0.5 ? ('True' as const) : ('False' as const);
  await cluster.change('pods', pod.metadata.name ?? '', (current) => ({
    ...current,
    status: { ...current.status, phase: 'Running', conditions: [{ type: 'Ready', status }] },
  }));
}

it('deletes one pod when two workers choose different ones, and the first dies before its status write', async () => {
  const cluster = workloadCluster();
  await cluster.createSet(3);
  await cluster.settleRunning();
  await cluster.change('replicasets', 'web', (set) => ({ ...set, spec: { ...set.spec, replicas: 2 } }));
  const batch = await cluster.records();
  let isFirst = true;
  const items: ItemStore = {
    ...cluster.tables,
    async transact(writes) {
      if (isFirst) {
        isFirst = false;
        const chosen = writes.find(({ key }) => key.pk.startsWith('o#pods#'))?.key.sk.slice('default/'.length);
        const other = (await cluster.pods()).find(({ metadata }) => metadata.name !== chosen);
        await cluster.change('pods', other?.metadata.name ?? '', (pod) => ({ ...pod, status: { phase: 'Running' } }));
        await diesAfterCommit(cluster).onWorkloadRecords(batch);
        expect(await cluster.pods()).toHaveLength(2);
      }
      return cluster.tables.transact(writes);
    },
  };
  await cluster.makeControllers(items).onWorkloadRecords(batch);
  expect(isFirst).toBe(false);
  expect(violations(cluster.tables.changes('objects', 0)).found).toEqual([]);
});

/** A worker that dies after its first transaction. */
function diesAfterCommit({ tables, makeControllers }: WorkloadCluster) {
  let isDead = false;
  const alive = <T>(call: () => Promise<T>): Promise<T> =>
    isDead ? Promise.reject(new StoreFault('unreachable', 'the process is dead', { retryable: false })) : call();
  return makeControllers({
    ...tables,
    get: (...args) => alive(() => tables.get(...args)),
    getMany: (...args) => alive(() => tables.getMany(...args)),
    query: (...args) => alive(() => tables.query(...args)),
    write: (...args) => alive(() => tables.write(...args)),
    transact: (writes) =>
      alive(async () => {
        const outcome = await tables.transact(writes);
        isDead = outcome.kind === 'written';
        return outcome;
      }),
  });
}

describe('sixteen workers on one ReplicaSet', () => {
  it.each([2, 3])(
    'never make more pods than it wants and never delete too many, seed %i',
    async (seed) => {
      const { found, checked, deaths, conflicts } = await race(seed);
      expect(found).toEqual([]);
      // The race took place.
      expect(checked).toBeGreaterThan(150);
      expect(deaths).toBeGreaterThan(50);
      expect(conflicts).toBeGreaterThan(50);
    },
    120_000,
  );
});
