/** A function that sends itself a message: Lambda stops it in the seventeenth invocation of the chain. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { sqsTickQueue } from '../../functions/node-monitor/chain.ts';
import { until } from '../../test/support/until.ts';
import { startAwsJsonServer } from '../http/aws-json-server.ts';
import { LocalQueue } from '../queues/queue.ts';
import { startQueueSource } from '../queues/queue-source.ts';
import { startSqsServer } from '../queues/sqs-server.ts';
import { asyncEvents } from './async-events.ts';
import { startInvokeServer } from './invoke-server.ts';
import { traceOf } from './lineage.ts';
import { LocalFunction } from './local-function.ts';

const QUEUE_URL = 'https://sqs.us-east-1.amazonaws.com/000000000000/ticks';
/** Messages after which the function sends no more. */
const MESSAGES = 20;

/** The function passes, as an SDK does, the trace header of its invocation, if TRACED is set. */
const SOURCE = `
const signed = (service) => 'AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/' + service + '/aws4_request, ';
const trace = () => (process.env.TRACED === 'yes' ? { 'x-amzn-trace-id': process.env._X_AMZN_TRACE_ID } : {});
let invocations = 0;
export const handler = async () => {
  invocations += 1;
  if (invocations === ${MESSAGES}) return;
  const { QUEUE_URL, ENDPOINT, BY } = process.env;
  if (BY === 'queue') {
    const headers = { authorization: signed('sqs'), 'x-amz-target': 'AmazonSQS.SendMessage', ...trace() };
    await fetch(ENDPOINT, { method: 'POST', headers, body: JSON.stringify({ QueueUrl: QUEUE_URL, MessageBody: '{}' }) });
  } else {
    const headers = { authorization: signed('lambda'), 'x-amz-invocation-type': 'Event', ...trace() };
    await fetch(ENDPOINT + '/2015-03-31/functions/Test-F/invocations', { method: 'POST', headers, body: '{}' });
  }
};`;

interface Loop {
  readonly by: 'queue' | 'invoke';
  readonly isTraced: boolean;
  readonly mayRecur: boolean;
}

/** Starts the chain with one message or one invocation. */
async function chain({ by, isTraced, mayRecur }: Loop): Promise<LocalFunction> {
  const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-loop-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'index.mjs'), SOURCE);
  const nowMs = () => Date.now();
  const queue = new LocalQueue({ name: 'q', delaySeconds: 0, visibilityTimeoutSeconds: 40, retentionSeconds: 900 });
  let events: ReturnType<typeof asyncEvents> | undefined;
  const server =
    by === 'queue'
      ? await startSqsServer({ queueByUrl: () => queue, nowMs })
      : await startInvokeServer({
          put(_name, event, traceHeader) {
            events?.put(event, traceHeader);
            return true;
          },
        });
  onTestFinished(() => server.stop());
  const plan = {
    logicalId: 'F',
    name: 'f',
    functionName: 'Test-F',
    arn: 'arn:aws:lambda:us-east-1:000000000000:function:Test-F',
    codePath: folder,
    handler: 'index.handler',
    timeoutSeconds: 30,
    memoryMegabytes: 128,
    environment: {},
    runtime: 'nodejs24.x',
    logGroupName: '/aws/lambda/Test-F',
    logFormat: 'JSON',
    mayRecur,
    async: { maximumRetryAttempts: 0, maximumEventAgeSeconds: 60 },
    logLevel: 'INFO',
    systemLogLevel: 'WARN',
    reservedConcurrency: undefined,
  };
  const fn = new LocalFunction({
    plan,
    environmentsMax: 1,
    awsLimits: true,
    variables: { QUEUE_URL, ENDPOINT: server.endpoint, BY: by, TRACED: isTraced ? 'yes' : 'no' },
    caPem: undefined,
    onLine: () => {},
    onError: () => {},
  });
  onTestFinished(() => fn.stop());
  if (by === 'queue') {
    const source = startQueueSource({
      plan: {
        logicalId: 'S',
        queueId: 'Q',
        functionId: 'F',
        batchSize: 1,
        concurrencyMax: 1,
        filterPatterns: [],
        reportBatchItemFailures: false,
      },
      queue,
      queueArn: 'arn',
      fn,
      region: 'us-east-1',
      nowMs,
    });
    onTestFinished(() => source.stop());
    queue.send('{}', nowMs());
  } else {
    const started = asyncEvents({ fn, policy: plan.async, nowMs });
    onTestFinished(() => started.stop());
    events = started;
    started.put({});
  }
  return fn;
}

it.each([['queue'], ['invoke']] as const)('a chain through the %s stops after 16 invocations', async (by) => {
  const { counters } = await chain({ by, isTraced: true, mayRecur: false });
  await until(() => counters.recursiveInvocationsDropped > 0, { withinMs: 25_000, what: 'the end of the chain' });
  expect(counters.invocations).toBe(16);
});

it.each([
  ['with RecursiveLoop Allow', { by: 'queue', isTraced: true, mayRecur: true }],
  ['by Invoke, with RecursiveLoop Allow', { by: 'invoke', isTraced: true, mayRecur: true }],
  ['of a client that sends no trace header', { by: 'queue', isTraced: false, mayRecur: false }],
] as const)('a chain %s runs on', async (_, loop) => {
  const { counters } = await chain(loop);
  await until(() => counters.invocations === MESSAGES, { withinMs: 25_000, what: 'every message' });
  expect(counters.recursiveInvocationsDropped).toBe(0);
});

it('the tick queue of node-monitor sends no trace header, so each of its messages starts a new chain', async () => {
  const headers: (string | undefined)[] = [];
  const server = await startAwsJsonServer({
    service: 'sqs',
    malformed: 'malformed',
    calls: {
      'AmazonSQS.SendMessage': (_body, traceHeader) => {
        headers.push(traceHeader);
        return { kind: 'answer', body: {} };
      },
    },
  });
  onTestFinished(() => server.stop());
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const queue = sqsTickQueue({ region: 'us-east-1', endpoint: server.endpoint, credentials, queueUrl: QUEUE_URL });
  await queue.send(7, { delaySeconds: 5, nowMs: Date.now() });
  expect(headers).toEqual([undefined]);
});

it('counts each function of a chain by itself', () => {
  const first = traceOf('a', undefined);
  const second = traceOf('b', first.header);
  const third = traceOf('a', second.header);
  expect([first.invocations, second.invocations, third.invocations]).toEqual([1, 1, 2]);
  expect(third.header).toMatch(/^Root=1-[0-9a-f]{8}-[0-9a-f]{24};Lineage=[0-9a-f]{8}:2\|[0-9a-f]{8}:1$/);
});
