import { Duration } from 'aws-cdk-lib';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';

/** The maximum of SQS: time for a user to look at the messages. */
const RETENTION_DAYS = 14;

/**
 * Receives everything that could not be processed: ticks that failed at every receive, calls that a schedule could not
 * make, positions of stream records that were dropped. One queue per cluster: each message contains its source
 * (`DeadLetterQueueSourceArn`, `SCHEDULE_ARN`, `DDBStreamBatchInfo`), and alarms are charged per queue. An alarm fires
 * when the queue is not empty.
 */
export function deadLetterQueue(scope: Construct, id: string): Queue {
  return new Queue(scope, id, { retentionPeriod: Duration.days(RETENTION_DAYS), enforceSSL: true });
}
