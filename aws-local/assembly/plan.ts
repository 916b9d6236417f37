import { defined } from '../../shared/defined.ts';
import { StartError } from '../../shared/host/start-error.ts';
import type { TableCapacity, UnitsPerSecond } from '../dynamodb/partition-capacity.ts';
import type { RequestRate, ThrottlingPlan } from '../http/throttle.ts';
import type { Assembly } from './assembly.ts';
import { createResolver, type PhysicalNames, type Resolver } from './intrinsics.ts';
import { isObject, type Json, type JsonObject, type Template, type TemplateResource } from './template.ts';

/** The resources that local mode runs, read from the template. Code that uses the plan does not need CloudFormation. */
export interface LocalPlan {
  readonly region: string;
  readonly accountId: string;
  readonly tables: readonly TablePlan[];
  readonly functions: readonly FunctionPlan[];
  readonly api: ApiPlan | undefined;
  readonly functionUrls: readonly FunctionUrlPlan[];
  readonly queues: readonly QueuePlan[];
  readonly streamSources: readonly StreamSourcePlan[];
  readonly queueSources: readonly QueueSourcePlan[];
  readonly schedules: readonly SchedulePlan[];
  readonly eventRules: readonly EventRulePlan[];
}

export interface TablePlan {
  readonly logicalId: string;
  readonly tableName: string;
  readonly arn: string;
  /** Billing mode and throughput of the template. The engine has no limits: dynamodb-front.ts applies these. */
  readonly capacity: TableCapacity;
  /** CreateTable's input, as in the template. */
  readonly definition: JsonObject;
  readonly timeToLiveAttribute: string | undefined;
}

export interface FunctionPlan {
  readonly logicalId: string;
  /** Short name: POWERTOOLS_SERVICE_NAME, otherwise the logical id. */
  readonly name: string;
  readonly functionName: string;
  readonly arn: string;
  /** Folder of the bundle. */
  readonly codePath: string;
  /** `index.handler`. */
  readonly handler: string;
  readonly timeoutSeconds: number;
  readonly memoryMegabytes: number;
  /** Concurrent executions that are reserved for it and limit it. Undefined: it shares the unreserved ones. */
  readonly reservedConcurrency: number | undefined;
  readonly environment: Readonly<Record<string, string>>;
  readonly runtime: string;
  /** Log group of the output of the function. */
  readonly logGroupName: string;
  readonly logFormat: string;
  /** Of what the function prints. */
  readonly logLevel: string | undefined;
  /** Of what Lambda writes about it, in the JSON format only. */
  readonly systemLogLevel: string | undefined;
  /** Whether the function may run any number of times in one chain of requests. */
  readonly mayRecur: boolean;
  /** For asynchronous invocations. */
  readonly async: AsyncPolicy;
}

/** What Lambda does with an event after a failed invocation. */
export interface AsyncPolicy {
  /** 0 to 2. */
  readonly maximumRetryAttempts: number;
  readonly maximumEventAgeSeconds: number;
}

export interface ApiPlan {
  readonly apiId: string;
  readonly throttling: ThrottlingPlan;
  readonly routes: readonly RoutePlan[];
}

export interface RoutePlan {
  readonly routeKey: string;
  readonly functionId: string;
  readonly timeoutMs: number;
  /** Headers that the integration sets, in place of those of the client. */
  readonly setHeaders: Readonly<Record<string, string>>;
}

export interface FunctionUrlPlan {
  readonly logicalId: string;
  readonly functionId: string;
  /** Answers are streamed; otherwise they are buffered. */
  readonly streams: boolean;
}

export interface QueuePlan {
  readonly logicalId: string;
  readonly queueName: string;
  readonly url: string;
  readonly arn: string;
  readonly delaySeconds: number;
  readonly visibilityTimeoutSeconds: number;
  readonly retentionSeconds: number;
  readonly redrive: { readonly deadLetterQueueId: string; readonly maxReceiveCount: number } | undefined;
}

export interface StreamSourcePlan {
  readonly logicalId: string;
  readonly tableName: string;
  readonly streamArn: string;
  readonly functionId: string;
  readonly filterPatterns: readonly string[];
  readonly batchSize: number;
  readonly startingPosition: 'LATEST' | 'TRIM_HORIZON';
  /** Infinity when the template sets no limit. */
  readonly maximumRetryAttempts: number;
  /** Infinity when the template sets no limit. */
  readonly maximumRecordAgeSeconds: number;
  readonly bisectBatchOnError: boolean;
  readonly reportBatchItemFailures: boolean;
  readonly failureQueueId: string | undefined;
}

export interface QueueSourcePlan {
  readonly logicalId: string;
  readonly queueId: string;
  readonly functionId: string;
  readonly filterPatterns: readonly string[];
  readonly batchSize: number;
  readonly concurrencyMax: number;
  readonly reportBatchItemFailures: boolean;
}

export interface SchedulePlan {
  readonly logicalId: string;
  readonly expression: string;
  /** Destination: one message or one event. */
  readonly target:
    | { readonly kind: 'queue'; readonly queueId: string }
    | { readonly kind: 'function'; readonly functionId: string };
  /** Input text, in which `<aws.scheduler.scheduled-time>` is not replaced yet. */
  readonly input: string;
}

/** A rule of the default event bus with an event pattern. Rules with a schedule are left out. */
export interface EventRulePlan {
  readonly logicalId: string;
  /** JSON text. */
  readonly pattern: string;
  readonly functionIds: readonly string[];
}

export interface PlanOptions {
  readonly region: string;
  readonly accountId: string;
  /** Base URL of the API: the value of the attribute `ApiEndpoint`. */
  readonly apiUrl: string;
  /** `https://host:port/` of each function URL, by its logical id. */
  readonly functionUrls?: Readonly<Record<string, string>>;
  /** Values of template parameters. Names that the template does not have are ignored. */
  readonly parameters: Readonly<Record<string, string>>;
}

const FUNCTION_URL_TYPE = 'AWS::Lambda::Url';

/** Logical ids of the function URLs. Each needs its own port, which must be known before planLocalMode is called. */
export function functionUrlIds(template: Template): string[] {
  return Object.keys(template.Resources).filter((id) => template.Resources[id]?.Type === FUNCTION_URL_TYPE);
}

/** Defaults of the AWS services for properties that a template does not set. */
const DEFAULTS = {
  functionTimeoutSeconds: 3,
  functionMemoryMegabytes: 128,
  integrationTimeoutMs: 30_000,
  queueVisibilitySeconds: 30,
  queueRetentionSeconds: 345_600,
  streamBatchSize: 100,
  queueBatchSize: 10,
  /** Lambda starts with a few concurrent batches for a queue with little load. */
  queueConcurrency: 2,
  asyncRetryAttempts: 2,
  asyncEventAgeSeconds: 21_600,
  /** CloudFormation refuses a provisioned table without a throughput, so this is only for tests of templates. */
  provisionedThroughput: { readUnitsPerSecond: 5, writeUnitsPerSecond: 5 },
};

/** @throws StartError naming the resource that cannot be run here. */
export function planLocalMode(assembly: Assembly, options: PlanOptions): LocalPlan {
  const { template } = assembly;
  const names = physicalNames(assembly.stackName, options);
  const resolver = localResolver(assembly, options);
  const reader = new TemplateReader(template, resolver);
  const byArn = (type: string, arn: string, where: string) => {
    const found = reader
      .resourcesOf(type)
      .find(({ logicalId, resource }) =>
        [names.attribute(logicalId, resource, 'Arn'), names.ref(logicalId, resource)].includes(arn),
      );
    if (found === undefined) throw new StartError(`template: ${where}: ${arn} names no ${type} of this template`);
    return found.logicalId;
  };
  const functionByArn = (arn: string, where: string) => byArn('AWS::Lambda::Function', arn, where);
  const queueByArn = (arn: string, where: string) => byArn('AWS::SQS::Queue', arn, where);

  const sources = reader
    .resourcesOf('AWS::Lambda::EventSourceMapping')
    .filter((source) => source.properties['Enabled'] !== false);
  return {
    region: options.region,
    accountId: options.accountId,
    tables: [...reader.resourcesOf('AWS::DynamoDB::Table'), ...reader.resourcesOf('AWS::DynamoDB::GlobalTable')].map(
      (table) => planTable(table, names),
    ),
    functions: reader
      .resourcesOf('AWS::Lambda::Function')
      .map((entry) => planFunction(entry, names, { assembly, asyncOf: asyncPolicies(reader) })),
    api: planApi(reader, functionByArn),
    functionUrls: reader
      .resourcesOf(FUNCTION_URL_TYPE)
      .map((url) => planFunctionUrl(url, (arn) => functionByArn(arn, url.logicalId))),
    queues: reader.resourcesOf('AWS::SQS::Queue').map((queue) => planQueue(queue, names, queueByArn)),
    streamSources: sources.filter(isStreamSource).map((source) => planStreamSource(source, functionByArn, queueByArn)),
    queueSources: sources
      .filter((source) => !isStreamSource(source))
      .map((source) => planQueueSource(source, functionByArn, queueByArn)),
    schedules: reader
      .resourcesOf('AWS::Scheduler::Schedule')
      .filter((schedule) => schedule.properties['State'] !== 'DISABLED')
      .map((schedule) => planSchedule(schedule, functionByArn, queueByArn)),
    eventRules: reader
      .resourcesOf('AWS::Events::Rule')
      .filter(({ properties }) => properties['State'] !== 'DISABLED' && isObject(properties['EventPattern']))
      .map((rule) => planEventRule(rule, functionByArn)),
  };
}

/** Resolves the values of a template as local mode does. The permission check compares recorded calls with them. */
export const localResolver = (
  { stackName, template }: Pick<Assembly, 'stackName' | 'template'>,
  options: PlanOptions,
) =>
  createResolver({
    template,
    physical: physicalNames(stackName, options),
    pseudoParameters: {
      'AWS::Region': options.region,
      'AWS::AccountId': options.accountId,
      'AWS::Partition': 'aws',
      'AWS::URLSuffix': 'amazonaws.com',
      'AWS::StackName': stackName,
      'AWS::StackId': `arn:aws:cloudformation:${options.region}:${options.accountId}:stack/${stackName}/local`,
    },
    parameters: options.parameters,
  });

interface ReadResource {
  readonly logicalId: string;
  readonly resource: TemplateResource;
  readonly properties: JsonObject;
}

class TemplateReader {
  readonly #template: Template;
  readonly #resolver: Resolver;

  constructor(template: Template, resolver: Resolver) {
    this.#template = template;
    this.#resolver = resolver;
  }

  resourcesOf(type: string): ReadResource[] {
    return Object.entries(this.#template.Resources)
      .filter(([logicalId, resource]) => resource.Type === type && this.#resolver.included(logicalId))
      .map(([logicalId, resource]) => ({ logicalId, resource, properties: this.#resolver.properties(logicalId) }));
  }
}

/**
 * Names and ARNs like those of AWS, computed from the logical ids. A template has the same names at every start, so
 * stored data is found again.
 */
function physicalNames(stackName: string, options: PlanOptions): PhysicalNames {
  const { region, accountId } = options;
  const arn = (service: string, resource: string) => `arn:aws:${service}:${region}:${accountId}:${resource}`;
  const nameOf = (logicalId: string, resource: TemplateResource, property: string) => {
    const given = resource.Properties?.[property];
    return typeof given === 'string' ? given : `${stackName}-${logicalId}`;
  };

  const ref = (logicalId: string, resource: TemplateResource): string | undefined => {
    switch (resource.Type) {
      case 'AWS::DynamoDB::Table':
      case 'AWS::DynamoDB::GlobalTable':
        return nameOf(logicalId, resource, 'TableName');
      case 'AWS::Lambda::Function':
        return nameOf(logicalId, resource, 'FunctionName');
      case 'AWS::SQS::Queue':
        return `https://sqs.${region}.amazonaws.com/${accountId}/${nameOf(logicalId, resource, 'QueueName')}`;
      case 'AWS::SNS::Topic':
        return arn('sns', nameOf(logicalId, resource, 'TopicName'));
      case 'AWS::Logs::LogGroup':
        return nameOf(logicalId, resource, 'LogGroupName');
      case 'AWS::Events::EventBus':
        return nameOf(logicalId, resource, 'Name');
      case 'AWS::KMS::Key':
        return logicalId;
      case 'AWS::IAM::Role':
        return nameOf(logicalId, resource, 'RoleName');
      case 'AWS::ApiGatewayV2::Api':
      case 'AWS::ApiGatewayV2::Integration':
      case 'AWS::ApiGatewayV2::Route':
      case 'AWS::Events::Rule':
      case 'AWS::CloudWatch::Alarm':
        return logicalId;
      default:
        return undefined;
    }
  };

  const attribute = (logicalId: string, resource: TemplateResource, name: string): string | undefined => {
    const called = ref(logicalId, resource);
    switch (`${resource.Type}.${name}`) {
      case 'AWS::DynamoDB::Table.Arn':
      case 'AWS::DynamoDB::GlobalTable.Arn':
        return arn('dynamodb', `table/${called}`);
      case 'AWS::DynamoDB::Table.StreamArn':
      case 'AWS::DynamoDB::GlobalTable.StreamArn':
        return arn('dynamodb', `table/${called}/stream/local`);
      case 'AWS::Lambda::Function.Arn':
        return arn('lambda', `function:${called}`);
      case 'AWS::SQS::Queue.Arn':
        return arn('sqs', nameOf(logicalId, resource, 'QueueName'));
      case 'AWS::SQS::Queue.QueueName':
        return nameOf(logicalId, resource, 'QueueName');
      case 'AWS::SQS::Queue.QueueUrl':
        return called;
      case 'AWS::SNS::Topic.TopicArn':
        return called;
      case 'AWS::KMS::Key.Arn':
        return arn('kms', `key/${called}`);
      case 'AWS::IAM::Role.Arn':
        return `arn:aws:iam::${accountId}:role/${called}`;
      case 'AWS::Events::EventBus.Arn':
        return arn('events', `event-bus/${called}`);
      case 'AWS::Logs::LogGroup.Arn':
        return arn('logs', `log-group:${called}:*`);
      case 'AWS::ApiGatewayV2::Api.ApiEndpoint':
        return options.apiUrl;
      case 'AWS::Lambda::Url.FunctionUrl':
        return options.functionUrls?.[logicalId];
      case 'AWS::ApiGatewayV2::Api.ApiId':
        return logicalId;
      default:
        return undefined;
    }
  };

  return { ref, attribute };
}

function planTable({ logicalId, resource, properties }: ReadResource, names: PhysicalNames): TablePlan {
  const tableName = required(names.ref(logicalId, resource), `${logicalId}: no table name`);
  const timeToLive = properties['TimeToLiveSpecification'];
  const stream = properties['StreamSpecification'];
  const definition: JsonObject = {
    TableName: tableName,
    // The capacity of the template is applied in front of the engine.
    BillingMode: 'PAY_PER_REQUEST',
    KeySchema: properties['KeySchema'] ?? [],
    AttributeDefinitions: properties['AttributeDefinitions'] ?? [],
  };
  if (isObject(stream)) {
    definition['StreamSpecification'] = { StreamEnabled: true, StreamViewType: stream['StreamViewType'] as Json };
  }
  const globalIndexes = list(properties['GlobalSecondaryIndexes']).map(indexDefinition);
  const localIndexes = list(properties['LocalSecondaryIndexes']).map(indexDefinition);
  if (globalIndexes.length > 0) definition['GlobalSecondaryIndexes'] = globalIndexes;
  if (localIndexes.length > 0) definition['LocalSecondaryIndexes'] = localIndexes;
  const enabled = isObject(timeToLive) && timeToLive['Enabled'] === true;
  return {
    logicalId,
    tableName,
    arn: required(names.attribute(logicalId, resource, 'Arn'), logicalId),
    capacity: tableCapacity(properties),
    definition,
    timeToLiveAttribute: enabled ? String(timeToLive['AttributeName']) : undefined,
  };
}

/** A provisioned table starts with the capacity of the template. Autoscaling, which takes minutes, is not emulated. */
function tableCapacity(properties: JsonObject): TableCapacity {
  const provisioned = throughput(properties['ProvisionedThroughput'], 'ReadCapacityUnits', 'WriteCapacityUnits');
  const warm = throughput(properties['WarmThroughput'], 'ReadUnitsPerSecond', 'WriteUnitsPerSecond');
  if (properties['BillingMode'] === 'PAY_PER_REQUEST') return { mode: 'onDemand', ...defined({ warm }) };
  return {
    mode: 'provisioned',
    provisioned: provisioned ?? DEFAULTS.provisionedThroughput,
    ...defined({ warm }),
  };
}

function throughput(value: Json | undefined, readName: string, writeName: string): UnitsPerSecond | undefined {
  const units = object(value);
  const readUnitsPerSecond = number(units[readName]);
  const writeUnitsPerSecond = number(units[writeName]);
  if (readUnitsPerSecond === undefined || writeUnitsPerSecond === undefined) return undefined;
  return { readUnitsPerSecond, writeUnitsPerSecond };
}

function indexDefinition(index: JsonObject): JsonObject {
  return {
    IndexName: index['IndexName'] ?? '',
    KeySchema: index['KeySchema'] ?? [],
    Projection: index['Projection'] ?? { ProjectionType: 'ALL' },
  };
}

function planFunction(
  { logicalId, resource, properties }: ReadResource,
  names: PhysicalNames,
  { assembly, asyncOf }: { readonly assembly: Assembly; asyncOf(functionName: string): AsyncPolicy },
): FunctionPlan {
  const code = object(properties['Code']);
  const objectKey = text(code['S3Key']);
  const codePath = objectKey === undefined ? undefined : assembly.assetPath(objectKey);
  if (codePath === undefined) throw new StartError(`template: ${logicalId}: its code is not an asset of the assembly`);
  if (list(properties['Layers']).length > 0)
    throw new StartError(`template: ${logicalId}: layers are not supported here`);
  const variables = object(object(properties['Environment'])['Variables']);
  const environment = Object.fromEntries(Object.entries(variables).map(([name, value]) => [name, String(value)]));
  const logging = object(properties['LoggingConfig']);
  const functionName = required(names.ref(logicalId, resource), logicalId);
  return {
    logicalId,
    name: environment['POWERTOOLS_SERVICE_NAME'] ?? logicalId,
    functionName,
    arn: required(names.attribute(logicalId, resource, 'Arn'), logicalId),
    codePath,
    handler: text(properties['Handler']) ?? 'index.handler',
    timeoutSeconds: number(properties['Timeout']) ?? DEFAULTS.functionTimeoutSeconds,
    memoryMegabytes: number(properties['MemorySize']) ?? DEFAULTS.functionMemoryMegabytes,
    reservedConcurrency: number(properties['ReservedConcurrentExecutions']),
    environment,
    runtime: text(properties['Runtime']) ?? '',
    logGroupName: text(logging['LogGroup']) ?? `/aws/lambda/${functionName}`,
    logFormat: text(logging['LogFormat']) ?? 'Text',
    logLevel: text(logging['ApplicationLogLevel']),
    systemLogLevel: text(logging['SystemLogLevel']),
    mayRecur: properties['RecursiveLoop'] === 'Allow',
    async: asyncOf(functionName),
  };
}

/** By the name of the function, which the resource refers to. */
function asyncPolicies(reader: TemplateReader): (functionName: string) => AsyncPolicy {
  const policies = new Map(
    reader.resourcesOf('AWS::Lambda::EventInvokeConfig').map(({ properties }) => [
      text(properties['FunctionName']) ?? '',
      {
        maximumRetryAttempts: number(properties['MaximumRetryAttempts']) ?? DEFAULTS.asyncRetryAttempts,
        maximumEventAgeSeconds: number(properties['MaximumEventAgeInSeconds']) ?? DEFAULTS.asyncEventAgeSeconds,
      },
    ]),
  );
  return (functionName) =>
    policies.get(functionName) ?? {
      maximumRetryAttempts: DEFAULTS.asyncRetryAttempts,
      maximumEventAgeSeconds: DEFAULTS.asyncEventAgeSeconds,
    };
}

type ByArn = (arn: string, where: string) => string;

function planApi(reader: TemplateReader, functionByArn: ByArn): ApiPlan | undefined {
  const [api, ...others] = reader.resourcesOf('AWS::ApiGatewayV2::Api');
  if (api === undefined) return undefined;
  if (others.length > 0) throw new StartError(`template: ${others[0]!.logicalId}: local mode serves one HTTP API`);
  const integrations = new Map(
    reader.resourcesOf('AWS::ApiGatewayV2::Integration').map((integration) => {
      const { logicalId, properties } = integration;
      if (properties['IntegrationType'] !== 'AWS_PROXY' || properties['PayloadFormatVersion'] !== '2.0') {
        throw new StartError(`template: ${logicalId}: only Lambda proxies with payload format 2.0 are supported here`);
      }
      const functionId = functionByArn(lambdaArnIn(text(properties['IntegrationUri']) ?? ''), logicalId);
      return [
        logicalId,
        {
          functionId,
          timeoutMs: number(properties['TimeoutInMillis']) ?? DEFAULTS.integrationTimeoutMs,
          setHeaders: setHeadersOf(logicalId, object(properties['RequestParameters'])),
        },
      ];
    }),
  );
  const routes = reader.resourcesOf('AWS::ApiGatewayV2::Route').map(({ logicalId, properties }) => {
    const integration = integrations.get((text(properties['Target']) ?? '').replace(/^integrations\//, ''));
    if (integration === undefined)
      throw new StartError(`template: ${logicalId}: its target is not an integration of this template`);
    const authorization = text(properties['AuthorizationType']) ?? 'NONE';
    if (authorization !== 'NONE')
      throw new StartError(`template: ${logicalId}: authorizer ${authorization} is not supported here`);
    return { routeKey: text(properties['RouteKey']) ?? '', ...integration };
  });
  return { apiId: api.logicalId, routes, throttling: planThrottling(reader) };
}

/** Parameter mapping of an integration. Source: API Gateway Developer Guide, "Transform API requests and responses". */
function setHeadersOf(logicalId: string, parameters: Readonly<Record<string, Json>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(parameters).map(([target, value]) => {
      const name = /^overwrite:header\.(.+)$/.exec(target)?.[1];
      const mapped = text(value);
      if (name === undefined || mapped === undefined || mapped.startsWith('$')) {
        throw new StartError(`template: ${logicalId}: the parameter mapping ${target} is not supported here`);
      }
      return [name.toLowerCase(), mapped];
    }),
  );
}

/** The throttling of the only stage: another one would have no routes to serve. */
function planThrottling(reader: TemplateReader): ThrottlingPlan {
  const [stage] = reader.resourcesOf('AWS::ApiGatewayV2::Stage');
  const routes = Object.entries(object(stage?.properties['RouteSettings'])).flatMap(([routeKey, settings]) => {
    const rate = requestRate(settings);
    return rate === undefined ? [] : [[routeKey, rate] as const];
  });
  return {
    defaultRoute: requestRate(stage?.properties['DefaultRouteSettings']),
    routes: Object.fromEntries(routes),
  };
}

function requestRate(settings: Json | undefined): RequestRate | undefined {
  const requestsPerSecond = number(object(settings)['ThrottlingRateLimit']);
  const burstRequests = number(object(settings)['ThrottlingBurstLimit']);
  if (requestsPerSecond === undefined || burstRequests === undefined) return undefined;
  return { requestsPerSecond, burstRequests };
}

function planFunctionUrl(
  { logicalId, properties }: ReadResource,
  functionByArn: (arn: string) => string,
): FunctionUrlPlan {
  if (properties['AuthType'] !== 'NONE') {
    throw new StartError(`template: ${logicalId}: a function URL with IAM authorization is not supported here`);
  }
  return {
    logicalId,
    functionId: functionByArn(text(properties['TargetFunctionArn']) ?? ''),
    streams: properties['InvokeMode'] === 'RESPONSE_STREAM',
  };
}

/** A function's ARN, bare or inside `arn:…:apigateway:…/functions/<arn>/invocations`. */
function lambdaArnIn(uri: string): string {
  return /functions\/(arn:[^/]+)\/invocations$/.exec(uri)?.[1] ?? uri;
}

function planQueue(
  { logicalId, resource, properties }: ReadResource,
  names: PhysicalNames,
  queueByArn: ByArn,
): QueuePlan {
  if (properties['FifoQueue'] === true)
    throw new StartError(`template: ${logicalId}: FIFO queues are not supported here`);
  const redrive = object(properties['RedrivePolicy']);
  const deadLetterArn = text(redrive['deadLetterTargetArn']);
  return {
    logicalId,
    queueName: required(names.attribute(logicalId, resource, 'QueueName'), logicalId),
    url: required(names.ref(logicalId, resource), logicalId),
    arn: required(names.attribute(logicalId, resource, 'Arn'), logicalId),
    delaySeconds: number(properties['DelaySeconds']) ?? 0,
    visibilityTimeoutSeconds: number(properties['VisibilityTimeout']) ?? DEFAULTS.queueVisibilitySeconds,
    retentionSeconds: number(properties['MessageRetentionPeriod']) ?? DEFAULTS.queueRetentionSeconds,
    redrive:
      deadLetterArn === undefined
        ? undefined
        : {
            deadLetterQueueId: queueByArn(deadLetterArn, logicalId),
            maxReceiveCount: number(redrive['maxReceiveCount']) ?? 1,
          },
  };
}

function isStreamSource({ properties }: ReadResource): boolean {
  return /:dynamodb:.*\/stream\//.test(text(properties['EventSourceArn']) ?? '');
}

function planStreamSource(
  { logicalId, properties }: ReadResource,
  functionByArn: ByArn,
  queueByArn: ByArn,
): StreamSourcePlan {
  const streamArn = text(properties['EventSourceArn']) ?? '';
  const destination = text(object(object(properties['DestinationConfig'])['OnFailure'])['Destination']);
  return {
    logicalId,
    tableName: /:table\/([^/]+)\/stream\//.exec(streamArn)?.[1] ?? '',
    streamArn,
    functionId: functionByArn(text(properties['FunctionName']) ?? '', logicalId),
    filterPatterns: filterPatterns(properties),
    batchSize: number(properties['BatchSize']) ?? DEFAULTS.streamBatchSize,
    startingPosition: properties['StartingPosition'] === 'LATEST' ? 'LATEST' : 'TRIM_HORIZON',
    maximumRetryAttempts: boundOrNone(properties['MaximumRetryAttempts']),
    maximumRecordAgeSeconds: boundOrNone(properties['MaximumRecordAgeInSeconds']),
    bisectBatchOnError: properties['BisectBatchOnFunctionError'] === true,
    reportBatchItemFailures: reportsItemFailures(properties),
    failureQueueId: destination === undefined ? undefined : queueByArn(destination, logicalId),
  };
}

function planQueueSource(
  { logicalId, properties }: ReadResource,
  functionByArn: ByArn,
  queueByArn: ByArn,
): QueueSourcePlan {
  return {
    logicalId,
    queueId: queueByArn(text(properties['EventSourceArn']) ?? '', logicalId),
    functionId: functionByArn(text(properties['FunctionName']) ?? '', logicalId),
    filterPatterns: filterPatterns(properties),
    batchSize: number(properties['BatchSize']) ?? DEFAULTS.queueBatchSize,
    concurrencyMax: number(object(properties['ScalingConfig'])['MaximumConcurrency']) ?? DEFAULTS.queueConcurrency,
    reportBatchItemFailures: reportsItemFailures(properties),
  };
}

function filterPatterns(properties: JsonObject): string[] {
  return list(object(properties['FilterCriteria'])['Filters']).map((filter) => text(filter['Pattern']) ?? '{}');
}

function reportsItemFailures(properties: JsonObject): boolean {
  const types = properties['FunctionResponseTypes'];
  return Array.isArray(types) && types.includes('ReportBatchItemFailures');
}

/** -1 and absence mean: without end. */
function boundOrNone(value: Json | undefined): number {
  const bound = number(value) ?? -1;
  return bound < 0 ? Number.POSITIVE_INFINITY : bound;
}

function planSchedule({ logicalId, properties }: ReadResource, functionByArn: ByArn, queueByArn: ByArn): SchedulePlan {
  const target = object(properties['Target']);
  const arn = text(target['Arn']) ?? '';
  return {
    logicalId,
    expression: text(properties['ScheduleExpression']) ?? '',
    target: arn.includes(':sqs:')
      ? { kind: 'queue', queueId: queueByArn(arn, logicalId) }
      : { kind: 'function', functionId: functionByArn(arn, logicalId) },
    input: text(target['Input']) ?? '{}',
  };
}

function planEventRule({ logicalId, properties }: ReadResource, functionByArn: ByArn): EventRulePlan {
  if (properties['EventBusName'] !== undefined && properties['EventBusName'] !== 'default') {
    throw new StartError(`template: ${logicalId}: only rules of the default event bus are supported here`);
  }
  return {
    logicalId,
    pattern: JSON.stringify(properties['EventPattern']),
    functionIds: list(properties['Targets']).map((target) => {
      for (const name of ['Input', 'InputPath', 'InputTransformer']) {
        if (target[name] !== undefined) {
          throw new StartError(`template: ${logicalId}: targets with ${name} are not supported here`);
        }
      }
      return functionByArn(text(target['Arn']) ?? '', logicalId);
    }),
  };
}

function required<T>(value: T | undefined, what: string): T {
  if (value === undefined) throw new StartError(`template: ${what}`);
  return value;
}

const text = (value: Json | undefined) => (typeof value === 'string' ? value : undefined);
const object = (value: Json | undefined): JsonObject => (isObject(value) ? (value as JsonObject) : {});
const list = (value: Json | undefined): JsonObject[] =>
  Array.isArray(value) ? value.map((entry) => object(entry)) : [];
/** Numbers of a template may be written as text. */
const number = (value: Json | undefined) => (value === undefined || value === null ? undefined : Number(value));
