import { describe, expect, it } from 'vitest';
import type { Assembly } from './assembly.ts';
import { planLocalMode } from './plan.ts';
import type { TemplateResource } from './template.ts';

const arnOf = (id: string) => ({ 'Fn::GetAtt': [id, 'Arn'] });

const RESOURCES: Record<string, TemplateResource> = {
  Work: {
    Type: 'AWS::SQS::Queue',
    Properties: { VisibilityTimeout: 40, RedrivePolicy: { deadLetterTargetArn: arnOf('Dead'), maxReceiveCount: 3 } },
  },
  Dead: { Type: 'AWS::SQS::Queue' },
  Fn: {
    Type: 'AWS::Lambda::Function',
    Properties: {
      Code: { S3Key: 'code.zip' },
      Timeout: 30,
      MemorySize: 512,
      LoggingConfig: { LogFormat: 'JSON', ApplicationLogLevel: 'WARN', SystemLogLevel: 'INFO' },
      Environment: {
        Variables: { POWERTOOLS_SERVICE_NAME: 'monitor', TABLE: { Ref: 'Table' }, TOKENS: { Ref: 'StaticTokens' } },
      },
    },
  },
  Table: {
    Type: 'AWS::DynamoDB::GlobalTable',
    Properties: {
      KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
      GlobalSecondaryIndexes: [
        {
          IndexName: 'byNode',
          KeySchema: [],
          Projection: { ProjectionType: 'KEYS_ONLY' },
          WriteProvisionedThroughputSettings: {},
        },
      ],
      StreamSpecification: { StreamViewType: 'NEW_IMAGE' },
      TimeToLiveSpecification: { AttributeName: 'ttl', Enabled: true },
      Replicas: [{ Region: { Ref: 'AWS::Region' } }],
    },
  },
  Stream: {
    Type: 'AWS::Lambda::EventSourceMapping',
    Properties: {
      EventSourceArn: { 'Fn::GetAtt': ['Table', 'StreamArn'] },
      FunctionName: { Ref: 'Fn' },
      StartingPosition: 'LATEST',
    },
  },
  Off: { Type: 'AWS::Lambda::EventSourceMapping', Properties: { Enabled: false, EventSourceArn: 'arn:anything' } },
  Messages: {
    Type: 'AWS::Lambda::EventSourceMapping',
    Properties: { EventSourceArn: arnOf('Work'), FunctionName: arnOf('Fn'), ScalingConfig: { MaximumConcurrency: 2 } },
  },
  Hourly: {
    Type: 'AWS::Scheduler::Schedule',
    Properties: { ScheduleExpression: 'rate(1 hour)', Target: { Arn: arnOf('Fn'), Input: '{"a":1}' } },
  },
  Paused: { Type: 'AWS::Scheduler::Schedule', Properties: { State: 'DISABLED' } },
};

function plan(more: Record<string, TemplateResource> = {}) {
  const assembly: Assembly = {
    stackName: 'Test',
    template: {
      Parameters: { StaticTokens: { Type: 'String', Default: '[]' } },
      Resources: { ...RESOURCES, ...more },
    },
    assetPath: (key) => (key === 'code.zip' ? '/assets/code' : undefined),
  };
  return planLocalMode(assembly, {
    region: 'us-east-1',
    accountId: '000000000000',
    apiUrl: 'https://127.0.0.1:6443',
    parameters: { StaticTokens: '[1]', Unknown: 'left out' },
  });
}

describe('the plan of the local mode', () => {
  it('reads functions with their environment', () => {
    expect(plan().functions).toEqual([
      {
        logicalId: 'Fn',
        name: 'monitor',
        functionName: 'Test-Fn',
        arn: 'arn:aws:lambda:us-east-1:000000000000:function:Test-Fn',
        codePath: '/assets/code',
        handler: 'index.handler',
        timeoutSeconds: 30,
        memoryMegabytes: 512,
        reservedConcurrency: undefined,
        environment: { POWERTOOLS_SERVICE_NAME: 'monitor', TABLE: 'Test-Table', TOKENS: '[1]' },
        runtime: '',
        mayRecur: false,
        async: { maximumRetryAttempts: 2, maximumEventAgeSeconds: 21_600 },
        logGroupName: '/aws/lambda/Test-Fn',
        logFormat: 'JSON',
        logLevel: 'WARN',
        systemLogLevel: 'INFO',
      },
    ]);
  });

  it.each([
    [{ BillingMode: 'PAY_PER_REQUEST' }, { mode: 'onDemand' }],
    [
      { BillingMode: 'PAY_PER_REQUEST', WarmThroughput: { ReadUnitsPerSecond: 12_000, WriteUnitsPerSecond: 8_000 } },
      { mode: 'onDemand', warm: { readUnitsPerSecond: 12_000, writeUnitsPerSecond: 8_000 } },
    ],
    [
      { ProvisionedThroughput: { ReadCapacityUnits: 7, WriteCapacityUnits: 9 } },
      { mode: 'provisioned', provisioned: { readUnitsPerSecond: 7, writeUnitsPerSecond: 9 } },
    ],
  ])('reads the capacity of a table: %j', (billing, capacity) => {
    const { tables } = plan({
      Capacity: {
        Type: 'AWS::DynamoDB::Table',
        Properties: { KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }], ...billing },
      },
    });
    expect(tables.find(({ logicalId }) => logicalId === 'Capacity')?.capacity).toEqual(capacity);
  });

  it('reads a table in the form of CreateTable, global tables included', () => {
    expect(plan().tables).toMatchObject([
      {
        tableName: 'Test-Table',
        timeToLiveAttribute: 'ttl',
        definition: {
          BillingMode: 'PAY_PER_REQUEST',
          StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_IMAGE' },
          GlobalSecondaryIndexes: [{ IndexName: 'byNode', KeySchema: [], Projection: { ProjectionType: 'KEYS_ONLY' } }],
        },
      },
    ]);
  });

  it('reads event sources with the defaults of the service, and leaves disabled ones out', () => {
    const { streamSources, queueSources } = plan();
    expect(streamSources).toMatchObject([
      {
        logicalId: 'Stream',
        tableName: 'Test-Table',
        functionId: 'Fn',
        startingPosition: 'LATEST',
        batchSize: 100,
        maximumRetryAttempts: Number.POSITIVE_INFINITY,
        maximumRecordAgeSeconds: Number.POSITIVE_INFINITY,
        bisectBatchOnError: false,
        reportBatchItemFailures: false,
        failureQueueId: undefined,
      },
    ]);
    expect(queueSources).toMatchObject([
      { logicalId: 'Messages', queueId: 'Work', functionId: 'Fn', batchSize: 10, concurrencyMax: 2 },
    ]);
  });

  it('reads queues and schedules', () => {
    const { queues, schedules } = plan();
    expect(queues).toMatchObject([
      { logicalId: 'Work', visibilityTimeoutSeconds: 40, redrive: { deadLetterQueueId: 'Dead', maxReceiveCount: 3 } },
      { logicalId: 'Dead', visibilityTimeoutSeconds: 30, retentionSeconds: 345_600, redrive: undefined },
    ]);
    expect(schedules).toEqual([
      {
        logicalId: 'Hourly',
        expression: 'rate(1 hour)',
        target: { kind: 'function', functionId: 'Fn' },
        input: '{"a":1}',
      },
    ]);
  });

  const route = (properties: object): TemplateResource => ({
    Type: 'AWS::ApiGatewayV2::Route',
    Properties: { ...properties },
  });
  const api: TemplateResource = { Type: 'AWS::ApiGatewayV2::Api' };
  const proxy: TemplateResource = {
    Type: 'AWS::ApiGatewayV2::Integration',
    Properties: {
      IntegrationType: 'AWS_PROXY',
      PayloadFormatVersion: '2.0',
      TimeoutInMillis: 10_000,
      IntegrationUri: {
        'Fn::Join': [
          '',
          ['arn:aws:apigateway:us-east-1:lambda:path/2015-03-31/functions/', arnOf('Fn'), '/invocations'],
        ],
      },
    },
  };

  it('reads routes through their integration', () => {
    const Route = route({ RouteKey: 'GET /', Target: 'integrations/Proxy' });
    expect(plan({ Api: api, Proxy: proxy, Route }).api).toEqual({
      apiId: 'Api',
      throttling: { defaultRoute: undefined, routes: {} },
      routes: [{ routeKey: 'GET /', functionId: 'Fn', timeoutMs: 10_000, setHeaders: {} }],
    });
  });

  it('reads the headers that an integration sets, and refuses other mappings', () => {
    const Route = route({ RouteKey: 'GET /', Target: 'integrations/Proxy' });
    const mapped = (RequestParameters: Record<string, string>) =>
      plan({ Api: api, Proxy: { ...proxy, Properties: { ...proxy.Properties, RequestParameters } }, Route }).api;
    expect(mapped({ 'overwrite:header.X-Name': 'value' })?.routes[0]?.setHeaders).toEqual({ 'x-name': 'value' });
    expect(() => mapped({ 'append:header.x': 'value' })).toThrow(/Proxy: the parameter mapping append:header.x is not/);
    expect(() => mapped({ 'overwrite:header.x': '$request.path' })).toThrow(/overwrite:header.x is not/);
  });

  it.each<[string, Record<string, TemplateResource>, RegExp]>([
    ['a FIFO queue', { F: { Type: 'AWS::SQS::Queue', Properties: { FifoQueue: true } } }, /F: FIFO/],
    [
      'code that is no asset',
      { F: { Type: 'AWS::Lambda::Function', Properties: { Code: { ZipFile: '' } } } },
      /F: its code/,
    ],
    ['a second API', { Api: api, Other: api }, /Other: local mode serves one/],
    [
      'an authorizer',
      {
        Api: api,
        Proxy: proxy,
        R: route({ RouteKey: 'GET /', Target: 'integrations/Proxy', AuthorizationType: 'JWT' }),
      },
      /R: authorizer JWT/,
    ],
    ['a route to nowhere', { Api: api, R: route({ RouteKey: 'GET /', Target: 'integrations/None' }) }, /R: its target/],
    [
      'a source for a foreign function',
      {
        S: {
          Type: 'AWS::Lambda::EventSourceMapping',
          Properties: { EventSourceArn: arnOf('Work'), FunctionName: 'other' },
        },
      },
      /S: other names no/,
    ],
  ])('refuses %s, naming the resource', (_name, more, message) => {
    expect(() => plan(more)).toThrow(message);
  });

  it('plans rules that wait for events, and leaves out those on a schedule or switched off', () => {
    const Targets = [{ Id: 'Target0', Arn: arnOf('Fn') }];
    const ofEvents = { EventPattern: { source: ['aws.ec2'] }, Targets };
    const rules = {
      Changes: { Type: 'AWS::Events::Rule', Properties: ofEvents },
      Nightly: { Type: 'AWS::Events::Rule', Properties: { ScheduleExpression: 'rate(1 day)', Targets } },
      OffRule: { Type: 'AWS::Events::Rule', Properties: { ...ofEvents, State: 'DISABLED' } },
    };
    expect(plan(rules).eventRules).toEqual([
      { logicalId: 'Changes', pattern: '{"source":["aws.ec2"]}', functionIds: ['Fn'] },
    ]);
    const withInput = { ...ofEvents, Targets: [{ ...Targets[0], InputPath: '$.detail' }] };
    expect(() => plan({ Changes: { Type: 'AWS::Events::Rule', Properties: withInput } })).toThrow(/InputPath/);
    const otherBus = { ...ofEvents, EventBusName: 'mine' };
    expect(() => plan({ Changes: { Type: 'AWS::Events::Rule', Properties: otherBus } })).toThrow(/default event bus/);
  });
});
