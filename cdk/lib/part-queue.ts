import { Duration } from 'aws-cdk-lib';
import { EventSourceMapping } from 'aws-cdk-lib/aws-lambda';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { HandlerFunction } from './handler-function.ts';

/** At least the time limit of the function. Parts of a killed process are delivered again after this time. */
const VISIBILITY_SECONDS = 30;
/** The function itself repeats a part at most four times. */
const RECEIVES_MAX = 6;
/** Counts from sending. Parts are valid for a minute at most; this leaves time for all receives. */
const MESSAGE_RETENTION_SECONDS = 300;
/**
 * Parts of one invocation, which it works on concurrently: one waits for its tables while the other computes. More
 * would compete for the CPU, and for the heads of the change log.
 */
const PARTS_PER_BATCH = 2;

export interface PartQueueProps {
  /** Receives parts that failed at every receive. */
  readonly deadLetters: Queue;
  /** Executions of the function that the queue may start at once. */
  readonly concurrencyMax: number;
}

/** The queue between node-monitor and node-marker: parts of a mass failure (docs/decisions/0027). */
export class PartQueue extends Construct {
  readonly queue: Queue;
  readonly #concurrencyMax: number;

  constructor(scope: Construct, id: string, { deadLetters, concurrencyMax }: PartQueueProps) {
    super(scope, id);
    this.#concurrencyMax = concurrencyMax;
    this.queue = new Queue(this, 'Queue', {
      retentionPeriod: Duration.seconds(MESSAGE_RETENTION_SECONDS),
      visibilityTimeout: Duration.seconds(VISIBILITY_SECONDS),
      deadLetterQueue: { queue: deadLetters, maxReceiveCount: RECEIVES_MAX },
      enforceSSL: true,
    });
  }

  allowSending(sender: HandlerFunction): void {
    sender.allow(['sqs:SendMessage'], [this.queue.queueArn]);
  }

  /**
   * Lets the messages invoke the function. It sends follow-up parts to its own queue, at most one for each part: far
   * from the 16 invocations after which Lambda stops a chain. The maximum concurrency leaves executions of the account
   * to heartbeats and ticks. A reservation alone would let Lambda receive more messages than it can process. Source:
   * AWS Lambda Developer Guide, "Configuring scaling behavior for SQS event source mappings".
   */
  drive(target: HandlerFunction): void {
    const { queueArn } = this.queue;
    target.allow(
      ['sqs:ChangeMessageVisibility', 'sqs:DeleteMessage', 'sqs:GetQueueAttributes', 'sqs:ReceiveMessage'],
      [queueArn],
    );
    new EventSourceMapping(this, 'Source', {
      target: target.lambda,
      eventSourceArn: queueArn,
      batchSize: PARTS_PER_BATCH,
      maxConcurrency: this.#concurrencyMax,
      reportBatchItemFailures: true,
    });
  }
}
