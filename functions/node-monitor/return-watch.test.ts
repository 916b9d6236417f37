import { describe, expect, it } from 'vitest';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { aNode } from '../../test/support/ruled-fleet.ts';
import { returnWatch, type WatchedTick } from './silence-watch.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const UNTIL_MS = NOW_MS + 3_600_000;

/** Ticks of one watch: seconds after the start, and of the last heartbeat of the node. */
function watching(names: readonly string[] = ['n']) {
  const watch = returnWatch();
  return (
    seconds: number,
    lastSeconds: number,
    parts: Partial<NodeHealth> = {},
    gate: Partial<ReturnType<WatchedTick['gateOf']>> = {},
  ) =>
    watch
      .returned({
        nowMs: NOW_MS + seconds * 1_000,
        nodes: names.map((nodeName) =>
          aNode({ nodeName, plannedUntilMs: UNTIL_MS, renewedAtMs: NOW_MS + lastSeconds * 1_000, ...parts }),
        ),
        gateOf: () => ({ isOpen: true, freshSinceMs: 0, graceMs: 40_000, ...gate }),
      })
      .map(({ nodeName }) => nodeName);
}

describe('a node with a promise of silence', () => {
  it('has returned when it sends a heartbeat after more than a grace period', () => {
    const tick = watching();
    expect(tick(41, 0)).toEqual([]);
    expect(tick(46, 0)).toEqual([]);
    expect(tick(51, 50)).toEqual(['n']);
    // Until its promise is ended.
    expect(tick(56, 50)).toEqual(['n']);
    expect(tick(61, 50, { plannedUntilMs: undefined })).toEqual([]);
  });

  it('has not returned after exactly one grace period', () => {
    const tick = watching();
    tick(40, 0);
    expect(tick(45, 42)).toEqual([]);
  });

  it('is only watched while the gate is open, and its silence began after that opened', () => {
    const closed = watching();
    closed(60, 0, {}, { isOpen: false });
    expect(closed(65, 62)).toEqual([]);
    const fresh = watching();
    fresh(60, 0, {}, { freshSinceMs: NOW_MS + 20_000 });
    expect(fresh(65, 62)).toEqual([]);
    const old = watching();
    old(61, 0, {}, { freshSinceMs: NOW_MS + 20_000 });
    expect(old(65, 62)).toEqual(['n']);
    // A gate that closes later forgets nothing.
    const later = watching();
    later(60, 0);
    expect(later(65, 62, {}, { isOpen: false })).toEqual(['n']);
  });

  it('with another promise, or created again, is watched anew', () => {
    for (const parts of [{ plannedUntilMs: UNTIL_MS + 1_000 }, { uid: 'other' }]) {
      const tick = watching();
      tick(60, 0);
      expect(tick(65, 62, parts)).toEqual([]);
    }
  });

  it('is not watched without a promise, or after its end', () => {
    const tick = watching();
    tick(60, 0, { plannedUntilMs: undefined });
    expect(tick(65, 62)).toEqual([]);
    const over = watching();
    over(60, 0, { plannedUntilMs: NOW_MS + 30_000 });
    expect(over(65, 62, { plannedUntilMs: NOW_MS + 30_000 })).toEqual([]);
  });
});

it('at most 10,000 silent nodes are remembered', () => {
  const tick = watching(Array.from({ length: 10_001 }, (_, index) => `n${index}`));
  tick(60, 0);
  expect(tick(65, 62)).toHaveLength(10_000);
});
