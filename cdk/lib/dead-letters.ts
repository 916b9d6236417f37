import { Duration } from 'aws-cdk-lib';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';

/** Longest that SQS keeps a message: time for a person to look. */
const RETENTION_DAYS = 14;

/** A queue where messages end that could not be worked on. Its depth above 0 is worth an alarm. */
export function deadLetterQueue(scope: Construct, id: string): Queue {
  return new Queue(scope, id, { retentionPeriod: Duration.days(RETENTION_DAYS), enforceSSL: true });
}
