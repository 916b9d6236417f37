/**
 * The tables in DynamoDB.
 *
 * Retries: the SDK repeats throttled requests and lost connections, up to `maxAttempts` (client.ts). A write that
 * conflicts with a transaction on its item is repeated here. A transaction uses one idempotency token for all its
 * attempts, so it is applied once. A single write has no such token, see ItemStore.write.
 */
import { randomUUID } from 'node:crypto';
import {
  BatchGetItemCommand,
  DeleteItemCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  ScanCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { defined } from '../defined.ts';
import {
  type Condition,
  checkSegment,
  checkTransaction,
  compareKeys,
  type DeleteWrite,
  type Item,
  type ItemKey,
  type ItemStore,
  keyText,
  type PutWrite,
  type QueryPage,
  type QueryRequest,
  type ScanPage,
  type ScanRequest,
  StoreFault,
  type TableName,
  type TransactOutcome,
  type TransactWrite,
  type WriteOptions,
  type WriteOutcome,
} from '../store/item-store.ts';
import {
  conditionExpression,
  itemFromWire,
  itemToWire,
  nameIn,
  type Placeholders,
  placeholderInput,
  placeholders,
  presentItem,
  toWire,
  valueIn,
  type WireItem,
} from './dynamodb-expression.ts';
import {
  CONFLICT_ATTEMPTS_MAX,
  cancellationOf,
  consumedWanted,
  type DynamoDbOptions,
  faultOf,
  orFault,
  pauseBefore,
  refusalOf,
  reportConsumed,
  reportRefused,
  sendPastConflicts,
  tableNameOf,
  type UpdateSender,
  updateInput,
  updateItem,
} from './dynamodb-request.ts';

/** Maximum number of keys in one BatchGetItem, a limit of the service. */
const BATCH_KEYS_MAX = 100;
/** Concurrent batches. */
const BATCHES_AT_ONCE_MAX = 8;

export function dynamoDbItemStore(options: DynamoDbOptions): ItemStore {
  const sendUpdate: UpdateSender = (input) => options.client.send(new UpdateItemCommand(input));
  return {
    get: (key, { consistent }) => getItem(options, key, consistent),
    getMany: (keys, { consistent }) => getItems(options, keys, consistent),
    query: (request) => queryPage(options, request),
    scan: (request) => scanPage(options, request),
    write: (write, wanted = {}) =>
      write.kind === 'update' ? updateItem(sendUpdate, options, write, wanted) : putOrDelete(options, write, wanted),
    transact: (writes) => transact(options, writes),
  };
}

async function getItem(options: DynamoDbOptions, key: ItemKey, consistent: boolean): Promise<Item | undefined> {
  const input = {
    TableName: tableNameOf(options, key.table),
    Key: wireKey(key),
    ConsistentRead: consistent,
    ...consumedWanted(options),
  };
  options.onCall?.({ operation: 'GetItem', table: key.table, partitionKeys: [key.pk] });
  const answer = await orFault(() => options.client.send(new GetItemCommand(input)));
  reportConsumed(options, 'GetItem', 'read', [answer.ConsumedCapacity]);
  return answer.Item === undefined ? undefined : itemFromWire(answer.Item);
}

async function getItems(
  options: DynamoDbOptions,
  keys: readonly ItemKey[],
  consistent: boolean,
): Promise<readonly (Item | undefined)[]> {
  const distinct = new Map(keys.map((key) => [keyText(key), key]));
  const found = new Map<string, Item>();
  const pages: ItemKey[][] = [];
  const all = [...distinct.values()];
  for (let start = 0; start < all.length; start += BATCH_KEYS_MAX) {
    pages.push(all.slice(start, start + BATCH_KEYS_MAX));
  }
  for (let start = 0; start < pages.length; start += BATCHES_AT_ONCE_MAX) {
    const batch = pages.slice(start, start + BATCHES_AT_ONCE_MAX);
    await Promise.all(batch.map((page) => readBatch(options, page, consistent, found)));
  }
  return keys.map((key) => found.get(keyText(key)));
}

async function queryPage(options: DynamoDbOptions, request: QueryRequest): Promise<QueryPage> {
  if (isEmptyRange(request)) return { items: [] };
  options.onCall?.({ operation: 'Query', table: request.table, partitionKeys: [request.pk] });
  const answer = await orFault(() => options.client.send(new QueryCommand(queryInput(options, request))));
  reportConsumed(options, 'Query', 'read', [answer.ConsumedCapacity]);
  const items = (answer.Items ?? []).map(itemFromWire);
  const next = answer.LastEvaluatedKey?.['sk']?.S;
  return next === undefined ? { items } : { items, next };
}

function queryInput(options: DynamoDbOptions, request: QueryRequest) {
  const { table, pk, after, through, beginsWith, attributes } = request;
  const holders = placeholders();
  let condition = `${nameIn(holders, 'pk')} = ${valueIn(holders, pk)}`;
  if (through !== undefined) condition += ` AND ${nameIn(holders, 'sk')} <= ${valueIn(holders, through)}`;
  if (beginsWith !== undefined) {
    condition += ` AND begins_with(${nameIn(holders, 'sk')}, ${valueIn(holders, beginsWith)})`;
  }
  // A query accepts one condition on the sort key, so `after` is a start key. It need not exist, but the service
  // refuses one outside the prefix. A start key before the prefix has no effect and is omitted.
  const start = after !== undefined && (beginsWith === undefined || after.startsWith(beginsWith)) ? after : undefined;
  return {
    TableName: tableNameOf(options, table),
    KeyConditionExpression: condition,
    ...projectionInput(attributes, holders),
    ...placeholderInput(holders),
    ConsistentRead: request.consistent,
    ...defined({ Limit: request.limit }),
    ...(start === undefined ? {} : { ExclusiveStartKey: { pk: toWire(pk), sk: toWire(start) } }),
    ...consumedWanted(options),
  };
}

async function scanPage(options: DynamoDbOptions, request: ScanRequest): Promise<ScanPage> {
  checkSegment(request);
  options.onCall?.({ operation: 'Scan', table: request.table, partitionKeys: [] });
  const answer = await orFault(() => options.client.send(new ScanCommand(scanInput(options, request))));
  reportConsumed(options, 'Scan', 'read', [answer.ConsumedCapacity]);
  const items = (answer.Items ?? []).map(itemFromWire);
  const { pk, sk } = answer.LastEvaluatedKey ?? {};
  return pk?.S === undefined || sk?.S === undefined ? { items } : { items, next: { pk: pk.S, sk: sk.S } };
}

function scanInput(options: DynamoDbOptions, { table, segment, segments, after, attributes, ...request }: ScanRequest) {
  const holders = placeholders();
  return {
    TableName: tableNameOf(options, table),
    Segment: segment,
    TotalSegments: segments,
    ConsistentRead: request.consistent,
    ...defined({ Limit: request.limit }),
    ...(after === undefined ? {} : { ExclusiveStartKey: { pk: toWire(after.pk), sk: toWire(after.sk) } }),
    ...projectionInput(attributes, holders),
    ...placeholderInput(holders),
    ...consumedWanted(options),
  };
}

const projectionInput = (attributes: readonly string[] | undefined, holders: Placeholders) =>
  attributes === undefined
    ? {}
    : { ProjectionExpression: ['pk', 'sk', ...attributes].map((name) => nameIn(holders, name)).join(', ') };

async function putOrDelete(
  options: DynamoDbOptions,
  write: PutWrite | DeleteWrite,
  wanted: WriteOptions,
): Promise<WriteOutcome> {
  const { client } = options;
  const tableName = tableNameOf(options, write.key.table);
  const base = {
    ...(write.kind === 'put' ? putInput(write, tableName) : deleteInput(write, tableName)),
    ...consumedWanted(options),
    ...(wanted.returnPrevious ? { ReturnValues: 'ALL_OLD' as const } : {}),
  };
  const operation = write.kind === 'put' ? 'PutItem' : 'DeleteItem';
  options.onCall?.({ operation, table: write.key.table, partitionKeys: [write.key.pk] });
  try {
    const answer = await sendPastConflicts(
      () => ('Item' in base ? client.send(new PutItemCommand(base)) : client.send(new DeleteItemCommand(base))),
      options,
    );
    reportConsumed(options, operation, 'write', [answer.ConsumedCapacity]);
    const previous = wanted.returnPrevious ? presentItem(answer.Attributes) : undefined;
    if (previous !== undefined) return { kind: 'written', previous };
    if (wanted.returnItem && write.kind === 'put') {
      return { kind: 'written', item: { ...write.item, pk: write.key.pk, sk: write.key.sk } };
    }
    return { kind: 'written' };
  } catch (error) {
    const refusal = refusalOf(error);
    if (refusal === undefined) throw faultOf(error);
    reportRefused(options, write.key.table, operation, refusal.current);
    return refusal;
  }
}

async function transact(options: DynamoDbOptions, writes: readonly TransactWrite[]): Promise<TransactOutcome> {
  checkTransaction(writes);
  const items = writes.map((write) => transactItem(write, tableNameOf(options, write.key.table)));
  for (const write of writes) {
    const operation = TRANSACT_OPERATIONS[write.kind];
    options.onCall?.({ operation, table: write.key.table, partitionKeys: [write.key.pk] });
  }
  for (let attempt = 1; ; attempt += 1) {
    try {
      const answer = await options.client.send(
        new TransactWriteItemsCommand({
          TransactItems: items,
          ClientRequestToken: randomUUID(),
          ...consumedWanted(options),
        }),
      );
      reportConsumed(options, 'TransactWriteItems', 'write', answer.ConsumedCapacity ?? []);
      return { kind: 'written' };
    } catch (error) {
      const outcome = cancellationOf(error);
      if (outcome === undefined) throw faultOf(error);
      if (outcome.kind === 'refused') reportCancelled(options, writes, outcome.failures);
      if (outcome.kind !== 'throttled') return outcome;
      if (attempt >= CONFLICT_ATTEMPTS_MAX) throw faultOf(error);
      await pauseBefore(attempt, options);
    }
  }
}

/** A cancelled transaction is billed twice per part. Its response has no units either. */
function reportCancelled(
  options: DynamoDbOptions,
  writes: readonly TransactWrite[],
  failures: readonly { readonly index: number; readonly current?: Item }[],
): void {
  const currentAt = new Map(failures.map(({ index, current }) => [index, current]));
  writes.forEach((write, index) => {
    const item = currentAt.get(index) ?? (write.kind === 'put' ? write.item : undefined);
    for (let time = 0; time < 2; time += 1) reportRefused(options, write.key.table, 'TransactWriteItems', item);
  });
}

const TRANSACT_OPERATIONS = {
  put: 'PutItem',
  update: 'UpdateItem',
  delete: 'DeleteItem',
  check: 'ConditionCheckItem',
} as const;

const wireKey = (key: ItemKey): WireItem => ({ pk: toWire(key.pk), sk: toWire(key.sk) });

async function readBatch(
  options: DynamoDbOptions,
  keys: readonly ItemKey[],
  consistent: boolean,
  found: Map<string, Item>,
): Promise<void> {
  const tableOf = new Map<string, TableName>();
  let wanted: Record<string, { Keys: WireItem[]; ConsistentRead: boolean }> = {};
  for (const key of keys) {
    const name = tableNameOf(options, key.table);
    tableOf.set(name, key.table);
    wanted[name] ??= { Keys: [], ConsistentRead: consistent };
    wanted[name].Keys.push(wireKey(key));
  }
  for (const table of new Set(tableOf.values())) {
    const partitionKeys = keys.filter((key) => key.table === table).map(({ pk }) => pk);
    options.onCall?.({ operation: 'BatchGetItem', table, partitionKeys });
  }
  for (let attempt = 1; Object.keys(wanted).length > 0; attempt += 1) {
    const request = { RequestItems: wanted, ...consumedWanted(options) };
    const answer = await orFault(() => options.client.send(new BatchGetItemCommand(request)));
    reportConsumed(options, 'BatchGetItem', 'read', answer.ConsumedCapacity ?? []);
    let read = 0;
    for (const [name, items] of Object.entries(answer.Responses ?? {})) {
      const table = tableOf.get(name)!;
      for (const wire of items) {
        const item = itemFromWire(wire);
        found.set(keyText({ table, pk: item['pk'] as string, sk: item['sk'] as string }), item);
        read += 1;
      }
    }
    const remaining = Object.entries(answer.UnprocessedKeys ?? {}).filter(([, part]) => (part.Keys ?? []).length > 0);
    if (remaining.length === 0) return;
    wanted = Object.fromEntries(
      remaining.map(([name, part]) => [name, { Keys: part.Keys ?? [], ConsistentRead: consistent }]),
    );
    // With progress, the response was full at 16 MB, and the batch continues at once. Without, it was throttled.
    if (read > 0) attempt = 0;
    else if (attempt >= CONFLICT_ATTEMPTS_MAX) {
      throw new StoreFault('throttled', 'BatchGetItem left keys unread', { retryable: true });
    } else await pauseBefore(attempt, options);
  }
}

/** Whether the range is empty. The service returns an error for an empty range. */
function isEmptyRange(request: Parameters<ItemStore['query']>[0]): boolean {
  const { after, through, beginsWith } = request;
  if (after === undefined) return false;
  if (through !== undefined && compareKeys(after, through) >= 0) return true;
  return beginsWith !== undefined && !after.startsWith(beginsWith) && compareKeys(after, beginsWith) > 0;
}

const conditionInput = (when: Condition | undefined) => (when === undefined ? {} : requiredCondition(when));

function requiredCondition(when: Condition) {
  const holders = placeholders();
  const expression = conditionExpression(when, holders);
  return {
    ConditionExpression: expression,
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
    ...placeholderInput(holders),
  };
}

const putInput = (write: PutWrite, tableName: string) => ({
  TableName: tableName,
  Item: { ...itemToWire(write.item), ...wireKey(write.key) },
  ...conditionInput(write.when),
});

const deleteInput = (write: DeleteWrite, tableName: string) => ({
  TableName: tableName,
  Key: wireKey(write.key),
  ...conditionInput(write.when),
});

function transactItem(write: TransactWrite, tableName: string) {
  switch (write.kind) {
    case 'put':
      return { Put: putInput(write, tableName) };
    case 'delete':
      return { Delete: deleteInput(write, tableName) };
    case 'check':
      return {
        ConditionCheck: { TableName: tableName, Key: wireKey(write.key), ...requiredCondition(write.when) },
      };
    case 'update': {
      const input = updateInput(write, tableName);
      if (input.UpdateExpression === undefined) {
        throw new StoreFault('rejected', 'an update in a transaction names no change', { retryable: false });
      }
      return { Update: { ...input, UpdateExpression: input.UpdateExpression } };
    }
  }
}
