/**
 * Fleets with known loss: the advice that rests on counted silences holds for them.
 *
 * Each machine loses heartbeats with a probability of its own, some links fail for a while, and some machines reboot. The
 * silences pass through the watch of node-monitor, tick by tick, as in a tick. The truth is a second run of the same
 * fleet that is ten times as long, counted from its exact silences. The bound has 95 % probability per fleet and grace
 * period.
 */
import { describe, expect, it } from 'vitest';
import { silenceWatch } from '../../shared/controllers/node-monitor/silence-watch.ts';
import type { NodeHealth } from '../../shared/domain/nodes/node-health.ts';
import { adviseGrace, type GraceAdvice } from '../../shared/domain/silences/advise-grace.ts';
import type { SilenceHour } from '../../shared/domain/silences/silence-hour.ts';
import { randomFrom } from '../support/seeded.ts';

const FLEETS = 20;
const NODES = 12;
const COUNTED_HOURS = 24;
const TRUE_HOURS = 10 * COUNTED_HOURS;
const INTERVAL_SECONDS = 10;
const PERIOD_SECONDS = 5;
const GRACES = [20, 25, 30, 40, 60];
const DAY_SECONDS = 86_400;

interface Loss {
  /** Of one heartbeat. */
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
function countedHours(loss: Loss, random: () => number, every = 1): SilenceHour[] {
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

/** How often the true rate of a fleet is above the bound, over all grace periods. */
function misses(advised: (loss: Loss, random: () => number) => GraceAdvice): { missed: number; asked: number } {
  let missed = 0;
  let asked = 0;
  for (let fleet = 1; fleet <= FLEETS; fleet += 1) {
    const random = randomFrom(fleet);
    const loss = lossOf(random);
    const advice = advised(loss, random);
    trueRates(loss, random).forEach((rate, index) => {
      asked += 1;
      if (rate > boundAt(advice, GRACES[index]!)) missed += 1;
    });
  }
  return { missed, asked };
}

describe('advice from counted silences', () => {
  it('is within its bound on fleets of known loss', () => {
    const { missed, asked } = misses((loss, random) => adviseGrace(countedHours(loss, random), 1)[0]!);
    expect(asked).toBe(FLEETS * GRACES.length);
    expect(missed).toBeLessThanOrEqual(0.05 * asked);
  });

  it('is within its bound although another process has run the ticks of every second hour', () => {
    const { missed, asked } = misses((loss, random) => adviseGrace(countedHours(loss, random, 2), 1)[0]!);
    expect(missed).toBeLessThanOrEqual(0.05 * asked);
  });

  it('would be outside if silences were forgotten at each tick', () => {
    const { missed, asked } = misses((loss, random) => {
      const hours = countedHours(loss, random).map((hour) => ({ ...hour, counts: hour.counts.slice(0, 1) }));
      return adviseGrace(hours, 1)[0]!;
    });
    expect(missed).toBeGreaterThan(0.5 * asked);
  });
});
