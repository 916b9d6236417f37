import { createServer } from 'node:http';
import { expect, it, onTestFinished } from 'vitest';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { sqsTickQueue } from './tick-queue.ts';

/** A queue that answers with these statuses, then 200. */
async function queueAnswering(...statuses: readonly number[]) {
  const calls: [string | undefined, unknown][] = [];
  const left = [...statuses];
  const server = createServer((incoming, outgoing) => {
    let text = '';
    incoming.on('data', (chunk) => {
      text += String(chunk);
    });
    incoming.on('end', () => {
      calls.push([incoming.headers['x-amz-target']?.toString(), JSON.parse(text)]);
      outgoing.writeHead(left.shift() ?? 200).end('{}');
    });
  });
  const port = await listenOnLoopback(server);
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const queue = sqsTickQueue({
    queueUrl: 'https://sqs/q',
    region: 'us-east-1',
    endpoint: `http://127.0.0.1:${port}`,
    credentials: { accessKeyId: 'id', secretAccessKey: 'secret' },
  });
  return { queue, calls };
}

it('a message names its slot and is delayed; a received one is hidden', async () => {
  const { queue, calls } = await queueAnswering();
  await queue.send(7, { delaySeconds: 5, nowMs: 0 });
  await queue.postpone('handle', { delaySeconds: 3, nowMs: 0 });
  expect(calls).toEqual([
    ['AmazonSQS.SendMessage', { QueueUrl: 'https://sqs/q', MessageBody: '{"slot":7}', DelaySeconds: 5 }],
    ['AmazonSQS.ChangeMessageVisibility', { QueueUrl: 'https://sqs/q', ReceiptHandle: 'handle', VisibilityTimeout: 3 }],
  ]);
});

it('a message is sent again once when the queue fails', async () => {
  const once = await queueAnswering(503);
  await once.queue.send(7, { delaySeconds: 5, nowMs: 0 });
  expect(once.calls).toHaveLength(2);
  const twice = await queueAnswering(503, 503);
  await expect(twice.queue.send(7, { delaySeconds: 5, nowMs: 0 })).rejects.toMatchObject({ code: 'queue-failed' });
  expect(twice.calls).toHaveLength(2);
});
