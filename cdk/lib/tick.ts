import { Duration, Stack } from 'aws-cdk-lib';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { EventSourceMapping } from 'aws-cdk-lib/aws-lambda';
import { ContextAttribute, Schedule, ScheduleExpression, ScheduleTargetInput } from 'aws-cdk-lib/aws-scheduler';
import { Universal } from 'aws-cdk-lib/aws-scheduler-targets';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import type { HandlerFunction } from './handler-function.ts';

const MINUTE_SECONDS = 60;
/** Limit of SQS for SendMessageBatch. */
const BATCH_ENTRIES_MAX = 10;
/** A tick that starts later than this has no effect: its slot is claimed or stale. */
const SCHEDULE_AGE_MAX_SECONDS = 60;
const SCHEDULE_RETRIES_MAX = 2;
/** Counts from sending, so it must exceed the longest delay plus all receives: 55 + 3 × 40 s. */
const MESSAGE_RETENTION_SECONDS = 240;
const VISIBILITY_SECONDS = 40;
const RECEIVES_MAX = 3;

export interface TickProps {
  readonly target: HandlerFunction;
  /** Time between ticks. Seconds; a divisor of 60. */
  readonly periodSeconds: number;
  /** Receives messages that failed at every receive, and calls that a schedule could not make. */
  readonly deadLetters: Queue;
}

/** Offsets within a minute at which a controller ticks: 0, period, 2 × period … below 60. */
export function tickOffsetsSeconds(periodSeconds: number): readonly number[] {
  if (!Number.isInteger(periodSeconds) || periodSeconds < 1 || MINUTE_SECONDS % periodSeconds !== 0) {
    throw new RangeError(`tick period must divide ${MINUTE_SECONDS} s, was ${periodSeconds}`);
  }
  return Array.from({ length: MINUTE_SECONDS / periodSeconds }, (_, index) => index * periodSeconds);
}

/**
 * Ticks more often than once per minute, the minimum of a scheduler. Each minute a schedule sends delayed messages
 * directly to the queue, without a function in between. One batch holds ten entries, so a 5 s period needs two
 * schedules. Delivery is at least once and out of order; the function claims the slot `scheduledAt + offsetSeconds`
 * before it acts.
 */
export class Tick extends Construct {
  readonly queue: Queue;

  constructor(scope: Construct, id: string, props: TickProps) {
    super(scope, id);
    this.queue = new Queue(this, 'Queue', {
      retentionPeriod: Duration.seconds(MESSAGE_RETENTION_SECONDS),
      visibilityTimeout: Duration.seconds(VISIBILITY_SECONDS),
      deadLetterQueue: { queue: props.deadLetters, maxReceiveCount: RECEIVES_MAX },
      enforceSSL: true,
    });

    const role = new Role(this, 'SchedulerRole', {
      assumedBy: new ServicePrincipal('scheduler.amazonaws.com', {
        conditions: { StringEquals: { 'aws:SourceAccount': Stack.of(this).account } },
      }),
    });
    const offsets = tickOffsetsSeconds(props.periodSeconds);
    for (let first = 0; first < offsets.length; first += BATCH_ENTRIES_MAX) {
      new Schedule(this, `Schedule${first / BATCH_ENTRIES_MAX}`, {
        description: `Nodekeeper ${id}: ticks of one minute from ${offsets[first]} s on`,
        schedule: ScheduleExpression.rate(Duration.minutes(1)),
        target: new Universal({
          service: 'sqs',
          action: 'sendMessageBatch',
          role,
          // The batch is authorised as sqs:SendMessage; there is no action of the batch's name.
          policyStatements: [new PolicyStatement({ actions: ['sqs:SendMessage'], resources: [this.queue.queueArn] })],
          input: ScheduleTargetInput.fromObject({
            QueueUrl: this.queue.queueUrl,
            Entries: offsets.slice(first, first + BATCH_ENTRIES_MAX).map(tickEntry),
          }),
          maxEventAge: Duration.seconds(SCHEDULE_AGE_MAX_SECONDS),
          retryAttempts: SCHEDULE_RETRIES_MAX,
          deadLetterQueue: props.deadLetters,
        }),
      });
    }

    const { target } = props;
    target.allow(['sqs:DeleteMessage', 'sqs:GetQueueAttributes', 'sqs:ReceiveMessage'], [this.queue.queueArn]);
    // No maximum concurrency: the slot claim ensures that one tick runs. A queue with a maximum is always polled by
    // five pollers, while Lambda scales down to two for other queues with few messages.
    // Source: AWS Lambda Developer Guide, "Configuring scaling behavior for SQS event source mappings".
    new EventSourceMapping(this, 'Source', {
      target: target.lambda,
      eventSourceArn: this.queue.queueArn,
      batchSize: 1,
      reportBatchItemFailures: true,
    });
  }
}

/** One delayed message. Its body is JSON text: the due time of the minute, and the offset of this tick in it. */
function tickEntry(offsetSeconds: number) {
  const body = { scheduledAt: ContextAttribute.scheduledTime, offsetSeconds };
  return { Id: `t${offsetSeconds}`, DelaySeconds: offsetSeconds, MessageBody: JSON.stringify(body) };
}
