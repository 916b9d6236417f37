/**
 * Pods that the hub of a site moves without the cluster (S2, S3): cuts of every link, lost power, hubs that die or lose
 * their file, and clocks. A hundred of them:
 * `npm run sim -- --seeds 1..100 --hours 1 --nodes 8 --parts offlineStop,hub,reschedule`.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { MARKS_OF_RESCHEDULE } from '../../simulation/coverage.ts';
import { runSim } from '../../simulation/run-sim.ts';
import { addTo, neverHit, noTotals } from '../../simulation/sim.ts';
import type { SimOptions } from '../../simulation/sim-options.ts';
import { findBug } from './find-bug.ts';
import { SITE_BUGS } from './planted-site-bugs.ts';

const TIMEOUT_MS = 240_000;
const SITE = { nodes: 8, parts: ['offlineStop', 'hub', 'reschedule'] } as const;
/** One power cut: two machines are lost, the process of the hub dies, and its clock steps. Each bug is found there. */
const POWER_CUT: SimOptions = { ...SITE, seed: 9, hours: 0.5, faults: [], troubles: [] };
/** The first with every fault. */
const RUNS: readonly SimOptions[] = [{ ...SITE, seed: 17, hours: 0.75 }, POWER_CUT];

describe('a pod of a site runs once, and the cluster counts it once', () => {
  const totals = noTotals();

  it.each(RUNS)('with seed $seed', { timeout: TIMEOUT_MS }, async (run) => {
    const result = await runSim(run);
    addTo(totals, result);
    expect(result.failure).toBeUndefined();
  });

  afterAll(() => {
    expect(neverHit(totals.marks, MARKS_OF_RESCHEDULE)).toEqual([]);
  });
});

describe('a planted bug is found', () => {
  it.each(SITE_BUGS)('$bug: $laws', { timeout: TIMEOUT_MS }, async (planted) => {
    const failure = await findBug(planted, POWER_CUT);
    expect(planted.laws).toContain(failure?.law);
  });
});
