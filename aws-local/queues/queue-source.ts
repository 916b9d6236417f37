import { defined } from '../../shared/defined.ts';
import type { QueueSourcePlan } from '../assembly/plan.ts';
import type { LocalFunction } from '../functions/local-function.ts';
import { batchItemFailures } from '../streams/deliver.ts';
import { compileFilters } from '../streams/filter.ts';
import type { LocalQueue, QueueMessage } from './queue.ts';

export interface QueueSourceOptions {
  readonly plan: QueueSourcePlan;
  readonly queue: Pick<LocalQueue, 'receive' | 'delete' | 'nextVisibleAtMs' | 'onChange'>;
  readonly queueArn: string;
  readonly fn: LocalFunction;
  readonly region: string;
  nowMs(): number;
}

export interface QueueSource {
  readonly plan: QueueSourcePlan;
  readonly counters: { batches: number; filtered: number; failedMessages: number };
  /** No more receives; waits for the invocations under way. */
  stop(): Promise<void>;
}

/** Longest time to a look at the queue: a bound for timers, since a message may be far in the future. */
const LOOK_EVERY_MS = 60_000;

/**
 * An event source mapping on a queue: as soon as messages are visible they go to the function, `concurrencyMax` batches
 * at a time. Processed messages are deleted; failed ones return after the visibility timeout.
 */
export function startQueueSource(options: QueueSourceOptions): QueueSource {
  const { plan, queue, fn, nowMs } = options;
  const counters = { batches: 0, filtered: 0, failedMessages: 0 };
  const passes = compileFilters(plan.filterPatterns, plan.logicalId);
  const underWay = new Set<Promise<void>>();
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  function look(): void {
    clearTimeout(timer);
    if (isStopped) return;
    while (underWay.size < plan.concurrencyMax) {
      const messages = queue.receive(plan.batchSize, nowMs());
      if (messages.length === 0) break;
      const done = work(messages).finally(() => {
        underWay.delete(done);
        look();
      });
      underWay.add(done);
    }
    const nextMs = queue.nextVisibleAtMs();
    if (underWay.size >= plan.concurrencyMax || nextMs === undefined) return;
    timer = setTimeout(look, Math.min(LOOK_EVERY_MS, Math.max(0, nextMs - nowMs())));
  }

  async function work(messages: readonly QueueMessage[]): Promise<void> {
    const wanted: QueueMessage[] = [];
    for (const message of messages) {
      if (passes({ body: parsed(message.body) })) wanted.push(message);
      else {
        counters.filtered += 1;
        queue.delete(message.receiptHandle);
      }
    }
    if (wanted.length === 0) return;
    counters.batches += 1;
    // One chain is counted for a batch with several messages.
    const outcome = await fn.invoke({ Records: wanted.map(asRecord) }, undefined, wanted[0]?.traceHeader);
    const failed = outcome.kind === 'returned' ? failedIds(outcome.payload, wanted) : wanted.map(idOf);
    counters.failedMessages += failed.length;
    for (const message of wanted) {
      if (!failed.includes(message.messageId)) queue.delete(message.receiptHandle);
    }
  }

  /** An answer that cannot be read fails the whole batch. */
  function failedIds(payload: string, messages: readonly QueueMessage[]): readonly string[] {
    if (!plan.reportBatchItemFailures) return [];
    const failed = batchItemFailures(payload);
    const known = messages.map(idOf);
    return failed === 'malformed' || failed.some((id) => !known.includes(id)) ? known : failed;
  }

  const asRecord = (message: QueueMessage) => ({
    messageId: message.messageId,
    receiptHandle: message.receiptHandle,
    body: message.body,
    attributes: {
      ApproximateReceiveCount: String(message.receiveCount),
      SentTimestamp: String(message.sentAtMs),
      SenderId: 'local',
      ApproximateFirstReceiveTimestamp: String(message.firstReceivedAtMs),
      ...defined({ AWSTraceHeader: message.traceHeader }),
    },
    messageAttributes: {},
    md5OfBody: message.md5OfBody,
    eventSource: 'aws:sqs',
    eventSourceARN: options.queueArn,
    awsRegion: options.region,
  });

  queue.onChange(look);
  look();
  return {
    plan,
    counters,
    async stop() {
      isStopped = true;
      clearTimeout(timer);
      await Promise.all(underWay);
    },
  };
}

const idOf = (message: QueueMessage) => message.messageId;

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return body;
  }
}
