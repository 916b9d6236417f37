import { describe, expect, it } from 'vitest';
import { compareTurns } from './queue-order.rule.ts';

const item = (nodeName: string, addedAtMs: number) => ({ nodeName, uid: `uid-${nodeName}`, addedAtMs });

describe('turns of the eviction queue', () => {
  it('go by time of enqueueing, then by name', () => {
    const inTurn = [item('c', 2), item('a', 3), item('b', 3)];
    expect([...inTurn].reverse().sort(compareTurns)).toEqual(inTurn);
  });

  it('are equal for the same item', () => {
    expect(compareTurns(item('a', 1), item('a', 1))).toBe(0);
  });
});
