/**
 * Sites with machines that witness the silence of each other, under every trouble of a site: no machine with heartbeats
 * is marked for a report, and each early mark has its witnesses.
 */
import { expect, it } from 'vitest';
import type { Item, ItemStore } from '../../shared/store/item-store.ts';
import { runSim } from '../../simulation/run-sim.ts';
import type { MarkOfNode, SimOptions } from '../../simulation/sim-options.ts';

const TIMEOUT_MS = 240_000;
/** Of a planted bug: the others are tried if the simulation has changed. */
const PLANTED_SEEDS = [8, 17, 1, 2, 3];
const SITES = { nodes: 9, hours: 0.4, parts: ['witnesses'], faults: [] } as const;

it('machines of a site shorten the silence of a dead one, and of no other', { timeout: TIMEOUT_MS }, async () => {
  const marks: MarkOfNode[] = [];
  for (const seed of [1, 2]) {
    const { failure } = await runSim({ ...SITES, seed, onMarked: (mark) => marks.push(mark) });
    expect(failure).toBeUndefined();
  }
  const witnessed = marks.filter(({ isWitnessed }) => isWitnessed);
  expect(witnessed.length).toBeGreaterThan(2);
  expect(witnessed.filter(({ wasOn }) => wasOn)).toEqual([]);
});

/** The reports as node-monitor reads them, changed by a bug. */
const misread = (change: (rows: readonly Item[]) => readonly Item[]): NonNullable<SimOptions['plant']> => ({
  items: (items): ItemStore => ({
    ...items,
    async query(request) {
      const page = await items.query(request);
      return request.pk === 'witnesses' ? { ...page, items: change(page.items) } : page;
    },
  }),
});

it('a planted bug is found: one reporter suffices', { timeout: TIMEOUT_MS }, async () => {
  const plant = misread((rows) => rows.flatMap((row) => [row, ...['m-3', 'm-4', 'm-5'].map((sk) => ({ ...row, sk }))]));
  const found: string[] = [];
  for (const seed of PLANTED_SEEDS) {
    if (found.includes('witnesses')) break;
    const { failure } = await runSim({ ...SITES, seed, plant });
    if (failure !== undefined) found.push(failure.law);
  }
  // The bug marks live machines, so another law may fail first.
  expect(found).toContain('witnesses');
});
