import type { SQSEvent } from 'aws-lambda';
import { describe, expect, it } from 'vitest';
import { FAILED_TICKS } from '../../shared/functions/tick-metrics.ts';
import { handleTickMessages, kindOfMessage, type TickMessageHandling } from './tick-message.ts';

const eventOf = (...bodies: string[]) =>
  ({
    Records: bodies.map((body, index) => ({ messageId: `m${index}`, receiptHandle: `r${index}`, body })),
  }) as SQSEvent;

function handling(onMessage: TickMessageHandling['onMessage'], { mayPostpone = true } = {}) {
  const errors: string[] = [];
  const measured: string[] = [];
  const postponed: [string, number][] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (message: string) => void errors.push(message) };
  const queue = {
    async postpone(receiptHandle: string, { delaySeconds }: { delaySeconds: number }) {
      if (!mayPostpone) throw new Error('no');
      postponed.push([receiptHandle, delaySeconds]);
    },
  };
  const meter = { add: (name: string) => void measured.push(name) };
  return { errors, measured, postponed, log, meter, queue, clock: { nowMs: () => 0 }, onMessage };
}

describe('messages of the tick queue', () => {
  it.each([
    ['{"slot":3}', 'tick'],
    ['{"watchdog":"2026-01-01T00:00:00Z"}', 'watchdog'],
    ['', undefined],
    ['null', undefined],
    ['{}', undefined],
    ['tick', undefined],
  ])('%s: %s', (body, kind) => {
    expect(kindOfMessage(body)).toBe(kind);
  });

  it('are logged and deleted if malformed', async () => {
    const kinds: string[] = [];
    const at = handling(async (kind) => {
      kinds.push(kind);
      return { kind: 'alive' };
    });
    expect(await handleTickMessages(eventOf('{}', '{"slot":1}'), at)).toEqual({ batchItemFailures: [] });
    expect(kinds).toEqual(['tick']);
    expect(at.errors).toEqual(['a tick message cannot be read']);
  });

  it('return at the next slot if they have no successor, and only those', async () => {
    const fault = new Error('no');
    const outcomes = [{ returnSeconds: 4 }, { returnSeconds: undefined }];
    const at = handling(async () => ({ kind: 'failed', fault, ...outcomes.shift()! }));
    expect(await handleTickMessages(eventOf('{"slot":1}', '{"slot":2}'), at)).toEqual({
      batchItemFailures: [{ itemIdentifier: 'm0' }],
    });
    expect(at.postponed).toEqual([['r0', 4]]);
    expect(at.measured).toEqual([FAILED_TICKS, FAILED_TICKS]);
  });

  it('stay in the queue when they cannot be returned early', async () => {
    const at = handling(async () => ({ kind: 'failed', fault: new Error('no'), returnSeconds: 4 }), {
      mayPostpone: false,
    });
    expect(await handleTickMessages(eventOf('{"slot":1}'), at)).toEqual({
      batchItemFailures: [{ itemIdentifier: 'm0' }],
    });
    expect(at.errors).toContain('a tick message returns only after its visibility timeout');
  });
});
