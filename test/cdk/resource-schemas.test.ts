import { RemovalPolicy } from 'aws-cdk-lib';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { describe, expect, it } from 'vitest';
import { Capacity } from '../../cdk/lib/capacity.ts';
import { Encryption } from '../../cdk/lib/cluster-options.ts';
import type { NodekeeperClusterProps } from '../../cdk/lib/cluster-props.ts';
import { allPairs } from './all-pairs.ts';
import { checkAgainstSchemas } from './resource-schemas.ts';
import { synthesiseChecked } from './synthesised.ts';

type Props = NodekeeperClusterProps;

const ARN = 'arn:aws:';
const KEY = `${ARN}kms:eu-west-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef`;
const CERTIFICATE = `${ARN}acm:eu-west-1:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef`;
const tableArn = (name: string) => `${ARN}dynamodb:eu-west-1:111122223333:table/restored-${name}`;
const streamed = (name: string) => ({
  tableArn: tableArn(name),
  streamArn: `${tableArn(name)}/stream/2026-01-01T00:00:00.000`,
});

/** Values of each option that change the template; the first is the default. */
const OPTIONS: readonly (readonly Props[])[] = [
  [{}, { capacity: Capacity.onDemand(20_000) }, { capacity: Capacity.provisioned(1_000) }],
  [{}, { removalPolicy: RemovalPolicy.DESTROY, deletionProtection: false, pointInTimeRecoveryDays: 0 }],
  [{}, { encryption: Encryption.customerManaged() }, { encryption: Encryption.customerManaged(KEY) }],
  [{}, { customDomain: { domainName: 'nodes.example.com', certificateArn: CERTIFICATE } }],
  [{}, { alarmTopicArn: `${ARN}sns:eu-west-1:111122223333:alarms` }, { alarmEmail: 'on-call@example.com' }],
  [{}, { policy: { watchMode: 'longPoll' } }, { policy: { nodeMonitorPeriodSeconds: 15, podGcPeriodSeconds: 60 } }],
  [{}, { logRetention: RetentionDays.ONE_YEAR, clusterId: 'edge-1', runbookBaseUrl: 'https://example.com/docs' }],
  [{}, { requestsPerSecondMax: 5_000, burstRequestsMax: 9_000, accountConcurrency: 1_000 }],
  [
    {},
    {
      network: { subnetIds: ['subnet-01234567'], securityGroupIds: ['sg-01234567'], ipv6: true },
      policy: { watchMode: 'longPoll' },
      permissionsBoundaryArn: `${ARN}iam::111122223333:policy/boundary`,
      tags: { team: 'edge' },
    },
  ],
  [
    {},
    {
      restoredTables: {
        health: streamed('health'),
        objects: streamed('objects'),
        control: { tableArn: tableArn('control') },
      },
      removalPolicy: RemovalPolicy.RETAIN,
    },
  ],
];

/** Properties that are newer than the published copy of the schemas, with their source. */
const NEWER_THAN_SCHEMAS: ReadonlyMap<string, string> = new Map([
  [
    'InvokedViaFunctionUrl',
    'AWS Lambda Developer Guide, "Control access to Lambda function URLs": required for lambda:InvokeFunction since 2025',
  ],
  ['Tags', 'CloudFormation Template Reference: Tags of EventSourceMapping, Events Rule and CloudWatch Dashboard'],
  ['WarmThroughput', 'CloudFormation Template Reference, "AWS::DynamoDB::Table WarmThroughput": since November 2024'],
]);

/** Only one option sets `policy`. */
const merged = (set: readonly Props[]): Props => Object.assign({}, ...set) as Props;

describe('the template', () => {
  it('agrees with the resource schemas of CloudFormation and with cdk-nag for every pair of options', {
    timeout: 120_000,
  }, () => {
    const sets = allPairs(OPTIONS).map(merged);
    const checked = { sets: sets.length, resources: 0, properties: 0 };
    const unknownTypes = new Set<string>();
    const newer = new Set<string>();
    for (const props of sets) {
      const {
        findings,
        resources,
        properties,
        unknownTypes: unknown,
      } = checkAgainstSchemas(synthesiseChecked(props).toJSON() as never);
      const unexplained = findings.filter((finding) => {
        const name = /"additionalProperty":"(\w+)"/.exec(finding)?.[1] ?? '';
        if (NEWER_THAN_SCHEMAS.has(name)) newer.add(name);
        return !NEWER_THAN_SCHEMAS.has(name);
      });
      expect(unexplained, JSON.stringify(props)).toEqual([]);
      checked.resources += resources;
      checked.properties += properties;
      for (const type of unknown) unknownTypes.add(type);
    }
    console.log(
      `schemas: ${checked.sets} sets of options, ${checked.resources} resources, ${checked.properties} properties`,
    );
    expect([...unknownTypes]).toEqual([]);
    expect([...newer].toSorted()).toEqual([...NEWER_THAN_SCHEMAS.keys()].toSorted());
    expect(checked.sets).toBeGreaterThanOrEqual(9);
    expect(checked.properties).toBeGreaterThan(checked.sets * 500);
  });

  const queue = (properties: object) => ({
    Resources: { Queue: { Type: 'AWS::SQS::Queue', Properties: { ...properties } } },
  });
  it.each<[string, object, string]>([
    ['an unknown property', queue({ VisibilityTimeOut: 30 }), '"additionalProperty":"VisibilityTimeOut"'],
    ['a wrong type', queue({ VisibilityTimeout: '30 s' }), '/VisibilityTimeout must be integer'],
    ['a read-only property', queue({ Arn: 'arn:aws:sqs:eu-west-1:111122223333:q' }), 'Arn is read-only'],
    [
      'a missing property',
      { Resources: { Role: { Type: 'AWS::IAM::Role', Properties: {} } } },
      "required property 'AssumeRolePolicyDocument'",
    ],
    [
      'a value outside an enum',
      {
        Resources: {
          Table: { Type: 'AWS::Lambda::Function', Properties: { Role: { Ref: 'Role' }, Code: {}, PackageType: 'Tar' } },
        },
      },
      '/PackageType must be equal to one of the allowed values',
    ],
    [
      'a value that does not match a pattern',
      { Resources: { Logs: { Type: 'AWS::Logs::LogGroup', Properties: { KmsKeyId: 'alias/mine' } } } },
      '/KmsKeyId must match pattern',
    ],
    [
      'an attribute that the type lacks',
      {
        Resources: {
          ...queue({}).Resources,
          Other: { Type: 'AWS::SQS::Queue', Properties: { QueueName: { 'Fn::GetAtt': ['Queue', 'Url'] } } },
        },
      },
      'AWS::SQS::Queue has no attribute Url',
    ],
  ])('is refused for %s', (_, template, finding) => {
    expect(checkAgainstSchemas(template as never).findings.join('\n')).toContain(finding);
  });
});
