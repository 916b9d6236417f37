/**
 * What Lambda asks of AWS on a function's behalf, with the function's role: reading its event sources and putting what
 * it prints into its log. Local mode does the same by itself; here it is noted as the calls it stands for.
 *
 * Sources: Lambda Developer Guide, execution role permissions of SQS and of DynamoDB event source mappings, and of
 * logs.
 */
import type { FunctionPlan } from '../assembly/plan.ts';
import type { EngineClient } from '../engine/client.ts';
import { LOG_STREAM } from '../functions/local-function.ts';
import type { LocalQueue } from '../queues/queue.ts';
import type { QueueSourceOptions } from '../queues/queue-source.ts';
import { type AwsPlace, logStreamArn } from './aws-call.ts';
import type { CallRecorder } from './recorder.ts';

type Recorder = Pick<CallRecorder, 'note'>;

/** To be called for each line the function prints. */
export function noteFunctionLog(recorder: Recorder, fn: FunctionPlan, place: AwsPlace): () => void {
  const resource = logStreamArn(place, fn.logGroupName, LOG_STREAM);
  return () => {
    for (const action of ['logs:CreateLogStream', 'logs:PutLogEvents']) {
      recorder.note(fn.name, { action, resource, context: {} });
    }
  };
}

/** A mapping on a queue looks at it once when it is made. */
export function noteQueueSource(
  recorder: Recorder,
  functionName: string,
  queue: LocalQueue,
  queueArn: string,
): QueueSourceOptions['queue'] {
  const note = (action: string) =>
    recorder.note(functionName, { action: `sqs:${action}`, resource: queueArn, context: {} });
  note('GetQueueAttributes');
  return {
    receive(max, nowMs) {
      note('ReceiveMessage');
      return queue.receive(max, nowMs);
    },
    delete(receiptHandle) {
      note('DeleteMessage');
      return queue.delete(receiptHandle);
    },
    nextVisibleAtMs: () => queue.nextVisibleAtMs(),
    onChange: (listener) => queue.onChange(listener),
  };
}

/** A mapping on a stream lists the streams of the table when it is made. */
export function noteStreamSource(
  recorder: Recorder,
  functionName: string,
  client: EngineClient,
  streamArn: string,
): EngineClient {
  const note = (action: string, resource: string) =>
    recorder.note(functionName, { action: `dynamodb:${action}`, resource, context: {} });
  note('ListStreams', '*');
  return {
    endpoint: client.endpoint,
    call(operation, input) {
      note(operation.split('.').at(-1) ?? '', streamArn);
      return client.call(operation, input);
    },
    close: () => client.close(),
  };
}

/** The queue for records that were given up. */
export function noteFailureQueue(
  recorder: Recorder,
  functionName: string,
  queue: LocalQueue,
  queueArn: string,
): Pick<LocalQueue, 'send'> {
  return {
    send(...message) {
      recorder.note(functionName, { action: 'sqs:SendMessage', resource: queueArn, context: {} });
      return queue.send(...message);
    },
  };
}
