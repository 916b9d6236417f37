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

/** Prints a line of each level, and one without a level. It has no metric: these remain when a stack is removed. */
const PRINTING_CODE = `
const print = (line) => process.stdout.write(JSON.stringify(line) + '\\n');
exports.handler = async () => {
  const timestamp = new Date().toISOString();
  print({ level: 'INFO', timestamp, message: 'prove-line-info' });
  print({ message: 'prove-line-none' });
  print({ level: 'WARN', timestamp, message: 'prove-line-warn' });
};
`;

/** Source: CloudFormation Template Reference, "AWS::Lambda::Function LoggingConfig". */
const printingFunction = (level: 'INFO' | 'WARN', logGroup: string): object => ({
  Type: 'AWS::Lambda::Function',
  Properties: {
    Code: { ZipFile: PRINTING_CODE },
    Handler: 'index.handler',
    Runtime: 'nodejs24.x',
    Architectures: ['arm64'],
    MemorySize: 128,
    Timeout: 10,
    Role: { 'Fn::GetAtt': ['FunctionRole', 'Arn'] },
    LoggingConfig: {
      LogFormat: 'JSON',
      ApplicationLogLevel: level,
      SystemLogLevel: level,
      LogGroup: { Ref: logGroup },
    },
  },
});

const LOG_GROUP = { Type: 'AWS::Logs::LogGroup', Properties: { RetentionInDays: 1 } };

const assumedBy = (service: string): object => ({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { Service: service }, Action: 'sts:AssumeRole' }],
});

/**
 * A queue with a schedule that sends a message into it each minute, and two functions that print the same with
 * different log levels. Source: CloudFormation Template Reference, "AWS::Scheduler::Schedule".
 */
const probeTemplate = (): object => ({
  AWSTemplateFormatVersion: '2010-09-09',
  Description: 'nodekeeper prove: measures delays of messages and schedules; safe to delete',
  Resources: {
    Queue: { Type: 'AWS::SQS::Queue', Properties: { SqsManagedSseEnabled: true, MessageRetentionPeriod: 3_600 } },
    Role: {
      Type: 'AWS::IAM::Role',
      Properties: {
        AssumeRolePolicyDocument: assumedBy('scheduler.amazonaws.com'),
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
    InfoLogs: LOG_GROUP,
    WarnLogs: LOG_GROUP,
    FunctionRole: {
      Type: 'AWS::IAM::Role',
      Properties: {
        AssumeRolePolicyDocument: assumedBy('lambda.amazonaws.com'),
        Policies: [
          {
            PolicyName: 'log',
            PolicyDocument: {
              Version: '2012-10-17',
              Statement: [
                {
                  Effect: 'Allow',
                  Action: ['logs:CreateLogStream', 'logs:PutLogEvents'],
                  Resource: [{ 'Fn::GetAtt': ['InfoLogs', 'Arn'] }, { 'Fn::GetAtt': ['WarnLogs', 'Arn'] }],
                },
              ],
            },
          },
        ],
      },
    },
    InfoFunction: printingFunction('INFO', 'InfoLogs'),
    WarnFunction: printingFunction('WARN', 'WarnLogs'),
  },
  Outputs: {
    QueueUrl: { Value: { Ref: 'Queue' } },
    InfoFunction: { Value: { Ref: 'InfoFunction' } },
    WarnFunction: { Value: { Ref: 'WarnFunction' } },
    InfoLogs: { Value: { Ref: 'InfoLogs' } },
    WarnLogs: { Value: { Ref: 'WarnLogs' } },
  },
});
