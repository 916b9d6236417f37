import { describe, expect, it } from 'vitest';
import { type FaultName, faultPlan } from '../../simulation/faults/catalogue.ts';
import { Heartbeats } from '../../simulation/long-run/heartbeats.ts';

const START_MS = Date.UTC(2026, 0, 1);
const HOUR_MS = 3_600_000;
const NODES = 20;
const STEP_MS = 1_700;
/** Interval, its jitter, and the network. */
const LATEST_MS = 10_650;

function heartbeatsUnder(faults: readonly FaultName[]) {
  const plan = faultPlan({
    ...{ seed: 5, startMs: START_MS, endMs: START_MS + HOUR_MS, faults, faultsAStorm: 36 },
    nowMs: () => START_MS,
  });
  const make = () =>
    new Heartbeats({
      ...{ nodes: NODES, seed: 5, startMs: START_MS, intervalMsOf: () => 10_000, plan },
      clockAheadMs: () => 0,
    });
  return { plan, make };
}

/** From the third heartbeat on. */
const moments = Array.from({ length: 1_000 }, (_, index) => START_MS + 30_000 + index * STEP_MS);

describe('heartbeats in closed form', () => {
  it('come at the interval of a kubelet without faults', () => {
    const beats = heartbeatsUnder([]).make();
    const ages = moments.flatMap((atMs) => Array.from({ length: NODES }, (_, node) => atMs - beats.lastMs(node, atMs)));
    expect(Math.max(...ages)).toBeGreaterThan(9_500);
    expect(Math.max(...ages)).toBeLessThan(LATEST_MS);
    expect(Math.min(...ages)).toBeGreaterThanOrEqual(0);
  });

  it.each<[FaultName[]]>([[[]], [['apiOutage']], [['lostBeats', 'lateBeats']]])(
    'are the same for a later look at an earlier moment, and never go back (%j)',
    (faults) => {
      const { make } = heartbeatsUnder(faults);
      const [forward, backward] = [make(), make()];
      for (let node = 0; node < NODES; node += 1) {
        forward.silence(node, START_MS + 400_000, START_MS + 430_000);
        backward.silence(node, START_MS + 400_000, START_MS + 430_000);
        const seen = moments.map((atMs) => forward.lastMs(node, atMs));
        expect(moments.toReversed().map((atMs) => backward.lastMs(node, atMs))).toEqual(seen.toReversed());
        expect(seen).toEqual(seen.toSorted((one, other) => one - other));
      }
    },
  );

  it('are not stored during an outage of the endpoint, and count as delivered', () => {
    const { plan, make } = heartbeatsUnder(['apiOutage']);
    const beats = make();
    const outages = plan.episodes('apiOutage').filter(({ fromMs, untilMs }) => untilMs - fromMs > 20_000);
    expect(outages.length).toBeGreaterThan(0);
    for (const { fromMs, untilMs } of outages) {
      for (let node = 0; node < NODES; node += 1) {
        expect(beats.lastMs(node, untilMs)).toBeLessThan(fromMs);
        expect(untilMs - beats.lastMs(node, untilMs, 'delivered')).toBeLessThan(LATEST_MS);
        expect(beats.lastMs(node, untilMs + LATEST_MS)).toBeGreaterThan(untilMs);
      }
    }
  });

  it('stop during a silence, and one follows at its end', () => {
    const beats = heartbeatsUnder([]).make();
    const [fromMs, untilMs] = [START_MS + 100_000, START_MS + 190_000];
    beats.silence(3, fromMs, untilMs);
    expect(beats.lastMs(3, untilMs)).toBeLessThan(fromMs + 50);
    const returned = beats.lastMs(3, untilMs + 50);
    expect(returned).toBeGreaterThan(untilMs);
    expect(returned).toBeLessThanOrEqual(untilMs + 40);
  });

  it('come at another interval once an answer asked for it', () => {
    const beats = heartbeatsUnder([]).make();
    const followedMs = START_MS + 600_000;
    const lastMs = beats.lastMs(4, followedMs);
    const before = moments.map((atMs) => beats.lastMs(4, Math.min(atMs, followedMs)));
    beats.follow(4, 60_000, { lastMs, nowMs: followedMs });
    expect(moments.map((atMs) => beats.lastMs(4, Math.min(atMs, followedMs)))).toEqual(before);
    const nextMs = beats.nextSentMs(4, followedMs);
    expect(nextMs - lastMs).toBeGreaterThan(59_000);
    expect(nextMs - lastMs).toBeLessThan(62_500);
    expect(beats.lastMs(4, nextMs)).toBe(lastMs);
    expect(beats.lastMs(4, nextMs + 50)).toBeGreaterThan(nextMs);
    expect(beats.longestIntervalMs(4, lastMs)).toBe(60_000);
    beats.follow(4, 5_000, { lastMs: beats.lastMs(4, nextMs + 50), nowMs: nextMs + 50 });
    const ages = moments.filter((atMs) => atMs > nextMs + 6_000).map((atMs) => atMs - beats.lastMs(4, atMs));
    expect(Math.max(...ages)).toBeLessThan(5_350);
    expect(beats.longestIntervalMs(4, nextMs)).toBe(60_000);
    expect(beats.longestIntervalMs(4, nextMs + 60)).toBe(5_000);
  });

  it('of a lossy network are lost or late in part', () => {
    const { make } = heartbeatsUnder(['lostBeats', 'lateBeats']);
    const { lostBeats, lateBeats } = make().countStruck(START_MS + HOUR_MS);
    expect(lostBeats).toBeGreaterThan(100);
    expect(lateBeats).toBeGreaterThan(100);
  });
});
