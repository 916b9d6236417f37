import { createServer } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { type ItemStore, StoreFault } from '../../shared/store/item-store.ts';
import { START_MS, settledFleet } from '../../test/support/controlled-fleet.ts';
import { sqsTickQueue } from './chain.ts';
import type { TickMessageKind } from './tick-message.ts';

interface Sent {
  readonly slot: number;
  readonly atMs: number;
}

/** A fleet with the chain of node-monitor. Time stands still until a test moves it. */
async function chained({ between }: { readonly between?: (items: ItemStore) => ItemStore } = {}) {
  const sent: Sent[] = [];
  const state = { mayLose: false };
  const { fleet } = await settledFleet(
    { a: 2 },
    {
      ...(between === undefined ? {} : { between }),
      tickQueue: {
        async send(slot, { delaySeconds, nowMs }) {
          if (state.mayLose) throw new Error('no queue');
          sent.push({ slot, atMs: nowMs + delaySeconds * 1_000 });
        },
        postpone: () => Promise.resolve(),
      },
    },
  );
  const message = (seconds: number, kind: TickMessageKind = 'tick') => {
    fleet.at(seconds);
    return fleet.controllers.onTickMessage(kind);
  };
  return { fleet, sent, state, message, slotAt: (seconds: number) => (START_MS + seconds * 1_000) / 5_000 };
}

describe('the chain of ticks', () => {
  it('continues: the winner of a slot sends the message of the next one, due at its start', async () => {
    const { sent, message, slotAt } = await chained();
    expect(await message(100.4)).toMatchObject({ kind: 'over', report: { kind: 'ran' } });
    expect(sent).toEqual([{ slot: slotAt(105), atMs: START_MS + 105_400 }]);
    await message(105.4);
    expect(sent.at(-1)).toEqual({ slot: slotAt(110), atMs: START_MS + 110_400 });
  });

  it('does not multiply when a message is delivered twice or late: losers send nothing', async () => {
    const { sent, message } = await chained();
    await message(100);
    expect(await message(101)).toEqual({ kind: 'over', report: { kind: 'lost' } });
    expect(await message(102.9)).toEqual({ kind: 'over', report: { kind: 'lost' } });
    expect(sent).toHaveLength(1);
  });

  it('joins two chains at the next slot in which both arrive', async () => {
    const { sent, message } = await chained();
    await message(100);
    // A second chain: its message is late by more than a period, and claims a slot of its own.
    await message(108);
    expect(sent).toHaveLength(2);
    await message(110);
    await message(110.1);
    await message(115);
    expect(sent).toHaveLength(3);
  });

  it('continues with the slot of this moment when its message is late', async () => {
    const { sent, message, slotAt } = await chained();
    await message(100);
    await message(117);
    expect(sent.map(({ slot }) => slot)).toEqual([slotAt(105), slotAt(120)]);
  });

  it('survives a clock of the receiver that is two seconds behind that of the sender', async () => {
    const { sent, message } = await chained();
    await message(100);
    expect(await message(103)).toMatchObject({ report: { kind: 'ran' } });
    expect(sent).toHaveLength(2);
  });

  it('returns the message of a tick that fails before its claim, until the next slot', async () => {
    let isDown = true;
    const { sent, message } = await chained({
      between: (items) => ({
        ...items,
        scan: (request) =>
          isDown ? Promise.reject(new StoreFault('throttled', 'down', { retryable: true })) : items.scan(request),
      }),
    });
    expect(await message(101)).toMatchObject({ kind: 'failed', returnSeconds: 4 });
    expect(await message(104)).toMatchObject({ kind: 'failed', returnSeconds: 6 });
    expect(sent).toEqual([]);
    isDown = false;
    expect(await message(105)).toMatchObject({ kind: 'over', report: { kind: 'ran' } });
    expect(sent).toHaveLength(1);
  });

  it('returns the message of a tick that could not send, and still applies its effects', async () => {
    const { fleet, message, state } = await chained();
    await fleet.run(0, 40);
    state.mayLose = true;
    expect(await message(45)).toMatchObject({ kind: 'failed', returnSeconds: 5 });
    expect(await fleet.ready('a-0')).toBe('Unknown');
    state.mayLose = false;
    expect(await message(50)).toMatchObject({ kind: 'over' });
  });

  it('keeps no message of a tick with failed effects: its successor does the work', async () => {
    let isDown = false;
    const { fleet, sent, message } = await chained({
      between: (items) => ({
        ...items,
        transact: (writes) =>
          isDown && writes.some(({ key }) => key.pk.startsWith('o#nodes#'))
            ? Promise.reject(new StoreFault('throttled', 'down', { retryable: true }))
            : items.transact(writes),
      }),
    });
    await fleet.run(0, 40);
    isDown = true;
    expect(await message(45)).toMatchObject({ kind: 'failed', returnSeconds: undefined });
    expect(sent.at(-1)?.atMs).toBe(START_MS + 50_000);
  });

  it('counts a claim that was refused by its own lost success as won', async () => {
    let losesAnswers = false;
    const { sent, message } = await chained({
      between: (items) => ({
        ...items,
        async write(write, options) {
          const isClaim = write.key.pk === 'fleet' && write.kind === 'update' && write.set?.['slot'] !== undefined;
          if (losesAnswers && isClaim) await items.write(write, options);
          return items.write(write, options);
        },
      }),
    });
    await message(100);
    losesAnswers = true;
    expect(await message(105)).toMatchObject({ kind: 'over', report: { kind: 'ran' } });
    expect(sent).toHaveLength(2);
  });
});

describe('the watchdog', () => {
  it('leaves a chain alone that has ticked within two periods, at the cost of one read', async () => {
    const { fleet, sent, message } = await chained();
    await message(100);
    fleet.consumed();
    expect(await message(110, 'watchdog')).toEqual({ kind: 'alive' });
    expect(fleet.consumed().requests).toEqual([expect.objectContaining({ operation: 'GetItem' })]);
    expect(sent).toHaveLength(1);
  });

  it('restarts a chain that ended, once, however often its message comes', async () => {
    const { sent, message } = await chained();
    await message(100);
    expect(await message(111, 'watchdog')).toMatchObject({ kind: 'over', report: { kind: 'ran' } });
    expect(await message(111.5, 'watchdog')).toEqual({ kind: 'alive' });
    expect(sent).toHaveLength(2);
  });

  it('starts the first chain', async () => {
    const { sent, message } = await chained();
    expect(await message(0, 'watchdog')).toMatchObject({ kind: 'over' });
    expect(sent).toHaveLength(1);
  });
});

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
