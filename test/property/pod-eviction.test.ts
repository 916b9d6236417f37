/**
 * L7: a pod that tolerates everything is never deleted. One with s seconds is deleted in [s, s + 2 periods]. L10 too.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addNoExecute, swapNoExecute } from '../../shared/fleet/nodes/node-taints.ts';
import { noExecuteTaints } from '../../shared/fleet/nodes/taint.ts';
import type { Taint } from '../../shared/kubernetes/kubernetes.ts';
import { aPod, aTaint, EvictionWorld, tolerating } from '../support/eviction-world.ts';

const PERIOD_MS = 5_000;
const NOT_READY = 'node.kubernetes.io/not-ready';
const UNREACHABLE = 'node.kubernetes.io/unreachable';

const story = fc.record({
  seconds: fc.integer({ min: 0, max: 600 }),
  taintedAtMs: fc.integer({ min: 0, max: 60_000 }),
  boundAtMs: fc.integer({ min: 0, max: 60_000 }),
  swapsAtMs: fc.array(fc.integer({ min: 60_001, max: 700_000 }), { maxLength: 4 }),
});

const tainted = (atMs: number): Taint[] => addNoExecute([], 'notReady', atMs) ?? [];

function worldOf({ seconds, taintedAtMs, boundAtMs }: { seconds: number; taintedAtMs: number; boundAtMs: number }) {
  const world = new EvictionWorld();
  world.nowMs = Math.max(taintedAtMs, boundAtMs);
  world.taints = noExecuteTaints(tainted(taintedAtMs));
  const tolerations = [tolerating(NOT_READY, seconds), tolerating(UNREACHABLE, seconds)];
  world.pods = [aPod('p', tolerations, { boundAtMs }), aPod('for-ever', [{ operator: 'Exists' }], { boundAtMs })];
  return world;
}

function tick(world: EvictionWorld): void {
  world.nowMs += PERIOD_MS;
  world.handle();
}

describe('L7', () => {
  it('deletes a pod with s seconds in [s, s + 2 periods], through any of our taint swaps', () => {
    fc.assert(
      fc.property(story, (given) => {
        const world = worldOf(given);
        const startMs = world.nowMs;
        let onNode = tainted(given.taintedAtMs);
        let to: 'notReady' | 'unreachable' = 'notReady';
        const swaps = given.swapsAtMs.toSorted((a, b) => a - b);
        while (world.nowMs < startMs + 620_000) {
          tick(world);
          const swapAt = swaps[0];
          if (swapAt !== undefined && world.nowMs >= swapAt) {
            swaps.shift();
            to = to === 'unreachable' ? 'notReady' : 'unreachable';
            onNode = swapNoExecute(onNode, to, world.nowMs) ?? onNode;
            world.taints = noExecuteTaints(onNode);
          }
        }
        const dueMs = startMs + given.seconds * 1_000;
        const deletedMs = world.deletedAtMs.get('p');
        expect(deletedMs).toBeGreaterThanOrEqual(dueMs);
        expect(deletedMs).toBeLessThanOrEqual(dueMs + 2 * PERIOD_MS);
        expect(world.deletedAtMs.has('for-ever')).toBe(false);
      }),
      { numRuns: 200 },
    );
  });

  it('a taint that is removed before the due time cancels, and leaves no timer', () => {
    fc.assert(
      fc.property(story, fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (given, share) => {
        const world = worldOf(given);
        const startMs = world.nowMs;
        const liftMs = startMs + given.seconds * 1_000 * share;
        while (world.nowMs + PERIOD_MS < liftMs) tick(world);
        world.taints = [];
        for (let ticks = 0; ticks < 200; ticks += 1) tick(world);
        expect(world.deletedAtMs.size).toBe(0);
        expect(world.timers.size).toBe(0);
      }),
      { numRuns: 100 },
    );
  });
});

describe('L10', () => {
  const toleration = fc.record({
    key: fc.constantFrom('a', 'b', NOT_READY),
    operator: fc.constant('Exists' as const),
    effect: fc.constant('NoExecute' as const),
    tolerationSeconds: fc.integer({ min: -1, max: 100 }),
  });
  const anyWorld = fc.record({
    taints: fc.option(
      fc.array(fc.tuple(fc.constantFrom('a', 'b', NOT_READY), fc.integer({ min: 0, max: 100 })), { maxLength: 3 }),
      { nil: undefined },
    ),
    pods: fc.array(fc.record({ tolerations: fc.array(toleration, { maxLength: 3 }), terminating: fc.boolean() }), {
      maxLength: 6,
    }),
    timers: fc.array(fc.tuple(fc.integer({ min: 0, max: 8 }), fc.integer({ min: 0, max: 200_000 })), { maxLength: 6 }),
    nowMs: fc.integer({ min: 0, max: 200_000 }),
  });

  it('decides nothing after its decisions were applied', () => {
    fc.assert(
      fc.property(anyWorld, (given) => {
        const world = new EvictionWorld();
        world.nowMs = given.nowMs;
        world.taints = given.taints?.map(([key, seconds]) => aTaint(key, seconds));
        world.pods = given.pods.map((pod, index) =>
          aPod(`p${index}`, pod.tolerations, { terminating: pod.terminating }),
        );
        for (const [index, atMs] of given.timers) {
          world.timers.set(`uid-p${index}`, { namespace: 'default', name: `p${index}`, podUid: `uid-p${index}`, atMs });
        }
        world.handle();
        expect(world.decide()).toEqual([]);
      }),
    );
  });

  it('the order of pods and taints does not matter', () => {
    fc.assert(
      fc.property(anyWorld, (given) => {
        const outcomes = [false, true].map((reversed) => {
          const world = new EvictionWorld();
          world.nowMs = given.nowMs;
          const turn = <T>(list: T[]): T[] => (reversed ? list.toReversed() : list);
          world.taints = given.taints && turn(given.taints.map(([key, seconds]) => aTaint(key, seconds)));
          world.pods = turn(given.pods.map((pod, index) => aPod(`p${index}`, pod.tolerations)));
          world.handle();
          return [...world.timers.values()]
            .map(({ name, atMs }) => `${name}@${atMs}`)
            .concat([...world.deletedAtMs.keys()])
            .toSorted();
        });
        expect(outcomes[1]).toEqual(outcomes[0]);
      }),
    );
  });
});
