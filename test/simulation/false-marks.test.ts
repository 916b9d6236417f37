import { describe, expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { simulateFalseMarks } from '../../simulation/false-marks.ts';
import { FAULTS } from '../../simulation/own-faults.ts';
import { recordedMemoryStore } from '../../simulation/recorded-store.ts';
import { runScenario } from '../../simulation/run-scenario.ts';
import { seededFraction } from '../../simulation/seeded-random.ts';
import { faultyStory } from './faulty-story.ts';

const NODES = 200;
const HOURS = 24;
/**
 * A path that loses part of the requests for long is seen by chance: half of four probes may get through while most
 * beats do not. The benchmark counts what comes of it; here stand the faults that must never mark anybody.
 */
const CERTAIN = FAULTS.filter((kind) => kind !== 'ingestLossy');

describe('a fleet that beats all along', () => {
  it.each([
    [101, {}],
    [102, { nodeMonitorPeriodSeconds: 20 }],
    [103, { nodeMonitorGracePeriodSeconds: 30 }],
    [104, { beatIntervalSeconds: 20, leaseDurationSeconds: 60, nodeMonitorGracePeriodSeconds: 60 }],
  ])('has no node marked by faults of the controllers (seed %i)', (seed, changes) => {
    const policy = { ...defaultPolicy, ...changes };
    const result = simulateFalseMarks({
      nodes: NODES,
      hours: HOURS,
      seed,
      policy,
      meanCalmSeconds: 180,
      faults: CERTAIN,
    });
    expect(result.falseMarksDuring).toEqual({});
    // The run is relevant: the gate prevented the marks of whole fleets.
    expect(result.withheldMarks).toBeGreaterThan(NODES);
    for (const kind of CERTAIN) expect(result.faults[kind]).toBeGreaterThan(0);
  });

  it('has its dead found out all the same', () => {
    const result = simulateFalseMarks({
      nodes: NODES,
      hours: HOURS,
      seed: 105,
      policy: defaultPolicy,
      meanCalmSeconds: 600,
      faults: CERTAIN,
      deathsPerHour: 4,
    });
    const inTime = result.foundAfterSeconds.filter((seconds) => seconds <= 46).length;
    expect(result.deaths).toBeGreaterThan(40);
    expect(result.foundAfterSeconds.length).toBeGreaterThanOrEqual(result.deaths - 1);
    expect(inTime / result.foundAfterSeconds.length).toBeGreaterThan(0.5);
  });

  it('has no node marked, tainted or evicted by the whole system during repeated outages of controllers and path', async () => {
    const seed = 106;
    const fraction = seededFraction(seed);
    const story = faultyStory({ nodes: 12, hours: 4, seed, policy: defaultPolicy });
    expect(story.steps.length).toBeGreaterThan(40);
    const { failures } = await runScenario(story, {
      store: recordedMemoryStore(),
      seed,
      isTickTwice: () => fraction() < 0.1,
    });
    expect(failures).toEqual([]);
  });
});
