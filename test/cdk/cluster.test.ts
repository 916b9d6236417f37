import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { RemovalPolicy } from 'aws-cdk-lib';
import { describe, expect, it } from 'vitest';
import { passesLogLevel } from '../../aws-local/functions/log-level.ts';
import { Capacity } from '../../cdk/lib/capacity.ts';
import { handlerEntry } from '../../cdk/lib/function-names.ts';
import { routeLimits } from '../../cdk/lib/http-api.ts';
import { readInstanceIdentityKey } from '../../cdk/lib/instance-identity-key.ts';
import { INSTANCE_CHANGE } from '../../functions/cloud-node/instance-change.ts';
import type { FunctionName } from '../../functions/function-list.ts';
import { loadHeartbeatConfig } from '../../functions/heartbeat/environment.ts';
import {
  apiConfig,
  cloudNodeConfig,
  loadConfig,
  monitorConfig,
  streamConfig,
} from '../../shared/config/environment.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { allowedTo, functionIds, functionRole, ofType, type Resource, shortArn, synthesise } from './synthesised.ts';

const template = synthesise();
const certificateFile = fileURLToPath(new URL('../fixtures/instance-identity/cert.pem', import.meta.url));
const functions = ofType(template, 'AWS::Lambda::Function').map(([, resource]) => resource);
const roles = functions.map(functionRole);
const tableIds = Object.fromEntries(
  ofType(template, 'AWS::DynamoDB::Table').map(([id]) => [/Tables(Health|Objects|Control)/.exec(id)?.[1] ?? id, id]),
) as Record<'Health' | 'Objects' | 'Control', string>;
const table = (name: keyof typeof tableIds): Resource =>
  ofType(template, 'AWS::DynamoDB::Table').find(([id]) => id === tableIds[name])![1];

describe('tables', () => {
  it('are three, plain, keyed by pk and sk, on demand, restorable and retained when the stack is deleted', () => {
    const tables = ofType(template, 'AWS::DynamoDB::Table');
    expect(tables).toHaveLength(3);
    for (const [, resource] of tables) {
      expect(resource.DeletionPolicy).toBe('Retain');
      expect(resource.Properties).toMatchObject({
        BillingMode: 'PAY_PER_REQUEST',
        DeletionProtectionEnabled: true,
        PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
        KeySchema: [
          { AttributeName: 'pk', KeyType: 'HASH' },
          { AttributeName: 'sk', KeyType: 'RANGE' },
        ],
        AttributeDefinitions: [
          { AttributeName: 'pk', AttributeType: 'S' },
          { AttributeName: 'sk', AttributeType: 'S' },
        ],
      });
      expect(resource.Properties).not.toHaveProperty('GlobalSecondaryIndexes');
    }
  });

  it('have streams for health and objects, not for control', () => {
    const stream = { StreamViewType: 'NEW_AND_OLD_IMAGES' };
    expect(table('Health').Properties['StreamSpecification']).toEqual(stream);
    expect(table('Objects').Properties['StreamSpecification']).toEqual(stream);
    expect(table('Control').Properties['StreamSpecification']).toBeUndefined();
  });

  it('delete expired items of objects and control by ttl, never of health', () => {
    const expiry = { AttributeName: 'ttl', Enabled: true };
    expect(table('Objects').Properties['TimeToLiveSpecification']).toEqual(expiry);
    expect(table('Control').Properties['TimeToLiveSpecification']).toEqual(expiry);
    expect(table('Health').Properties['TimeToLiveSpecification']).toBeUndefined();
  });

  it('can be unprotected by choice', () => {
    const disposable = synthesise({ removalPolicy: RemovalPolicy.DESTROY, deletionProtection: false });
    for (const [, resource] of ofType(disposable, 'AWS::DynamoDB::Table')) {
      expect(resource.DeletionPolicy).toBe('Delete');
      expect(resource.Properties['DeletionProtectionEnabled']).toBe(false);
    }
  });

  it('are provisioned for the expected nodes and follow the load', () => {
    const provisioned = synthesise({ capacity: Capacity.provisioned(10_000) });
    const health = ofType(provisioned, 'AWS::DynamoDB::Table').find(([id]) => id.includes('Health'))?.[1];
    // 1,000 heartbeats and 33 status posts per second at 70 %.
    expect(health?.Properties['ProvisionedThroughput']).toEqual({ ReadCapacityUnits: 175, WriteCapacityUnits: 1_477 });
    const objects = ofType(provisioned, 'AWS::DynamoDB::Table').find(([id]) => id.includes('Objects'))?.[1];
    // A read of each Node in five minutes at 70 %. Few writes, and capacity for 500 Nodes at once, 18 units each, in
    // 300 s.
    expect(objects?.Properties['ProvisionedThroughput']).toEqual({ ReadCapacityUnits: 48, WriteCapacityUnits: 30 });
    const targets = ofType(provisioned, 'AWS::ApplicationAutoScaling::ScalableTarget');
    expect(targets).toHaveLength(4);
    for (const [, { Properties: range }] of targets) {
      expect(Number(range['MinCapacity'])).toBeLessThan(Number(range['MaxCapacity']));
    }
    const writesOfObjects = targets.find(([id]) => id.includes('Objects') && id.includes('Write'))?.[1].Properties;
    // The queues of evictions are read at once when a zone fails. Autoscaling would follow minutes later.
    const control = ofType(provisioned, 'AWS::DynamoDB::Table').find(([id]) => id.includes('Control'))?.[1];
    expect(control?.Properties).toMatchObject({ BillingMode: 'PAY_PER_REQUEST' });
    expect(targets.filter(([id]) => id.includes('Control'))).toEqual([]);
    // Up to all 10,000 Nodes within one minute.
    expect(writesOfObjects).toMatchObject({ MinCapacity: 30, MaxCapacity: 3_000 });
  });
});

describe('functions', () => {
  it('are one per role, with the role in metadata, tag and service name', () => {
    expect([...roles].sort()).toEqual(
      [
        'api',
        'cloud-node',
        'evictor',
        'health-stream',
        'heartbeat',
        'node-marker',
        'node-monitor',
        'object-stream',
        'pod-gc',
        'scheduler',
        'watch',
        'workloads',
      ].sort(),
    );
    for (const resource of functions) {
      const role = functionRole(resource);
      expect(resource.Properties['Tags']).toContainEqual({ Key: 'nodekeeper:function', Value: role });
      expect(environmentOf(resource)['POWERTOOLS_SERVICE_NAME']).toBe(role);
      expect(resource.Properties).not.toHaveProperty('FunctionName');
    }
  });

  it.each(roles)('%s has an entry file', (role) => {
    expect(existsSync(handlerEntry(role as FunctionName))).toBe(true);
  });

  it.each(roles)('%s runs Node 24 on arm64, logs JSON from WARN on but keeps metrics, and is not traced', (role) => {
    expect(propertiesOf(role)).toMatchObject({
      Runtime: 'nodejs24.x',
      Architectures: ['arm64'],
      Handler: 'index.handler',
      LoggingConfig: { LogFormat: 'JSON', ApplicationLogLevel: 'INFO', SystemLogLevel: 'WARN' },
      Environment: { Variables: { POWERTOOLS_LOG_LEVEL: 'WARN' } },
    });
    const { LoggingConfig: logging } = propertiesOf(role) as { LoggingConfig: { ApplicationLogLevel: string } };
    const metrics = JSON.stringify({ _aws: { Timestamp: 0, CloudWatchMetrics: [] }, ticks_failed_total: 1 });
    expect(passesLogLevel(metrics, logging.ApplicationLogLevel)).toBe(true);
    expect(propertiesOf(role)).not.toHaveProperty('TracingConfig');
  });

  it('have log groups with a retention period', () => {
    const groups = ofType(template, 'AWS::Logs::LogGroup');
    const days = groups.map(([, group]) => group.Properties['RetentionInDays']);
    // The audit log has a longer retention.
    expect(days.toSorted()).toEqual([...functions.map(() => 30), 365]);
  });

  it('have an environment that their own config accepts', () => {
    expect(loadHeartbeatConfig(textEnvironment('heartbeat')).staticTokens).toEqual([]);
    expect(loadConfig(apiConfig, textEnvironment('api'))).toMatchObject({ staticTokens: [], policy: defaultPolicy });
    expect(loadConfig(streamConfig, textEnvironment('health-stream')).tables.health).toBe(`<${tableIds.Health}>`);
    expect(loadConfig(streamConfig, textEnvironment('object-stream')).tables.objects).toBe(`<${tableIds.Objects}>`);
    expect(loadConfig(monitorConfig, textEnvironment('node-monitor')).tables.control).toBe(`<${tableIds.Control}>`);
    // Lambda adds the region.
    const cloudNode = loadConfig(cloudNodeConfig, { ...textEnvironment('cloud-node'), AWS_REGION: 'us-east-1' });
    expect(cloudNode).toMatchObject({ accountId: '<AWS::AccountId>', region: 'us-east-1', clusterId: 'nodekeeper' });
  });

  it('stay within the 4 KB limit of an environment, with the longest list of tokens', () => {
    const longestTokens = 'x'.repeat(640);
    const longestName = 'x'.repeat(255);
    const withInstances = synthesise({ instanceIdentityCertificateFile: certificateFile });
    const all = ofType(withInstances, 'AWS::Lambda::Function').map(([, resource]) => resource);
    for (const resource of all) {
      const characters = Object.entries(environmentOf(resource)).reduce((sum, [name, value]) => {
        if (name === 'ACCOUNT_ID') return sum + name.length + '111122223333'.length;
        const long = name === 'STATIC_TOKENS' ? longestTokens : longestName;
        const text = typeof value === 'string' ? value : long;
        return sum + name.length + text.length;
      }, 0);
      expect(characters).toBeLessThan(4_096);
    }
  });

  it('contain no secret, and none is created: each process that signs creates its own key', () => {
    template.resourceCountIs('AWS::SecretsManager::Secret', 0);
    expect(JSON.stringify(template.toJSON())).not.toContain('{{resolve:');
  });

  it('accept sign-in by hashes from a hidden parameter', () => {
    template.hasParameter('StaticTokens', { Type: 'String', Default: '[]', NoEcho: true });
    expect(environmentOf(byRole('heartbeat'))['STATIC_TOKENS']).toEqual({ Ref: 'StaticTokens' });
  });
});

describe('permissions', () => {
  const arn = (name: keyof typeof tableIds) => `<${tableIds[name]}.Arn>`;
  const at = (name: keyof typeof tableIds, actions: string, ...partitions: string[]) =>
    (partitions.length === 0 ? [''] : partitions.map((partition) => ` [${partition}]`)).flatMap((where) =>
      actions.split(' ').map((action) => `dynamodb:${action} on ${arn(name)}${where}`),
    );
  const tickQueueId = ofType(template, 'AWS::SQS::Queue').find(([id]) => id.includes('NodeMonitorTickQueue'))![0];
  const tickQueue = [
    'ChangeMessageVisibility',
    'DeleteMessage',
    'GetQueueAttributes',
    'ReceiveMessage',
    'SendMessage',
  ].map((action) => `sqs:${action} on <${tickQueueId}.Arn>`);
  const partQueueId = ofType(template, 'AWS::SQS::Queue').find(([id]) => id.includes('NodeMarkerPartsQueue'))![0];
  const partQueue = tickQueue.map((action) => action.replace(tickQueueId, partQueueId));
  const invoke = (role: string) =>
    `lambda:InvokeFunction on <${ofType(template, 'AWS::Lambda::Function').find(([, each]) => functionRole(each) === role)![0]}.Arn>`;
  const streamOf = (name: 'Health' | 'Objects') => {
    const failed = ofType(template, 'AWS::SQS::Queue').find(([id]) => id.includes('DeadLetters'))![0];
    return [
      ...['DescribeStream', 'GetRecords', 'GetShardIterator'].map(
        (action) => `dynamodb:${action} on <${tableIds[name]}.StreamArn>`,
      ),
      'dynamodb:ListStreams on *',
      `sqs:SendMessage on <${failed}.Arn>`,
    ];
  };
  const putEvents = `events:PutEvents on <${ofType(template, 'AWS::Events::EventBus')[0]![0]}.Arn>`;
  const auditLogId = ofType(template, 'AWS::Logs::LogGroup').find(([id]) => id.includes('AuditLog'))![0];
  const expected: Record<string, readonly string[]> = {
    heartbeat: [
      ...at('Health', 'UpdateItem'),
      ...at('Control', 'GetItem', 'node-keys#*', 'probe-keys'),
      ...at('Control', 'UpdateItem', 'refusals', 'witnesses'),
    ],
    api: [
      ...at('Health', 'BatchGetItem DeleteItem GetItem Query Scan UpdateItem'),
      ...at('Objects', 'BatchGetItem ConditionCheckItem DeleteItem GetItem PutItem Query UpdateItem'),
      ...at('Control', 'DeleteItem GetItem PutItem Query', 'bootstrap-tokens', 'node-keys#*'),
      ...at('Control', 'UpdateItem', 'bootstrap-tokens', 'owner#*', 'use#*'),
      ...at('Control', 'UpdateItem', 'refusals', 'signing-requests'),
      ...at('Control', 'GetItem', 'fleet', 'history', 'move', 'probe-keys', 'watch-slots'),
      ...at('Control', 'GetItem Query', 'silences'),
      ...at('Control', 'GetItem PutItem Query', 'account-keys'),
      ...at('Control', 'PutItem', 'ticket-keys', 'log-chunks#*'),
      ...at('Control', 'DeleteItem PutItem Query UpdateItem', 'log-requests'),
      ...at('Control', 'DeleteItem Query', 'volume-work#*'),
      ...at('Control', 'Query', 'service-readers'),
      `logs:PutLogEvents on arn:<AWS::Partition>:logs:<AWS::Region>:<AWS::AccountId>:log-group:<${auditLogId}>:log-stream:api`,
    ],
    'health-stream': [
      ...at('Health', 'UpdateItem'),
      ...at('Objects', 'GetItem PutItem UpdateItem'),
      ...at('Control', 'DeleteItem GetItem', 'fleet'),
      ...streamOf('Health'),
    ],
    'object-stream': [
      ...at('Health', 'BatchGetItem UpdateItem'),
      ...at('Objects', 'BatchGetItem ConditionCheckItem DeleteItem GetItem PutItem Query UpdateItem'),
      ...at('Control', 'DeleteItem GetItem', 'fleet'),
      ...at('Control', 'DeleteItem GetItem PutItem', 'evictions#*'),
      ...at('Control', 'DeleteItem PutItem', 'evictions-due'),
      ...at('Control', 'DeleteItem PutItem UpdateItem', 'cloud', 'pod-gc'),
      ...at('Control', 'BatchGetItem', 'pod-gc'),
      ...at('Control', 'DeleteItem PutItem Query', 'cidr#*'),
      ...at('Control', 'DeleteItem GetItem UpdateItem', 'parked'),
      ...at('Control', 'GetItem UpdateItem', 'scheduler'),
      ...at('Control', 'DeleteItem PutItem', 'service-readers'),
      invoke('scheduler'),
      ...streamOf('Objects'),
      putEvents,
    ],
    'node-monitor': [
      ...at('Health', 'BatchGetItem Scan UpdateItem'),
      ...at('Objects', 'BatchGetItem GetItem PutItem Query UpdateItem'),
      ...at('Control', 'DeleteItem GetItem PutItem Query UpdateItem', 'fleet'),
      ...at('Control', 'GetItem PutItem', 'probe-keys'),
      ...at('Control', 'PutItem', 'silences'),
      ...at('Control', 'DeleteItem Query', 'witnesses'),
      ...at('Control', 'GetItem', 'scheduler'),
      ...at('Control', 'Query', 'cloud', 'evictions-due', 'parked', 'pod-gc', 'refusals', 'workloads-due'),
      ...tickQueue,
      ...partQueue.filter((action) => action.includes('SendMessage')),
      ...['cloud-node', 'evictor', 'pod-gc', 'scheduler', 'workloads'].map(invoke),
      putEvents,
    ],
    'node-marker': [
      ...at('Health', 'BatchGetItem UpdateItem'),
      ...at('Objects', 'BatchGetItem PutItem Query UpdateItem'),
      ...at('Control', 'GetItem', 'fleet'),
      ...partQueue,
    ],
    evictor: [
      ...at('Health', 'BatchGetItem UpdateItem'),
      ...at('Objects', 'BatchGetItem ConditionCheckItem DeleteItem GetItem PutItem Query UpdateItem'),
      ...at('Control', 'UpdateItem', 'tick#evictor'),
      ...at('Control', 'ConditionCheckItem DeleteItem Query UpdateItem', 'fleet'),
      ...at('Control', 'DeleteItem GetItem PutItem', 'evictions#*'),
      ...at('Control', 'DeleteItem PutItem Query', 'evictions-due'),
      ...at('Control', 'DeleteItem Query UpdateItem', 'parked'),
    ],
    'pod-gc': [
      ...at('Health', 'BatchGetItem Scan'),
      ...at('Objects', 'BatchGetItem ConditionCheckItem DeleteItem GetItem PutItem Query UpdateItem'),
      ...at('Control', 'UpdateItem', 'tick#pod-gc'),
      ...at('Control', 'GetItem', 'fleet'),
      ...at('Control', 'DeleteItem PutItem Query UpdateItem', 'pod-gc'),
      'ec2:DescribeInstances on *',
      'ec2:DescribeVolumes on *',
      'ec2:DetachVolume on arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>:instance/*',
      'ec2:DetachVolume on arn:<AWS::Partition>:ec2:<AWS::Region>:<AWS::AccountId>:volume/*',
    ],
    scheduler: [
      ...at('Health', 'BatchGetItem Scan'),
      ...at('Objects', 'BatchGetItem ConditionCheckItem DeleteItem GetItem PutItem Query UpdateItem'),
      ...at('Control', 'GetItem', 'fleet'),
      ...at('Control', 'DeleteItem GetItem PutItem Query UpdateItem', 'scheduler'),
      ...at('Control', 'DeleteItem Query UpdateItem', 'use#*'),
    ],
    'cloud-node': [
      ...at('Health', 'DeleteItem UpdateItem'),
      ...at('Objects', 'BatchGetItem DeleteItem GetItem PutItem UpdateItem'),
      ...at('Control', 'UpdateItem', 'tick#cloud-node'),
      ...at('Control', 'DeleteItem GetItem Query UpdateItem', 'cloud'),
      ...at('Control', 'GetItem PutItem', 'cloud-asked'),
      'ec2:DescribeInstances on *',
    ],
    workloads: [
      ...at('Health', 'UpdateItem'),
      ...at('Control', 'UpdateItem', 'scheduler'),
      ...at('Control', 'PutItem', 'volume-work#*'),
      ...at('Control', 'Query', 'service-readers'),
      ...at('Objects', 'BatchGetItem ConditionCheckItem DeleteItem GetItem PutItem Query UpdateItem'),
      ...at('Control', 'UpdateItem', 'tick#workloads'),
      ...at('Control', 'GetItem', 'fleet'),
      ...at('Control', 'DeleteItem GetItem UpdateItem', 'owner#*'),
      ...at('Control', 'DeleteItem PutItem Query', 'workloads-due'),
      ...at('Control', 'GetItem PutItem', 'workload-shortages'),
      ...streamOf('Objects'),
    ],
    watch: [
      ...at('Health', 'BatchGetItem GetItem Query Scan'),
      ...at('Objects', 'BatchGetItem GetItem Query'),
      ...at('Objects', 'UpdateItem', 'h#*'),
      ...at('Control', 'GetItem', 'node-keys#*', 'ticket-keys'),
      ...at('Control', 'DeleteItem PutItem Query', 'watch-slots'),
      ...at('Control', 'DeleteItem GetItem UpdateItem', 'log-requests'),
      ...at('Control', 'DeleteItem Query', 'log-chunks#*'),
    ],
  };

  it.each(roles)('%s may do exactly what its row says, besides writing its own log', (role) => {
    const logGroup = shortArn((propertiesOf(role)['LoggingConfig'] as { LogGroup: unknown }).LogGroup);
    const ownLog = ['CreateLogStream', 'PutLogEvents'].map(
      (action) => `logs:${action} on ${logGroup.replace('>', '.Arn>')}`,
    );
    expect(allowedTo(template, role)).toEqual([...(expected[role] ?? []), ...ownLog].sort());
  });
});

describe('instances that enrol themselves', () => {
  it('are accepted by key, account and a check with EC2, where a certificate is configured', () => {
    const other = synthesise({ instanceIdentityCertificateFile: certificateFile });
    const [, api] = ofType(other, 'AWS::Lambda::Function').find(([, each]) => functionRole(each) === 'api')!;
    const environment = environmentOf(api);
    expect(shortArn(environment['ACCOUNT_ID'])).toBe('<AWS::AccountId>');
    expect(allowedTo(other, 'api')).toContain('ec2:DescribeInstances on *');
    expect(allowedTo(template, 'api')).not.toContain('ec2:DescribeInstances on *');
    expect(allowedTo(other, 'api').join()).toContain('[node-instances]');
    expect(allowedTo(template, 'api').join()).not.toContain('[node-instances]');
  });

  it('are refused at synth when the file is not a certificate', () => {
    expect(readInstanceIdentityKey(certificateFile)).toMatch(/^MIIBIjAN[A-Za-z0-9+/]+=*$/);
    expect(() => readInstanceIdentityKey(handlerEntry('api'))).toThrow('is no certificate');
  });
});

describe('the watch function', () => {
  it('streams its response at a URL of its own', () => {
    const [url] = ofType(template, 'AWS::Lambda::Url');
    expect(url?.[1].Properties).toMatchObject({ AuthType: 'NONE', InvokeMode: 'RESPONSE_STREAM' });
  });

  it('does not exist where function URLs are forbidden: watchMode longPoll', () => {
    const other = synthesise({ policy: { watchMode: 'longPoll' } });
    other.resourceCountIs('AWS::Lambda::Url', 0);
    other.resourceCountIs('AWS::Lambda::Function', functions.length - 1);
    expect(allowedTo(other, 'api').join()).not.toContain('[ticket-keys]');
  });
});

describe('the pod-gc function', () => {
  it('may detach only volumes with the tag of the cluster', () => {
    const statements = ofType(synthesise({ clusterId: 'edge' }), 'AWS::IAM::Policy').flatMap(
      ([, { Properties }]) =>
        (Properties['PolicyDocument'] as { Statement: { Action: unknown; Resource: unknown; Condition?: unknown }[] })
          .Statement,
    );
    const detaching = statements.filter(({ Action }) => Action === 'ec2:DetachVolume');
    expect(detaching.map(({ Resource, Condition }) => [shortArn(Resource).split(':').at(-1), Condition])).toEqual([
      ['volume/*', { StringEquals: { 'aws:ResourceTag/nodekeeper.dev/cluster': ['edge'] } }],
      ['instance/*', undefined],
    ]);
  });
});

describe('the cloud-node function', () => {
  it('may call EC2 in the Region of the stack only', () => {
    const statements = ofType(template, 'AWS::IAM::Policy').flatMap(
      ([, { Properties }]) =>
        (Properties['PolicyDocument'] as { Statement: { Action: unknown; Condition?: unknown }[] }).Statement,
    );
    const asking = statements.filter(({ Action }) => Action === 'ec2:DescribeInstances');
    expect(asking).not.toHaveLength(0);
    for (const { Condition } of asking) {
      expect(Condition).toEqual({ StringEquals: { 'ec2:Region': [{ Ref: 'AWS::Region' }] } });
    }
  });

  it('is notified by EventBridge when instances stop or terminate', () => {
    const rules = ofType(template, 'AWS::Events::Rule').map(([, { Properties }]) => Properties);
    expect(rules).toHaveLength(1);
    expect(rules[0]).toMatchObject({
      State: 'ENABLED',
      EventPattern: {
        source: ['aws.ec2'],
        'detail-type': [INSTANCE_CHANGE],
        detail: { state: ['shutting-down', 'stopped', 'terminated'] },
      },
      Targets: [{ RetryPolicy: { MaximumEventAgeInSeconds: 60, MaximumRetryAttempts: 1 } }],
    });
    const [target] = rules[0]!['Targets'] as { Arn: unknown }[];
    expect(shortArn(target?.Arn)).toBe(`<${functionIds(template).get('cloud-node')}.Arn>`);
    const permitted = ofType(template, 'AWS::Lambda::Permission').filter(
      ([, { Properties }]) => Properties['Principal'] === 'events.amazonaws.com',
    );
    expect(permitted).toHaveLength(1);
  });
});

describe('streams', () => {
  const mappingOf = (role: string) => {
    const id = functionIds(template).get(role);
    return ofType(template, 'AWS::Lambda::EventSourceMapping').find(
      ([, resource]) => shortArn(resource.Properties['FunctionName']) === `<${id}>`,
    )![1].Properties;
  };
  const patternsOf = (role: string) =>
    (mappingOf(role)['FilterCriteria'] as { Filters: { Pattern: string }[] }).Filters.map(
      (filter) => JSON.parse(filter.Pattern) as unknown,
    );

  it('send only rows of tainted, marked and planned silent nodes to health-stream', () => {
    expect(patternsOf('health-stream')).toEqual([
      { dynamodb: { NewImage: { y: { S: ['T'] }, k: { N: ['1', '2', '3'] } } } },
      { dynamodb: { NewImage: { y: { S: ['U'] }, m: { N: [{ exists: true }] } } } },
      { dynamodb: { NewImage: { s: { N: ['1'] }, S: { N: [{ exists: true }] } } } },
    ]);
  });

  it('send only nodes, pods and retries to object-stream, not the logs, heads and indexes beside them', () => {
    expect(patternsOf('object-stream')).toEqual([
      { dynamodb: { Keys: { pk: { S: [{ prefix: 'o#nodes#' }] } } } },
      { dynamodb: { Keys: { pk: { S: [{ prefix: 'o#pods#' }] } } } },
      { eventName: ['INSERT', 'MODIFY'], dynamodb: { Keys: { pk: { S: [{ prefix: 'r#' }] } } } },
    ]);
  });

  it.each(['health-stream', 'object-stream'])('%s drops an invalid record after bounded retries', (role) => {
    expect(mappingOf(role)).toMatchObject({
      StartingPosition: 'TRIM_HORIZON',
      MaximumRetryAttempts: 10,
      MaximumRecordAgeInSeconds: 3_600,
      BisectBatchOnFunctionError: true,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      MaximumBatchingWindowInSeconds: 0,
    });
    const { OnFailure: onFailure } = mappingOf(role)['DestinationConfig'] as { OnFailure: { Destination: unknown } };
    expect(shortArn(onFailure.Destination)).toMatch(/DeadLetters.*\.Arn>$/);
  });
});

describe('HTTP API', () => {
  const routes = ofType(template, 'AWS::ApiGatewayV2::Route').map(([, resource]) => resource.Properties);
  const targetOf = (routeKey: string): string => {
    const route = routes.find((candidate) => candidate['RouteKey'] === routeKey);
    const integrationId = shortArn(route?.['Target']).replace(/^integrations\/<(.*)>$/, '$1');
    const integration = ofType(template, 'AWS::ApiGatewayV2::Integration').find(([id]) => id === integrationId)![1];
    expect(integration.Properties).toMatchObject({ IntegrationType: 'AWS_PROXY', PayloadFormatVersion: '2.0' });
    return shortArn(integration.Properties['IntegrationUri']).replace(/^<(.*)\.Arn>$/, '$1');
  };

  it('routes renewals of node leases, single and in batches, to heartbeat and everything else to api', () => {
    const lease = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}';
    const batches = 'POST /apis/nodekeeper.dev/v1alpha1/leasebatches';
    const keys = ['$default', `PATCH ${lease}`, batches, `PUT ${lease}`];
    expect(routes.map((route) => route['RouteKey']).sort()).toEqual(keys);
    const ids = functionIds(template);
    expect(targetOf(batches)).toBe(ids.get('heartbeat'));
    expect(targetOf(`PUT ${lease}`)).toBe(ids.get('heartbeat'));
    expect(targetOf(`PATCH ${lease}`)).toBe(ids.get('heartbeat'));
    expect(targetOf('$default')).toBe(ids.get('api'));
  });

  it('limits heartbeats apart from other requests, which cannot use up their tokens', () => {
    const [, stage] = ofType(template, 'AWS::ApiGatewayV2::Stage')[0]!;
    const leaseRoutes = routes.map((route) => String(route['RouteKey'])).filter((key) => key.includes('lease'));
    expect(stage.Properties['RouteSettings']).toEqual(
      Object.fromEntries(leaseRoutes.map((key) => [key, { ThrottlingRateLimit: 200, ThrottlingBurstLimit: 400 }])),
    );
    // API Gateway refuses settings of a route that does not exist.
    const routeIds = ofType(template, 'AWS::ApiGatewayV2::Route').flatMap(([id, { Properties: properties }]) =>
      leaseRoutes.includes(String(properties['RouteKey'])) ? [id] : [],
    );
    expect((stage as { DependsOn?: unknown }).DependsOn).toEqual(expect.arrayContaining(routeIds));
  });

  it.each([
    [500, 500, 500],
    [2_000, 2_000, 2_000],
    [4_000, 4_000, 2_000],
    [20_000, 20_000, 5_000],
  ])('limit %i: heartbeats %i and all other requests %i per second', (requestsPerSecondMax, heartbeats, others) => {
    const limits = routeLimits({ requestsPerSecondMax, burstRequestsMax: 2 * requestsPerSecondMax });
    expect([limits.heartbeats.rateLimit, limits.others.rateLimit]).toEqual([heartbeats, others]);
  });

  it('is throttled, and allows no cross-origin requests', () => {
    const stages = ofType(template, 'AWS::ApiGatewayV2::Stage');
    expect(stages).toHaveLength(1);
    expect(stages[0]?.[1].Properties).toMatchObject({
      StageName: '$default',
      AutoDeploy: true,
      DefaultRouteSettings: { ThrottlingRateLimit: 200, ThrottlingBurstLimit: 400 },
    });
    expect(ofType(template, 'AWS::ApiGatewayV2::Api')[0]?.[1].Properties).not.toHaveProperty('CorsConfiguration');
  });

  it('contain the endpoint and the cluster', () => {
    template.hasOutput('Endpoint', {});
    template.hasOutput('ClusterId', { Value: 'nodekeeper' });
  });
});

function byRole(role: string): Resource {
  return functions.find((resource) => functionRole(resource) === role)!;
}

function propertiesOf(role: string): Record<string, unknown> {
  return byRole(role).Properties;
}

function environmentOf(resource: Resource): Record<string, unknown> {
  return (resource.Properties['Environment'] as { Variables: Record<string, unknown> }).Variables;
}

/** The environment after CloudFormation: the parameter's default, and a name for each table. */
function textEnvironment(role: string): Record<string, string> {
  return Object.fromEntries(
    Object.entries(environmentOf(byRole(role))).map(([name, value]) => [
      name,
      name === 'STATIC_TOKENS' ? '[]' : shortArn(value),
    ]),
  );
}
