import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RetentionDays } from 'aws-cdk-lib/aws-logs';
import { describe, expect, it } from 'vitest';
import { functionUrlIds, planLocalMode } from '../../aws-local/assembly/plan.ts';
import type { Template as LocalTemplate } from '../../aws-local/assembly/template.ts';
import { Capacity } from '../../cdk/lib/capacity.ts';
import { Encryption, InvalidPropsError, requestLimits } from '../../cdk/lib/cluster-options.ts';
import type { NodekeeperClusterProps } from '../../cdk/lib/cluster-props.ts';
import { clusterPropsFromContext } from '../../cdk/lib/context.ts';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { allowedTo, functionRole, ofType, resourcesOf, shortArn, synthesise, unbundledApp } from './synthesised.ts';

const CERTIFICATE = 'arn:aws:acm:eu-west-1:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef';
const KEY = 'arn:aws:kms:eu-west-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef';
const TOPIC = 'arn:aws:sns:eu-west-1:111122223333:alarms';
const customDomain = { domainName: 'nodes.example.com', certificateArn: CERTIFICATE };

const planOf = (props: NodekeeperClusterProps) => {
  const template = synthesise(props).toJSON() as LocalTemplate;
  return planLocalMode(
    { stackName: 'Nodekeeper', template, assetPath: () => '/nowhere' },
    {
      region: 'eu-west-1',
      accountId: '111122223333',
      apiUrl: 'https://127.0.0.1:1',
      parameters: {},
      functionUrls: Object.fromEntries(functionUrlIds(template).map((id) => [id, 'https://127.0.0.1:2/'])),
    },
  );
};

describe('invalid props', () => {
  it.each<[string, NodekeeperClusterProps]>([
    ['clusterId "Edge_1" must be lower-case', { clusterId: 'Edge_1' }],
    ['logRetention 31 must be a retention period of CloudWatch Logs: 1, 3, 5', { logRetention: 31 as RetentionDays }],
    ['logRetention 9999 must be a retention period', { logRetention: RetentionDays.INFINITE }],
    ['pointInTimeRecoveryDays 36 must be a whole number from 0 to 35', { pointInTimeRecoveryDays: 36 }],
    ['capacity.nodes 0 must be a whole number from 1', { capacity: Capacity.provisioned(0) }],
    ['capacity.warmForNodes 1.5 must be a whole number', { capacity: Capacity.onDemand(1.5) }],
    [
      'customDomain.domainName "https://nodes.example.com" must be a DNS name',
      { customDomain: { ...customDomain, domainName: 'https://nodes.example.com' } },
    ],
    [
      'customDomain.certificateArn "mine" must be the ARN of an ACM certificate',
      { customDomain: { ...customDomain, certificateArn: 'mine' } },
    ],
    [
      'encryption.keyArn "alias/mine" must be the ARN of a KMS key, not of an alias',
      { encryption: Encryption.customerManaged('alias/mine') },
    ],
    ['alarmTopicArn "alarms" must be the ARN of an SNS topic', { alarmTopicArn: 'alarms' }],
    ['alarmEmail "me" must be an e-mail address', { alarmEmail: 'me' }],
    [
      'alarmEmail "a@b.example" cannot be combined with alarmTopicArn',
      { alarmEmail: 'a@b.example', alarmTopicArn: TOPIC },
    ],
    ['requestsPerSecondMax 0 must be a whole number from 1', { requestsPerSecondMax: 0 }],
    [
      'requestsPerSecondMax 500 must allow the 1000 heartbeats per second of 10000 nodes',
      { requestsPerSecondMax: 500, capacity: Capacity.provisioned(10_000) },
    ],
    [
      'requestsPerSecondMax 10001 is more than API Gateway accepts for the account and Region (10000): request a higher',
      { requestsPerSecondMax: 10_001 },
    ],
    [
      'requestsPerSecondMax 20000 is more than API Gateway accepts for the account and Region (10000)',
      { capacity: Capacity.provisioned(100_000) },
    ],
    [
      'requestsPerSecondMax 2600 is more than API Gateway accepts for the account and Region (2500)',
      { requestsPerSecondMax: 2_600, accountRequestsPerSecondMax: 2_500 },
    ],
  ])('are reported at synth: %s', (message, props) => {
    expect(() => synthesise(props)).toThrow(InvalidPropsError);
    expect(() => synthesise(props)).toThrow(message);
  });

  it('are reported all at once, one per line', () => {
    const props = { clusterId: 'A', pointInTimeRecoveryDays: -1, requestsPerSecondMax: 0.5 };
    const lines = (() => {
      try {
        synthesise(props);
      } catch (error) {
        return (error as Error).message.split('\n');
      }
      return [];
    })();
    expect(lines.map((line) => line.split(' ')[0])).toEqual([
      'clusterId',
      'pointInTimeRecoveryDays',
      'requestsPerSecondMax',
    ]);
  });
});

describe('context', () => {
  const whole = {
    clusterId: 'edge',
    stackName: 'EdgeNodes',
    capacity: 'provisioned',
    nodes: '50000',
    logRetentionDays: '7',
    pointInTimeRecoveryDays: 7,
    removalPolicy: 'destroy',
    deletionProtection: false,
    domainName: customDomain.domainName,
    certificateArn: CERTIFICATE,
    encryption: 'customerManaged',
  };

  it('sets the same props, as text of the command line or as values of cdk.json', () => {
    const { stack } = unbundledApp({}, whole);
    expect(stack.stackName).toBe('EdgeNodes');
    expect(synthesise({}, { ...whole, stackName: undefined }).toJSON()).toEqual(
      synthesise({
        clusterId: 'edge',
        capacity: Capacity.provisioned(50_000),
        logRetention: RetentionDays.ONE_WEEK,
        pointInTimeRecoveryDays: 7,
        removalPolicy: 'destroy' as never,
        deletionProtection: false,
        customDomain,
        encryption: Encryption.customerManaged(),
      }).toJSON(),
    );
  });

  it('ignores empty values', () => {
    expect(synthesise({}, { domainName: '', certificateArn: '', clusterId: '' }).toJSON()).toEqual(
      synthesise().toJSON(),
    );
  });

  it.each([
    ['nodes "many" must be a whole number', { nodes: 'many', capacity: 'provisioned' }],
    ['nodes undefined is set together with capacity=provisioned only', { capacity: 'provisioned' }],
    ['nodes 5 is set together with capacity=provisioned only', { nodes: 5 }],
    ['warmForNodes 9 requires capacity=onDemand', { capacity: 'provisioned', nodes: 9, warmForNodes: 9 }],
    ['capacity "dear" must be one of onDemand, provisioned', { capacity: 'dear' }],
    ['removalPolicy "keep" must be one of retain, destroy', { removalPolicy: 'keep' }],
    ['deletionProtection "no" must be one of true, false', { deletionProtection: 'no' }],
    ['logRetentionDays "31" must be one of 1, 3, 5', { logRetentionDays: '31' }],
    ['certificateArn undefined is missing', { domainName: 'nodes.example.com' }],
    ['encryption "mine" must be one of awsManaged, customerManaged', { encryption: 'mine' }],
    [`keyArn "${KEY}" requires encryption=customerManaged`, { keyArn: KEY }],
    ['clusterId ["a"] must be a single value', { clusterId: ['a'] }],
  ])('reports values that cannot be read: %s', (message, context) => {
    expect(() => synthesise({}, context)).toThrow(message);
  });
});

describe('docs/operations/deploy.md', () => {
  const page = readFileSync(join(repositoryRoot, 'docs/operations/deploy.md'), 'utf8');
  const firstCells = [...page.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, cell]) =>
    [...cell!.matchAll(/`(\w+)`/g)].map(([, name]) => name!),
  );

  it('documents every context value that is read, and no other; and every output', () => {
    const read = new Set(['stackName']);
    clusterPropsFromContext((name) => {
      read.add(name);
      return undefined;
    });
    const outputs = Object.keys(synthesise({ customDomain }).toJSON()['Outputs'] as object);
    const documented = outputs.filter((name) => !name.startsWith('Cluster') || name === 'ClusterId');
    expect(firstCells.toSorted()).toEqual([...read, ...documented].toSorted());
  });
});

describe('outputs', () => {
  it('are what a user needs next', () => {
    const template = synthesise();
    expect(template.toJSON()['Outputs']).toMatchObject({
      ClusterId: { Value: 'nodekeeper' },
      Region: { Value: { Ref: 'AWS::Region' } },
      Endpoint: { Value: { 'Fn::GetAtt': [expect.stringContaining('FrontDoor'), 'ApiEndpoint'] } },
      KubeconfigCommand: {
        Value: { 'Fn::Join': ['', ['npx nodekeeper kubeconfig --stack Nodekeeper --region ', { Ref: 'AWS::Region' }]] },
      },
    });
    expect(Object.keys(template.toJSON()['Outputs'] as object)).not.toContain('DomainTarget');
  });
});

describe('point-in-time recovery', () => {
  const recoveryOf = (props: NodekeeperClusterProps) =>
    ofType(synthesise(props), 'AWS::DynamoDB::Table').map(
      ([, { Properties }]) => Properties['PointInTimeRecoverySpecification'],
    );

  it('is on for every table, for the configured days, and off by choice', () => {
    const on = { PointInTimeRecoveryEnabled: true };
    expect(recoveryOf({})).toEqual([on, on, on]);
    const week = { ...on, RecoveryPeriodInDays: 7 };
    expect(recoveryOf({ pointInTimeRecoveryDays: 7 })).toEqual([week, week, week]);
    const off = { PointInTimeRecoveryEnabled: false };
    expect(recoveryOf({ pointInTimeRecoveryDays: 0 })).toEqual([off, off, off]);
  });
});

describe('capacity for an expected size', () => {
  it('warms on-demand tables for twice the heartbeats of that many nodes, never below the throughput of a new table', () => {
    const warm = (nodes: number) =>
      Object.fromEntries(
        ofType(
          synthesise({ capacity: Capacity.onDemand(nodes), accountRequestsPerSecondMax: 20_000 }),
          'AWS::DynamoDB::Table',
        ).map(([id, { Properties }]) => [/Health|Objects|Control/.exec(id)?.[0], Properties['WarmThroughput']]),
      );
    const least = { ReadUnitsPerSecond: 12_000, WriteUnitsPerSecond: 4_000 };
    // Twice 10,000 heartbeats and 333 status posts per second.
    const health = { ReadUnitsPerSecond: 12_000, WriteUnitsPerSecond: 20_667 };
    expect(warm(100_000)).toEqual({ Health: health, Objects: least, Control: least });
    expect(warm(1_000)).toEqual({ Health: least, Objects: least, Control: least });
    expect(JSON.stringify(synthesise().toJSON())).not.toContain('WarmThroughput');
  });

  it('allows twice the heartbeats of the fleet through the HTTP API, 1,000 nodes by default', () => {
    expect(requestLimits({}, defaultPolicy)).toEqual({ requestsPerSecondMax: 200, burstRequestsMax: 400 });
    expect(requestLimits({ nodesMax: 10 }, defaultPolicy)).toEqual({
      requestsPerSecondMax: 100,
      burstRequestsMax: 200,
    });
    expect(requestLimits({ nodesMax: 4_000 }, defaultPolicy).requestsPerSecondMax).toBe(800);
    const limits = { requestsPerSecondMax: 20_000, burstRequestsMax: 40_000 };
    const accountRequestsPerSecondMax = 20_000;
    expect(() => synthesise({ accountRequestsPerSecondMax, capacity: Capacity.provisioned(100_000) })).not.toThrow();
    expect(requestLimits({ capacity: Capacity.provisioned(100_000) }, defaultPolicy)).toEqual(limits);
    expect(requestLimits({ requestsPerSecondMax: 50 }, defaultPolicy).burstRequestsMax).toBe(100);
  });
});

describe('reserved concurrency', () => {
  const reservedBy = (props: NodekeeperClusterProps) =>
    Object.fromEntries(
      ofType(synthesise(props), 'AWS::Lambda::Function')
        .map(([, resource]) => [functionRole(resource), resource.Properties['ReservedConcurrentExecutions']])
        .filter(([, reserved]) => reserved !== undefined),
    );
  const small = { heartbeat: 100, api: 100, watch: 50, 'node-monitor': 10, evictor: 5 };

  it('is none in accounts where Lambda would refuse it', () => {
    for (const props of [10, 50, 100, 364].map((accountConcurrency) => ({ accountConcurrency }))) {
      expect(reservedBy(props), JSON.stringify(props)).toEqual({});
    }
  });

  it('leaves 100 unreserved, and grows with the heartbeats of the expected nodes', () => {
    expect(reservedBy({})).toEqual(small);
    expect(reservedBy({ accountConcurrency: 365 })).toEqual(small);
    expect(reservedBy({ accountConcurrency: 1_000 })).toEqual(small);
    const capacity = Capacity.provisioned(20_000);
    expect(reservedBy({ accountConcurrency: 1_000, capacity })).toEqual({ ...small, heartbeat: 400 });
    expect(reservedBy({ accountConcurrency: 600, capacity })).toEqual({});
  });

  it('limits the executions that mark nodes to a fifth of the account, and to what is configured', () => {
    const most = (props: NodekeeperClusterProps): unknown =>
      ofType(synthesise(props), 'AWS::Lambda::EventSourceMapping').flatMap(([, { Properties: properties }]) =>
        properties['ScalingConfig'] === undefined ? [] : [properties['ScalingConfig']],
      );
    expect(most({})).toEqual([{ MaximumConcurrency: 32 }]);
    expect(most({ accountConcurrency: 10 })).toEqual([{ MaximumConcurrency: 2 }]);
    expect(most({ accountConcurrency: 100 })).toEqual([{ MaximumConcurrency: 20 }]);
    expect(most({ accountConcurrency: 1_000 })).toEqual([{ MaximumConcurrency: 32 }]);
    expect(most({ markConcurrencyMax: 100 })).toEqual([{ MaximumConcurrency: 100 }]);
    expect(most({ reservedConcurrency: { 'node-marker': 8 } })).toEqual([{ MaximumConcurrency: 8 }]);
    expect(() => synthesise({ markConcurrencyMax: 1 })).toThrow(
      'markConcurrencyMax 1 must be a whole number from 2 to 1000',
    );
  });

  it('can be chosen for each function', () => {
    const reservedConcurrency = { watch: 20, 'pod-gc': 5 };
    expect(reservedBy({ reservedConcurrency })).toEqual(reservedConcurrency);
    expect(reservedBy({ reservedConcurrency: {}, accountConcurrency: 1_000 })).toEqual({});
    expect(
      clusterPropsFromContext((name) => (name === 'reservedConcurrency' ? 'watch=20,pod-gc=5' : undefined)),
    ).toEqual({ reservedConcurrency });
  });

  it.each<[string, NodekeeperClusterProps]>([
    ['reservedConcurrency.wach 5 is no function: heartbeat, ', { reservedConcurrency: { wach: 5 } }],
    [
      'reservedConcurrency.node-marker 5 must not be below the 10 executions',
      { reservedConcurrency: { 'node-marker': 5 }, markConcurrencyMax: 10 },
    ],
    ['reservedConcurrency.node-marker 1 must not be below the 2', { reservedConcurrency: { 'node-marker': 1 } }],
    ['reservedConcurrency.watch 0 must be a whole number from 1', { reservedConcurrency: { watch: 0 } }],
    [
      'reservedConcurrency.watch null must be',
      clusterPropsFromContext((n) => (n === 'reservedConcurrency' ? 'watch=x' : undefined)),
    ],
    [
      "must leave 100 of the account's 1000 executions unreserved; it reserves 901",
      { accountConcurrency: 1_000, reservedConcurrency: { heartbeat: 900, watch: 1 } },
    ],
  ])('is refused at synth: %s', (message, props) => {
    expect(() => synthesise(props)).toThrow(message);
  });
});

describe('a custom domain', () => {
  const template = synthesise({ customDomain });

  it('becomes the endpoint, for probes too, and outputs the target of its DNS record', () => {
    expect(template.toJSON()['Outputs']).toMatchObject({
      Endpoint: { Value: 'https://nodes.example.com' },
      DomainTarget: { Value: { 'Fn::GetAtt': [expect.stringContaining('Domain'), 'RegionalDomainName'] } },
    });
    const [monitor] = ofType(template, 'AWS::Lambda::Function').filter(([id]) => id.includes('NodeMonitor'));
    expect(monitor?.[1].Properties).toMatchObject({
      Environment: { Variables: { PROBE_URL: 'https://nodes.example.com' } },
    });
  });

  it('is mapped to the only stage, with TLS 1.2 or newer', () => {
    template.hasResourceProperties('AWS::ApiGatewayV2::DomainName', {
      DomainName: 'nodes.example.com',
      DomainNameConfigurations: [{ CertificateArn: CERTIFICATE, SecurityPolicy: 'TLS_1_2', EndpointType: 'REGIONAL' }],
    });
    template.resourceCountIs('AWS::ApiGatewayV2::ApiMapping', 1);
  });

  it('does not prevent local mode from reading the template', () => {
    expect(planOf({ customDomain }).api?.routes.length).toBeGreaterThan(0);
  });
});

describe('a customer-managed key', () => {
  const template = synthesise({ encryption: Encryption.customerManaged() });
  const [keyId, key] = ofType(template, 'AWS::KMS::Key')[0]!;
  const keyArn = { 'Fn::GetAtt': [keyId, 'Arn'] };

  it('is rotated and retained, and allows the logs of the account and Region to use it', () => {
    expect(key).toMatchObject({ DeletionPolicy: 'Retain', Properties: { EnableKeyRotation: true } });
    const { Statement: statements } = key.Properties['KeyPolicy'] as { Statement: { Condition?: unknown }[] };
    const [, logs] = statements;
    expect(logs).toMatchObject({ Effect: 'Allow', Condition: { ArnLike: expect.anything() } });
    expect(shortArn((logs as { Principal: { Service: unknown } }).Principal.Service)).toBe(
      'logs.<AWS::Region>.amazonaws.com',
    );
  });

  it.each([
    ['AWS::DynamoDB::Table', { SSESpecification: { SSEEnabled: true, SSEType: 'KMS', KMSMasterKeyId: keyArn } }],
    ['AWS::SQS::Queue', { KmsMasterKeyId: keyArn }],
    ['AWS::Logs::LogGroup', { KmsKeyId: keyArn }],
  ])('encrypts every %s', (type, properties) => {
    const all = ofType(template, type);
    expect(all.length).toBeGreaterThan(0);
    for (const [id, resource] of all) expect(resource.Properties, id).toMatchObject(properties);
  });

  it('may be used by a function only through the services that its own policy names', () => {
    const through = (role: string) =>
      ofType(template, 'AWS::IAM::Policy')
        .filter(([id]) => id.includes(`Cluster${role}`))
        .flatMap(([, { Properties }]) => (Properties['PolicyDocument'] as { Statement: object[] }).Statement)
        .filter((statement) => JSON.stringify(statement).includes('"kms:Decrypt"'))
        .map(
          (statement) =>
            shortArn(
              (statement as { Condition: { StringEquals: Record<string, unknown> } }).Condition.StringEquals[
                'kms:ViaService'
              ],
            ).split('.')[0],
        );
    expect(through('HeartbeatRole')).toEqual(['dynamodb']);
    expect(through('NodeMonitorRole')).toEqual(['dynamodb', 'sqs']);
    expect(through('EvictorTickSweepRole')).toEqual(['sqs']);
    expect(allowedTo(template, 'heartbeat')).toContain(`kms:Decrypt on <${keyId}.Arn>`);
    expect(allowedTo(synthesise(), 'heartbeat').join()).not.toContain('kms:');
  });

  it('can be an existing one', () => {
    const own = synthesise({ encryption: Encryption.customerManaged(KEY) });
    own.resourceCountIs('AWS::KMS::Key', 0);
    own.allResourcesProperties('AWS::SQS::Queue', { KmsMasterKeyId: KEY });
    expect(allowedTo(own, 'watch')).toContain(`kms:Decrypt on ${KEY}`);
  });

  it('does not prevent local mode from reading the template', () => {
    expect(planOf({ encryption: Encryption.customerManaged() }).tables).toHaveLength(3);
  });

  it('adds nothing to a cluster without one', () => {
    expect(planOf({}).tables.map(({ definition }) => definition)).toEqual(
      planOf({ encryption: Encryption.customerManaged() }).tables.map(({ definition }) => definition),
    );
    expect(Object.values(resourcesOf(synthesise())).some(({ Type }) => Type.startsWith('AWS::KMS'))).toBe(false);
  });
});

describe('the receiver of alarms', () => {
  const targetsOf = (template: ReturnType<typeof synthesise>) =>
    new Set(
      ['AWS::CloudWatch::Alarm', 'AWS::CloudWatch::CompositeAlarm']
        .flatMap((type) => ofType(template, type))
        .flatMap(([, { Properties }]) => (Properties['AlarmActions'] ?? []) as unknown[])
        .map((target) => shortArn(target)),
    );

  it('is an existing topic, an e-mail address with a topic of its own, or none', () => {
    expect(targetsOf(synthesise())).toEqual(new Set());
    expect(targetsOf(synthesise({ alarmTopicArn: TOPIC }))).toEqual(new Set([TOPIC]));
    const mailed = synthesise({ alarmEmail: 'on-call@example.com' });
    const [topicId] = ofType(mailed, 'AWS::SNS::Topic')[0]!;
    expect(targetsOf(mailed)).toEqual(new Set([`<${topicId}>`]));
    mailed.hasResourceProperties('AWS::SNS::Subscription', { Protocol: 'email', Endpoint: 'on-call@example.com' });
    const [, policy] = ofType(mailed, 'AWS::SNS::TopicPolicy')[0]!;
    const { Statement: statements } = policy.Properties['PolicyDocument'] as { Statement: unknown[] };
    expect(statements).toContainEqual(
      expect.objectContaining({ Effect: 'Allow', Principal: { Service: 'cloudwatch.amazonaws.com' } }),
    );
  });
});

describe('restored tables', () => {
  const arnOf = (name: string) => `arn:aws:dynamodb:eu-west-1:111122223333:table/restored-${name}`;
  const streamed = (name: string) => ({
    tableArn: arnOf(name),
    streamArn: `${arnOf(name)}/stream/2026-01-01T00:00:00.000`,
  });
  const restoredTables = {
    health: streamed('health'),
    objects: streamed('objects'),
    control: { tableArn: arnOf('control') },
  };

  it('replace those of the stack everywhere', { timeout: 120_000 }, () => {
    const template = synthesise({ restoredTables });
    // Those of the stack stay, with their data.
    template.resourceCountIs('AWS::DynamoDB::Table', 3);
    expect(allowedTo(template, 'heartbeat')).toContain(`dynamodb:UpdateItem on ${arnOf('health')}`);
    const text = JSON.stringify(template.toJSON());
    expect(text).toContain('"HEALTH_TABLE":"restored-health"');
    expect(text).toContain(`"EventSourceArn":"${restoredTables.objects.streamArn}"`);
    expect(() => unbundledApp({ restoredTables, restoredTablesFile: 'tables.json' })).toThrow('exclude each other');
    expect(() => unbundledApp({ restoredTables }).app.synth()).not.toThrow();
  });

  it.each([
    ['restoredTables.health.streamArn undefined must be', { ...restoredTables, health: restoredTables.control }],
    ['restoredTables.control.tableArn undefined must be', { ...restoredTables, control: {} }],
    ['is used twice', { ...restoredTables, control: { tableArn: arnOf('health') } }],
  ])('must be three, two with their stream: %s', (message, tables) => {
    expect(() => synthesise({ restoredTables: tables as never })).toThrow(message);
  });
});

describe('cdk-nag', () => {
  it.each<[string, NodekeeperClusterProps]>([
    [
      'everything on',
      {
        capacity: Capacity.provisioned(1_000),
        customDomain,
        encryption: Encryption.customerManaged(),
        pointInTimeRecoveryDays: 1,
        network: { subnetIds: ['subnet-01234567'], securityGroupIds: ['sg-01234567'] },
        policy: { watchMode: 'longPoll', heartbeatUrl: 'on', apiUrl: 'on' },
        tags: { team: 'edge' },
        alarmEmail: 'on-call@example.com',
      },
    ],
    ['point-in-time recovery off', { pointInTimeRecoveryDays: 0 }],
  ])('accepts %s', (_, props) => {
    expect(() => unbundledApp(props).app.synth()).not.toThrow();
  });
});

describe('the URL of heartbeats, and that of the API', () => {
  const template = synthesise({ policy: { heartbeatUrl: 'on', apiUrl: 'on' } });
  const urls = ofType(template, 'AWS::Lambda::Url');
  const ofHeartbeat = urls.find(([id]) => id.includes('Heartbeat'));

  it('is a second way to function heartbeat, which authenticates its requests itself', () => {
    expect(urls).toHaveLength(3);
    expect(ofHeartbeat?.[1].Properties).toMatchObject({
      AuthType: 'NONE',
      TargetFunctionArn: { 'Fn::GetAtt': [expect.stringContaining('HeartbeatFunction'), 'Arn'] },
    });
    expect(ofHeartbeat?.[1].Properties).not.toHaveProperty('InvokeMode', 'RESPONSE_STREAM');
  });

  it('is sent to the function with each heartbeat through the HTTP API, in place of what a client sends', () => {
    const mapped = ofType(template, 'AWS::ApiGatewayV2::Integration').flatMap(([id, { Properties }]) =>
      Properties?.['RequestParameters'] === undefined ? [] : [[id, Properties['RequestParameters']]],
    );
    expect(mapped).toEqual([
      [
        expect.stringContaining('Heartbeat'),
        { 'overwrite:header.x-nodekeeper-heartbeat-url': { 'Fn::GetAtt': [ofHeartbeat?.[0], 'FunctionUrl'] } },
      ],
    ]);
  });

  it('is probed by node-monitor', () => {
    const [monitor] = ofType(template, 'AWS::Lambda::Function').filter(([id]) => id.includes('NodeMonitor'));
    expect(monitor?.[1].Properties).toMatchObject({
      Environment: { Variables: { HEARTBEAT_URL: { 'Fn::GetAtt': [ofHeartbeat?.[0], 'FunctionUrl'] } } },
    });
  });

  it('is an output for the API, and its function authenticates the requests itself', () => {
    const [id, ofApi] = urls.find(([each]) => each.includes('ApiFunction')) ?? [];
    expect(ofApi?.Properties).toMatchObject({ AuthType: 'NONE' });
    expect(ofApi?.Properties).not.toHaveProperty('InvokeMode', 'RESPONSE_STREAM');
    expect(template.toJSON()['Outputs']).toMatchObject({ ApiUrl: { Value: { 'Fn::GetAtt': [id, 'FunctionUrl'] } } });
  });

  it('is off by default', () => {
    const standard = synthesise({});
    expect(ofType(standard, 'AWS::Lambda::Url')).toHaveLength(1);
    expect(standard.toJSON()['Outputs']).not.toHaveProperty('ApiUrl');
  });
});
