/**
 * RQ: rate-limited timed queue. Upstream's queue is an object with a function to call; ours is stored, node-monitor puts
 * nodes in and takes them out (decideMonitor), evictor takes the turns (decideEvictions). "Seen" is there what waits or
 * carries the taint; "the function is called" is a taint. "It asks for a retry" has no counterpart: a taint that does not come
 * about leaves item and token as they were, in one transaction. RQ-06 and RQ-14 put the item back later and keep the token
 * taken, to show what order and limiter make of that.
 */
import { describe, expect, it } from 'vitest';
import { changeRate, fullLimiter, type Limiter, takeToken } from '../../shared/domain/limiter.ts';
import type { QueuedNode } from '../../shared/domain/monitor.ts';
import { aNode, MonitoredFleet } from '../support/monitored-fleet.ts';

const NO_TAINT = { notReady: false, unreachable: false };
const NODES = ['first', 'second', 'third', 'alive-1', 'alive-2', 'alive-3'];

/** first, second and third have failed one second apart, 0.1 taints a second; nothing is tainted yet. */
function firstSecondThird(): MonitoredFleet {
  const fleet = new MonitoredFleet(NODES.map((nodeName) => aNode({ nodeName, statusAtMs: 0 })));
  for (const [index, nodeName] of NODES.slice(0, 3).entries()) {
    fleet.post(nodeName, 'False', index * 1_000);
    fleet.pass(index * 1_000);
  }
  return fleet;
}

const names = (fleet: MonitoredFleet): string[] =>
  fleet.queued().map(({ nodeName, addedAtMs }) => `${nodeName} since ${addedAtMs / 1_000} s`);

const item = (nodeName: string, addedAtMs: number, processAtMs = addedAtMs): QueuedNode => ({
  nodeName,
  uid: `uid-${nodeName}`,
  zone: '',
  addedAtMs,
  processAtMs,
});

/** Nodes that wait in a queue as given, and a limiter. */
const waiting = (queue: readonly QueuedNode[], limiter: Limiter): MonitoredFleet =>
  new MonitoredFleet(
    queue.map(({ nodeName }) => aNode({ nodeName, ready: 'False', statusAtMs: 0 })),
    {},
    { queue, zones: [{ zone: '', state: 'Normal', limiter }] },
  );

const setLimiter = (fleet: MonitoredFleet, limiter: Limiter): void => {
  fleet.world = { ...fleet.world, zones: fleet.world.zones.map((zone) => ({ ...zone, limiter })) };
};

/** One turn of evictor. `retryInMs`: what the function answers, undefined when it is done. The names it was called with. */
function turn(fleet: MonitoredFleet, nowMs: number, retryInMs: (nodeName: string) => number | undefined): string[] {
  const tainted = fleet.evict(nowMs).filter(({ kind }) => kind === 'taint');
  for (const { nodeName, addedAtMs } of tainted) {
    const waitMs = retryInMs(nodeName);
    if (waitMs === undefined) continue;
    fleet.change(nodeName, { noExecute: NO_TAINT });
    // Strictly after it: upstream's one nanosecond is our one millisecond.
    fleet.world = { ...fleet.world, queue: [...fleet.world.queue, item(nodeName, addedAtMs, nowMs + waitMs + 1)] };
  }
  return tainted.map(({ nodeName }) => nodeName);
}
const done = (): undefined => undefined;

describe('RQ rate-limited timed queue', () => {
  it('RQ-02 removes the first: a node that is well again leaves, and is not among the seen ones', () => {
    const fleet = firstSecondThird();
    fleet.post('first', 'True', 3_000);
    fleet.pass(3_000);
    expect(names(fleet)).toEqual(['second since 1 s', 'third since 2 s']);
    fleet.post('first', 'False', 4_000);
    fleet.pass(4_000);
    expect(names(fleet)).toEqual(['second since 1 s', 'third since 2 s', 'first since 4 s']);
  });

  it('RQ-04 removes the last', () => {
    const fleet = firstSecondThird();
    fleet.post('third', 'True', 3_000);
    fleet.pass(3_000);
    expect(names(fleet)).toEqual(['first since 0 s', 'second since 1 s']);
    fleet.post('third', 'False', 4_000);
    fleet.pass(4_000);
    expect(names(fleet)).toEqual(['first since 0 s', 'second since 1 s', 'third since 4 s']);
  });

  it('RQ-06 calls in order of due time, and leaves a retry that is not due yet to a later turn', () => {
    const fleet = waiting([item('third', 3), item('first', 1), item('second', 2)], fullLimiter(100_000));
    const called: string[] = [];
    const turnAt = (nowMs: number): void => {
      // A token a turn: the limiter of this case is to play no part.
      setLimiter(fleet, fullLimiter(100_000));
      called.push(...turn(fleet, nowMs, (nodeName) => (nodeName === 'second' ? 2 : undefined)));
    };
    for (const nowMs of [4, 5, 5, 6]) turnAt(nowMs);
    expect(called).toEqual(['first', 'second', 'third']);
    expect(fleet.queued()).toEqual([item('second', 2, 8)]);
    turnAt(7);
    expect(called).toHaveLength(3);
    turnAt(8);
    expect(called).toEqual(['first', 'second', 'third', 'second']);
  });

  it('RQ-08 empties the queue: total disruption withdraws whoever waits', () => {
    const fleet = new MonitoredFleet(
      ['first', 'second', 'third', 'alive'].map((nodeName) =>
        aNode({ nodeName, ready: nodeName === 'alive' ? 'True' : 'False', statusAtMs: 0 }),
      ),
      { largeClusterSizeThreshold: 3 },
    );
    fleet.pass(0);
    expect(fleet.queued()).toHaveLength(3);
    fleet.post('alive', 'False', 5_000);
    fleet.pass(5_000);
    expect(fleet.queued()).toEqual([]);
  });

  it('RQ-10 refuses a processed name until it is removed', () => {
    const fleet = firstSecondThird();
    fleet.post('second', 'True', 3_000);
    fleet.pass(3_000);
    expect([fleet.evict(3_000), fleet.evict(13_000)].flat()).toMatchObject([
      { kind: 'taint', nodeName: 'first' },
      { kind: 'taint', nodeName: 'third' },
    ]);
    fleet.pass(23_000);
    expect(fleet.queued()).toEqual([]);
    expect(fleet.evict(23_000)).toEqual([]);
    fleet.post('first', 'True', 24_000);
    fleet.pass(24_000);
    fleet.post('first', 'False', 25_000);
    fleet.pass(25_000);
    expect(names(fleet)).toEqual(['first since 25 s']);
  });

  it('RQ-12 removes nobody when a node that never waited is well', () => {
    const fleet = firstSecondThird();
    fleet.post('alive-1', 'True', 3_000);
    expect(fleet.pass(3_000).decisions.filter(({ kind }) => kind === 'dequeue')).toEqual([]);
    expect(fleet.queued()).toHaveLength(3);
  });

  it('RQ-14 takes a token for a retry too: the second call comes 10 s after the first', () => {
    const fleet = waiting([item('only', 0)], fullLimiter(0.1));
    const calls: number[] = [];
    for (let nowMs = 0; nowMs <= 15_000; nowMs += 100) {
      const called = turn(fleet, nowMs, () => (calls.length === 0 ? 50 : undefined));
      calls.push(...called.map(() => nowMs));
    }
    expect(calls).toEqual([0, 10_000]);
  });

  it('RQ-16 starts the slower limiter drained: a token used at 0 s, the rate changed at 3 s, the next at 103 s', () => {
    const taken = takeToken(fullLimiter(0.1), 0);
    if (taken.kind === 'denied') throw new Error('denied');
    const limiter = changeRate(taken.limiter, 0.01, 3_000);
    expect(takeToken(limiter, 102_999).kind).toBe('denied');
    expect(takeToken(limiter, 103_000).kind).toBe('granted');
  });

  it('RQ-18 changes nothing at the same rate', () => {
    const limiter = fullLimiter(0.1);
    expect(changeRate(limiter, 0.1, 3_000)).toBe(limiter);
  });

  it('RQ-20 spends no token on an empty queue', () => {
    const fleet = waiting([], fullLimiter(0.1));
    const calls: string[] = [];
    for (let nowMs = 0; nowMs <= 3_600_000; nowMs += 100) calls.push(...turn(fleet, nowMs, done));
    fleet.add(aNode({ nodeName: 'late', ready: 'False', statusAtMs: 3_600_050 }));
    fleet.world = { ...fleet.world, queue: [item('late', 3_600_050)] };
    calls.push(...turn(fleet, 3_600_100, done));
    expect(calls).toEqual(['late']);
  });
});
