import { randomUUID } from 'node:crypto';
import type { StreamSourcePlan } from '../assembly/plan.ts';
import type { EngineClient } from '../engine/client.ts';
import { EngineError } from '../engine/client.ts';
import type { LocalFunction } from '../functions/local-function.ts';
import { createPause } from '../pause.ts';
import type { LocalQueue } from '../queues/queue.ts';
import { deliverBatch, type StreamRecord } from './deliver.ts';
import { compileFilters, type EventFilter } from './filter.ts';
import type { Positions } from './positions.ts';

export interface StreamCounters {
  /** Records read from the stream. */
  read: number;
  /** Records that the filter rejected. */
  filtered: number;
  /** Records delivered to the function, each at least once. */
  delivered: number;
  batches: number;
  discarded: number;
}

export interface StreamSourceOptions {
  readonly plan: StreamSourcePlan;
  readonly client: EngineClient;
  /** ARN of the stream in the local DynamoDB engine. */
  readonly engineStreamArn: string;
  readonly fn: LocalFunction;
  readonly region: string;
  readonly failureQueue: Pick<LocalQueue, 'send'> | undefined;
  readonly positions: Positions;
  nowMs(): number;
  onTrouble(message: string): void;
}

export interface StreamSource {
  readonly plan: StreamSourcePlan;
  readonly counters: StreamCounters;
  stop(): Promise<void>;
}

/** Lambda polls a shard four times per second. */
const POLL_MS = 250;
const TROUBLE_PAUSE_MS = 1_000;
const READ_MAX = 1_000;

type Shard = { readonly ShardId: string };

/**
 * An event source mapping on a table's stream: reads it shard by shard, filters, and invokes the function with batches.
 * The position is stored after each batch, so a restart repeats an incomplete batch. Delivery is at least once.
 * Batches are delivered one after the other, whatever the ParallelizationFactor. So records are in the order of the
 * table, and not only in the order of each key.
 */
export function startStreamSource(options: StreamSourceOptions): StreamSource {
  return new TableStreamSource(options);
}

class TableStreamSource implements StreamSource {
  readonly plan: StreamSourceOptions['plan'];
  readonly #options: StreamSourceOptions;
  readonly counters: StreamCounters = { read: 0, filtered: 0, delivered: 0, batches: 0, discarded: 0 };
  readonly #passes: EventFilter;
  readonly #pauses = createPause();
  readonly #running: Promise<void>;

  constructor(options: StreamSourceOptions) {
    this.plan = options.plan;
    this.#options = options;
    this.#passes = compileFilters(this.#options.plan.filterPatterns, this.#options.plan.logicalId);
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#pauses.end();
    await this.#running;
  }

  #call(operation: string, input: object): Promise<Record<string, unknown>> {
    return this.#options.client.call(`DynamoDBStreams_20120810.${operation}`, input);
  }

  async #shards(): Promise<readonly Shard[]> {
    const { StreamDescription: stream } = await this.#call('DescribeStream', {
      StreamArn: this.#options.engineStreamArn,
    });
    return (stream as { Shards?: Shard[] }).Shards ?? [];
  }

  async #iteratorAt(shardId: string, start: object): Promise<string | undefined> {
    const answer = await this.#call('GetShardIterator', {
      StreamArn: this.#options.engineStreamArn,
      ShardId: shardId,
      ...start,
    });
    return answer['ShardIterator'] as string | undefined;
  }

  /** The first shard and iterator: after the stored position, otherwise at the StartingPosition of the mapping. */
  async #open(): Promise<{ shardId: string; iterator: string | undefined } | undefined> {
    const known = await this.#shards();
    const kept = this.#options.positions.get(this.#options.plan.logicalId);
    if (kept?.shardId !== undefined && known.some((shard) => shard.ShardId === kept.shardId)) {
      const start = { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber: kept.sequenceNumber };
      return { shardId: kept.shardId, iterator: await this.#iteratorAt(kept.shardId, start) };
    }
    // A mapping that ran before without a record must not skip the records that were written while it was stopped.
    const fromLatest = this.#options.plan.startingPosition === 'LATEST' && kept === undefined;
    const shard = fromLatest ? known.at(-1) : known[0];
    if (shard === undefined) return undefined;
    const iterator = await this.#iteratorAt(shard.ShardId, {
      ShardIteratorType: fromLatest ? 'LATEST' : 'TRIM_HORIZON',
    });
    this.#options.positions.begin(this.#options.plan.logicalId);
    return { shardId: shard.ShardId, iterator };
  }

  async #following(shardId: string): Promise<{ shardId: string; iterator: string | undefined } | undefined> {
    const known = await this.#shards();
    const next = known[known.findIndex((shard) => shard.ShardId === shardId) + 1];
    if (next === undefined) return undefined;
    return {
      shardId: next.ShardId,
      iterator: await this.#iteratorAt(next.ShardId, { ShardIteratorType: 'TRIM_HORIZON' }),
    };
  }

  async #handle(shardId: string, records: readonly StreamRecord[]): Promise<boolean> {
    let batch: StreamRecord[] = [];
    for (const [index, record] of records.entries()) {
      this.counters.read += 1;
      if (this.#passes(record)) batch.push(this.#asDelivered(record));
      else this.counters.filtered += 1;
      const last = index === records.length - 1;
      if (batch.length < this.#options.plan.batchSize && !last) continue;
      if (batch.length > 0 && !(await this.#deliver(shardId, batch))) return false;
      this.#options.positions.set(this.#options.plan.logicalId, {
        shardId,
        sequenceNumber: record.dynamodb.SequenceNumber,
      });
      batch = [];
    }
    return true;
  }

  #asDelivered(record: StreamRecord): StreamRecord {
    return {
      ...record,
      awsRegion: this.#options.region,
      eventSourceARN: this.#options.plan.streamArn,
    };
  }

  async #deliver(shardId: string, batch: readonly StreamRecord[]): Promise<boolean> {
    this.counters.batches += 1;
    this.counters.delivered += batch.length;
    return await deliverBatch(batch, this.#options.plan, {
      invoke: (records) => this.#options.fn.invoke({ Records: records }),
      pause: (delayMs) => this.#pauses.pause(delayMs),
      nowMs: this.#options.nowMs,
      discard: (records, condition, invocations) => {
        this.counters.discarded += records.length;
        this.#options.onTrouble(`${records.length} stream records discarded (${condition})`);
        this.#options.failureQueue?.send(
          JSON.stringify(this.#failureNote(shardId, records, condition, invocations)),
          this.#options.nowMs(),
        );
      },
    });
  }

  #failureNote(
    shardId: string,
    records: readonly StreamRecord[],
    condition: string,
    invocations: number,
  ): {
    requestContext: {
      requestId: `${string}-${string}-${string}-${string}-${string}`;
      functionArn: string;
      condition: string;
      approximateInvokeCount: number;
    };
    responseContext: { statusCode: number; executedVersion: string; functionError: string };
    version: string;
    timestamp: string;
    DDBStreamBatchInfo: {
      shardId: string;
      startSequenceNumber: string | undefined;
      endSequenceNumber: string | undefined;
      approximateArrivalOfFirstRecord: string;
      approximateArrivalOfLastRecord: string;
      batchSize: number;
      streamArn: string;
    };
  } {
    const arrival = (record: StreamRecord | undefined) =>
      new Date((record?.dynamodb.ApproximateCreationDateTime ?? 0) * 1_000).toISOString();
    return {
      requestContext: {
        requestId: randomUUID(),
        functionArn: this.#options.fn.plan.arn,
        condition,
        approximateInvokeCount: invocations,
      },
      responseContext: { statusCode: 200, executedVersion: '$LATEST', functionError: 'Unhandled' },
      version: '1.0',
      timestamp: new Date(this.#options.nowMs()).toISOString(),
      DDBStreamBatchInfo: {
        shardId,
        startSequenceNumber: records[0]?.dynamodb.SequenceNumber,
        endSequenceNumber: records.at(-1)?.dynamodb.SequenceNumber,
        approximateArrivalOfFirstRecord: arrival(records[0]),
        approximateArrivalOfLastRecord: arrival(records.at(-1)),
        batchSize: records.length,
        streamArn: this.#options.plan.streamArn,
      },
    };
  }

  async #poll(): Promise<void> {
    let at = await this.#open();
    while (!this.#pauses.stopped()) {
      if (at === undefined) {
        if (!(await this.#pauses.pause(POLL_MS))) return;
        at = await this.#open();
        continue;
      }
      if (at.iterator === undefined) {
        const next = await this.#following(at.shardId);
        if (next !== undefined) at = next;
        else if (!(await this.#pauses.pause(POLL_MS))) return;
        continue;
      }
      const answer = await this.#call('GetRecords', { ShardIterator: at.iterator, Limit: READ_MAX });
      const records = (answer['Records'] ?? []) as StreamRecord[];
      if (!(await this.#handle(at.shardId, records))) return;
      at = { shardId: at.shardId, iterator: answer['NextShardIterator'] as string | undefined };
      if (records.length < READ_MAX && !(await this.#pauses.pause(POLL_MS))) return;
    }
  }

  async #run(): Promise<void> {
    while (!this.#pauses.stopped()) {
      try {
        await this.#poll();
      } catch (error) {
        if (this.#pauses.stopped()) return;
        if (!(error instanceof EngineError)) throw error;
        // An expired iterator or an engine that is busy: begin again at the kept position.
        this.#options.onTrouble(`stream ${this.#options.plan.tableName}: ${error.message}`);
        await this.#pauses.pause(TROUBLE_PAUSE_MS);
      }
    }
  }
}
