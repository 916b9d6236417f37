/** The laws per profile: bugs that concern profiles alone are found. */
import { describe, expect, it } from 'vitest';
import { runSim } from '../../simulation/run-sim.ts';
import type { SimOptions } from '../../simulation/sim-options.ts';
import { rowsWithout } from './rows-without.ts';

const TIMEOUT_MS = 120_000;
/** People change the labels often enough in a quarter of an hour. */
const QUIET = { hours: 0.25, faults: [], parts: ['profiles'] } as const satisfies Partial<SimOptions>;

/** node-monitor knows nothing of this attribute of rows of `health`. */
const without = (attribute: string): NonNullable<SimOptions['plant']> => ({
  items: (items, { name }) => (name === 'node-monitor' ? rowsWithout(items, attribute) : items),
});

describe('the laws of a fleet with profiles', () => {
  it('hold without faults, to the millisecond', { timeout: TIMEOUT_MS }, async () => {
    const result = await runSim({ seed: 3, ...QUIET });
    expect(result.failure).toBeUndefined();
    expect(result.marks['mark:True>Unknown']).toBeGreaterThan(0);
  });

  it.each([
    { bug: 'every node by the top-level times', plant: without('P'), laws: ['L1', 'L2'] },
    { bug: 'a new profile before the node can learn it', plant: without('C'), laws: ['L1'] },
  ])('find $bug', { timeout: TIMEOUT_MS }, async ({ plant, laws }) => {
    const found = new Set<string>();
    for (let seed = 1; seed <= 6 && found.size === 0; seed += 1) {
      const { failure } = await runSim({ seed, ...QUIET, plant });
      if (failure !== undefined) found.add(failure.law);
    }
    expect(laws).toEqual(expect.arrayContaining([...found]));
    expect(found.size).toBe(1);
  });
});

describe('the laws of planned silence', () => {
  const ANNOUNCED = { hours: 0.25, faults: [], parts: ['plannedSilence'] } as const satisfies Partial<SimOptions>;

  it('hold without faults, to the millisecond', { timeout: TIMEOUT_MS }, async () => {
    const result = await runSim({ seed: 2, ...ANNOUNCED });
    expect(result.failure).toBeUndefined();
    expect(result.marks['mark:True>Unknown']).toBeGreaterThan(0);
  });

  it('find a promise that is cut short', { timeout: TIMEOUT_MS }, async () => {
    const { failure } = await runSim({ seed: 2, ...ANNOUNCED, plant: without('S') });
    expect(failure?.law).toBe('L1');
  });
});
