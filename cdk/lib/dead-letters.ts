import { Duration } from 'aws-cdk-lib';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';

/** Longest that SQS keeps a message: time for a person to look. */
const RETENTION_DAYS = 14;

/**
 * Where everything ends that could not be worked on: ticks that failed at every receive, calls that a schedule could not make,
 * positions of stream records that were given up. One queue a cluster, since a message tells where it comes from
 * (`DeadLetterQueueSourceArn`, `SCHEDULE_ARN`, `DDBStreamBatchInfo`) and an alarm is paid by the queue. Its depth above 0 is
 * worth an alarm.
 */
export function deadLetterQueue(scope: Construct, id: string): Queue {
  return new Queue(scope, id, { retentionPeriod: Duration.days(RETENTION_DAYS), enforceSSL: true });
}
