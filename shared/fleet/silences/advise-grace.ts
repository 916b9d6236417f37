/**
 * Which grace periods would have marked how many machines that were alive: from counted silences.
 *
 * A grace period of g seconds marks a live machine after a silence of more than g. Buckets that reach beyond g count
 * whole, so the number is never too small.
 *
 * The bound holds with 95 % probability if silences come as often in the future as in the counted hours. It is the
 * upper limit of the mean of a Poisson variable after k events. A failing uplink silences many machines at once, and
 * such silences are not independent. Events are therefore divided by the dispersion (variance over mean of the hourly
 * counts, at least 1), and the limit is multiplied by it (quasi-Poisson).
 */
import { poissonBound95 } from './poisson-bound.ts';
import { bucketEndSeconds, type SilenceHour } from './silence-hour.ts';

/** Grace periods that are compared. Seconds. */
export const CANDIDATE_GRACE_SECONDS: readonly number[] = [12, 15, 20, 25, 30, 40, 50, 60, 75, 90, 105, 120];
const DAY_SECONDS = 86_400;
const HOUR_MS = 3_600_000;

export interface GraceCandidate {
  readonly graceSeconds: number;
  /** False: shorter than two heartbeat intervals or two periods, so the policy refuses it. */
  readonly allowed: boolean;
  /** Live machines that it would have marked. */
  readonly falseMarks: number;
  /** False marks per 1,000 node-days: the upper limit with 95 % probability. */
  readonly boundPer1000NodeDays: number;
  /** Last sign of life to `Ready=Unknown`, median and longest. Seconds. */
  readonly detectionP50Seconds: number;
  readonly detectionMaxSeconds: number;
}

export interface GraceAdvice {
  readonly profile: string;
  /** The grace period in force in the newest hour. Seconds. */
  readonly graceSeconds: number;
  readonly nodeDays: number;
  /** Highest number of live nodes in one hour, all zones. */
  readonly nodes: number;
  /** Time between the first and the last counted hour. Days. */
  readonly days: number;
  /** Hours in that time, and hours that were observed. */
  readonly hours: number;
  readonly observedHours: number;
  /** Late nodes that were not counted, because there were too many at once. */
  readonly uncounted: number;
  /** Machines that returned within ten minutes after the grace period in force: included in the false marks. */
  readonly returned: number;
  readonly candidates: readonly GraceCandidate[];
  /** The shortest allowed candidate within the limit; undefined: none is, or there is too little data. */
  readonly recommended: GraceCandidate | undefined;
  /** The bound if no silence had been seen. Over the limit: there is too little data to recommend anything. */
  readonly bestBoundPer1000NodeDays: number;
}

/** What `nodekeeper advise --json` prints. JSON has null for a bound without data. */
export interface AdviceReport {
  /** Accepted false marks per 1,000 node-days. */
  readonly limitPer1000NodeDays: number;
  readonly profiles: readonly GraceAdvice[];
}

/** One per profile, by name. `limitPer1000NodeDays`: accepted false marks per 1,000 node-days. */
export function adviseGrace(hours: readonly SilenceHour[], limitPer1000NodeDays: number): GraceAdvice[] {
  const profiles = new Map<string, SilenceHour[]>();
  for (const hour of hours) {
    const known = profiles.get(hour.profile);
    if (known === undefined) profiles.set(hour.profile, [hour]);
    else known.push(hour);
  }
  return [...profiles]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([profile, ofProfile]) => adviseProfile(profile, ofProfile, limitPer1000NodeDays));
}

function adviseProfile(profile: string, hours: readonly SilenceHour[], limitPer1000NodeDays: number): GraceAdvice {
  const newest = hours.reduce((one, other) => (other.hourStartMs >= one.hourStartMs ? other : one));
  const nodeDays = sum(hours, ({ nodeSeconds }) => nodeSeconds) / DAY_SECONDS;
  const byHour = hoursByStart(hours);
  const starts = [...byHour.keys()];
  const spanHours = (Math.max(...starts) - Math.min(...starts)) / HOUR_MS + 1;
  const { graceSeconds } = newest;
  const graces = [...new Set([...CANDIDATE_GRACE_SECONDS, graceSeconds])].sort((one, other) => one - other);
  const candidates = graces.map((each) => candidate(each, newest, byHour, nodeDays));
  const recommended = candidates.find((each) => each.allowed && each.boundPer1000NodeDays <= limitPer1000NodeDays);
  return {
    profile,
    graceSeconds,
    nodeDays,
    nodes: Math.max(...[...byHour.values()].map((ofHour) => nodesOf(ofHour))),
    days: spanHours / 24,
    hours: spanHours,
    observedHours: sum([...byHour.values()], observedShare),
    uncounted: sum(hours, ({ uncounted }) => uncounted),
    returned: sum(hours, (hour) => silencesOver(hour, hour.graceSeconds)),
    candidates,
    recommended,
    bestBoundPer1000NodeDays: nodeDays === 0 ? Infinity : (poissonBound95(0) / nodeDays) * 1_000,
  };
}

function candidate(
  graceSeconds: number,
  { beatIntervalSeconds, periodSeconds }: SilenceHour,
  byHour: ReadonlyMap<number, readonly SilenceHour[]>,
  nodeDays: number,
): GraceCandidate {
  const perHour = [...byHour.values()].map((ofHour) => sum(ofHour, (hour) => silencesOver(hour, graceSeconds)));
  const falseMarks = sum(perHour, (count) => count);
  const dispersion = dispersionOf(perHour, falseMarks);
  const upper = dispersion * poissonBound95(Math.ceil(falseMarks / dispersion));
  return {
    graceSeconds,
    allowed: graceSeconds >= 2 * Math.max(beatIntervalSeconds, periodSeconds),
    falseMarks,
    boundPer1000NodeDays: nodeDays === 0 ? Infinity : (upper / nodeDays) * 1_000,
    detectionP50Seconds: graceSeconds + periodSeconds / 2,
    detectionMaxSeconds: graceSeconds + periodSeconds,
  };
}

/** Silences that may have been longer than this. */
const silencesOver = ({ counts }: SilenceHour, seconds: number): number =>
  sum(counts, ([bucket, count]) => (bucketEndSeconds(bucket) > seconds ? count : 0));

function hoursByStart(hours: readonly SilenceHour[]): Map<number, SilenceHour[]> {
  const byHour = new Map<number, SilenceHour[]>();
  for (const hour of hours) byHour.set(hour.hourStartMs, [...(byHour.get(hour.hourStartMs) ?? []), hour]);
  return byHour;
}

/** Live nodes of one hour: zones are added, processes that observed the same zone are not. */
function nodesOf(ofHour: readonly SilenceHour[]): number {
  const zones = new Map<string, number>();
  for (const { zone, nodes } of ofHour) zones.set(zone, Math.max(zones.get(zone) ?? 0, nodes));
  return sum([...zones.values()], (nodes) => nodes);
}

/** Share of the hour in which its best observed zone was observed. */
function observedShare(ofHour: readonly SilenceHour[]): number {
  const zones = new Map<string, number>();
  for (const { zone, observedSeconds } of ofHour) zones.set(zone, (zones.get(zone) ?? 0) + observedSeconds);
  return Math.min(1, Math.max(...zones.values()) / (HOUR_MS / 1_000));
}

/** Variance over mean of the hourly counts, at least 1. */
function dispersionOf(perHour: readonly number[], total: number): number {
  if (total === 0 || perHour.length < 2) return 1;
  const mean = total / perHour.length;
  const variance = sum(perHour, (count) => (count - mean) ** 2) / (perHour.length - 1);
  return Math.max(1, variance / mean);
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  let total = 0;
  for (const value of values) total += of(value);
  return total;
}
