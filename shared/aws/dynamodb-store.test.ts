import type { BatchGetItemCommand, DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { dynamoDbItemStore } from './dynamodb-store.ts';

/** A DynamoDB that returns as many keys of each batch as `answered` says, and leaves the others unprocessed. */
function throttling(answered: readonly number[]) {
  const requested: number[] = [];
  const pauses: number[] = [];
  const client = {
    async send({ input }: BatchGetItemCommand) {
      const keys = input.RequestItems?.['table']?.Keys ?? [];
      const count = answered[requested.length] ?? 0;
      requested.push(keys.length);
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
  return { store, requested, pauses };
}

const keys = ['a', 'b', 'c', 'd'].map((sk) => ({ table: 'objects', pk: 'p', sk }) as const);

describe('a batch read that is throttled', () => {
  it('requests the unprocessed keys again: none of them looks absent', async () => {
    const { store, requested, pauses } = throttling([1, 0, 3]);
    const found = await store.getMany(keys, { consistent: true });
    expect(found.map((item) => item?.['sk'])).toEqual(['a', 'b', 'c', 'd']);
    expect(requested).toEqual([4, 3, 3]);
    expect(pauses).toEqual([20]);
  });

  it('is a fault if keys stay unread after a bounded number of attempts', async () => {
    const { store, requested } = throttling([2]);
    await expect(store.getMany(keys, { consistent: true })).rejects.toMatchObject({
      code: 'throttled',
      retryable: true,
    });
    expect(requested).toEqual([4, 2, 2, 2, 2, 2, 2]);
  });
});
