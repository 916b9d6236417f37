import { afterEach, describe, expect, it, vi } from 'vitest';
import type { QueueSourcePlan } from '../assembly/plan.ts';
import type { InvocationOutcome, LocalFunction } from '../functions/local-function.ts';
import { LocalQueue } from './queue.ts';
import { type QueueSource, startQueueSource } from './queue-source.ts';

const T0 = Date.UTC(2026, 10, 20);
const ok: InvocationOutcome = { kind: 'returned', payload: '{"batchItemFailures":[]}' };

interface Message {
  readonly messageId: string;
  readonly body: string;
  readonly attributes: { readonly ApproximateReceiveCount: string };
}

const started: QueueSource[] = [];

function aSource(
  answer: (messages: readonly Message[]) => InvocationOutcome | Promise<InvocationOutcome>,
  plan: Partial<QueueSourcePlan> = {},
) {
  vi.useFakeTimers({ now: T0 });
  const queue = new LocalQueue({ name: 'q', delaySeconds: 0, visibilityTimeoutSeconds: 30, retentionSeconds: 300 });
  const batches: string[][] = [];
  const invoke = async ({ Records: records }: { Records: readonly Message[] }) => {
    batches.push(records.map(({ body, attributes }) => `${body}/${attributes.ApproximateReceiveCount}`));
    return await answer(records);
  };
  const source = startQueueSource({
    plan: {
      logicalId: 'S',
      queueId: 'Q',
      functionId: 'F',
      filterPatterns: [],
      batchSize: 10,
      concurrencyMax: 2,
      reportBatchItemFailures: true,
      ...plan,
    },
    queue,
    queueArn: 'arn',
    fn: { invoke } as unknown as LocalFunction,
    region: 'us-east-1',
    nowMs: () => Date.now(),
  });
  started.push(source);
  return { queue, batches, source };
}

afterEach(async () => {
  for (const source of started.splice(0)) await source.stop();
  vi.useRealTimers();
});

describe('an event source on a queue', () => {
  it('delivers a message when its delay has passed, and deletes it', async () => {
    const { queue, batches } = aSource(() => ok);
    queue.send('later', T0, { delaySeconds: 5 });
    await vi.advanceTimersByTimeAsync(4_999);
    expect(batches).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(batches).toEqual([['later/1']]);
    expect(queue.counters.deleted).toBe(1);
  });

  it('delivers a message again after the visibility timeout when the function failed', async () => {
    let calls = 0;
    const failed: InvocationOutcome = { kind: 'failed', error: { errorType: 'E', errorMessage: '', stack: '' } };
    const { queue, batches } = aSource(() => (calls++ === 0 ? failed : ok));
    queue.send('m', T0);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(batches).toEqual([['m/1'], ['m/2']]);
    expect(queue.nextVisibleAtMs()).toBeUndefined();
  });

  it('keeps only the messages the function names as failed', async () => {
    let calls = 0;
    const { queue, batches } = aSource(
      (messages) =>
        calls++ === 0
          ? {
              kind: 'returned',
              payload: JSON.stringify({
                batchItemFailures: messages.filter((m) => m.body === 'b').map((m) => ({ itemIdentifier: m.messageId })),
              }),
            }
          : ok,
      { batchSize: 3 },
    );
    for (const body of ['a', 'b', 'c']) queue.send(body, T0, { delaySeconds: 1 });
    await vi.advanceTimersByTimeAsync(31_000);
    expect(batches).toEqual([['a/1', 'b/1', 'c/1'], ['b/2']]);
  });

  it.each(['{"batchItemFailures":[{"itemIdentifier":"nobody"}]}', '{"batchItemFailures":[{}]}', '"text"'])(
    'counts the whole batch as failed when the answer is %s',
    async (payload) => {
      const { queue, source } = aSource(() => ({ kind: 'returned', payload }));
      queue.send('m', T0);
      await vi.advanceTimersByTimeAsync(0);
      expect(source.counters.failedMessages).toBe(1);
    },
  );

  it('runs as many batches at once as the mapping allows', async () => {
    let release: (outcome: InvocationOutcome) => void = () => {};
    const held = new Promise<InvocationOutcome>((resolve) => {
      release = resolve;
    });
    const { queue, batches } = aSource(() => held, { batchSize: 1 });
    for (const body of ['a', 'b', 'c']) queue.send(body, T0);
    await vi.advanceTimersByTimeAsync(0);
    expect(batches).toEqual([['a/1'], ['b/1']]);
    release(ok);
    await vi.advanceTimersByTimeAsync(0);
    expect(batches).toEqual([['a/1'], ['b/1'], ['c/1']]);
  });

  it('deletes what the filter keeps back without an invocation', async () => {
    const { queue, batches, source } = aSource(() => ok, { filterPatterns: ['{"body":{"kind":["wanted"]}}'] });
    queue.send('{"kind":"other"}', T0);
    queue.send('{"kind":"wanted"}', T0);
    await vi.advanceTimersByTimeAsync(0);
    expect(batches).toEqual([['{"kind":"wanted"}/1']]);
    expect(source.counters.filtered).toBe(1);
    expect(queue.nextVisibleAtMs()).toBeUndefined();
  });
});
