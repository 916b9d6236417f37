/**
 * The queue of node-marker and its executions, on virtual time. Lambda starts five executions for a queue and adds five
 * per second up to the maximum concurrency. Source: AWS Lambda Developer Guide, "Configuring scaling behavior for SQS
 * event source mappings".
 */

import type { SQSEvent } from 'aws-lambda';
import { handleParts } from '../functions/node-marker/part-messages.ts';
import type { FleetControllers } from '../server/fleet-controllers.ts';
import type { PartQueue } from '../shared/fleet/mark-parts.ts';
import type { Log } from '../shared/observability/log.ts';

const STARTED_AT_ONCE = 5;
const STARTED_PER_SECOND = 5;
const PARTS_PER_BATCH = 2;
/** From the call to the delivery, at random in between. */
const DELIVERY_MS = [10, 60] as const;
const BUDGET_MS = 13_000;

interface Time {
  nowMs(): number;
  sleep(milliseconds: number): Promise<unknown>;
}

export interface MarkWorkersOptions {
  readonly time: Time;
  readonly fraction: () => number;
  readonly concurrencyMax: number;
  readonly log: Log;
  /** One process: it has memory of its own. */
  compose(queue: PartQueue): FleetControllers;
}

export interface MarkWorkers {
  readonly queue: PartQueue;
  readonly counters: { sent: number; batches: number; failed: number; most: number };
}

export function markWorkers(options: MarkWorkersOptions): MarkWorkers {
  const { time, fraction, concurrencyMax } = options;
  const waiting: { readonly id: number; readonly body: string; receives: number }[] = [];
  const counters = { sent: 0, batches: 0, failed: 0, most: 0 };
  const idle: FleetControllers[] = [];
  const postponedMs = new Map<string, number>();
  let running = 0;
  let busySinceMs: number | undefined;

  const queue: PartQueue = {
    async send(bodies) {
      for (const body of bodies) {
        counters.sent += 1;
        deliver(
          { id: counters.sent, body, receives: 0 },
          DELIVERY_MS[0] + fraction() * (DELIVERY_MS[1] - DELIVERY_MS[0]),
        );
      }
      return [];
    },
    async postpone(receiptHandle, { delaySeconds }) {
      postponedMs.set(receiptHandle, delaySeconds * 1_000);
    },
  };

  function deliver(message: (typeof waiting)[number], afterMs: number): void {
    void time.sleep(afterMs).then(() => {
      waiting.push(message);
      receive();
    });
  }

  const limit = (): number => {
    busySinceMs ??= time.nowMs();
    const started = STARTED_AT_ONCE + (STARTED_PER_SECOND * (time.nowMs() - busySinceMs)) / 1_000;
    return Math.min(concurrencyMax, Math.floor(started));
  };

  function receive(): void {
    while (waiting.length > 0 && running < limit()) {
      const batch = waiting.splice(0, PARTS_PER_BATCH);
      running += 1;
      counters.most = Math.max(counters.most, running);
      void work(batch).finally(() => {
        running -= 1;
        if (running === 0 && waiting.length === 0) busySinceMs = undefined;
        receive();
      });
    }
  }

  async function work(batch: typeof waiting): Promise<void> {
    counters.batches += 1;
    const controllers = idle.pop() ?? options.compose(queue);
    for (const message of batch) message.receives += 1;
    const event = {
      Records: batch.map(({ id, body, receives }) => ({
        messageId: String(id),
        receiptHandle: String(id),
        body,
        attributes: { ApproximateReceiveCount: String(receives) },
      })),
    } as SQSEvent;
    const { batchItemFailures } = await handleParts(event, {
      log: options.log,
      clock: time,
      queue,
      onPart: (part) => controllers.onMarkPart({ ...part, budgetMs: BUDGET_MS }),
    });
    for (const { itemIdentifier } of batchItemFailures) {
      counters.failed += 1;
      const message = batch.find(({ id }) => String(id) === itemIdentifier);
      if (message !== undefined) deliver(message, postponedMs.get(itemIdentifier) ?? 30_000);
    }
    idle.push(controllers);
  }

  return { queue, counters };
}
