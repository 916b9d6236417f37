import { Duration, Validations } from 'aws-cdk-lib';
import type { ITable } from 'aws-cdk-lib/aws-dynamodb';
import { EventSourceMapping, FilterCriteria, StartingPosition } from 'aws-cdk-lib/aws-lambda';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { HandlerFunction } from './handler-function.ts';

/** Lambda's defaults are unlimited retries and age: one invalid record would block a shard for a day. */
const RETRIES_MAX = 10;
const RECORD_AGE_MAX_MINUTES = 60;
const BATCH_RECORDS_MAX = 100;
/** Batches of one shard processed at once. The order per partition key is kept. */
const PARALLEL_BATCHES = 4;

export interface TableStreamProps {
  readonly table: ITable;
  readonly target: HandlerFunction;
  /** Event filter patterns. A record that matches one of them is delivered. */
  readonly filters: readonly object[];
  /** Receives the positions of records that were dropped after all retries. */
  readonly deadLetters: Queue;
}

/** Delivers changes of a table to a function: bounded retries, then the dead-letter queue. A shard is never blocked. */
export class TableStream extends Construct {
  constructor(scope: Construct, id: string, props: TableStreamProps) {
    super(scope, id);
    const { table, target, deadLetters } = props;
    const streamArn = table.tableStreamArn;
    if (streamArn === undefined) throw new Error(`${table.node.path} has no stream`);

    target.allow(['dynamodb:DescribeStream', 'dynamodb:GetRecords', 'dynamodb:GetShardIterator'], [streamArn]);
    // IAM knows no resource of ListStreams, so a statement with one allows nothing. It lists names of streams only.
    // Source: Service Authorization Reference, "Actions defined by Amazon DynamoDB".
    target.allow(['dynamodb:ListStreams'], ['*']);
    target.allow(['sqs:SendMessage'], [deadLetters.queueArn]);

    new EventSourceMapping(this, 'Source', {
      target: target.lambda,
      eventSourceArn: streamArn,
      startingPosition: StartingPosition.TRIM_HORIZON,
      filters: props.filters.map((pattern) => FilterCriteria.filter({ ...pattern })),
      batchSize: BATCH_RECORDS_MAX,
      maxBatchingWindow: Duration.seconds(0),
      parallelizationFactor: PARALLEL_BATCHES,
      bisectBatchOnError: true,
      reportBatchItemFailures: true,
      retryAttempts: RETRIES_MAX,
      maxRecordAge: Duration.minutes(RECORD_AGE_MAX_MINUTES),
      onFailure: { bind: () => ({ destination: deadLetters.queueArn }) },
    });

    Validations.of(target).acknowledge({
      id: 'AwsSolutions-IAM5[Resource::*]',
      reason: 'ListStreams has no resource-level permission, and Lambda calls it before it knows the stream.',
    });
  }
}
