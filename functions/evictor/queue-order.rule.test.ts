import { describe, expect, it } from 'vitest';
import { compareQueueItems } from './queue-order.rule.ts';

const item = (nodeName: string, addedAtMs: number) => ({ nodeName, uid: `uid-${nodeName}`, addedAtMs });

describe('turns of the eviction queue', () => {
  it('are ordered by the time when they were enqueued, then by name', () => {
    const inTurn = [item('c', 2), item('a', 3), item('b', 3)];
    expect([...inTurn].reverse().sort(compareQueueItems)).toEqual(inTurn);
  });

  it('are equal for the same item', () => {
    expect(compareQueueItems(item('a', 1), item('a', 1))).toBe(0);
  });
});
