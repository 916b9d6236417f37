import { createServer } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { sqsTickQueue } from '../../functions/node-monitor/chain.ts';
import { signedPost } from '../../shared/aws/signed-post.ts';
import { sqsPartQueue } from '../../shared/aws/sqs.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { LocalQueue } from './queue.ts';
import { startSqsServer } from './sqs-server.ts';

const URL = 'https://sqs.us-east-1.amazonaws.com/000000000000/ticks';
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
});

async function aQueue() {
  let nowMs = 1_000_000;
  const queue = new LocalQueue({ name: 'ticks', delaySeconds: 0, visibilityTimeoutSeconds: 40, retentionSeconds: 900 });
  const server = await startSqsServer({ queueByUrl: (url) => (url === URL ? queue : undefined), nowMs: () => nowMs });
  stops.push(server.stop);
  const connection = {
    region: 'us-east-1',
    endpoint: server.endpoint,
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  };
  const receive = async (input: object) => {
    const way = { service: 'sqs', target: 'AmazonSQS.ReceiveMessage', timeoutMs: 5_000, version: '1.0' } as const;
    const { body } = await signedPost(connection, way)(JSON.stringify({ QueueUrl: URL, ...input }), nowMs);
    return JSON.parse(body) as { readonly Messages?: readonly { readonly Attributes: object }[] };
  };
  return {
    queue,
    receive,
    tickQueue: (url = URL) => sqsTickQueue({ ...connection, queueUrl: url }),
    partQueue: (url = URL) => sqsPartQueue({ ...connection, queueUrl: url }),
    nowMs: () => nowMs,
    at: (atMs: number) => {
      nowMs = atMs;
    },
  };
}

describe('messages that are received', () => {
  it('have the attributes that were asked for, and there is no list of none', async () => {
    const { partQueue, receive, nowMs } = await aQueue();
    expect(await receive({})).toEqual({});
    await partQueue().send(['a', 'b', 'c'], nowMs());
    const attributesOf = async (names?: readonly string[]) =>
      Object.keys((await receive({ MessageSystemAttributeNames: names })).Messages?.[0]?.Attributes ?? {});
    expect(await attributesOf()).toEqual([]);
    expect(await attributesOf(['SentTimestamp'])).toEqual(['SentTimestamp']);
    expect(await attributesOf(['All'])).toEqual(['SentTimestamp', 'ApproximateFirstReceiveTimestamp']);
  });
});

describe('the queue of parts in SQS', () => {
  it('receives messages in batches of ten, in order of the list', async () => {
    const { queue, partQueue, nowMs } = await aQueue();
    const bodies = Array.from({ length: 23 }, (_, index) => `part ${index}`);
    expect(await partQueue().send(bodies, nowMs())).toEqual([]);
    expect(
      queue
        .receive(100, nowMs())
        .map(({ body }) => body)
        .sort(),
    ).toEqual([...bodies].sort());
  });

  it('sends large messages in smaller batches: SQS refuses a batch above 256 KB', async () => {
    const bodies = Array.from({ length: 7 }, (_, index) => String(index).repeat(index === 5 ? 240_000 : 100_000));
    const lengths: number[] = [];
    const server = createServer((incoming, answer) => {
      let text = '';
      incoming.on('data', (chunk) => {
        text += chunk;
      });
      incoming.on('end', () => {
        const { Entries } = JSON.parse(text) as { Entries: { MessageBody: string }[] };
        lengths.push(Entries.reduce((sum, { MessageBody }) => sum + MessageBody.length, 0));
        answer.writeHead(200).end('{}');
      });
    });
    const port = await listenOnLoopback(server);
    stops.push(async () => void server.close());
    const endpoint = `http://127.0.0.1:${port}`;
    const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
    const queue = sqsPartQueue({ region: 'us-east-1', endpoint, credentials, queueUrl: URL });
    expect(await queue.send(bodies, 1_000_000)).toEqual([]);
    expect(lengths.sort((one, other) => one - other)).toEqual([100_000, 100_000, 200_000, 200_000, 240_000]);
  });

  it('names the messages that it did not accept', async () => {
    const { partQueue, nowMs } = await aQueue();
    const bodies = Array.from({ length: 12 }, (_, index) => (index === 3 || index === 11 ? '' : `part ${index}`));
    expect(await partQueue().send(bodies, nowMs())).toEqual([3, 11]);
    expect(await partQueue(`${URL}2`).send(bodies.slice(0, 2), nowMs())).toEqual([0, 1]);
  });

  it('hides a received message for the seconds that are asked for', async () => {
    const { queue, partQueue, nowMs } = await aQueue();
    await partQueue().send(['part'], nowMs());
    const [message] = queue.receive(1, nowMs());
    await partQueue().postpone(message!.receiptHandle, { delaySeconds: 2, nowMs: nowMs() });
    expect(queue.receive(1, nowMs() + 1_999)).toEqual([]);
    expect(queue.receive(1, nowMs() + 2_000)).toMatchObject([{ body: 'part', receiveCount: 2 }]);
  });
});

describe('the tick queue in SQS', () => {
  it('delivers a message when its delay has passed', async () => {
    const { queue, tickQueue, nowMs } = await aQueue();
    await tickQueue().send(7, { delaySeconds: 5, nowMs: nowMs() });
    expect(queue.receive(1, nowMs() + 4_999)).toEqual([]);
    expect(queue.receive(1, nowMs() + 5_000)).toMatchObject([{ body: '{"slot":7}' }]);
  });

  it('returns a received message after the seconds that are asked for', async () => {
    const { queue, tickQueue, nowMs } = await aQueue();
    await tickQueue().send(7, { delaySeconds: 0, nowMs: nowMs() });
    const [message] = queue.receive(1, nowMs());
    await tickQueue().postpone(message!.receiptHandle, { delaySeconds: 3, nowMs: nowMs() });
    expect(queue.receive(1, nowMs() + 2_999)).toEqual([]);
    expect(queue.receive(1, nowMs() + 3_000)).toMatchObject([{ body: '{"slot":7}', receiveCount: 2 }]);
  });

  it('refuses what SQS refuses', async () => {
    const { tickQueue, nowMs } = await aQueue();
    const at = { nowMs: nowMs() };
    await expect(tickQueue().send(7, { ...at, delaySeconds: 901 })).rejects.toThrow('SendMessage returned status 400');
    await expect(tickQueue().send(7, { ...at, delaySeconds: 0.5 })).rejects.toThrow('SendMessage returned status 400');
    await expect(tickQueue(`${URL}2`).send(7, { ...at, delaySeconds: 0 })).rejects.toThrow('status 400');
    await expect(tickQueue().postpone('none', { ...at, delaySeconds: 0 })).rejects.toThrow('status 400');
  });

  it('reports a queue that cannot be reached', async () => {
    const queue = sqsTickQueue({
      region: 'us-east-1',
      endpoint: 'http://127.0.0.1:9',
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
      queueUrl: URL,
    });
    await expect(queue.send(7, { delaySeconds: 0, nowMs: 0 })).rejects.toThrow('no response to SendMessage');
  });
});
