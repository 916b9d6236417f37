/**
 * Calls to one queue of Amazon SQS, without the SDK's client. Each call is tried twice.
 * Source: Amazon SQS API Reference; SQS speaks AWS JSON protocol 1.0 (Amazon SQS Developer Guide, "Amazon SQS AWS JSON
 * protocol FAQs").
 */
import { type AwsConnection, awsConnectionFrom } from '../connection/connection.ts';
import { signedPost } from '../json/signed-post.ts';

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
