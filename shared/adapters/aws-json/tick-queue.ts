/**
 * The tick queue in Amazon SQS: SendMessage and ChangeMessageVisibility, without the SDK's client.
 *
 * Each call is tried twice. If the response is lost, the message is sent again and exists twice: the claim of the slot
 * decides which of them acts. Source: Amazon SQS API Reference, SendMessage and ChangeMessageVisibility; SQS speaks AWS
 * JSON protocol 1.0 (Amazon SQS Developer Guide, "Amazon SQS AWS JSON protocol FAQs").
 */
import type { TickQueue } from '../../ports/tick-queue.ts';
import { type AwsConnection, awsConnectionFrom } from '../aws-connection/connection.ts';
import { signedPost } from './signed-post.ts';

export interface TickQueueConnection extends AwsConnection {
  readonly queueUrl: string;
}

/** A tick waits for both attempts before it applies effects. */
const TIMEOUT_MS = 1_000;
const ATTEMPTS_MAX = 2;

/** The queue did not accept a call. */
export class TickQueueError extends Error {
  override readonly name = 'TickQueueError';
  readonly code = 'tick-queue-failed';
}

/** @throws RangeError that names every missing variable */
export const tickQueueConnectionFrom = (
  environment: Readonly<Record<string, string | undefined>>,
  queueUrl: string,
): TickQueueConnection => ({ queueUrl, ...awsConnectionFrom(environment, 'AWS_ENDPOINT_URL_SQS') });

export function sqsTickQueue(connection: TickQueueConnection): TickQueue {
  const { queueUrl } = connection;
  const caller = (action: string) => {
    const target = `AmazonSQS.${action}`;
    const post = signedPost(connection, { service: 'sqs', target, timeoutMs: TIMEOUT_MS, version: '1.0' });
    return async (input: Readonly<Record<string, unknown>>, nowMs: number): Promise<void> => {
      const body = JSON.stringify({ QueueUrl: queueUrl, ...input });
      for (let attempt = 1; ; attempt += 1) {
        try {
          const { status } = await post(body, nowMs);
          if (status === 200) return;
          throw new TickQueueError(`${action} returned status ${status}`);
        } catch (cause) {
          if (attempt < ATTEMPTS_MAX) continue;
          throw cause instanceof TickQueueError ? cause : new TickQueueError(`no response to ${action}`, { cause });
        }
      }
    };
  };
  const sendMessage = caller('SendMessage');
  const changeVisibility = caller('ChangeMessageVisibility');
  return {
    send: (slot, { delaySeconds, nowMs }) =>
      sendMessage({ MessageBody: JSON.stringify({ slot }), DelaySeconds: delaySeconds }, nowMs),
    postpone: (receiptHandle, { delaySeconds, nowMs }) =>
      changeVisibility({ ReceiptHandle: receiptHandle, VisibilityTimeout: delaySeconds }, nowMs),
  };
}
