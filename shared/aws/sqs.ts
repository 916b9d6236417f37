/**
 * Amazon SQS, without the SDK's client: calls to one queue, and the queue of node-marker. Each call is tried twice.
 * Source: Amazon SQS API Reference; SQS speaks AWS JSON protocol 1.0 (Amazon SQS Developer Guide, "Amazon SQS AWS JSON
 * protocol FAQs").
 */

import type { PartQueue } from '../fleet/mark-parts.ts';
import { type AwsConnection, awsConnectionFrom } from './connection.ts';
import { signedPost } from './signed-post.ts';

export interface QueueConnection extends AwsConnection {
  readonly queueUrl: string;
}

/** A tick waits for both attempts before it applies effects. */
const TIMEOUT_MS = 1_000;
const ATTEMPTS_MAX = 2;

/** The queue did not accept a call. */
export class QueueError extends Error {
  override readonly name = 'QueueError';
  readonly code = 'queue-failed';
}

/** @throws RangeError that names every missing variable */
export const queueConnectionFrom = (
  environment: Readonly<Record<string, string | undefined>>,
  queueUrl: string,
): QueueConnection => ({ queueUrl, ...awsConnectionFrom(environment, 'AWS_ENDPOINT_URL_SQS') });

/** Returns the text of the response. @throws QueueError */
export type SqsCall = (input: Readonly<Record<string, unknown>>, nowMs: number) => Promise<string>;

export const sqsCaller = (connection: QueueConnection) => {
  const { queueUrl } = connection;
  return (action: string): SqsCall => {
    const target = `AmazonSQS.${action}`;
    const post = signedPost(connection, { service: 'sqs', target, timeoutMs: TIMEOUT_MS, version: '1.0' });
    return async (input, nowMs) => {
      const body = JSON.stringify({ QueueUrl: queueUrl, ...input });
      for (let attempt = 1; ; attempt += 1) {
        try {
          const { status, body: text } = await post(body, nowMs);
          if (status === 200) return text;
          throw new QueueError(`${action} returned status ${status}`);
        } catch (cause) {
          if (attempt < ATTEMPTS_MAX) continue;
          throw cause instanceof QueueError ? cause : new QueueError(`no response to ${action}`, { cause });
        }
      }
    };
  };
};

/** SendMessageBatch: ten messages; the response lists those that failed. */
const MESSAGES_PER_BATCH_MAX = 10;
/** All messages of a batch, in UTF-16 units; names are ASCII. The smallest limit that SQS ever had is 262,144 bytes. */
const BATCH_LENGTH_MAX = 250_000;
const BATCHES_AT_ONCE_MAX = 8;

/** The queue of node-marker. If a response is lost, the messages are sent again and exist twice. */
export function sqsPartQueue(connection: QueueConnection): PartQueue {
  const call = sqsCaller(connection);
  const sendBatch = call('SendMessageBatch');
  const changeVisibility = call('ChangeMessageVisibility');
  return {
    async send(bodies, nowMs) {
      const refused: number[] = [];
      const waiting = batchesOf(bodies).values();
      const worker = async (): Promise<void> => {
        for (const { first, some } of waiting) {
          refused.push(...(await refusedOf(sendBatch, some, { first, nowMs })));
        }
      };
      await Promise.all(Array.from({ length: BATCHES_AT_ONCE_MAX }, worker));
      return refused.sort((one, other) => one - other);
    },
    async postpone(receiptHandle, { delaySeconds, nowMs }) {
      await changeVisibility({ ReceiptHandle: receiptHandle, VisibilityTimeout: delaySeconds }, nowMs);
    },
  };
}

interface Batch {
  /** Position of its first message. */
  readonly first: number;
  readonly some: string[];
}

/** A message that is too large by itself has a batch of its own. */
function batchesOf(bodies: readonly string[]): readonly Batch[] {
  const batches: Batch[] = [];
  let length = 0;
  bodies.forEach((body, index) => {
    const batch = batches.at(-1);
    length += body.length;
    if (batch !== undefined && batch.some.length < MESSAGES_PER_BATCH_MAX && length <= BATCH_LENGTH_MAX) {
      batch.some.push(body);
      return;
    }
    batches.push({ first: index, some: [body] });
    length = body.length;
  });
  return batches;
}

/** Positions, counted from `first`, of the messages of one batch that the queue did not accept. */
async function refusedOf(
  sendBatch: SqsCall,
  bodies: readonly string[],
  { first, nowMs }: { readonly first: number; readonly nowMs: number },
): Promise<number[]> {
  const all = bodies.map((_, index) => first + index);
  const Entries = bodies.map((MessageBody, index) => ({ Id: String(first + index), MessageBody }));
  try {
    const { Failed = [] } = JSON.parse(await sendBatch({ Entries }, nowMs)) as { Failed?: readonly { Id: string }[] };
    const failed = new Set(Failed.map(({ Id }) => Number(Id)));
    return all.filter((index) => failed.has(index));
  } catch {
    return all;
  }
}
