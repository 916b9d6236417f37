/** What the adapter sends for each call, how often, and what it reports of the answers. */
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { describe, expect, it } from 'vitest';
import type { ConsumedUnits, QueryRequest, ScanRequest, TransactWrite } from '../store/item-store.ts';
import { type CallRecord, unitCounter } from './dynamodb-request.ts';
import { dynamoDbItemStore } from './dynamodb-store.ts';

const OBJECT = { table: 'objects', pk: 'p', sk: 's' } as const;
const WIRE_KEY = { pk: { S: 'p' }, sk: { S: 's' } };
const O_UNITS = { TableName: 'o-table', CapacityUnits: 1.5 };

/** An error as the SDK throws it. */
const errorOf = (name: string, more: object = {}) => Object.assign(new Error(name), { name }, more);

/** A DynamoDB that returns these answers in turn, then empty ones. */
function scripted(...answers: readonly object[]) {
  const sent: { readonly name: string; readonly input: object }[] = [];
  const consumed: ConsumedUnits[] = [];
  const calls: CallRecord[] = [];
  const pauses: number[] = [];
  const client = {
    async send(command: { readonly input: object }) {
      const answer = answers[sent.length] ?? {};
      sent.push({ name: command.constructor.name, input: command.input });
      if (answer instanceof Error) throw answer;
      return answer;
    },
  };
  const store = dynamoDbItemStore({
    client: client as unknown as DynamoDBClient,
    tables: { objects: 'o-table', health: 'h-table', control: 'c-table' },
    onConsumed: (units) => consumed.push(units),
    onCall: (call) => calls.push(call),
    random: () => 1,
    pause: async (milliseconds) => pauses.push(milliseconds),
  });
  return { store, sent, consumed, calls, pauses };
}

describe('a read', () => {
  it('of one item asks for its units, and reports them', async () => {
    const { store, sent, consumed, calls } = scripted({
      Item: { ...WIRE_KEY, n: { N: '1' } },
      ConsumedCapacity: O_UNITS,
    });
    expect(await store.get(OBJECT, { consistent: true })).toEqual({ pk: 'p', sk: 's', n: 1 });
    const input = { TableName: 'o-table', Key: WIRE_KEY, ConsistentRead: true, ReturnConsumedCapacity: 'TOTAL' };
    expect(sent).toEqual([{ name: 'GetItemCommand', input }]);
    expect(consumed).toEqual([{ table: 'objects', operation: 'GetItem', readUnits: 1.5, writeUnits: 0 }]);
    expect(calls).toEqual([{ operation: 'GetItem', table: 'objects', partitionKeys: ['p'] }]);
  });

  const BASE = { table: 'objects', pk: 'p', consistent: false } as const;
  it.each<[string, Partial<QueryRequest>, object]>([
    ['a partition', {}, { KeyConditionExpression: '#0 = :0' }],
    ['some items', { limit: 7 }, { Limit: 7 }],
    [
      'up to a key',
      { through: 'k' },
      {
        KeyConditionExpression: '#0 = :0 AND #1 <= :1',
        ExpressionAttributeNames: { '#0': 'pk', '#1': 'sk' },
        ExpressionAttributeValues: { ':0': { S: 'p' }, ':1': { S: 'k' } },
      },
    ],
    [
      'of a prefix',
      { beginsWith: 'k#' },
      {
        KeyConditionExpression: '#0 = :0 AND begins_with(#1, :1)',
        ExpressionAttributeValues: { ':0': { S: 'p' }, ':1': { S: 'k#' } },
      },
    ],
    [
      'after a key of the prefix',
      { beginsWith: 'k#', after: 'k#1' },
      { ExclusiveStartKey: { pk: { S: 'p' }, sk: { S: 'k#1' } } },
    ],
    [
      'some attributes',
      { attributes: ['n'] },
      { ProjectionExpression: '#0, #1, #2', ExpressionAttributeNames: { '#0': 'pk', '#1': 'sk', '#2': 'n' } },
    ],
  ])('of %s is one query', async (_, range, expected) => {
    const { store, sent, consumed, calls } = scripted({
      Items: [{ ...WIRE_KEY, n: { N: '1' } }],
      LastEvaluatedKey: WIRE_KEY,
      ConsumedCapacity: O_UNITS,
    });
    expect(await store.query({ ...BASE, ...range })).toEqual({ items: [{ pk: 'p', sk: 's', n: 1 }], next: 's' });
    expect(sent).toHaveLength(1);
    expect(sent[0]!.input).toMatchObject({ TableName: 'o-table', ReturnConsumedCapacity: 'TOTAL', ...expected });
    expect(consumed).toEqual([{ table: 'objects', operation: 'Query', readUnits: 1.5, writeUnits: 0 }]);
    expect(calls).toEqual([{ operation: 'Query', table: 'objects', partitionKeys: ['p'] }]);
  });

  it('of a prefix after an earlier key begins with the prefix', async () => {
    const { store, sent } = scripted();
    await store.query({ ...BASE, beginsWith: 'k#', after: 'a#k#' });
    expect(sent[0]!.input).not.toHaveProperty('ExclusiveStartKey');
  });

  it('of a range that begins at its prefix is no empty one', async () => {
    const { store, sent } = scripted();
    await store.query({ ...BASE, beginsWith: 'k', after: 'k' });
    expect(sent).toHaveLength(1);
  });

  it('of a segment is one scan', async () => {
    const request: ScanRequest = { table: 'health', segment: 1, segments: 4, consistent: true };
    const next = { pk: 'p', sk: 's' };
    const { store, sent, consumed, calls } = scripted({
      Items: [],
      LastEvaluatedKey: WIRE_KEY,
      ConsumedCapacity: { TableName: 'arn:aws:dynamodb:eu-central-1:1:table/h-table', CapacityUnits: 2 },
    });
    expect(await store.scan({ ...request, limit: 9, after: next })).toEqual({ items: [], next });
    expect(sent[0]!.input).toEqual({
      TableName: 'h-table',
      Segment: 1,
      TotalSegments: 4,
      ConsistentRead: true,
      Limit: 9,
      ExclusiveStartKey: WIRE_KEY,
      ReturnConsumedCapacity: 'TOTAL',
    });
    expect(consumed).toEqual([{ table: 'health', operation: 'Scan', readUnits: 2, writeUnits: 0 }]);
    expect(calls).toEqual([{ operation: 'Scan', table: 'health', partitionKeys: [] }]);
    await expect(store.scan({ ...request, segment: 4 })).rejects.toMatchObject({ code: 'rejected' });
    expect(sent).toHaveLength(1);
  });

  it('of many keys has at most 100 in a batch, and 8 batches at once', async () => {
    const keys = Array.from({ length: 900 }, (_, n) => ({ ...OBJECT, sk: String(n) }));
    let running = 0;
    let most = 0;
    const sizes: number[] = [];
    const client = {
      async send({
        input,
      }: {
        readonly input: { readonly RequestItems: Record<string, { readonly Keys: object[] }> };
      }) {
        running += 1;
        most = Math.max(most, running);
        sizes.push(input.RequestItems['o-table']!.Keys.length);
        await Promise.resolve();
        running -= 1;
        // A table without keys that are left is not asked for again.
        return { UnprocessedKeys: { 'o-table': {}, 'h-table': { Keys: [] } } };
      },
    };
    const store = dynamoDbItemStore({ client: client as unknown as DynamoDBClient, tables: { objects: 'o-table' } });
    expect(await store.getMany([], { consistent: true })).toEqual([]);
    expect(sizes).toEqual([]);
    await store.getMany(keys, { consistent: true });
    expect(sizes).toEqual(Array.from({ length: 9 }, () => 100));
    expect(most).toBe(8);
  });

  it('is a fault if the answer is of a table that the process does not use', async () => {
    const { store } = scripted({ ConsumedCapacity: { TableName: 'x-o-table', CapacityUnits: 1 } });
    await expect(store.get(OBJECT, { consistent: true })).rejects.toMatchObject({ code: 'rejected' });
  });
});

describe('a write', () => {
  const put = { kind: 'put', key: OBJECT, item: { n: 1 } } as const;
  const written = { ConsumedCapacity: O_UNITS, Attributes: { ...WIRE_KEY, n: { N: '2' } } };

  it.each([
    [put, 'PutItem'],
    [{ kind: 'delete', key: OBJECT } as const, 'DeleteItem'],
    [{ kind: 'update', key: OBJECT, set: { n: 1 } } as const, 'UpdateItem'],
  ])('of an item asks for the one before only if it is wanted: %#', async (write, operation) => {
    const { store, sent, consumed, calls } = scripted(written, {});
    expect(await store.write(write, { returnPrevious: true })).toEqual({
      kind: 'written',
      previous: { pk: 'p', sk: 's', n: 2 },
    });
    expect(await store.write(write)).toEqual({ kind: 'written' });
    expect(sent.map(({ name }) => name)).toEqual([`${operation}Command`, `${operation}Command`]);
    expect(sent[0]!.input).toMatchObject({ TableName: 'o-table', ReturnValues: 'ALL_OLD' });
    expect(sent[1]!.input).not.toHaveProperty('ReturnValues');
    expect(consumed).toEqual([{ table: 'objects', operation, readUnits: 0, writeUnits: 1.5 }]);
    expect(calls[0]).toEqual({ operation, table: 'objects', partitionKeys: ['p'] });
  });

  it('returns the item that it wrote, with its keys', async () => {
    const { store, sent } = scripted({}, { Attributes: { ...WIRE_KEY, n: { N: '2' } } });
    expect(await store.write(put, { returnItem: true })).toEqual({ kind: 'written', item: { pk: 'p', sk: 's', n: 1 } });
    const update = { kind: 'update', key: OBJECT, add: { n: 1 } } as const;
    expect(await store.write(update, { returnItem: true })).toEqual({
      kind: 'written',
      item: { pk: 'p', sk: 's', n: 2 },
    });
    expect(sent[1]!.input).toMatchObject({ ReturnValues: 'ALL_NEW' });
  });

  it.each([put, { kind: 'update', key: OBJECT, set: { n: 1 } } as const])(
    'that is refused costs the units of the item that refused it: %#',
    async (write) => {
      const refusal = (item: object | undefined) => errorOf('ConditionalCheckFailedException', { Item: item });
      const large = { ...WIRE_KEY, text: { S: 'x'.repeat(1_100) } };
      const { store, consumed } = scripted(refusal(undefined), refusal(large), refusal(WIRE_KEY));
      expect(await store.write(write)).toEqual({ kind: 'refused' });
      expect(await store.write(write)).toMatchObject({ kind: 'refused', current: { pk: 'p' } });
      // An item with only its keys is none.
      expect(await store.write(write)).toEqual({ kind: 'refused' });
      expect(consumed.map(({ writeUnits }) => writeUnits)).toEqual([1, 2, 1]);
      expect(consumed[0]).toMatchObject({ table: 'objects', readUnits: 0 });
    },
  );

  it('that conflicts with a transaction is sent six times', async () => {
    const conflicts = Array.from({ length: 7 }, () => errorOf('TransactionConflictException'));
    const { store, sent, pauses } = scripted(...conflicts);
    await expect(store.write(put)).rejects.toMatchObject({ code: 'throttled', retryable: true });
    expect(sent).toHaveLength(6);
    expect(pauses).toEqual([20, 40, 80, 160, 320]);
  });

  it('that fails otherwise is not sent again', async () => {
    const { store, sent } = scripted(errorOf('InternalServerError'));
    await expect(store.write(put)).rejects.toMatchObject({ code: 'unreachable' });
    expect(sent).toHaveLength(1);
  });
});

describe('a transaction', () => {
  const writes: readonly TransactWrite[] = [
    { kind: 'put', key: OBJECT, item: { text: 'x'.repeat(2_100) } },
    { kind: 'check', key: { ...OBJECT, sk: 't' }, when: { kind: 'itemExists' } },
  ];
  const cancelled = (...codes: readonly (string | undefined)[]) =>
    errorOf('TransactionCanceledException', { CancellationReasons: codes.map((code) => (code ? { Code: code } : {})) });

  it('reports the units of each table', async () => {
    const { store, sent, consumed } = scripted({
      ConsumedCapacity: [O_UNITS, { TableName: 'h-table', CapacityUnits: 4 }],
    });
    expect(await store.transact(writes)).toEqual({ kind: 'written' });
    expect(sent[0]!.input).toMatchObject({ ReturnConsumedCapacity: 'TOTAL', ClientRequestToken: expect.any(String) });
    expect(consumed).toEqual([
      { table: 'objects', operation: 'TransactWriteItems', readUnits: 0, writeUnits: 1.5 },
      { table: 'health', operation: 'TransactWriteItems', readUnits: 0, writeUnits: 4 },
    ]);
  });

  it('that is refused costs each part twice', async () => {
    const { store, consumed } = scripted(cancelled(undefined, 'ConditionalCheckFailed'));
    expect(await store.transact(writes)).toEqual({ kind: 'refused', failures: [{ index: 1 }] });
    expect(consumed.map(({ writeUnits }) => writeUnits)).toEqual([3, 3, 1, 1]);
    expect(new Set(consumed.map(({ operation }) => operation))).toEqual(new Set(['TransactWriteItems']));
  });

  it('that is throttled is sent six times, each with its own token', async () => {
    const { store, sent, pauses } = scripted(...Array.from({ length: 7 }, () => cancelled('None', 'ThrottlingError')));
    await expect(store.transact(writes)).rejects.toMatchObject({ code: 'throttled' });
    expect(sent).toHaveLength(6);
    expect(new Set(sent.map(({ input }) => (input as { ClientRequestToken: string }).ClientRequestToken)).size).toBe(6);
    expect(pauses).toHaveLength(5);
  });

  it.each([
    ['None', 'TransactionConflict', { kind: 'contended' }],
    [undefined, 'TransactionConflict', { kind: 'contended' }],
  ])('that conflicts is contended: %s, %s', async (one, other, outcome) => {
    const { store, consumed } = scripted(cancelled(one, other));
    expect(await store.transact(writes)).toEqual(outcome);
    expect(consumed).toEqual([]);
  });

  it.each([
    [undefined, 'ValidationError', 'rejected'],
    [undefined, 'ItemCollectionSizeLimitExceeded', 'too-large'],
    [undefined, undefined, 'unreachable'],
  ])('that is cancelled otherwise is a fault: %s, %s', async (one, other, code) => {
    const { store, sent } = scripted(cancelled(one, other));
    await expect(store.transact(writes)).rejects.toMatchObject({ code });
    expect(sent).toHaveLength(1);
  });

  it('does not send an update without a change, nor the same item twice', async () => {
    const { store, sent } = scripted();
    await expect(store.transact([{ kind: 'update', key: OBJECT }])).rejects.toMatchObject({ code: 'rejected' });
    await expect(store.transact([writes[0]!, writes[0]!])).rejects.toMatchObject({ code: 'rejected' });
    expect(sent).toEqual([]);
  });
});

it('units are counted until they are read', () => {
  const counter = unitCounter();
  counter.onConsumed({ table: 'objects', operation: 'GetItem', readUnits: 1, writeUnits: 0 });
  counter.onConsumed({ table: 'objects', operation: 'PutItem', readUnits: 2, writeUnits: 3 });
  expect(counter.takeUnits()).toEqual({ readUnits: 3, writeUnits: 3 });
  expect(counter.takeUnits()).toEqual({ readUnits: 0, writeUnits: 0 });
});

it.each([Number.NaN, Number.POSITIVE_INFINITY])('the number %d is not sent', async (n) => {
  const { store, sent } = scripted();
  const put = { kind: 'put' as const, key: OBJECT, item: { list: [n] } };
  await expect(store.write(put)).rejects.toMatchObject({ code: 'rejected' });
  expect(sent).toEqual([]);
});
