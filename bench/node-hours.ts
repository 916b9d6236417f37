/**
 * Marks by mistake: over a million simulated node-hours in which nothing dies and faults of ours never end, at the
 * level of the rules; a smaller part with machines that do die; and some through the whole system on the memory store.
 */
import { defaultPolicy, type Policy } from '../shared/domain/policy.ts';
import { FAULTS, type FalseMarksResult, simulateFalseMarks } from '../simulation/false-marks.ts';
import { faultyStory } from '../simulation/faulty-story.ts';
import { recordedMemoryStore } from '../simulation/recorded-store.ts';
import { runScenario } from '../simulation/run-scenario.ts';
import { seededFraction } from '../simulation/seeded-random.ts';
import { type Benchmark, percentile, type Report, rounded } from './benchmark.ts';

const COMMAND = 'npm run bench -- node-hours';
/** Policies differ in what stands between a lost beat and a mark. */
const RUNS: readonly {
  readonly seed: number;
  readonly nodes: number;
  readonly hours: number;
  readonly policy: Partial<Policy>;
}[] = [
  { seed: 11, nodes: 1_000, hours: 300, policy: {} },
  { seed: 12, nodes: 2_500, hours: 120, policy: {} },
  { seed: 13, nodes: 1_000, hours: 250, policy: { nodeMonitorPeriodSeconds: 20 } },
  { seed: 14, nodes: 500, hours: 200, policy: { nodeMonitorGracePeriodSeconds: 30 } },
  {
    seed: 15,
    nodes: 500,
    hours: 200,
    policy: { beatIntervalSeconds: 20, leaseDurationSeconds: 60, nodeMonitorGracePeriodSeconds: 60 },
  },
];
/**
 * A path that loses a part of all requests for long. Most beats may be lost while, by chance, half of a handful of
 * probes get through: these runs say how often that ends in a mark.
 */
const LOSSY_RUNS = [
  { seed: 17, nodes: 1_000, hours: 150, policy: {} },
  { seed: 18, nodes: 500, hours: 100, policy: { nodeMonitorPeriodSeconds: 20 } },
  // A grace of three beats instead of four: what a shorter one costs.
  { seed: 14, nodes: 500, hours: 200, policy: { nodeMonitorGracePeriodSeconds: 30 } },
] as const;
const WITHOUT_LOSS = FAULTS.filter((kind) => kind !== 'ingestLossy');
const WITH_DEATHS = { seed: 21, nodes: 1_000, hours: 50, deathsPerHour: 4 };
const WHOLE_SYSTEM = { seed: 31, nodes: 30, hours: 24, duplicateTickShare: 0.05 };
const MEAN_CALM_SECONDS = 180;

export const nodeHours: Benchmark = {
  name: 'node-hours',
  about: 'marks by mistake in over a million simulated node-hours full of faults of ours',
  async run(report) {
    let sum = 0;
    let falseMarks = 0;
    for (const { policy, ...run } of RUNS) {
      const result = simulateFalseMarks({
        ...run,
        policy: { ...defaultPolicy, ...policy },
        meanCalmSeconds: MEAN_CALM_SECONDS,
        faults: WITHOUT_LOSS,
      });
      sum += result.nodeHours;
      falseMarks += result.falseMarks;
      reportRun(report, 'rules', run.seed, policy, result);
    }
    const seeds = RUNS.map(({ seed }) => seed).join(' ');
    report({ level: 'rules', nodeHours: sum, falseMarks, command: COMMAND, seeds });
    for (const { policy, ...run } of LOSSY_RUNS) {
      const settings = { ...run, policy: { ...defaultPolicy, ...policy }, meanCalmSeconds: MEAN_CALM_SECONDS };
      reportRun(report, 'rules, with a lossy path', run.seed, policy, simulateFalseMarks(settings));
    }
    reportDeaths(report);
    await reportWholeSystem(report);
  },
};

function reportRun(
  report: Report,
  level: string,
  seed: number,
  policy: Partial<Policy>,
  result: FalseMarksResult,
): void {
  report({
    level,
    seed,
    policy: JSON.stringify(policy),
    nodeHours: result.nodeHours,
    passes: result.passes,
    falseMarks: result.falseMarks,
    ...(result.falseMarks === 0 ? {} : { during: JSON.stringify(result.falseMarksDuring) }),
    marksWithheldByGate: result.withheldMarks,
    gateHeldShare: rounded(result.gateHeldShare),
    faults: FAULTS.reduce((count, kind) => count + result.faults[kind], 0),
  });
}

/** A closed safety gate must not prevent dead nodes from being detected. */
function reportDeaths(report: Report): void {
  const result = simulateFalseMarks({
    ...WITH_DEATHS,
    policy: defaultPolicy,
    meanCalmSeconds: MEAN_CALM_SECONDS,
    faults: WITHOUT_LOSS,
  });
  const found = result.foundAfterSeconds;
  report({
    level: 'rules, with deaths',
    seed: WITH_DEATHS.seed,
    nodeHours: result.nodeHours,
    falseMarks: result.falseMarks,
    deaths: result.deaths,
    found: found.length,
    foundP50Seconds: rounded(percentile(found, 0.5)),
    foundP99Seconds: rounded(percentile(found, 0.99)),
    foundMaxSeconds: rounded(percentile(found, 1)),
  });
}

async function reportWholeSystem(report: Report): Promise<void> {
  const { seed, nodes, hours, duplicateTickShare } = WHOLE_SYSTEM;
  const fraction = seededFraction(seed);
  const startedMs = performance.now();
  const { failures } = await runScenario(faultyStory({ nodes, hours, seed, policy: defaultPolicy }), {
    store: recordedMemoryStore(),
    seed,
    isTickTwice: () => fraction() < duplicateTickShare,
  });
  report({
    level: 'whole system',
    seed,
    nodeHours: nodes * hours,
    // Each would be one: a mark, a taint, a deleted pod, a faulted tick.
    mismatches: failures.length,
    ...(failures[0] === undefined ? {} : { first: `${failures[0].subject} ${failures[0].field} ${failures[0].found}` }),
    tookSeconds: rounded((performance.now() - startedMs) / 1_000),
  });
}
