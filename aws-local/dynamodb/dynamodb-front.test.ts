import { fileURLToPath } from 'node:url';
import {
  BatchGetItemCommand,
  DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { type Engine, engineBinary, startEngine } from '../engine/engine.ts';
import { createTables } from '../engine/tables.ts';
import { startDynamoDbFront } from './dynamodb-front.ts';
import type { TableCapacity } from './partition-capacity.ts';

const TABLE = 'Front';
let engine: Engine;
let nowMs = 0;

beforeAll(async () => {
  engine = await startEngine(engineBinary(fileURLToPath(new URL('../..', import.meta.url))), undefined);
  const definition = {
    TableName: TABLE,
    BillingMode: 'PAY_PER_REQUEST',
    KeySchema: [
      { AttributeName: 'pk', KeyType: 'HASH' },
      { AttributeName: 'sk', KeyType: 'RANGE' },
    ],
    AttributeDefinitions: ['pk', 'sk'].map((name) => ({ AttributeName: name, AttributeType: 'S' })),
  };
  await createTables(engine.client, [{ tableName: TABLE, timeToLiveAttribute: undefined, definition }]);
});
afterAll(() => engine.stop());

/** A client of the SDK without retries: a test sees every refusal. */
async function aClient(capacity: TableCapacity, transactionMs?: number) {
  const front = await startDynamoDbFront({
    engineEndpoint: engine.endpoint,
    tables: [{ tableName: TABLE, arn: 'arn:front', keys: { partitionKey: 'pk', sortKey: 'sk' }, capacity }],
    nowMs: () => nowMs,
    ...(transactionMs === undefined ? {} : { transactionMs }),
  });
  const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
  const client = new DynamoDBClient({ endpoint: front.endpoint, region: 'us-east-1', credentials, maxAttempts: 1 });
  onTestFinished(async () => {
    client.destroy();
    await front.stop();
  });
  return { client, front };
}

const key = (pk: string, sk = 'a') => ({ pk: { S: pk }, sk: { S: sk } });
const put = (pk: string) => new PutItemCommand({ TableName: TABLE, Item: key(pk) });
const transaction = (...pks: string[]) =>
  new TransactWriteItemsCommand({ TransactItems: pks.map((pk) => ({ Put: { TableName: TABLE, Item: key(pk) } })) });

const ONE_UNIT = { readUnitsPerSecond: 1, writeUnitsPerSecond: 1 };

describe('capacity', () => {
  it('refuses a write to a partition without write units and names the limit; reads are served', async () => {
    const { client, front } = await aClient({ mode: 'onDemand', warm: ONE_UNIT });
    const item = { ...key('hot'), text: { S: 'x'.repeat(300_000) } };
    for (let write = 0; write < 4; write += 1) await client.send(new PutItemCommand({ TableName: TABLE, Item: item }));
    await expect(client.send(put('hot'))).rejects.toMatchObject({
      name: 'ThrottlingException',
      ThrottlingReasons: [{ reason: 'TableWriteKeyRangeThroughputExceeded', resource: 'arn:front' }],
    });
    await client.send(new GetItemCommand({ TableName: TABLE, Key: key('hot') }));
    nowMs += 1_000;
    await client.send(put('hot'));
    expect(front.counters).toEqual({ throttled: 1, conflicts: 0 });
  });

  it('refuses with ProvisionedThroughputExceededException beyond provisioned units, also queries and transactions', async () => {
    const { client } = await aClient({ mode: 'provisioned', provisioned: ONE_UNIT });
    const item = { ...key('big'), text: { S: 'x'.repeat(308_000) } };
    await client.send(new PutItemCommand({ TableName: TABLE, Item: item }));
    await expect(client.send(put('other'))).rejects.toMatchObject({
      name: 'ProvisionedThroughputExceededException',
      ThrottlingReasons: [{ reason: 'TableWriteProvisionedThroughputExceeded' }],
    });
    await expect(client.send(transaction('other', 'another'))).rejects.toMatchObject({
      name: 'TransactionCanceledException',
      CancellationReasons: [{ Code: 'ProvisionedThroughputExceeded' }, { Code: 'ProvisionedThroughputExceeded' }],
    });
    const query = new QueryCommand({
      TableName: TABLE,
      KeyConditionExpression: '#pk = :pk',
      ExpressionAttributeNames: { '#pk': 'pk' },
      ExpressionAttributeValues: { ':pk': { S: 'big' } },
    });
    for (let read = 0; read < 8; read += 1) await client.send(query);
    await expect(client.send(query)).rejects.toMatchObject({ name: 'ProvisionedThroughputExceededException' });
  });

  it('answers the keys of a partition without units as unprocessed', async () => {
    const warm = { readUnitsPerSecond: 6_000, writeUnitsPerSecond: 1 };
    const { client } = await aClient({ mode: 'onDemand', warm });
    const pks = Array.from({ length: 20 }, (_, index) => `batch-${index}`);
    for (const pk of pks) await client.send(put(pk));
    // Consumes the read units of one of the two partitions.
    const item = { ...key(pks[0]!, 'big'), text: { S: 'x'.repeat(390_000) } };
    await client.send(new PutItemCommand({ TableName: TABLE, Item: item }));
    nowMs += 1_000;
    for (let read = 0; read < 32; read += 1) {
      await client.send(new GetItemCommand({ TableName: TABLE, Key: key(pks[0]!, 'big'), ConsistentRead: true }));
    }
    const request = new BatchGetItemCommand({ RequestItems: { [TABLE]: { Keys: pks.map((pk) => key(pk)) } } });
    const { Responses: found = {}, UnprocessedKeys: left = {} } = await client.send(request);
    expect(left[TABLE]?.Keys).toContainEqual(key(pks[0]!));
    expect(found[TABLE]!.length).toBeGreaterThan(0);
    expect(found[TABLE]!.length + left[TABLE]!.Keys!.length).toBe(pks.length);
  });
});

describe('transactions in progress', () => {
  it('cancel an overlapping transaction with the item that conflicts, and refuse a write to it', async () => {
    const { client, front } = await aClient({ mode: 'onDemand' }, 200);
    nowMs += 10_000;
    const first = client.send(transaction('t1', 't2'));
    await expect.poll(() => overlapping(client)).toBe('TransactionConflict');
    await expect(client.send(put('t1'))).rejects.toMatchObject({ name: 'TransactionConflictException' });
    await client.send(new GetItemCommand({ TableName: TABLE, Key: key('t1') }));
    await client.send(put('t4'));
    await first;
    await client.send(transaction('t1', 't3'));
    expect(front.counters.conflicts).toBeGreaterThanOrEqual(2);
  });

  /** The reason for which a transaction on `t2` and an item of its own is cancelled. */
  async function overlapping(client: DynamoDBClient): Promise<string | undefined> {
    try {
      await client.send(transaction('t3', 't2'));
      return undefined;
    } catch (error) {
      const { CancellationReasons: reasons = [] } = error as { CancellationReasons?: { Code?: string }[] };
      expect(reasons[0]?.Code).toBe('None');
      return reasons[1]?.Code;
    }
  }
});
