/** The simulation finds bugs that are planted, and is the same each time. Beside laws.test.ts: both need minutes. */
import { describe, expect, it } from 'vitest';
import { runWithTwin } from '../../simulation/laws/twin.ts';
import { runSim } from '../../simulation/run-sim.ts';
import { findBug } from './find-bug.ts';
import { PLANTED, queueByRenewTime } from './planted-bugs.ts';
import { PLANTED_IN_WORKLOADS } from './planted-workload-bugs.ts';

/** In most of them two nodes of a zone wait for a taint, one with a wrong clock. */
const TWIN_SEEDS = [65, 37, 11];
const TIMEOUT_MS = 600_000;

describe('a run with machine clocks that are wrong, drift and jump, and one with correct clocks (L11)', () => {
  it('decide the same at the same times', { timeout: TIMEOUT_MS }, async () => {
    const result = await runWithTwin({ seed: 21, hours: 0.25, faults: ['lyingClocks'], parts: [] });
    expect(result.failure).toBeUndefined();
    for (const lie of ['lie:steady', 'lie:drift', 'lie:jump'] as const) expect(result.marks[lie]).toBeGreaterThan(0);
    expect(result.twin.compared).toBeGreaterThan(40);
    expect(result.twin.ofWrongClocks).toBeGreaterThan(10);
  });

  it('differ when evictor orders its queue by renewTime', { timeout: TIMEOUT_MS }, async () => {
    const options = { hours: 0.25, faults: ['lyingClocks'], parts: [], plant: queueByRenewTime() } as const;
    const messages: string[] = [];
    for (const seed of TWIN_SEEDS) {
      const { failure } = await runWithTwin({ ...options, seed });
      if (failure?.law !== 'L11') continue;
      messages.push(failure.message);
      break;
    }
    expect(messages).toEqual([expect.stringContaining('with correct clocks: ')]);
  });
});

it('a run repeated with the same seed has the same steps', { timeout: TIMEOUT_MS }, async () => {
  const [one, other] = [await runSim({ seed: 21, hours: 0.25 }), await runSim({ seed: 21, hours: 0.25 })];
  expect(other).toEqual(one);
});

describe('a planted bug is found', () => {
  it.each([...PLANTED, ...PLANTED_IN_WORKLOADS])('$bug: $laws', { timeout: TIMEOUT_MS }, async (planted) => {
    const failure = await findBug(planted, { seed: 31, hours: 1.5, parts: [] });
    expect(planted.laws).toContain(failure?.law);
  });
});
