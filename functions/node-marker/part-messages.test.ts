import type { SQSEvent } from 'aws-lambda';
import { describe, expect, it } from 'vitest';
import { handleParts, type PartHandling } from './part-messages.ts';

const eventOf = (...bodies: string[]) =>
  ({
    Records: bodies.map((body, index) => ({
      messageId: `m${index}`,
      receiptHandle: `r${index}`,
      body,
      attributes: { ApproximateReceiveCount: String(index + 1) },
    })),
  }) as SQSEvent;

function handling(onPart: PartHandling['onPart'], { mayPostpone = true } = {}) {
  const errors: string[] = [];
  const postponed: [string, number][] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => void errors.push(message) };
  const queue = {
    async postpone(receiptHandle: string, { delaySeconds }: { delaySeconds: number }) {
      if (!mayPostpone) throw new Error('no');
      postponed.push([receiptHandle, delaySeconds]);
    },
  };
  return { errors, postponed, log, queue, clock: { nowMs: () => 0 }, onPart };
}

describe('messages of the queue of parts', () => {
  it('fail alone: the others of the batch are deleted', async () => {
    const at = handling(async ({ body }) =>
      body === 'bad' ? { kind: 'failed', faults: [new Error('no')], retrySeconds: 2 } : { kind: 'done' },
    );
    expect(await handleParts(eventOf('good', 'bad', 'good'), at)).toEqual({
      batchItemFailures: [{ itemIdentifier: 'm1' }],
    });
    expect(at.postponed).toEqual([['r1', 2]]);
  });

  it('are processed concurrently, each with the number of its receives', async () => {
    const receives: number[] = [];
    let release: () => void = () => undefined;
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    const at = handling(async (part) => {
      receives.push(part.receives);
      if (receives.length === 2) release();
      await all;
      return { kind: 'done' };
    });
    expect(await handleParts(eventOf('one', 'two'), at)).toEqual({ batchItemFailures: [] });
    expect(receives).toEqual([1, 2]);
  });

  it('are deleted if malformed, or if a tick does their work', async () => {
    const outcomes = [
      { kind: 'malformed' as const },
      { kind: 'failed' as const, faults: [new Error('no')], retrySeconds: undefined },
      { kind: 'dropped' as const },
    ];
    const at = handling(async () => outcomes.shift()!);
    expect(await handleParts(eventOf('a', 'b', 'c'), at)).toEqual({ batchItemFailures: [] });
    expect(at.errors).toEqual(['a part cannot be read', 'a part of a mass failure failed']);
  });

  it('return after the visibility timeout when they cannot be hidden', async () => {
    const at = handling(async () => ({ kind: 'failed', faults: [], retrySeconds: 1 }), { mayPostpone: false });
    expect((await handleParts(eventOf('a'), at)).batchItemFailures).toHaveLength(1);
    expect(at.errors).toContain('a part returns only after its visibility timeout');
  });
});
