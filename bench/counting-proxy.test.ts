import { PutItemCommand, QueryCommand, TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dynamoDbClient } from '../shared/aws/dynamodb-client.ts';
import { startEngine, type TestEngine } from '../test/support/engine.ts';
import { type CountingProxy, startCountingProxy } from './counting-proxy.ts';

describe('the counting proxy', () => {
  let engine: TestEngine;
  let proxy: CountingProxy;
  beforeAll(async () => {
    engine = await startEngine();
    proxy = await startCountingProxy(engine.endpoint);
  });
  afterAll(async () => {
    await proxy.close();
    await engine.stop();
  });

  it('sums what the engine says each request consumed', async () => {
    const client = dynamoDbClient({
      region: 'eu-central-1',
      endpoint: proxy.endpoint,
      credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
      requestTimeoutMs: 5_000,
    });
    const TableName = engine.tables.health;
    const item = (sk: string) => ({ pk: { S: 'p' }, sk: { S: sk }, text: { S: 'x'.repeat(100) } });
    try {
      await client.send(new PutItemCommand({ TableName, Item: item('a') }));
      expect(proxy.take()).toEqual({
        requests: { PutItem: 1 },
        readUnits: 0,
        writeUnits: 1,
        refusedWriteUnits: 0,
        refusals: {},
        tables: { [TableName]: { readUnits: 0, writeUnits: 1 } },
      });
      const put = { Put: { TableName, Item: item('b') } };
      await client.send(new TransactWriteItemsCommand({ TransactItems: [put] }));
      await client.send(
        new QueryCommand({
          TableName,
          ConsistentRead: true,
          KeyConditionExpression: 'pk = :p',
          ExpressionAttributeValues: { ':p': { S: 'p' } },
        }),
      );
      expect(proxy.take()).toMatchObject({
        requests: { TransactWriteItems: 1, Query: 1 },
        readUnits: 1,
        writeUnits: 2,
      });
      const refused = new PutItemCommand({
        TableName,
        Item: item('a'),
        ConditionExpression: 'attribute_not_exists(pk)',
      });
      await expect(client.send(refused)).rejects.toThrow('conditional');
      expect(proxy.take()).toMatchObject({
        requests: { PutItem: 1 },
        writeUnits: 1,
        refusedWriteUnits: 1,
        refusals: { 'ConditionalCheckFailed p': 1 },
      });
      const again = { Put: { ...refused.input } };
      const transaction = new TransactWriteItemsCommand({ TransactItems: [put, again] });
      await expect(client.send(transaction)).rejects.toThrow('Transaction');
      expect(proxy.take()).toMatchObject({ refusedWriteUnits: 4, refusals: { 'ConditionalCheckFailed p': 1 } });
    } finally {
      client.destroy();
    }
  });
});
