/**
 * Pods that the hub of a site moves without the cluster (S2, S3): cuts of every link, lost power, hubs that die or lose
 * their file, and clocks. A hundred of them:
 * `npm run sim -- --seeds 1..100 --hours 1 --nodes 8 --parts offlineStop,hub,reschedule`.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { runSim } from '../../simulation/run-sim.ts';
import { addTo, noTotals } from '../../simulation/sim.ts';
import type { SimOptions } from '../../simulation/sim-options.ts';
import { findBug } from './find-bug.ts';
import { SITE_BUGS } from './planted-site-bugs.ts';

const TIMEOUT_MS = 240_000;
const SITE = { nodes: 8, parts: ['offlineStop', 'hub', 'reschedule'] } as const;
/** One power cut: two machines are lost, the process of the hub dies, and its clock steps. Each bug is found there. */
const POWER_CUT: SimOptions = { ...SITE, seed: 9, hours: 0.5, faults: [], troubles: [] };
const RUNS: readonly SimOptions[] = [{ ...SITE, seed: 1, hours: 0.75, faults: [] }, POWER_CUT];

describe('a pod of a site runs once, and the cluster counts it once', () => {
  const totals = noTotals();

  it.each(RUNS)('with seed $seed', { timeout: TIMEOUT_MS }, async (run) => {
    const result = await runSim(run);
    addTo(totals, result);
    expect(result.failure).toBeUndefined();
  });

  afterAll(() => {
    expect(totals.marks['S2:moved']).toBeGreaterThan(0);
    expect(totals.marks['S2:merged']).toBeGreaterThan(0);
    expect(totals.marks['S2:given-up']).toBeGreaterThan(0);
  });
});

describe('a planted bug is found', () => {
  it.each(SITE_BUGS)('$bug: $laws', { timeout: TIMEOUT_MS }, async (planted) => {
    const failure = await findBug(planted, POWER_CUT);
    expect(planted.laws).toContain(failure?.law);
  });
});
