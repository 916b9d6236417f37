import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import { dynamoDbItemStore } from './dynamodb-store.ts';

type OnCall = NonNullable<Parameters<typeof dynamoDbItemStore>[0]['onCall']>;

/** A DynamoDB with empty responses. `calls` are the reports of the store, `sent` the requests. */
function recording() {
  const calls: Parameters<OnCall>[0][] = [];
  const sent: object[] = [];
  const client = {
    async send({ input }: { readonly input: object }) {
      sent.push(input);
      return {};
    },
  };
  const store = dynamoDbItemStore({
    client: client as unknown as DynamoDBClient,
    tables: { objects: 'o-table', health: 'h-table' },
    onCall: (call) => calls.push(call),
  });
  return { store, calls, sent };
}

describe('calls that the store reports', () => {
  it('name the operation of each part of a transaction', async () => {
    const { store, calls } = recording();
    const at = (pk: string) => ({ table: 'objects', pk, sk: 'a' }) as const;
    await store.transact([
      { kind: 'put', key: at('1'), item: { n: 1 } },
      { kind: 'update', key: at('2'), set: { n: 1 } },
      { kind: 'delete', key: at('3') },
      { kind: 'check', key: at('4'), when: { kind: 'itemExists' } },
    ]);
    expect(calls).toEqual([
      { operation: 'PutItem', table: 'objects', partitionKeys: ['1'] },
      { operation: 'UpdateItem', table: 'objects', partitionKeys: ['2'] },
      { operation: 'DeleteItem', table: 'objects', partitionKeys: ['3'] },
      { operation: 'ConditionCheckItem', table: 'objects', partitionKeys: ['4'] },
    ]);
  });

  it('name the operation of each single write', async () => {
    const { store, calls } = recording();
    const key = { table: 'objects', pk: '1', sk: 'a' } as const;
    await store.write({ kind: 'put', key, item: { n: 1 } });
    await store.write({ kind: 'update', key, set: { n: 1 } });
    await store.write({ kind: 'delete', key });
    expect(calls.map(({ operation }) => operation)).toEqual(['PutItem', 'UpdateItem', 'DeleteItem']);
  });

  it('name the partition keys of a batch by table', async () => {
    const { store, calls } = recording();
    await store.getMany(
      [
        { table: 'objects', pk: '1', sk: 'a' },
        { table: 'health', pk: '2', sk: 'b' },
        { table: 'objects', pk: '3', sk: 'c' },
      ],
      { consistent: true },
    );
    expect(calls).toEqual([
      { operation: 'BatchGetItem', table: 'objects', partitionKeys: ['1', '3'] },
      { operation: 'BatchGetItem', table: 'health', partitionKeys: ['2'] },
    ]);
  });
});

it('an update without a change or a condition sends only its key: the service refuses empty expressions', async () => {
  const { store, sent } = recording();
  await store.write({ kind: 'update', key: { table: 'objects', pk: '1', sk: 'a' } });
  expect(sent).toEqual([{ TableName: 'o-table', Key: { pk: { S: '1' }, sk: { S: 'a' } } }]);
});

describe('a query of a range', () => {
  it.each([
    ['after the last key', { after: 'b', through: 'b' }],
    ['after every key of a prefix', { after: 'b', beginsWith: 'a' }],
  ])('without keys sends no request: %s', async (_, range) => {
    const { store, sent } = recording();
    expect(await store.query({ table: 'objects', pk: 'p', consistent: true, ...range })).toEqual({ items: [] });
    expect(sent).toEqual([]);
  });

  it.each([
    ['within a prefix', { after: 'a1', beginsWith: 'a' }],
    ['before a prefix', { after: 'a', beginsWith: 'b' }],
    ['up to the next key', { after: 'a', through: 'b' }],
  ])('that may have keys sends one: %s', async (_, range) => {
    const { store, sent } = recording();
    await store.query({ table: 'objects', pk: 'p', consistent: true, ...range });
    expect(sent).toHaveLength(1);
  });
});
