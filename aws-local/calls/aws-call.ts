/**
 * What a request to AWS asks of IAM: the actions it is authorised by, on which resources, in which condition context.
 * One request may need several. Sources: Service Authorization Reference (DynamoDB, EC2, CloudWatch Logs, EventBridge);
 * DynamoDB Developer Guide, "Using IAM with DynamoDB transactions".
 */
import { isObject } from '../assembly/template.ts';

export interface AwsCall {
  /** `dynamodb:PutItem`. */
  readonly action: string;
  /** ARN; `*` where the action knows no resources. */
  readonly resource: string;
  /** Condition keys and their values. A call for several partitions is recorded as one call for each. */
  readonly context: Readonly<Record<string, string>>;
}

export interface AwsPlace {
  readonly region: string;
  readonly accountId: string;
}

/** Tags of an EC2 resource by its id; none for one that is not known. */
export type TagsOf = (resourceId: string) => Readonly<Record<string, string>>;

export const arnOf = (place: AwsPlace, service: string, resource: string): string =>
  `arn:aws:${service}:${place.region}:${place.accountId}:${resource}`;

export const logStreamArn = (place: AwsPlace, logGroup: string, logStream: string): string =>
  arnOf(place, 'logs', `log-group:${logGroup}:log-stream:${logStream}`);

const LEADING_KEYS = 'dynamodb:LeadingKeys';
/** The partition key of the tables: shared/store/layout.ts. */
const PARTITION_KEY = 'pk';

/** Actions of the parts of a transaction. */
const TRANSACTION_PARTS = {
  Put: 'PutItem',
  Update: 'UpdateItem',
  Delete: 'DeleteItem',
  ConditionCheck: 'ConditionCheckItem',
} as const;

/** @param operation PutItem, TransactWriteItems …; one unknown here stands by itself, on every table. */
export function dynamoDbCalls(operation: string, input: unknown, place: AwsPlace): AwsCall[] {
  const body = object(input);
  const on = (action: string, tableName: unknown, partition: unknown, index?: unknown): AwsCall => {
    const key = textOf(partition);
    const table = `table/${String(tableName)}`;
    return {
      action: `dynamodb:${action}`,
      resource: arnOf(place, 'dynamodb', typeof index === 'string' ? `${table}/index/${index}` : table),
      context: key === undefined ? {} : { [LEADING_KEYS]: key },
    };
  };
  switch (operation) {
    case 'GetItem':
    case 'UpdateItem':
    case 'DeleteItem':
      return [on(operation, body['TableName'], object(body['Key'])[PARTITION_KEY])];
    case 'PutItem':
      return [on(operation, body['TableName'], object(body['Item'])[PARTITION_KEY])];
    case 'Query':
      return [on(operation, body['TableName'], queriedPartition(body), body['IndexName'])];
    case 'BatchGetItem':
      return Object.entries(object(body['RequestItems'])).flatMap(([tableName, request]) =>
        list(object(request)['Keys']).map((key) => on(operation, tableName, object(key)[PARTITION_KEY])),
      );
    case 'TransactWriteItems':
      return list(body['TransactItems']).flatMap((item) =>
        Object.entries(object(item)).map(([part, write]) => {
          const { TableName: tableName, Key: key, Item: whole } = object(write);
          const action = TRANSACTION_PARTS[part as keyof typeof TRANSACTION_PARTS] ?? part;
          return on(action, tableName, object(key ?? whole)[PARTITION_KEY]);
        }),
      );
    default:
      return [on(operation, body['TableName'] ?? '*', undefined)];
  }
}

/** The value `pk` is compared with in the key condition. */
function queriedPartition(body: Record<string, unknown>): unknown {
  const names = object(body['ExpressionAttributeNames']);
  const values = object(body['ExpressionAttributeValues']);
  for (const [, name, value] of String(body['KeyConditionExpression']).matchAll(/([#\w]+)\s*=\s*(:\w+)/g)) {
    if ((names[name!] ?? name) === PARTITION_KEY) return values[value!];
  }
  return undefined;
}

/** DescribeX has no resources; a detach is authorized for the volume and for the instance. */
export function ec2Calls(parameters: URLSearchParams, place: AwsPlace, tagsOf: TagsOf): AwsCall[] {
  const action = parameters.get('Action') ?? '';
  const region = { 'ec2:Region': place.region };
  const judgedBy = (kind: 'volume' | 'instance', id: string | null): AwsCall[] =>
    id === null
      ? []
      : [
          {
            action: `ec2:${action}`,
            resource: arnOf(place, 'ec2', `${kind}/${id}`),
            context: { ...region, ...prefixed('aws:ResourceTag/', tagsOf(id)) },
          },
        ];
  if (action === 'DetachVolume') {
    return [...judgedBy('volume', parameters.get('VolumeId')), ...judgedBy('instance', parameters.get('InstanceId'))];
  }
  return [{ action: `ec2:${action}`, resource: '*', context: region }];
}

export function logsCalls(operation: string, input: unknown, place: AwsPlace): AwsCall[] {
  const { logGroupName, logStreamName } = object(input);
  const resource =
    typeof logGroupName === 'string' ? logStreamArn(place, logGroupName, String(logStreamName ?? '')) : '*';
  return [{ action: `logs:${operation}`, resource, context: {} }];
}

/** Each entry of a PutEvents is authorized by itself. The bus has a name or an ARN. */
export function eventsCalls(operation: string, input: unknown, place: AwsPlace): AwsCall[] {
  if (operation !== 'PutEvents') return [{ action: `events:${operation}`, resource: '*', context: {} }];
  return list(object(input)['Entries']).map((entry) => {
    const { EventBusName: bus = 'default', Source: source, DetailType: detailType } = object(entry);
    const name = String(bus);
    return {
      action: 'events:PutEvents',
      resource: name.startsWith('arn:') ? name : arnOf(place, 'events', `event-bus/${name}`),
      context: { 'events:source': String(source), 'events:detail-type': String(detailType) },
    };
  });
}

/** A queue is named by its URL. ChangeMessageVisibility and SendMessage are authorised on the queue. */
export function sqsCalls(operation: string, input: unknown, place: AwsPlace): AwsCall[] {
  const name = String(object(input)['QueueUrl']).split('/').at(-1) ?? '';
  // A batch needs the permission of its single action. Source: Amazon SQS Developer Guide, "Amazon SQS batch actions".
  const action = `sqs:${operation.replace(/Batch$/, '')}`;
  return [{ action, resource: arnOf(place, 'sqs', name), context: {} }];
}

/** Invoke is authorised as lambda:InvokeFunction. Functions are named by name or ARN. */
export function lambdaCalls(functionName: string | undefined, place: AwsPlace): AwsCall[] {
  const name = functionName?.split(':').at(-1);
  const resource = name === undefined ? '*' : arnOf(place, 'lambda', `function:${name}`);
  return [{ action: 'lambda:InvokeFunction', resource, context: {} }];
}

/** A service that is not described here: one call, on all resources. */
export const otherCalls = (service: string, operation: string): AwsCall[] => [
  { action: `${service}:${operation}`, resource: '*', context: {} },
];

const object = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
const prefixed = (prefix: string, tags: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(tags).map(([name, value]) => [`${prefix}${name}`, value]));

/** `{"S": "n#edge-1"}`. */
function textOf(value: unknown): string | undefined {
  const text = object(value)['S'];
  return typeof text === 'string' ? text : undefined;
}
