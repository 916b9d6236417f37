/** The law of flapping: bugs of its rule are found. */
import { describe, expect, it } from 'vitest';
import type { Policy } from '../../shared/fleet/policy.ts';
import { runSim } from '../../simulation/run-sim.ts';
import type { SimOptions } from '../../simulation/sim-options.ts';

const TIMEOUT_MS = 120_000;
/** Eight machines of these seeds are silent often enough. */
const QUIET = {
  nodes: 8,
  hours: 0.4,
  faults: [],
  parts: [],
  policy: { flapThreshold: 2, flapWindowSeconds: 900, flapStableSeconds: 120 },
} as const satisfies Partial<SimOptions>;

const deployed = (fields: Partial<Policy>): NonNullable<SimOptions['plant']> => ({
  policy: (policy) => ({ ...policy, ...fields }),
});

describe('the law of flapping nodes', () => {
  it('holds without faults', { timeout: TIMEOUT_MS }, async () => {
    const result = await runSim({ seed: 1, ...QUIET });
    expect(result.failure).toBeUndefined();
    expect(result.marks['flapping:begin']).toBeGreaterThan(0);
    expect(result.marks['flapping:end']).toBeGreaterThan(0);
  });

  it.each([
    { bug: 'a begin after one mark', fields: { flapThreshold: 1 }, message: /flaps after 1 marks/ },
    { bug: 'no begin', fields: { flapThreshold: 3 }, message: /does not flap/ },
    { bug: 'an early end', fields: { flapStableSeconds: 60 }, message: /stopped flapping/ },
    { bug: 'a late end', fields: { flapStableSeconds: 300 }, message: /still flaps/ },
  ])('finds $bug', { timeout: TIMEOUT_MS }, async ({ fields, message }) => {
    const { failure } = await runSim({ seed: 1, ...QUIET, plant: deployed(fields) });
    expect(failure).toMatchObject({ law: 'flapping', message: expect.stringMatching(message) });
  });
});
