/**
 * Fleets with known loss, and what node-monitor counts of them.
 *
 * Each machine loses heartbeats with a probability of its own, some links fail for a while, and some machines reboot.
 * The silences pass through the watch of node-monitor, tick by tick, as in a tick. The truth is a second run of the
 * same fleet that is ten times as long, counted from its exact silences.
 */
import { silenceWatch } from '../../functions/node-monitor/silence-watch.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import type { GraceAdvice } from '../../shared/fleet/silences/advise-grace.ts';
import type { SilenceHour } from '../../shared/fleet/silences/silence-hour.ts';
import { randomFrom } from './seeded.ts';

const FLEETS = 20;
const NODES = 12;
const COUNTED_HOURS = 24;
const TRUE_HOURS = 10 * COUNTED_HOURS;
const INTERVAL_SECONDS = 10;
const PERIOD_SECONDS = 5;
/** Grace periods that are compared. Seconds. */
const GRACES = [20, 25, 30, 40, 60];
const DAY_SECONDS = 86_400;

export interface Loss {
  /** The probability for one heartbeat. */
  readonly lostShare: number;
  /** Failures of a link per node-hour, and their mean length in seconds. */
  readonly failuresPerHour: number;
  readonly failureSeconds: number;
}

const lossOf = (random: () => number): Loss => ({
  lostShare: 0.02 + random() * 0.2,
  failuresPerHour: random() * 0.2,
  failureSeconds: 10 + random() * 30,
});

/** Receipt times of a machine's heartbeats. Seconds. */
function* beatsOf(loss: Loss, hours: number, random: () => number): Generator<number> {
  let failedUntil = 0;
  for (let at = random() * INTERVAL_SECONDS; at < hours * 3_600; at += INTERVAL_SECONDS * (1 + 0.04 * random())) {
    if (random() < (loss.failuresPerHour * INTERVAL_SECONDS) / 3_600) {
      failedUntil = at - Math.log(1 - random()) * loss.failureSeconds;
    }
    if (at >= failedUntil && random() >= loss.lostShare) yield at + random() * 0.3;
  }
}

/** Silences over each grace period, per 1,000 node-days, from the exact receipt times. */
function trueRates(loss: Loss, random: () => number): number[] {
  const longer = GRACES.map(() => 0);
  for (let node = 0; node < NODES; node += 1) {
    let before: number | undefined;
    for (const at of beatsOf(loss, TRUE_HOURS, random)) {
      const silence = before === undefined ? 0 : at - before;
      GRACES.forEach((grace, index) => {
        if (silence > grace) longer[index]! += 1;
      });
      before = at;
    }
  }
  return longer.map((count) => (count * DAY_SECONDS * 1_000) / (NODES * TRUE_HOURS * 3_600));
}

/** What node-monitor counts. `every`: 2 leaves out every second hour, as if another process had run its ticks. */
export function countedHours(loss: Loss, random: () => number, every = 1): SilenceHour[] {
  const watch = silenceWatch();
  const beats = Array.from({ length: NODES }, () => [...beatsOf(loss, COUNTED_HOURS, random)]);
  const next = beats.map(() => 0);
  const hours: SilenceHour[] = [];
  for (let second = 0; second <= COUNTED_HOURS * 3_600 + PERIOD_SECONDS; second += PERIOD_SECONDS) {
    beats.forEach((times, node) => {
      while (times[next[node]!] !== undefined && times[next[node]!]! <= second) next[node]! += 1;
    });
    if (Math.floor(second / 3_600) % every !== 0) continue;
    const nodes = beats.map(
      (times, node): NodeHealth => ({
        nodeName: `n${node}`,
        uid: `u${node}`,
        zone: `zone-${node % 2}`,
        ready: 'True',
        excluded: false,
        suspect: false,
        noExecute: { notReady: false, unreachable: false },
        createdAtMs: 0,
        renewedAtMs: (times[next[node]! - 1] ?? 0) * 1_000,
        statusAtMs: undefined,
      }),
    );
    watch.observe({
      slot: second / PERIOD_SECONDS,
      nowMs: second * 1_000,
      periodSeconds: PERIOD_SECONDS,
      nodes,
      gateOpen: true,
      freshSinceMs: 0,
      limitsOf: () => ({ profile: 'default', beatIntervalSeconds: INTERVAL_SECONDS, graceSeconds: 40 }),
    });
    for (const hour of watch.ended()) {
      hours.push(hour);
      watch.written(hour);
    }
  }
  return hours;
}

const boundAt = (advice: GraceAdvice, grace: number): number =>
  advice.candidates.find(({ graceSeconds }) => graceSeconds === grace)!.boundPer1000NodeDays;

/** One grace period of one fleet. Rates are false marks per 1,000 node-days. */
export interface Comparison {
  readonly fleet: number;
  readonly loss: Loss;
  readonly graceSeconds: number;
  readonly trueRate: number;
  readonly bound: number;
}

/** The advice for each fleet beside its true rates. */
export function compareAdvice(advised: (loss: Loss, random: () => number) => GraceAdvice): Comparison[] {
  return Array.from({ length: FLEETS }, (_, index) => index + 1).flatMap((fleet) => {
    const random = randomFrom(fleet);
    const loss = lossOf(random);
    const advice = advised(loss, random);
    return trueRates(loss, random).map((trueRate, index) => {
      const graceSeconds = GRACES[index]!;
      return { fleet, loss, graceSeconds, trueRate, bound: boundAt(advice, graceSeconds) };
    });
  });
}

/** The true rate is above its bound, which has a probability of 5 %. */
export const isMissed = ({ trueRate, bound }: Comparison): boolean => trueRate > bound;
