/** Figures of long runs. Those of several runs can be added, also from other processes (`--json`, `--sum`). */
import type { FaultName, FaultPlan } from '../faults/catalogue.ts';
import type { LongTally, ProfileTally } from './long-laws.ts';
import { KINDS, type Kind } from './mixed-fleet.ts';

/** Number of cases by tenths of a second. */
export type Histogram = Record<string, number>;

export interface FaultFigures {
  episodes: number;
  injected: number;
  detection: Histogram;
  recovery: Histogram;
}

export interface ProfileFigures {
  nodeHours: number;
  falseMarks: number;
  lateMarks: number;
  marksAfterHiddenGap: number;
  rightMarks: number;
  marksByNetwork: number;
  detection: Histogram;
  calmDetection: Histogram;
  beyondGrace: Histogram;
  promiseDetection: Histogram;
  startDetection: Histogram;
  recovery: Histogram;
}

/** Sums: every field is added to that of another run. */
interface LongSums {
  runs: number;
  nodeHours: number;
  /** Rows of nodes that ticks read and evaluated. */
  evaluations: number;
  cpuSeconds: number;
  ticks: number;
  messages: number;
  claims: number;
  ticksWithClosedGate: number;
  silences: number;
  rightMarks: number;
  marksByOutage: number;
  marksAfterHiddenGap: number;
  marksEarlyBySteps: number;
  marksShortened: number;
  marksShortenedOfSenders: number;
  falseMarks: number;
  lateMarks: number;
  wrongProfiles: number;
  chainFaults: number;
  failures: number;
}

export interface LongResult extends LongSums {
  readonly seeds: readonly number[];
  falseMarksDuring: Record<string, number>;
  calmDetection: Histogram;
  /** The figures of runs with one fault alone. */
  alone: Partial<Record<FaultName, FaultFigures>>;
  /** The figures of runs with several at a time. */
  together: Partial<Record<FaultName, FaultFigures>>;
  /** By the kind of the machines. */
  profiles: Partial<Record<Kind, ProfileFigures>>;
}

export function longResult(of: {
  readonly options: { readonly seed: number; readonly nodes: number; readonly hours: number };
  readonly injected: FaultPlan['counts'];
  readonly tally: LongTally;
  readonly rowsRead: number;
  readonly faults: readonly FaultName[];
  readonly cpuSeconds: number;
}): LongResult {
  const { options, injected, tally, faults } = of;
  const { calmDetectionSeconds, faults: _, profiles, falseMarksDuring, ...sums } = tally;
  const figures: Partial<Record<FaultName, FaultFigures>> = {};
  for (const name of faults) {
    const { episodes = 0, detectionSeconds = [], recoverySeconds = [] } = tally.faults[name] ?? {};
    figures[name] = {
      ...{ episodes, injected: injected[name] },
      detection: histogramOf(detectionSeconds),
      recovery: histogramOf(recoverySeconds),
    };
  }
  const isAlone = faults.length === 1;
  return {
    ...sums,
    seeds: [options.seed],
    runs: 1,
    nodeHours: options.nodes * options.hours,
    evaluations: of.rowsRead,
    cpuSeconds: of.cpuSeconds,
    falseMarksDuring,
    calmDetection: histogramOf(calmDetectionSeconds),
    alone: isAlone ? figures : {},
    together: isAlone ? {} : figures,
    profiles: Object.fromEntries(
      KINDS.flatMap((kind) => (profiles[kind] === undefined ? [] : [[kind, profileFigures(profiles[kind])]])),
    ),
  };
}

function profileFigures(tally: ProfileTally): ProfileFigures {
  const { detectionSeconds, calmDetectionSeconds, promiseDetectionSeconds, startDetectionSeconds, ...rest } = tally;
  const { beyondGraceSeconds, recoverySeconds, ...sums } = rest;
  return {
    ...sums,
    detection: histogramOf(detectionSeconds),
    calmDetection: histogramOf(calmDetectionSeconds),
    beyondGrace: histogramOf(beyondGraceSeconds),
    promiseDetection: histogramOf(promiseDetectionSeconds),
    startDetection: histogramOf(startDetectionSeconds),
    recovery: histogramOf(recoverySeconds),
  };
}

const SUMS = [
  ...['runs', 'nodeHours', 'evaluations', 'cpuSeconds', 'ticks', 'messages', 'claims', 'ticksWithClosedGate'],
  ...[
    'silences',
    'rightMarks',
    'marksByOutage',
    'marksAfterHiddenGap',
    'marksEarlyBySteps',
    'marksShortened',
    'marksShortenedOfSenders',
    'falseMarks',
    'lateMarks',
    'wrongProfiles',
    'chainFaults',
    'failures',
  ],
] as readonly (keyof LongSums)[];

/** The figures of both. A seed that is in both is an error: its figures would count twice. @throws RangeError */
export function addLong(one: LongResult, other: LongResult): LongResult {
  const twice = one.seeds.filter((seed) => other.seeds.includes(seed));
  if (twice.length > 0) throw new RangeError(`seed ${twice[0]} is in two results`);
  const sums = Object.fromEntries(SUMS.map((name) => [name, one[name] + other[name]])) as unknown as LongSums;
  return {
    ...sums,
    seeds: [...one.seeds, ...other.seeds],
    falseMarksDuring: added(one.falseMarksDuring, other.falseMarksDuring),
    calmDetection: added(one.calmDetection, other.calmDetection),
    alone: addFigures(one.alone, other.alone),
    together: addFigures(one.together, other.together),
    profiles: addProfiles(one.profiles, other.profiles),
  };
}

function addProfiles(one: LongResult['profiles'], other: LongResult['profiles']): LongResult['profiles'] {
  const sum = { ...one };
  for (const [kind, figures] of Object.entries(other) as [Kind, ProfileFigures][]) {
    const before = sum[kind];
    sum[kind] = before === undefined ? figures : addedProfile(before, figures);
  }
  return sum;
}

const addedProfile = (one: ProfileFigures, other: ProfileFigures): ProfileFigures => ({
  nodeHours: one.nodeHours + other.nodeHours,
  falseMarks: one.falseMarks + other.falseMarks,
  lateMarks: one.lateMarks + other.lateMarks,
  marksAfterHiddenGap: one.marksAfterHiddenGap + other.marksAfterHiddenGap,
  rightMarks: one.rightMarks + other.rightMarks,
  marksByNetwork: one.marksByNetwork + other.marksByNetwork,
  detection: added(one.detection, other.detection),
  calmDetection: added(one.calmDetection, other.calmDetection),
  beyondGrace: added(one.beyondGrace, other.beyondGrace),
  promiseDetection: added(one.promiseDetection, other.promiseDetection),
  startDetection: added(one.startDetection, other.startDetection),
  recovery: added(one.recovery, other.recovery),
});

function addFigures(one: LongResult['alone'], other: LongResult['alone']): LongResult['alone'] {
  const sum = { ...one };
  for (const [name, figures] of Object.entries(other) as [FaultName, FaultFigures][]) {
    const before = sum[name];
    sum[name] =
      before === undefined
        ? figures
        : {
            episodes: before.episodes + figures.episodes,
            injected: before.injected + figures.injected,
            detection: added(before.detection, figures.detection),
            recovery: added(before.recovery, figures.recovery),
          };
  }
  return sum;
}

function added(one: Histogram, other: Histogram): Histogram {
  const sum = { ...one };
  for (const [name, count] of Object.entries(other)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

function histogramOf(seconds: readonly number[]): Histogram {
  const histogram: Histogram = {};
  for (const each of seconds) {
    const tenth = each.toFixed(1);
    histogram[tenth] = (histogram[tenth] ?? 0) + 1;
  }
  return histogram;
}

/** The value below which this share of the cases lies. Undefined without cases. */
export function percentileOf(histogram: Histogram, share: number): number | undefined {
  const values = Object.entries(histogram)
    .map(([seconds, count]) => ({ seconds: Number(seconds), count }))
    .sort((one, other) => one.seconds - other.seconds);
  let left = Math.ceil(share * casesOf(histogram));
  for (const { seconds, count } of values) {
    left -= count;
    if (left <= 0) return seconds;
  }
  return values.at(-1)?.seconds;
}

export const casesOf = (histogram: Histogram): number =>
  Object.values(histogram).reduce((sum, count) => sum + count, 0);
