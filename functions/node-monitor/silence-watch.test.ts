import { beforeEach, describe, expect, it } from 'vitest';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import type { SilenceHour } from '../../shared/fleet/silences/silence-hour.ts';
import { type ObservedTick, type SilenceWatch, silenceWatch } from './silence-watch.ts';

const HOUR_MS = 3_600_000;
const START_MS = Date.parse('2026-01-01T10:00:00Z');

const health = (nodeName: string, renewedAtMs: number, more: Partial<NodeHealth> = {}): NodeHealth => ({
  nodeName,
  uid: `uid-${nodeName}`,
  zone: 'a',
  ready: 'True',
  excluded: false,
  suspect: false,
  noExecute: { notReady: false, unreachable: false },
  createdAtMs: START_MS - HOUR_MS,
  renewedAtMs,
  statusAtMs: undefined,
  ...more,
});

let watch: SilenceWatch;
beforeEach(() => {
  watch = silenceWatch();
});

/** One tick; times in seconds after the start. */
function tick(seconds: number, nodes: readonly NodeHealth[], more: Partial<ObservedTick> = {}): void {
  watch.observe({
    slot: 1_000 + seconds / 5,
    nowMs: START_MS + seconds * 1_000,
    periodSeconds: 5,
    nodes,
    gateOpen: true,
    freshSinceMs: 0,
    limitsOf: () => ({ profile: 'default', beatIntervalSeconds: 10, graceSeconds: 40 }),
    ...more,
  });
}

/**
 * Ticks each five seconds; `beats`: when the node beats, in seconds. Beats of a tick's own second are stored before it.
 */
function run(from: number, to: number, beats: readonly number[], more: Partial<ObservedTick> = {}): void {
  for (let seconds = from; seconds <= to; seconds += 5) {
    const last = Math.max(...beats.filter((beat) => beat <= seconds));
    tick(seconds, [health('n', START_MS + last * 1_000)], more);
  }
}

/** Ends the hour, and returns what was counted in it. */
function counted(): SilenceHour[] {
  tick(3_600, []);
  return [...watch.ended()];
}

describe('the silences that node-monitor counts', () => {
  it('are those longer than one heartbeat interval, by receipt times', () => {
    run(0, 60, [0, 10, 20, 52.4, 60]);
    expect(counted()[0]?.counts).toEqual([[12, 1]]);
  });

  it('include a machine that returns after its mark, up to ten minutes', () => {
    run(0, 1_500, [0, 300, 310, 911, 912]);
    expect(counted()[0]?.counts).toEqual([[48, 1]]);
  });

  it('do not include one that began before the gate opened', () => {
    run(0, 10, [0]);
    run(15, 30, [0], { gateOpen: false });
    run(35, 60, [0, 45], { freshSinceMs: START_MS + 35_000 });
    expect(counted()[0]?.counts).toEqual([]);
  });

  it('do not include one that ended between two distant ticks, but include one that began there', () => {
    run(0, 15, [0]);
    // The next tick of this process comes 45 s later.
    run(60, 60, [0, 58]);
    run(65, 90, [0, 58, 88]);
    expect(counted()[0]?.counts).toEqual([[11, 1]]);
  });

  it('do not include one that the machine announced', () => {
    const spoke = (seconds: number, more?: Partial<NodeHealth>) => [health('n', START_MS + seconds * 1_000, more)];
    const plannedUntilMs = START_MS + 400_000;
    run(0, 15, [0, 5]);
    // Announced, silent, back before the end of the promise: health-stream has removed it.
    for (let seconds = 20; seconds <= 200; seconds += 5) tick(seconds, spoke(5, { plannedUntilMs }));
    tick(205, spoke(202, { silenceEndedAtMs: START_MS + 203_000 }));
    // The same, and the tick sees the heartbeat before the promise is removed.
    for (let seconds = 210; seconds <= 300; seconds += 5) tick(seconds, spoke(202, { plannedUntilMs }));
    tick(305, spoke(302, { plannedUntilMs }));
    // Announced only after it was late.
    tick(320, spoke(302));
    for (let seconds = 325; seconds <= 385; seconds += 5) tick(seconds, spoke(302, { plannedUntilMs }));
    tick(390, spoke(388));
    expect(counted()[0]?.counts).toEqual([]);
  });

  it('count from the promised end of an announced one', () => {
    const plannedUntilMs = START_MS + 100_000;
    for (let seconds = 0; seconds <= 95; seconds += 5) tick(seconds, [health('n', START_MS, { plannedUntilMs })]);
    // The tick at the end has removed the promise. The machine is 22 s too late.
    for (let seconds = 100; seconds <= 120; seconds += 5)
      tick(seconds, [health('n', START_MS, { silenceEndedAtMs: plannedUntilMs })]);
    tick(125, [health('n', START_MS + 122_000)]);
    expect(counted()[0]?.counts).toEqual([[8, 1]]);
  });

  it('do not include a Node that was deleted or created again', () => {
    run(0, 30, [0]);
    tick(35, []);
    tick(40, [health('n', START_MS + 38_000)]);
    tick(45, [health('m', START_MS + 20_000)]);
    tick(50, [health('m', START_MS + 49_000, { uid: 'another' })]);
    expect(counted()[0]?.counts).toEqual([]);
  });
});

describe('the hours that node-monitor counts', () => {
  it('hold the time that was observed, and the time of live nodes only', () => {
    for (let seconds = 0; seconds <= 100; seconds += 5) {
      const alive = ['one', 'two'].map((name) => health(name, START_MS + seconds * 1_000));
      tick(seconds, [...alive, health('dead', START_MS - 60_000), health('new', 0, { ready: undefined })]);
    }
    expect(counted()).toEqual([
      {
        hourStartMs: START_MS,
        zone: 'a',
        profile: 'default',
        slot: 1_000,
        observedSeconds: 100,
        nodeSeconds: 200,
        nodes: 2,
        beatIntervalSeconds: 10,
        graceSeconds: 40,
        periodSeconds: 5,
        counts: [],
        uncounted: 0,
      },
    ]);
  });

  it('are kept until they are written', () => {
    run(0, 30, [0]);
    const [hour] = counted();
    expect(watch.ended()).toEqual([hour]);
    watch.written(hour!);
    expect(watch.ended()).toEqual([]);
  });

  it('are at most a hundred groups, whatever machines call their zone, and three such hours', () => {
    for (let hour = 0; hour < 5; hour += 1) {
      const nodes = Array.from({ length: 300 }, (_, index) => health(`n${index}`, START_MS, { zone: `zone-${index}` }));
      tick(hour * 3_600, nodes);
    }
    tick(5 * 3_600, []);
    expect(watch.ended()).toHaveLength(300);
    expect(Math.max(...watch.ended().map(({ nodes }) => nodes))).toBeLessThanOrEqual(300);
  });

  it('say how many late nodes did not fit in memory', () => {
    const silent = Array.from({ length: 20_010 }, (_, index) => health(`n${index}`, START_MS - 20_000));
    tick(0, silent);
    expect(counted()[0]?.uncounted).toBe(10);
  });
});
