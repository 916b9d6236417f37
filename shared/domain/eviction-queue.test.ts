import { describe, expect, it } from 'vitest';
import { addToQueue, compareTurns, dueHead, EMPTY_QUEUE, replaceInQueue, retryAfter } from './eviction-queue.ts';

const node = (nodeName: string) => ({ nodeName, uid: `uid-${nodeName}` });

describe('the eviction queue', () => {
  it('takes turns by time, then by name', () => {
    const queue = addToQueue(addToQueue(addToQueue(EMPTY_QUEUE, node('b'), 5), node('a'), 5), node('c'), 4);
    expect(queue.items.map((item) => item.nodeName)).toEqual(['c', 'a', 'b']);
    expect([...queue.items].reverse().sort(compareTurns)).toEqual(queue.items);
  });

  it('has no due head before its time', () => {
    const queue = addToQueue(EMPTY_QUEUE, node('a'), 5);
    expect(dueHead(queue, 4)).toBeUndefined();
    expect(dueHead(queue, 5)?.nodeName).toBe('a');
  });

  it('puts a retry behind those due earlier', () => {
    const queue = addToQueue(addToQueue(EMPTY_QUEUE, node('a'), 1), node('b'), 2);
    const head = dueHead(queue, 3);
    if (head === undefined) throw new Error('no head');
    expect(retryAfter(queue, head, 10).items.map((item) => item.nodeName)).toEqual(['b', 'a']);
  });

  it('replaces only what still waits', () => {
    const item = { ...node('a'), addedAtMs: 0, processAtMs: 0 };
    expect(replaceInQueue(EMPTY_QUEUE, item)).toBe(EMPTY_QUEUE);
  });
});
