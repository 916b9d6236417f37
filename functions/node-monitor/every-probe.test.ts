import { describe, expect, it } from 'vitest';
import type { ProbeOutcome } from './probes.ts';
import { everyProbe } from './probes.ts';

const ending = (outcome: ProbeOutcome) => ({ beat: async () => outcome });
const ACCEPTED = { kind: 'accepted' } as const;
const FAILED = { kind: 'failed', reason: 'answered 429' } as const;

describe('a probe through every way of a heartbeat', () => {
  it.each([
    { ways: [ACCEPTED, ACCEPTED], outcome: ACCEPTED },
    { ways: [FAILED, ACCEPTED], outcome: FAILED },
    { ways: [ACCEPTED, FAILED], outcome: FAILED },
    { ways: [FAILED], outcome: FAILED },
  ])('ends as the worst of them: $ways', async ({ ways, outcome }) => {
    expect(await everyProbe(ways.map(ending)).beat()).toEqual(outcome);
  });
});
