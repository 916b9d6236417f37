/** Where the counts of silence-watch.ts begin and end. */
import { describe, expect, it } from 'vitest';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { aNode } from '../../test/support/ruled-fleet.ts';
import { silenceWatch } from './silence-watch.ts';

const HOUR_MS = 3_600_000;
const START_MS = Date.UTC(2026, 0, 1, 10);

/** Ticks of one process; times in seconds after the start of an hour. */
function counting() {
  const watch = silenceWatch();
  const tick = (
    seconds: number,
    nodes: readonly (Partial<NodeHealth> & { readonly heard: number; readonly name?: string })[],
  ) =>
    watch.observe({
      slot: 1_000 + seconds,
      nowMs: START_MS + seconds * 1_000,
      periodSeconds: 5,
      nodes: nodes.map(({ heard, name = 'n', ...parts }) =>
        aNode({
          nodeName: name,
          zone: 'a',
          createdAtMs: START_MS - HOUR_MS,
          renewedAtMs: START_MS + heard * 1_000,
          ...parts,
        }),
      ),
      gateOpen: true,
      freshSinceMs: 0,
      limitsOf: () => ({ profile: 'default', beatIntervalSeconds: 10, graceSeconds: 40 }),
    });
  const hours = () => {
    tick(3_600, []);
    return watch.ended();
  };
  return { watch, tick, hours, counts: () => hours().flatMap(({ counts }) => counts) };
}

describe('a silence', () => {
  it('is longer than one heartbeat interval', () => {
    const { tick, counts } = counting();
    tick(0, [{ heard: 0 }]);
    tick(10, [{ heard: 0 }]);
    tick(11, [{ heard: 10.5 }]);
    tick(21, [{ heard: 10.5 }]);
    tick(22, [{ heard: 21.5 }]);
    expect(counts()).toEqual([[4, 1]]);
  });

  it('of ten minutes is counted, a longer one is not', () => {
    const silent = (until: number) => {
      const { tick, counts } = counting();
      for (let seconds = 0; seconds < until; seconds += 5) tick(seconds, [{ heard: 0 }]);
      tick(Math.ceil(until / 5) * 5, [{ heard: until }]);
      return counts();
    };
    expect(silent(600)).toEqual([[48, 1]]);
    expect(silent(601)).toEqual([]);
  });

  it('of a machine that was off for longer needs no place in memory', () => {
    const { tick, hours } = counting();
    tick(700, [{ heard: 0 }, ...Array.from({ length: 20_000 }, (_, index) => ({ name: `m${index}`, heard: 680 }))]);
    expect(hours()[0]?.uncounted).toBe(0);
  });

  it('is not counted between ticks that are more than two periods apart, or in the wrong order', () => {
    const across = (from: number, to: number) => {
      const { tick, counts } = counting();
      tick(from, [{ heard: from - 15 }]);
      tick(to, [{ heard: Math.max(from, to) - 1 }]);
      return counts().length;
    };
    expect([across(20, 25), across(20, 30), across(20, 30.1), across(20, 20), across(20, 19)]).toEqual([1, 1, 0, 1, 0]);
  });

  it('is forgotten when the ticks were apart, also by a later tick', () => {
    const { tick, counts } = counting();
    tick(20, [{ heard: 0 }]);
    tick(40, [{ heard: 39 }]);
    tick(45, [{ heard: 44 }]);
    expect(counts()).toEqual([]);
  });

  it('of a Node that was created again is not counted, and its own later one is', () => {
    const { tick, counts } = counting();
    tick(20, [{ heard: 0 }]);
    tick(25, [{ heard: 0, uid: 'again' }]);
    tick(30, [{ heard: 29, uid: 'again' }]);
    expect(counts()).toEqual([[11, 1]]);
  });

  it('that was announced is not counted', () => {
    const { tick, counts } = counting();
    tick(20, [{ heard: 0 }]);
    tick(25, [{ heard: 0, plannedUntilMs: START_MS + HOUR_MS }]);
    tick(30, [{ heard: 29 }]);
    expect(counts()).toEqual([]);
  });

  it('of each length is counted apart, the shorter ones first', () => {
    const { tick, counts } = counting();
    const heard = (long: number, short: number) => [
      { name: 'long', heard: long },
      { name: 'short', heard: short },
    ];
    for (const seconds of [0, 5, 10, 15, 20, 25]) tick(seconds, heard(0, Math.min(10, seconds)));
    tick(30, heard(29, 10));
    tick(35, heard(29, 31));
    tick(40, heard(39, 39));
    expect(counts()).toEqual([
      [8, 1],
      [11, 1],
    ]);
  });
});

describe('an hour', () => {
  it('counts a node until its grace period is over, and none without a Ready status', () => {
    const { tick, hours } = counting();
    tick(0, []);
    tick(5, [{ heard: -35 }, { name: 'late', heard: -35.1 }, { name: 'new', heard: 5, ready: undefined }]);
    expect(hours()[0]).toMatchObject({ nodes: 1, nodeSeconds: 5 });
  });

  it('has a hundred zones at most, and one group for the others', () => {
    const { tick, hours } = counting();
    tick(
      0,
      Array.from({ length: 102 }, (_, index) => ({ name: `n${index}`, heard: 0, zone: `z${index}` })),
    );
    const zones = hours().map(({ zone, nodes }) => [zone, nodes]);
    expect([zones.length, zones[99], zones[100]]).toEqual([101, ['z99', 1], ['', 2]]);
  });

  it('is written alone', () => {
    const { watch, tick, hours } = counting();
    tick(0, [
      { heard: 0, zone: 'a' },
      { name: 'm', heard: 0, zone: 'b' },
    ]);
    const [first, second] = hours();
    watch.written(first!);
    expect(watch.ended()).toEqual([second]);
  });
});
