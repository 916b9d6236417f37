import { describe, expect, it } from 'vitest';
import type { InvocationOutcome } from '../functions/local-function.ts';
import { type DeliveryPolicy, deliverBatch, type StreamRecord } from './deliver.ts';

const NOW = Date.UTC(2026, 10, 20);

const record = (sequence: number, ageSeconds = 0): StreamRecord => ({
  eventID: String(sequence),
  eventName: 'MODIFY',
  dynamodb: { SequenceNumber: String(sequence), ApproximateCreationDateTime: NOW / 1_000 - ageSeconds },
});

const batch = (...sequences: number[]) => sequences.map((sequence) => record(sequence));
const ids = (records: readonly StreamRecord[]) => records.map((one) => Number(one.eventID));
const failed: InvocationOutcome = { kind: 'failed', error: { errorType: 'E', errorMessage: 'no', stack: '' } };
const ok: InvocationOutcome = { kind: 'returned', payload: 'null' };
const itemFailures = (...sequences: number[]): InvocationOutcome => ({
  kind: 'returned',
  payload: JSON.stringify({ batchItemFailures: sequences.map((sequence) => ({ itemIdentifier: String(sequence) })) }),
});

async function deliver(
  records: readonly StreamRecord[],
  answer: (ids: number[], call: number) => InvocationOutcome,
  policy: Partial<DeliveryPolicy> = {},
  pausesAllowed = 100,
) {
  const invoked: number[][] = [];
  const discarded: [number[], string][] = [];
  const pauses: number[] = [];
  const completed = await deliverBatch(
    records,
    {
      maximumRetryAttempts: 3,
      maximumRecordAgeSeconds: 3_600,
      bisectBatchOnError: false,
      reportBatchItemFailures: true,
      ...policy,
    },
    {
      invoke: async (part) => {
        invoked.push(ids(part));
        return answer(ids(part), invoked.length);
      },
      discard: (part, reason) => discarded.push([ids(part), reason]),
      pause: async (ms) => {
        pauses.push(ms);
        return pauses.length <= pausesAllowed;
      },
      nowMs: () => NOW,
    },
  );
  return { completed, invoked, discarded, pauses };
}

describe('delivering a batch of stream records', () => {
  it('invokes once without errors', async () => {
    expect(await deliver(batch(1, 2, 3), () => ok)).toEqual({
      completed: true,
      invoked: [[1, 2, 3]],
      discarded: [],
      pauses: [],
    });
  });

  it('retries a failing batch, waiting longer each time, then discards it and reports that', async () => {
    const { invoked, discarded, pauses } = await deliver(batch(1, 2), () => failed);
    expect(invoked).toHaveLength(4);
    expect(pauses).toEqual([100, 200, 400]);
    expect(discarded).toEqual([[[1, 2], 'RetryAttemptsExhausted']]);
  });

  it('continues from the first item that failed', async () => {
    const { invoked } = await deliver(batch(1, 2, 3, 4), (_ids, call) => (call === 1 ? itemFailures(4, 3) : ok));
    expect(invoked).toEqual([
      [1, 2, 3, 4],
      [3, 4],
    ]);
  });

  it('retries everything when the answer names an unknown item', async () => {
    const { invoked } = await deliver(batch(1, 2), (_ids, call) => (call === 1 ? itemFailures(9) : ok));
    expect(invoked).toEqual([
      [1, 2],
      [1, 2],
    ]);
  });

  it('ignores item failures when the mapping does not report them', async () => {
    const { invoked } = await deliver(batch(1, 2), () => itemFailures(1), { reportBatchItemFailures: false });
    expect(invoked).toEqual([[1, 2]]);
  });

  it('halves a failing batch until the poison record stands alone, and delivers the others in order', async () => {
    const { invoked, discarded } = await deliver(batch(1, 2, 3, 4), (part) => (part.includes(3) ? failed : ok), {
      bisectBatchOnError: true,
      maximumRetryAttempts: 1,
    });
    expect(invoked).toEqual([[1, 2, 3, 4], [1, 2], [3, 4], [3], [3], [4]]);
    expect(discarded).toEqual([[[3], 'RetryAttemptsExhausted']]);
  });

  it('discards records that are too old without invoking', async () => {
    const { invoked, discarded } = await deliver([record(1, 3_601), record(2, 10)], () => ok);
    expect(discarded).toEqual([[[1], 'RecordAgeExceeded']]);
    expect(invoked).toEqual([[2]]);
  });

  it('does not count being throttled as an attempt', async () => {
    const { invoked, discarded } = await deliver(batch(1), (_ids, call) => (call < 10 ? { kind: 'throttled' } : ok));
    expect(invoked).toHaveLength(10);
    expect(discarded).toEqual([]);
  });

  it('says that it was stopped half-way', async () => {
    expect(await deliver(batch(1), () => failed, {}, 0)).toMatchObject({ completed: false, discarded: [] });
  });
});
