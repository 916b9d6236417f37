import { Duration, Validations } from 'aws-cdk-lib';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';

/** Longest that SQS keeps a message: time for a person to look. */
const RETENTION_DAYS = 14;

/** A queue where messages end that could not be worked on. Its depth above 0 is worth an alarm. */
export function deadLetterQueue(scope: Construct, id: string): Queue {
  return new Queue(scope, id, { retentionPeriod: Duration.days(RETENTION_DAYS), enforceSSL: true });
}

/**
 * Where ticks end: one pair of queues for all controllers, since a message tells where it comes from
 * (`DeadLetterQueueSourceArn`, `SCHEDULE_ARN`) and an alarm is paid by the queue.
 */
export class TickDeadLetters extends Construct {
  /** Tick messages that failed at every receive. */
  readonly ticks: Queue;
  /** Calls that a schedule could not make. */
  readonly schedules: Queue;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    this.ticks = deadLetterQueue(this, 'FailedTicks');
    this.schedules = deadLetterQueue(this, 'FailedSchedules');
    Validations.of(this.schedules).acknowledge({
      id: 'AwsSolutions-SQS3',
      reason: 'It is itself a dead-letter queue, of the schedules.',
    });
  }
}
