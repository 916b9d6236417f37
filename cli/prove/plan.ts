/** What a run creates: names, settings, the template of its probe, and a bound of its price. Pure. */

export interface RunPlan {
  readonly clusterStack: string;
  readonly probeStack: string;
  readonly settings: Readonly<Record<string, string>>;
  readonly probe: object;
}

/** Requests per second of the cluster: the limit is measured, and its burst is twice that. */
export const REQUESTS_PER_SECOND = 20;
/** Longest time until everything is removed. Minutes. */
export const MINUTES_MAX = 60;
/**
 * Bound of the price of a run in US dollars. An hour costs $0.01 for 30 alarms, $0.03 for 70 metrics, and at most
 * $0.05 for 20,000 write units, 10,000 requests and invocations, and 10 MB of logs (us-east-1, docs/cost.md).
 */
export const DOLLARS_MAX = 0.25;

export const planOf = (suffix: string): RunPlan => ({
  clusterStack: `NodekeeperProve-${suffix}`,
  probeStack: `NodekeeperProbe-${suffix}`,
  settings: { ...NO_SETTINGS_OF_THE_USER, ...settingsOf(suffix) },
  probe: probeTemplate(),
});

/** Settings in the user's cdk.json are those of another cluster. Empty ones are as if absent. */
const NO_SETTINGS_OF_THE_USER = Object.fromEntries(
  [
    ...[
      'policyFile',
      'accessEntriesFile',
      'restoredTablesFile',
      'instanceIdentityCertificateFile',
      'capacity',
      'nodes',
    ],
    ...['warmForNodes', 'accountRequestsPerSecondMax', 'reservedConcurrency', 'markConcurrencyMax', 'subnetIds'],
    ...['securityGroupIds', 'subnetIpv6', 'domainName', 'certificateArn', 'encryption', 'keyArn', 'alarmTopicArn'],
    ...['alarmEmail', 'runbookBaseUrl'],
  ].map((name) => [name, '']),
);

/**
 * Nothing is retained but the audit log. With the limit of a new account the stack reserves no executions, whatever the
 * account has: reservations are measured.
 */
const settingsOf = (suffix: string): Readonly<Record<string, string>> => ({
  stackName: `NodekeeperProve-${suffix}`,
  clusterId: `prove-${suffix}`,
  removalPolicy: 'destroy',
  deletionProtection: 'false',
  pointInTimeRecoveryDays: '0',
  logRetentionDays: '1',
  dashboard: 'false',
  nodesMax: '1',
  requestsPerSecondMax: String(REQUESTS_PER_SECOND),
  burstRequestsMax: String(2 * REQUESTS_PER_SECOND),
  accountConcurrency: '10',
  unrecordedSettings: 'allow',
});

/**
 * A queue, and a schedule that sends a message into it each minute. Source: CloudFormation Template Reference,
 * "AWS::Scheduler::Schedule".
 */
const probeTemplate = (): object => ({
  AWSTemplateFormatVersion: '2010-09-09',
  Description: 'nodekeeper prove: measures delays of messages and schedules; safe to delete',
  Resources: {
    Queue: { Type: 'AWS::SQS::Queue', Properties: { SqsManagedSseEnabled: true, MessageRetentionPeriod: 3_600 } },
    Role: {
      Type: 'AWS::IAM::Role',
      Properties: {
        AssumeRolePolicyDocument: {
          Version: '2012-10-17',
          Statement: [{ Effect: 'Allow', Principal: { Service: 'scheduler.amazonaws.com' }, Action: 'sts:AssumeRole' }],
        },
        Policies: [
          {
            PolicyName: 'send',
            PolicyDocument: {
              Version: '2012-10-17',
              Statement: [{ Effect: 'Allow', Action: 'sqs:SendMessage', Resource: { 'Fn::GetAtt': ['Queue', 'Arn'] } }],
            },
          },
        ],
      },
    },
    Schedule: {
      Type: 'AWS::Scheduler::Schedule',
      Properties: {
        // As the schedules of a cluster are (docs/decisions/0020).
        ScheduleExpression: 'cron(* * * * ? *)',
        FlexibleTimeWindow: { Mode: 'OFF' },
        Target: {
          Arn: { 'Fn::GetAtt': ['Queue', 'Arn'] },
          RoleArn: { 'Fn::GetAtt': ['Role', 'Arn'] },
          Input: JSON.stringify({ from: 'schedule' }),
          RetryPolicy: { MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 0 },
        },
      },
    },
  },
  Outputs: { QueueUrl: { Value: { Ref: 'Queue' } } },
});
