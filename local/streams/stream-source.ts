import { randomUUID } from 'node:crypto';
import type { StreamSourcePlan } from '../assembly/plan.ts';
import type { EngineClient } from '../engine/client.ts';
import { EngineError } from '../engine/client.ts';
import type { LocalFunction } from '../functions/local-function.ts';
import { createPause } from '../pause.ts';
import type { LocalQueue } from '../queues/queue.ts';
import { deliverBatch, type StreamRecord } from './deliver.ts';
import { compileFilters } from './filter.ts';
import type { Positions } from './positions.ts';

export interface StreamCounters {
  /** Records read off the stream. */
  read: number;
  /** Of those, kept back by the filter. */
  filtered: number;
  /** Handed to the function at least once. */
  delivered: number;
  batches: number;
  discarded: number;
}

export interface StreamSourceOptions {
  readonly plan: StreamSourcePlan;
  readonly client: EngineClient;
  /** The engine's name for the stream. */
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

/** Lambda polls a shard four times a second. */
const POLL_MS = 250;
const TROUBLE_PAUSE_MS = 1_000;
const READ_MAX = 1_000;

type Shard = { readonly ShardId: string };

/**
 * An event source mapping on a table's stream: reads it shard by shard, filters, and hands batches to the function. The
 * position is kept after a batch is through, so that a restart delivers what was under way again: at least once.
 * Batches go one after the other, whatever the ParallelizationFactor: the order is that of the table, not only of a key.
 */
export function startStreamSource(options: StreamSourceOptions): StreamSource {
  const { plan, client, fn, positions } = options;
  const counters: StreamCounters = { read: 0, filtered: 0, delivered: 0, batches: 0, discarded: 0 };
  const passes = compileFilters(plan.filterPatterns, plan.logicalId);
  const { pause, end: endPause, stopped } = createPause();

  const call = (operation: string, input: object) => client.call(`DynamoDBStreams_20120810.${operation}`, input);

  async function shards(): Promise<readonly Shard[]> {
    const { StreamDescription: stream } = await call('DescribeStream', { StreamArn: options.engineStreamArn });
    return (stream as { Shards?: Shard[] }).Shards ?? [];
  }

  async function iteratorAt(shardId: string, start: object): Promise<string | undefined> {
    const answer = await call('GetShardIterator', { StreamArn: options.engineStreamArn, ShardId: shardId, ...start });
    return answer['ShardIterator'] as string | undefined;
  }

  /** Where to begin: after the kept position, else where the mapping says. */
  async function open(): Promise<{ shardId: string; iterator: string | undefined } | undefined> {
    const known = await shards();
    const kept = positions.get(plan.logicalId);
    if (kept?.shardId !== undefined && known.some((shard) => shard.ShardId === kept.shardId)) {
      const start = { ShardIteratorType: 'AFTER_SEQUENCE_NUMBER', SequenceNumber: kept.sequenceNumber };
      return { shardId: kept.shardId, iterator: await iteratorAt(kept.shardId, start) };
    }
    // A mapping that ran before without seeing a record must not skip what came while it was down.
    const fromLatest = plan.startingPosition === 'LATEST' && kept === undefined;
    const shard = fromLatest ? known.at(-1) : known[0];
    if (shard === undefined) return undefined;
    const iterator = await iteratorAt(shard.ShardId, { ShardIteratorType: fromLatest ? 'LATEST' : 'TRIM_HORIZON' });
    positions.begin(plan.logicalId);
    return { shardId: shard.ShardId, iterator };
  }

  async function following(shardId: string): Promise<{ shardId: string; iterator: string | undefined } | undefined> {
    const known = await shards();
    const next = known[known.findIndex((shard) => shard.ShardId === shardId) + 1];
    if (next === undefined) return undefined;
    return { shardId: next.ShardId, iterator: await iteratorAt(next.ShardId, { ShardIteratorType: 'TRIM_HORIZON' }) };
  }

  async function handle(shardId: string, records: readonly StreamRecord[]): Promise<boolean> {
    let batch: StreamRecord[] = [];
    for (const [index, record] of records.entries()) {
      counters.read += 1;
      if (passes(record)) batch.push(asDelivered(record));
      else counters.filtered += 1;
      const last = index === records.length - 1;
      if (batch.length < plan.batchSize && !last) continue;
      if (batch.length > 0 && !(await deliver(shardId, batch))) return false;
      positions.set(plan.logicalId, { shardId, sequenceNumber: record.dynamodb.SequenceNumber });
      batch = [];
    }
    return true;
  }

  const asDelivered = (record: StreamRecord): StreamRecord => ({
    ...record,
    awsRegion: options.region,
    eventSourceARN: plan.streamArn,
  });

  async function deliver(shardId: string, batch: readonly StreamRecord[]): Promise<boolean> {
    counters.batches += 1;
    counters.delivered += batch.length;
    return await deliverBatch(batch, plan, {
      invoke: (records) => fn.invoke({ Records: records }),
      pause,
      nowMs: options.nowMs,
      discard: (records, condition, invocations) => {
        counters.discarded += records.length;
        options.onTrouble(`${records.length} stream records given up (${condition})`);
        options.failureQueue?.send(
          JSON.stringify(failureNote(shardId, records, condition, invocations)),
          options.nowMs(),
        );
      },
    });
  }

  function failureNote(shardId: string, records: readonly StreamRecord[], condition: string, invocations: number) {
    const arrival = (record: StreamRecord | undefined) =>
      new Date((record?.dynamodb.ApproximateCreationDateTime ?? 0) * 1_000).toISOString();
    return {
      requestContext: {
        requestId: randomUUID(),
        functionArn: fn.plan.arn,
        condition,
        approximateInvokeCount: invocations,
      },
      responseContext: { statusCode: 200, executedVersion: '$LATEST', functionError: 'Unhandled' },
      version: '1.0',
      timestamp: new Date(options.nowMs()).toISOString(),
      DDBStreamBatchInfo: {
        shardId,
        startSequenceNumber: records[0]?.dynamodb.SequenceNumber,
        endSequenceNumber: records.at(-1)?.dynamodb.SequenceNumber,
        approximateArrivalOfFirstRecord: arrival(records[0]),
        approximateArrivalOfLastRecord: arrival(records.at(-1)),
        batchSize: records.length,
        streamArn: plan.streamArn,
      },
    };
  }

  async function poll(): Promise<void> {
    let at = await open();
    while (!stopped()) {
      if (at === undefined) {
        if (!(await pause(POLL_MS))) return;
        at = await open();
        continue;
      }
      if (at.iterator === undefined) {
        const next = await following(at.shardId);
        if (next !== undefined) at = next;
        else if (!(await pause(POLL_MS))) return;
        continue;
      }
      const answer = await call('GetRecords', { ShardIterator: at.iterator, Limit: READ_MAX });
      const records = (answer['Records'] ?? []) as StreamRecord[];
      if (!(await handle(at.shardId, records))) return;
      at = { shardId: at.shardId, iterator: answer['NextShardIterator'] as string | undefined };
      if (records.length < READ_MAX && !(await pause(POLL_MS))) return;
    }
  }

  async function run(): Promise<void> {
    while (!stopped()) {
      try {
        await poll();
      } catch (error) {
        if (stopped()) return;
        if (!(error instanceof EngineError)) throw error;
        // An expired iterator or an engine that is busy: begin again at the kept position.
        options.onTrouble(`stream ${plan.tableName}: ${error.message}`);
        await pause(TROUBLE_PAUSE_MS);
      }
    }
  }

  const running = run();
  return {
    plan,
    counters,
    async stop() {
      endPause();
      await running;
    },
  };
}
