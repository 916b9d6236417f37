import { ArnFormat, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { LogGroup, LogStream, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { Construct } from 'constructs';

const STREAM = 'api';

/** Audit log of the API: a separate log group, kept for a year and after the stack is deleted. The API only appends. */
export class AuditLog extends Construct {
  readonly environment: { readonly AUDIT_LOG_GROUP: string; readonly AUDIT_LOG_STREAM: string };
  readonly streamArn: string;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    const logGroup = new LogGroup(this, 'Group', {
      retention: RetentionDays.ONE_YEAR,
      removalPolicy: RemovalPolicy.RETAIN,
    });
    new LogStream(this, 'Stream', { logGroup, logStreamName: STREAM, removalPolicy: RemovalPolicy.RETAIN });
    this.environment = { AUDIT_LOG_GROUP: logGroup.logGroupName, AUDIT_LOG_STREAM: STREAM };
    this.streamArn = Stack.of(this).formatArn({
      service: 'logs',
      resource: 'log-group',
      resourceName: `${logGroup.logGroupName}:log-stream:${STREAM}`,
      arnFormat: ArnFormat.COLON_RESOURCE_NAME,
    });
  }
}
