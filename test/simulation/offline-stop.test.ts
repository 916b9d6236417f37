/**
 * Pods that must not run twice (S2), and containers that a link restarts (S1): seeded schedules of cuts, lost power,
 * restarts and clock steps, under all faults of the cluster. A thousand of them:
 * `npm run sim -- --seeds 1..1000 --nodes 8 --parts offlineStop`.
 */
import { afterAll, describe, expect, it } from 'vitest';
import { runSim } from '../../simulation/run-sim.ts';
import { addTo, noTotals } from '../../simulation/sim.ts';
import type { SimOptions } from '../../simulation/sim-options.ts';
import { findBug } from './find-bug.ts';
import { LYING_RELAYS, PLANTED_IN_OFFLINE_STOP } from './planted-offline-bugs.ts';

const TIMEOUT_MS = 240_000;
const MACHINES = { nodes: 8, parts: ['offlineStop'] } as const;
const SCHEDULES: readonly SimOptions[] = [
  { ...MACHINES, seed: 1, hours: 0.75 },
  { ...MACHINES, seed: 2, hours: 0.75, faultsAStorm: 9 },
  { ...MACHINES, seed: 4, hours: 0.75, faults: [] },
];

describe('no pod that must not run twice does, and no link restarts a container', () => {
  const totals = noTotals();

  it.each(SCHEDULES)('with seed $seed', { timeout: TIMEOUT_MS }, async (schedule) => {
    const result = await runSim(schedule);
    addTo(totals, result);
    expect(result.failure).toBeUndefined();
  });

  it('while relays acknowledge heartbeats that they do not pass on', { timeout: TIMEOUT_MS }, async () => {
    const result = await runSim({ ...MACHINES, ...LYING_RELAYS, seed: 1, hours: 0.75, faults: [] });
    addTo(totals, result);
    expect(result.failure).toBeUndefined();
  });

  afterAll(() => {
    // With fewer, the laws were hardly asked.
    expect(totals.marks['S1:stop']).toBeGreaterThan(20);
    expect(totals.marks['S1:offline-stop']).toBeGreaterThan(2);
    expect(totals.marks['S2:start']).toBeGreaterThan(80);
    expect(totals.marks['S2:start-beside-silent']).toBeGreaterThan(15);
  });
});

describe('a planted bug is found', () => {
  it.each(PLANTED_IN_OFFLINE_STOP)('$bug: $laws', { timeout: TIMEOUT_MS }, async (planted) => {
    const failure = await findBug(planted, { seed: 1, hours: 1 });
    expect(planted.laws).toContain(failure?.law);
  });
});
