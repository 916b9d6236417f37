/**
 * Amazon SQS on loopback, as far as functions and `nodekeeper prove` use it: SendMessage, SendMessageBatch,
 * ChangeMessageVisibility, ReceiveMessage and DeleteMessage on queues of the template.
 * Source: Amazon SQS API Reference.
 */
import { createHash } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
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
const WAIT_SECONDS_MAX = 20;
/** Between looks at an empty queue. Milliseconds. */
const LOOK_MS = 20;

const refused = (type: string): AwsJsonAnswer => ({ kind: 'refused', type: `com.amazonaws.sqs#${type}` });
const isWholeSeconds = (value: unknown, max: number): value is number =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= max;

export function startSqsServer({ queueByUrl, nowMs }: SqsServerOptions): Promise<AwsJsonServer> {
  const onQueue =
    (
      handle: (
        queue: LocalQueue,
        input: Readonly<Record<string, unknown>>,
        traceHeader?: string,
      ) => AwsJsonAnswer | Promise<AwsJsonAnswer>,
    ) =>
    (body: unknown, traceHeader?: string): AwsJsonAnswer | Promise<AwsJsonAnswer> => {
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
        const outcome = queue.changeVisibility(String(handle), seconds, nowMs());
        if (outcome === 'changed') return { kind: 'answer', body: {} };
        return refused(outcome === 'unknown' ? 'ReceiptHandleIsInvalid' : 'MessageNotInflight');
      }),
      'AmazonSQS.ReceiveMessage': onQueue(
        async (
          queue,
          { MaxNumberOfMessages: max = 1, WaitTimeSeconds: wait = 0, MessageSystemAttributeNames: names },
        ) => {
          if (!isWholeSeconds(wait, WAIT_SECONDS_MAX) || !isWholeSeconds(max, ENTRIES_MAX) || max === 0) {
            return refused('InvalidParameterValue');
          }
          const attributes = Array.isArray(names) ? names : [];
          const Messages = await receive(queue, { max, waitMs: wait * 1_000, attributes, nowMs });
          return { kind: 'answer', body: Messages.length === 0 ? {} : { Messages } };
        },
      ),
      'AmazonSQS.DeleteMessage': onQueue((queue, { ReceiptHandle: handle }) => {
        queue.delete(String(handle));
        return { kind: 'answer', body: {} };
      }),
    },
  });
}

async function receive(
  queue: LocalQueue,
  {
    max,
    waitMs,
    attributes,
    nowMs,
  }: {
    readonly max: number;
    readonly waitMs: number;
    /** Names of those that are asked for: an answer has no others. */
    readonly attributes: readonly unknown[];
    readonly nowMs: () => number;
  },
): Promise<readonly object[]> {
  const deadlineMs = nowMs() + waitMs;
  for (;;) {
    const received = queue.receive(max, nowMs());
    if (received.length > 0 || nowMs() >= deadlineMs) {
      return received.map(({ messageId, receiptHandle, body, md5OfBody, sentAtMs, firstReceivedAtMs }) => ({
        ...{ MessageId: messageId, ReceiptHandle: receiptHandle, Body: body, MD5OfBody: md5OfBody },
        Attributes: Object.fromEntries(
          Object.entries({ SentTimestamp: sentAtMs, ApproximateFirstReceiveTimestamp: firstReceivedAtMs }).flatMap(
            ([name, value]) => (attributes.includes(name) || attributes.includes('All') ? [[name, String(value)]] : []),
          ),
        ),
      }));
    }
    await pause(LOOK_MS);
  }
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
