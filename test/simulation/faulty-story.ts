/** A long scenario from a seed: one outage of the controllers after the other, and no machine fails. */

import { ZONE_LABEL } from '../../shared/fleet/nodes/node-digest.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { MachineSpec, Scenario, Step, StepAction } from '../../simulation/scenario.ts';
import { seededFraction } from '../../simulation/seeded-random.ts';

const ZONES = 3;
/** Mean time between outages. */
const CALM_MS = 240_000;
/** Simulated machines do not try again within a slot, so a path that loses less would silence some of them in truth. */
const LEAST_LOSS = 0.9;

const machineOf = (index: number, beatEveryMs: number, fraction: () => number): MachineSpec => ({
  name: `m-${index}`,
  labels: { [ZONE_LABEL]: `zone-${index % ZONES}` },
  taints: [],
  podCount: index % 5 === 0 ? 1 : 0,
  hasInstance: false,
  beating: true,
  ageMs: 0,
  clockOffsetMs: Math.round((fraction() - 0.5) * 3_600_000),
  beatEveryMs,
  phaseMs: Math.floor(fraction() * beatEveryMs),
});

export function faultyStory(options: {
  readonly nodes: number;
  readonly hours: number;
  readonly seed: number;
  readonly policy: Policy;
}): Scenario {
  const { nodes, hours, seed, policy } = options;
  const fraction = seededFraction(seed);
  const beatEveryMs = policy.beatIntervalSeconds * 1_000;
  const endMs = hours * 3_600_000;
  const steps: Step[] = [];
  const add = (atMs: number, action: StepAction): void => {
    steps.push({ ...action, atMs, line: steps.length + 1, refused: undefined });
  };
  let atMs = 60_000;
  for (;;) {
    const untilMs = atMs + Math.round(5_000 + fraction() * (fraction() < 0.2 ? 900_000 : 90_000));
    if (untilMs >= endMs) break;
    if (fraction() < 0.5) {
      add(atMs, { verb: 'controllers', down: true });
      add(untilMs, { verb: 'controllers', down: false });
    } else {
      add(atMs, { verb: 'ingest', failShare: fraction() < 0.7 ? 1 : LEAST_LOSS + (1 - LEAST_LOSS) * fraction() });
      add(untilMs, { verb: 'ingest', failShare: 0 });
    }
    atMs = untilMs + Math.round(-Math.log(1 - fraction()) * CALM_MS);
  }
  const none = { min: 0, max: 0 };
  const counts = (['notReady', 'tainted', 'podsDeleted', 'nodesDeleted'] as const).map((count) => ({
    count,
    wanted: none,
    line: 0,
  }));
  const marks = { line: 0, kind: 'Node', name: '*', reason: 'NodeNotReady', count: none };
  add(endMs, {
    verb: 'expect',
    expectation: { nodes: [], pods: [], workloads: [], zones: [], counts, events: [marks] },
  });
  return {
    file: 'faulty-story',
    name: `faulty-story-${seed}`,
    startMs: Date.UTC(2026, 0, 1),
    policy,
    machines: Array.from({ length: nodes }, (_, index) => machineOf(index, beatEveryMs, fraction)),
    steps,
  };
}
