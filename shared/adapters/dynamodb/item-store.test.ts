import type { BatchGetItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { dynamoDbItemStore } from './item-store.ts';

/** DynamoDB that answers for as many keys of a batch as it is told, and leaves the others unprocessed. */
function throttling(answered: readonly number[]) {
  const asked: number[] = [];
  const pauses: number[] = [];
  const client = {
    async send({ input }: BatchGetItemCommand) {
      const keys = input.RequestItems?.['table']?.Keys ?? [];
      const count = answered[asked.length] ?? 0;
      asked.push(keys.length);
      return {
        Responses: { table: keys.slice(0, count).map((key) => ({ ...key, n: { N: '1' } })) },
        UnprocessedKeys: count < keys.length ? { table: { Keys: keys.slice(count) } } : {},
      };
    },
  };
  const store = dynamoDbItemStore({
    client: client as unknown as DynamoDBClient,
    tables: { objects: 'table' },
    random: () => 1,
    pause: async (milliseconds) => pauses.push(milliseconds),
  });
  return { store, asked, pauses };
}

const keys = ['a', 'b', 'c', 'd'].map((sk) => ({ table: 'objects', pk: 'p', sk }) as const);

describe('a batch read that is throttled', () => {
  it('asks again for the keys that were left, so that none looks absent', async () => {
    const { store, asked, pauses } = throttling([1, 0, 3]);
    const found = await store.getMany(keys, { consistent: true });
    expect(found.map((item) => item?.['sk'])).toEqual(['a', 'b', 'c', 'd']);
    expect(asked).toEqual([4, 3, 3]);
    expect(pauses).toEqual([20]);
  });

  it('is a fault when keys stay unread after a bounded number of tries', async () => {
    const { store, asked } = throttling([2]);
    await expect(store.getMany(keys, { consistent: true })).rejects.toMatchObject({
      code: 'throttled',
      retryable: true,
    });
    expect(asked).toEqual([4, 2, 2, 2, 2, 2, 2]);
  });
});
