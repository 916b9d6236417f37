import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { SiteFault } from '../../simulation/faulty-site.ts';
import { FAULTS } from '../../simulation/own-faults.ts';
import { type SitePlant, simulateSiteFalseMarks } from '../../simulation/site-false-marks.ts';

const run = (siteFault: SiteFault, ...plants: readonly SitePlant[]) =>
  simulateSiteFalseMarks({
    ...{ nodes: 76, hours: 3, seed: 5, policy: defaultPolicy, meanCalmSeconds: 180, skewMs: 100, plants },
    ...{ siteFaults: [siteFault], ownFaults: FAULTS.filter((kind) => kind !== 'ingestLossy') },
  });

describe('a site with witnesses under faults', () => {
  it('has no machine with heartbeats marked while a relay and a second machine lie, and its dead are', async () => {
    const { without, witnessed, shortened, shortenedMarks, deaths } = await run('lyingPair');
    expect([without.false, witnessed.false]).toEqual([0, 0]);
    // The run is relevant: the lies counted until the next heartbeat.
    expect(shortened.false).toBeGreaterThan(100);
    expect(shortenedMarks.off).toBeGreaterThan(deaths / 3);
  });

  it('has some marked when the shortest silence before a mark is that of another interval', async () => {
    expect((await run('lyingPair', 'floor')).witnessed.false).toBeGreaterThan(100);
  });

  it('has waits shortened by the relay alone only when one report is enough', async () => {
    const [right, wrong] = [await run('slowRelay'), await run('slowRelay', 'oneReport')];
    expect(wrong.shortened.false).toBeGreaterThan(10 * (1 + right.shortened.false));
  });
});
