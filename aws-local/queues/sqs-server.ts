/**
 * Amazon SQS on loopback, as far as functions use it: SendMessage, SendMessageBatch and ChangeMessageVisibility on
 * queues of the template. Source: Amazon SQS API Reference.
 */
import { createHash } from 'node:crypto';
import { defined } from '../../shared/defined.ts';
import { isObject } from '../assembly/template.ts';
import { type AwsJsonAnswer, type AwsJsonServer, startAwsJsonServer } from '../http/aws-json-server.ts';
import type { LocalQueue } from './queue.ts';

export interface SqsServerOptions {
  queueByUrl(url: string): LocalQueue | undefined;
  nowMs(): number;
}

const DELAY_SECONDS_MAX = 900;
const VISIBILITY_SECONDS_MAX = 43_200;
const ENTRIES_MAX = 10;

const refused = (type: string): AwsJsonAnswer => ({ kind: 'refused', type: `com.amazonaws.sqs#${type}` });
const isWholeSeconds = (value: unknown, max: number): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= max;

export function startSqsServer({ queueByUrl, nowMs }: SqsServerOptions): Promise<AwsJsonServer> {
  const onQueue =
    (handle: (queue: LocalQueue, input: Readonly<Record<string, unknown>>, traceHeader?: string) => AwsJsonAnswer) =>
    (body: unknown, traceHeader?: string): AwsJsonAnswer => {
      const input = isObject(body) ? body : {};
      const queue = queueByUrl(String(input['QueueUrl']));
      return queue === undefined ? refused('QueueDoesNotExist') : handle(queue, input, traceHeader);
    };
  return startAwsJsonServer({
    service: 'sqs',
    malformed: 'com.amazonaws.sqs#InvalidParameterValue',
    calls: {
      'AmazonSQS.SendMessage': onQueue((queue, { MessageBody: body, DelaySeconds: delaySeconds }, traceHeader) => {
        if (typeof body !== 'string' || body === '') return refused('MissingParameter');
        const hasDelay = delaySeconds !== undefined;
        if (hasDelay && !isWholeSeconds(delaySeconds, DELAY_SECONDS_MAX)) return refused('InvalidParameterValue');
        const messageId = queue.send(body, nowMs(), {
          ...(hasDelay ? { delaySeconds } : {}),
          ...defined({ traceHeader }),
        });
        const digest = createHash('md5').update(body).digest('hex');
        return { kind: 'answer', body: { MessageId: messageId, MD5OfMessageBody: digest } };
      }),
      'AmazonSQS.SendMessageBatch': onQueue((queue, { Entries: entries }) => sendBatch(queue, entries, nowMs())),
      'AmazonSQS.ChangeMessageVisibility': onQueue((queue, { ReceiptHandle: handle, VisibilityTimeout: seconds }) => {
        if (!isWholeSeconds(seconds, VISIBILITY_SECONDS_MAX)) return refused('InvalidParameterValue');
        return queue.changeVisibility(String(handle), seconds, nowMs())
          ? { kind: 'answer', body: {} }
          : refused('ReceiptHandleIsInvalid');
      }),
    },
  });
}

/** Messages of one call without delays of their own, which functions do not use. */
function sendBatch(queue: LocalQueue, value: unknown, nowMs: number): AwsJsonAnswer {
  const entries = Array.isArray(value) ? value.filter(isObject) : [];
  if (entries.length === 0) return refused('EmptyBatchRequest');
  if (entries.length > ENTRIES_MAX) return refused('TooManyEntriesInBatchRequest');
  const ids = entries.map((entry) => String(entry['Id']));
  if (new Set(ids).size < ids.length) return refused('BatchEntryIdsNotDistinct');
  const failed: object[] = [];
  const successful: object[] = [];
  for (const [index, { MessageBody: body }] of entries.entries()) {
    const id = ids[index];
    if (typeof body !== 'string' || body === '') {
      failed.push({ Id: id, Code: 'MissingParameter', SenderFault: true });
      continue;
    }
    const digest = createHash('md5').update(body).digest('hex');
    successful.push({ Id: id, MessageId: queue.send(body, nowMs), MD5OfMessageBody: digest });
  }
  return { kind: 'answer', body: { Successful: successful, Failed: failed } };
}
