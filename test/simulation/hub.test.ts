/**
 * Hubs that copy the cluster (S3): cuts, lost and late answers, killed processes, lost files, clocks, expired logs and
 * rights that come and go. A hundred of them: `npm run sim -- --seeds 1..100 --hours 0.25 --parts hub`.
 */
import { afterAll, describe, expect, it } from 'vitest';
import type { ItemStore, TransactWrite } from '../../shared/store/item-store.ts';
import { runSim } from '../../simulation/run-sim.ts';
import { addTo, noTotals } from '../../simulation/sim.ts';
import type { SimOptions } from '../../simulation/sim-options.ts';
import { findBug, type PlantedBug } from './find-bug.ts';

const TIMEOUT_MS = 240_000;
const HUBS = { nodes: 8, parts: ['hub'] } as const;
const RUNS: readonly SimOptions[] = [
  { ...HUBS, seed: 1, hours: 0.5 },
  { ...HUBS, seed: 2, hours: 0.5, faultsAStorm: 9 },
  { ...HUBS, seed: 4, hours: 0.5, faults: [] },
];

describe('a hub has the objects of its cluster', () => {
  const totals = noTotals();

  it.each(RUNS)('with seed $seed', { timeout: TIMEOUT_MS }, async (run) => {
    const result = await runSim(run);
    addTo(totals, result);
    expect(result.failure).toBeUndefined();
  });

  afterAll(() => {
    // With fewer, the law was hardly asked.
    expect(totals.marks['S3:content']).toBeGreaterThan(200);
    expect(totals.marks['S3:equal']).toBeGreaterThan(200);
    expect(totals.marks['S3:event']).toBeGreaterThan(200);
    expect(totals.marks['S3:watch']).toBeGreaterThan(100);
    expect(totals.marks['S3:withdrawn']).toBeGreaterThan(100);
    expect(totals.marks['S3:written']).toBeGreaterThan(50);
  });
});

describe('a planted bug is found', () => {
  it.each<Omit<PlantedBug, 'laws'>>([
    { bug: 'a cursor that is stored before its changes', seed: 2, plant: { hub: { items: cursorFirst } } },
    {
      bug: 'a log with the clock of the machine',
      seed: 5,
      plant: { hub: { replica: (replica, clock) => ({ ...replica, versionClock: clock }) } },
    },
    {
      bug: 'a copy that is served after the right to read it was withdrawn',
      plant: {
        hub: {
          replica(replica) {
            const held = new Set<string>();
            return {
              ...replica,
              holds: (resource) => held.has(resource) || (replica.holds(resource) && !!held.add(resource)),
            };
          },
        },
      },
    },
    {
      bug: 'a write that is not waited for',
      plant: { hub: { replica: (replica) => ({ ...replica, caughtUp: async () => true }) } },
    },
  ])('$bug', { timeout: TIMEOUT_MS }, async (planted) => {
    const quiet = { nodes: 5, parts: ['hub'], faults: [] } as const;
    const failure = await findBug(planted, { ...quiet, seed: 1, hours: 1 });
    expect(failure?.law).toBe('S3');
    // A seed that fails without the bug shows nothing.
    const hours = failure!.atMs / 3_600_000;
    expect((await runSim({ ...quiet, seed: failure!.seed, hours })).failure).toBeUndefined();
  });
});

const isState = ({ key }: TransactWrite): boolean => key.pk === 'replica';

/** The process may die between the two. */
function cursorFirst(items: ItemStore): ItemStore {
  return {
    ...items,
    async transact(writes) {
      const others = writes.filter((write) => !isState(write));
      if (others.length === 0 || others.length === writes.length) return items.transact(writes);
      await items.transact(writes.filter(isState));
      return items.transact(others);
    },
  };
}
