import { describe, expect, it } from 'vitest';
import { LocalQueue, type QueueSettings } from './queue.ts';

const T0 = Date.UTC(2026, 10, 20);
const seconds = (n: number) => T0 + n * 1_000;

function aQueue(settings: Partial<QueueSettings> = {}) {
  return new LocalQueue({
    name: 'q',
    delaySeconds: 0,
    visibilityTimeoutSeconds: 30,
    retentionSeconds: 300,
    ...settings,
  });
}

describe('a queue', () => {
  it('delivers a message once while it is hidden', () => {
    const queue = aQueue();
    queue.send('a', T0);
    expect(queue.receive(10, T0)).toMatchObject([
      { body: 'a', receiveCount: 1, md5OfBody: '0cc175b9c0f1b6a831c399e269772661' },
    ]);
    expect(queue.receive(10, seconds(29.999))).toEqual([]);
  });

  it('delivers it again after the visibility timeout', () => {
    const queue = aQueue();
    queue.send('a', T0);
    const [first] = queue.receive(10, T0);
    const [again] = queue.receive(10, seconds(30));
    expect(again).toMatchObject({ messageId: first!.messageId, receiveCount: 2, firstReceivedAtMs: T0 });
    expect(queue.delete(first!.receiptHandle)).toBe(false);
    expect(queue.delete(again!.receiptHandle)).toBe(true);
    expect(queue.receive(10, seconds(90))).toEqual([]);
  });

  it('hides a message for another time while it is in flight only', () => {
    const queue = aQueue();
    queue.send('a', T0);
    const [{ receiptHandle } = { receiptHandle: '' }] = queue.receive(10, T0);
    expect(queue.changeVisibility(receiptHandle, 60, seconds(29))).toBe('changed');
    expect(queue.changeVisibility(receiptHandle, 60, seconds(89))).toBe('notInFlight');
    expect(queue.changeVisibility('another', 60, seconds(29))).toBe('unknown');
    expect(queue.receive(10, seconds(89))).toHaveLength(1);
  });

  it('delays a message by its own delay, else by that of the queue', () => {
    const queue = aQueue({ delaySeconds: 5 });
    queue.send('queue', T0);
    queue.send('own', T0, { delaySeconds: 1 });
    expect(queue.nextVisibleAtMs()).toBe(seconds(1));
    expect(queue.receive(10, seconds(0.999))).toEqual([]);
    expect(queue.receive(10, seconds(1)).map((message) => message.body)).toEqual(['own']);
    expect(queue.receive(10, seconds(5)).map((message) => message.body)).toEqual(['queue']);
  });

  it('counts retention from sending, delay included', () => {
    const queue = aQueue({ retentionSeconds: 60 });
    queue.send('late', T0, { delaySeconds: 55 });
    queue.send('later', T0, { delaySeconds: 60 });
    expect(queue.receive(1, seconds(55))).toHaveLength(1);
    expect(queue.receive(10, seconds(60))).toEqual([]);
    expect(queue.counters.expired).toBe(2);
  });

  it('returns a batch of at most the requested size', () => {
    const queue = aQueue();
    for (const body of ['a', 'b', 'c']) queue.send(body, T0);
    expect(queue.receive(2, T0)).toHaveLength(2);
    expect(queue.depth(T0)).toEqual({ visible: 1, hidden: 2 });
  });

  it('moves a message to the dead letters after its last attempt, under the same id', () => {
    const deadLetters = aQueue({ name: 'dead' });
    const queue = aQueue({ redrive: { maxReceiveCount: 2, deadLetters } });
    const messageId = queue.send('poison', T0);
    expect(queue.receive(10, T0)).toHaveLength(1);
    expect(queue.receive(10, seconds(30))).toHaveLength(1);
    expect(queue.receive(10, seconds(60))).toEqual([]);
    expect(deadLetters.receive(10, seconds(60))).toMatchObject([{ messageId, body: 'poison', receiveCount: 1 }]);
    expect(queue.nextVisibleAtMs()).toBeUndefined();
  });

  it('notifies its listeners about a new message', () => {
    const queue = aQueue();
    let told = 0;
    queue.onChange(() => {
      told += 1;
    });
    queue.send('a', T0);
    expect(told).toBe(1);
  });
});
