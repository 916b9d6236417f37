/** Observations of messages, schedules and ticks for the window of the run. */
import type { Measuring } from '../calls.ts';
import type { MeasuresOf } from '../measures.ts';
import type { ObservedTicks, TIME_FACTS } from '../time-facts.ts';
import { once } from './once.ts';

/** Delays of the messages: those of ticks. Seconds. */
const DELAYS_SECONDS = [1, 2, 3, 4, 5];
const SENDS_PER_MINUTE = 4;
const RECEIVE_SECONDS = 2;
const RECEIVED_MAX = 10;
const LOOK_MS = 250;
/** That of the default policy, which the run deploys. Milliseconds. */
const TICK_PERIOD_MS = 5_000;

interface ObservedQueue {
  readonly sent: number;
  readonly latenessMs: readonly number[];
  readonly firedAtMs: readonly number[];
}

/** Each message is received once. */
const observedQueue = once(async ({ calls, cluster, windowSeconds }: Measuring): Promise<ObservedQueue> => {
  const { queueUrl: QueueUrl } = cluster;
  const latenessMs: number[] = [];
  const firedAtMs: number[] = [];
  const startedMs = calls.nowMs();
  const lastDelayMs = 1_000 * Math.max(...DELAYS_SECONDS);
  let sent = 0;
  let sendAtMs = startedMs;
  const windowEndMs = startedMs + windowSeconds * 1_000;
  while (calls.nowMs() < windowEndMs + lastDelayMs) {
    if (calls.nowMs() >= sendAtMs && sendAtMs < windowEndMs) {
      for (const delaySeconds of DELAYS_SECONDS) {
        const MessageBody = JSON.stringify({ delaySeconds });
        const { status } = await calls.json('sqs', 'SendMessage', {
          QueueUrl,
          MessageBody,
          DelaySeconds: delaySeconds,
        });
        if (status < 300) sent += 1;
      }
      sendAtMs += 60_000 / SENDS_PER_MINUTE;
    }
    const { status, body } = await calls.json('sqs', 'ReceiveMessage', {
      QueueUrl,
      MaxNumberOfMessages: RECEIVED_MAX,
      WaitTimeSeconds: RECEIVE_SECONDS,
      MessageSystemAttributeNames: ['SentTimestamp', 'ApproximateFirstReceiveTimestamp'],
    });
    // Without this the loop would ask as fast as it is refused.
    if (status >= 300) throw new Error(`no message can be received: ${String(body['__type'] ?? status)}`);
    for (const message of (body['Messages'] ?? []) as readonly Message[]) {
      const { delaySeconds } = JSON.parse(message.Body) as { readonly delaySeconds?: number };
      const sentAtMs = Number(message.Attributes.SentTimestamp);
      if (delaySeconds === undefined) firedAtMs.push(sentAtMs);
      else {
        const receivedAtMs = Number(message.Attributes.ApproximateFirstReceiveTimestamp);
        latenessMs.push(receivedAtMs - sentAtMs - delaySeconds * 1_000);
      }
      await calls.json('sqs', 'DeleteMessage', { QueueUrl, ReceiptHandle: message.ReceiptHandle });
    }
  }
  return { sent, latenessMs, firedAtMs };
});

interface Message {
  readonly Body: string;
  readonly ReceiptHandle: string;
  readonly Attributes: { readonly SentTimestamp: string; readonly ApproximateFirstReceiveTimestamp: string };
}

interface Claim {
  readonly slot: number;
  readonly atMs: number;
  readonly claims: number;
}

async function lastClaim({ calls, cluster }: Measuring): Promise<Claim | undefined> {
  const { body } = await calls.json('dynamodb', 'GetItem', {
    TableName: cluster.tables.control,
    Key: { pk: { S: 'fleet' }, sk: { S: 'state' } },
    ConsistentRead: true,
  });
  const row = body['Item'] as Readonly<Record<string, { readonly N?: string }>> | undefined;
  if (row?.['slot']?.N === undefined) return undefined;
  return { slot: Number(row['slot'].N), atMs: Number(row['at']?.N), claims: Number(row['fence']?.N) };
}

const observedTicks = once(async (measuring: Measuring): Promise<ObservedTicks> => {
  const { calls, windowSeconds } = measuring;
  const endMs = calls.nowMs() + windowSeconds * 1_000;
  const seen = new Map<number, Claim>();
  // The claim before the window may be of any age.
  const before = (await lastClaim(measuring))?.slot;
  do {
    await calls.pause(LOOK_MS);
    const claim = await lastClaim(measuring);
    if (claim !== undefined && claim.slot !== before) seen.set(claim.slot, claim);
  } while (calls.nowMs() < endMs);
  const claims = [...seen.values()];
  const slots = claims.map(({ slot }) => slot);
  const missed = slots.length === 0 ? 0 : Math.max(...slots) - Math.min(...slots) + 1 - slots.length;
  return {
    latenessMs: claims.map(({ slot, atMs }) => atMs - slot * TICK_PERIOD_MS),
    missed,
    claims: claims.at(-1)?.claims ?? 0,
  };
});

export const MEASURE_TIME: MeasuresOf<typeof TIME_FACTS> = {
  'sqs-delay': observedQueue,
  'schedule-minute': observedQueue,
  'tick-lateness': observedTicks,
  'tick-chain': observedTicks,
};
