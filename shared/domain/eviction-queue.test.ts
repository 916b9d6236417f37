import { describe, expect, it } from 'vitest';
import { compareTurns } from './eviction-queue.ts';

const item = (nodeName: string, addedAtMs: number, processAtMs: number) => ({
  nodeName,
  uid: `uid-${nodeName}`,
  addedAtMs,
  processAtMs,
});

describe('turns of the eviction queue', () => {
  it('go by due time, then by time of enqueueing, then by name', () => {
    const inTurn = [item('d', 9, 1), item('c', 2, 5), item('a', 3, 5), item('b', 3, 5)];
    expect([...inTurn].reverse().sort(compareTurns)).toEqual(inTurn);
  });

  it('are equal for the same item', () => {
    expect(compareTurns(item('a', 1, 1), item('a', 1, 1))).toBe(0);
  });
});
