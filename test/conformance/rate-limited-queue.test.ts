/** RQ: rate-limited timed queue. */
import { describe, expect, it } from 'vitest';
import {
  addToQueue,
  dueHead,
  EMPTY_QUEUE,
  type EvictionQueue,
  markProcessed,
  removeFromQueue,
  replaceInQueue,
  retryAfter,
} from '../../shared/domain/eviction-queue.ts';
import { changeRate, fullLimiter, type Limiter, takeToken } from '../../shared/domain/limiter.ts';
import { aNode, MonitoredFleet } from '../support/monitored-fleet.ts';

const node = (nodeName: string) => ({ nodeName, uid: `uid-${nodeName}` });
const names = (queue: EvictionQueue) => queue.items.map((item) => item.nodeName);
const firstSecondThird = ['first', 'second', 'third'].reduce(
  (queue, name, index) => addToQueue(queue, node(name), index * 1_000),
  EMPTY_QUEUE,
);

/** One turn over the queue: a token for each due item, then the function; it answers how long to wait, or is done. */
function tryQueue(
  state: { queue: EvictionQueue; limiter: Limiter },
  clockMs: () => number,
  handle: (name: string) => { retryInMs: number } | 'done',
): void {
  for (let turn = 0; turn < 100; turn += 1) {
    const nowMs = clockMs();
    const item = dueHead(state.queue, nowMs);
    if (item === undefined) return;
    const token = takeToken(state.limiter, nowMs);
    if (token.kind === 'denied') return;
    state.limiter = token.limiter;
    const answer = handle(item.nodeName);
    state.queue =
      answer === 'done'
        ? markProcessed(state.queue, item.nodeName)
        : retryAfter(state.queue, item, nowMs + answer.retryInMs);
  }
}

describe('RQ rate-limited timed queue', () => {
  it('RQ-02 removes the first', () => {
    const queue = removeFromQueue(firstSecondThird, 'first');
    expect(names(queue)).toEqual(['second', 'third']);
    expect([...queue.seen]).toEqual(['second', 'third']);
  });

  it('RQ-04 removes the last', () => {
    const queue = removeFromQueue(firstSecondThird, 'third');
    expect(names(queue)).toEqual(['first', 'second']);
    expect([...queue.seen]).toEqual(['first', 'second']);
  });

  it('RQ-06 calls in order of due time, and leaves a retry that is not due yet to a later turn', () => {
    let queue = addToQueue(EMPTY_QUEUE, node('first'), 1);
    queue = addToQueue(queue, node('second'), 2);
    queue = addToQueue(queue, node('third'), 3);
    const state = { queue, limiter: fullLimiter(100_000) };
    const clock = [4, 5, 5, 6];
    const called: string[] = [];
    // A token a reading of the clock: the limiter of this case is to play no part.
    const clockMs = () => {
      state.limiter = fullLimiter(100_000);
      return clock.shift() ?? 6;
    };
    tryQueue(state, clockMs, (name) => {
      called.push(name);
      return name === 'second' && called.length === 2 ? { retryInMs: 2 } : 'done';
    });
    expect(called).toEqual(['first', 'second', 'third']);
    expect(names(state.queue)).toEqual(['second']);
    expect(dueHead(state.queue, 7)).toBeUndefined();
    expect(dueHead(state.queue, 8)?.nodeName).toBe('second');
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
    let queue = removeFromQueue(firstSecondThird, 'second');
    queue = markProcessed(markProcessed(queue, 'first'), 'third');
    expect(addToQueue(queue, node('first'), 9_000)).toBe(queue);
    expect(dueHead(queue, 9_000)).toBeUndefined();
    expect(names(addToQueue(removeFromQueue(queue, 'first'), node('first'), 9_000))).toEqual(['first']);
  });

  it('RQ-12 knows nothing of a name never added', () => {
    expect(removeFromQueue(firstSecondThird, 'fourth')).toBe(firstSecondThird);
    const stranger = { ...node('fourth'), addedAtMs: 0, processAtMs: 0 };
    expect(replaceInQueue(firstSecondThird, stranger)).toBe(firstSecondThird);
  });

  it('RQ-14 takes a token for a retry too: the second call comes 10 s after the first', () => {
    const state = { queue: addToQueue(EMPTY_QUEUE, node('only'), 0), limiter: fullLimiter(0.1) };
    const calls: number[] = [];
    for (let nowMs = 0; nowMs <= 15_000; nowMs += 100) {
      tryQueue(
        state,
        () => nowMs,
        () => {
          calls.push(nowMs);
          return calls.length === 1 ? { retryInMs: 50 } : 'done';
        },
      );
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
    const state = { queue: EMPTY_QUEUE, limiter: fullLimiter(0.1) };
    const calls: number[] = [];
    const turn = (nowMs: number) =>
      tryQueue(
        state,
        () => nowMs,
        () => {
          calls.push(nowMs);
          return 'done';
        },
      );
    for (let nowMs = 0; nowMs <= 3_600_000; nowMs += 100) turn(nowMs);
    state.queue = addToQueue(state.queue, node('late'), 3_600_050);
    turn(3_600_100);
    expect(calls).toEqual([3_600_100]);
  });
});
