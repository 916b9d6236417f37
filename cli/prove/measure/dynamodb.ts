/**
 * Measurements in the tables of the run. Rows are under keys of their own in `control`, which no function reads.
 * Source: DynamoDB API Reference.
 */
import type { AwsJson, JsonAnswer, Measuring } from '../calls.ts';
import type { DYNAMODB_FACTS } from '../dynamodb-facts.ts';
import type { MeasuresOf } from '../measures.ts';

const WRITERS = 20;
const TRANSACTIONS = 24;
const AT_ONCE = 8;
const LARGE_BYTES = 380_000;
const LARGE_ITEMS = 4;
const EXPIRED_SECONDS = 60;
const ATTEMPTS_MAX = 12;
const ATTEMPT_MS = 500;
const THROTTLED = ['ThrottlingException', 'ProvisionedThroughputExceededException'];

/** AWS prefixes names of errors with that of their service. */
const errorOf = ({ status, body }: JsonAnswer): { readonly error?: string } => {
  if (status < 300) return {};
  const type = String(body['__type'] ?? `HTTP status ${status}`);
  return { error: type.slice(type.lastIndexOf('#') + 1) };
};

class Rows {
  readonly #measuring: Measuring;
  readonly #partition: string;

  constructor(measuring: Measuring, name: string) {
    this.#measuring = measuring;
    this.#partition = `prove#${measuring.suffix}#${name}`;
  }

  get table(): string {
    return this.#measuring.cluster.tables.control;
  }

  /** A throttled request is sent again: the large items of one measurement leave its partition without capacity. */
  async call(action: string, input: AwsJson): Promise<JsonAnswer> {
    const { calls } = this.#measuring;
    for (let attempt = 1; ; attempt += 1) {
      const answer = await calls.json('dynamodb', action, input);
      if (attempt === ATTEMPTS_MAX || !THROTTLED.includes(errorOf(answer).error ?? '')) return answer;
      await calls.pause(ATTEMPT_MS);
    }
  }

  of(sk: string): { readonly TableName: string; readonly Key: AwsJson } {
    return { TableName: this.table, Key: { pk: { S: this.#partition }, sk: { S: sk } } };
  }

  put(sk: string, attributes: AwsJson = {}): Promise<JsonAnswer> {
    const { TableName, Key } = this.of(sk);
    return this.call('PutItem', { TableName, Item: { ...Key, ...attributes } });
  }

  /** @throws Error when it is refused: nothing can be measured without it */
  async store(sk: string, attributes: AwsJson): Promise<void> {
    const { error } = errorOf(await this.put(sk, attributes));
    if (error !== undefined) throw new Error(`an item was not stored: ${error}`);
  }

  /** @throws Error when it is refused */
  async get(sk: string): Promise<Readonly<Record<string, { N?: string; S?: string }>> | undefined> {
    const answer = await this.call('GetItem', { ...this.of(sk), ConsistentRead: true });
    const { error } = errorOf(answer);
    if (error !== undefined) throw new Error(`an item was not read: ${error}`);
    return answer.body['Item'] as never;
  }

  /** A page, without its items. */
  countPage(): Promise<JsonAnswer> {
    return this.call('Query', {
      TableName: this.table,
      KeyConditionExpression: 'pk = :pk',
      ExpressionAttributeValues: { ':pk': { S: this.#partition } },
      Select: 'COUNT',
    });
  }
}

const increment = { UpdateExpression: 'ADD n :one', ExpressionAttributeValues: { ':one': { N: '1' } } };
const isVersion = (expected: string) => ({
  ConditionExpression: 'v = :expected',
  ExpressionAttributeValues: { ':expected': { N: expected }, ':next': { N: '8' } },
  UpdateExpression: 'SET v = :next',
});

/** The units of all tables in an answer. */
const unitsOf = (answer: JsonAnswer) => {
  const consumed = [answer.body['ConsumedCapacity'] ?? []].flat() as readonly { readonly CapacityUnits?: number }[];
  const units = consumed.reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
  return { ...errorOf(answer), ...(consumed.length === 0 ? {} : { units }) };
};

export const MEASURE_DYNAMODB: MeasuresOf<typeof DYNAMODB_FACTS> = {
  async 'dynamodb-write-unit'(measuring) {
    const rows = new Rows(measuring, 'unit');
    // The size of a heartbeat's row.
    await rows.store('a', { text: { S: 'x'.repeat(200) } });
    return unitsOf(await rows.call('UpdateItem', { ...rows.of('a'), ...increment, ReturnConsumedCapacity: 'TOTAL' }));
  },

  async 'dynamodb-transaction-units'(measuring) {
    const rows = new Rows(measuring, 'units');
    const items = ['a', 'b'].map((sk) => ({ Update: { ...rows.of(sk), ...increment } }));
    return unitsOf(await rows.call('TransactWriteItems', { TransactItems: items, ReturnConsumedCapacity: 'TOTAL' }));
  },

  async 'dynamodb-one-winner'(measuring) {
    const rows = new Rows(measuring, 'winner');
    await rows.store('a', { v: { N: '7' } });
    const answers = await Promise.all(
      Array.from({ length: WRITERS }, () => rows.call('UpdateItem', { ...rows.of('a'), ...isVersion('7') })),
    );
    const errors = answers.map((answer) => errorOf(answer).error);
    return {
      writers: WRITERS,
      successes: errors.filter((error) => error === undefined).length,
      refused: errors.filter((error) => error === 'ConditionalCheckFailedException').length,
    };
  },

  async 'dynamodb-condition-item'(measuring) {
    const rows = new Rows(measuring, 'condition');
    await rows.store('a', { v: { N: '7' } });
    const answer = await rows.call('UpdateItem', {
      ...rows.of('a'),
      ...isVersion('6'),
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    const { v } = (answer.body['Item'] ?? {}) as { readonly v?: { readonly N?: string } };
    return { ...errorOf(answer), ...(v?.N === undefined ? {} : { version: v.N }) };
  },

  async 'dynamodb-transaction-conflict'(measuring) {
    const rows = new Rows(measuring, 'conflict');
    let committed = 0;
    let conflicts = 0;
    for (let begun = 0; begun < TRANSACTIONS; begun += AT_ONCE) {
      const answers = await Promise.all(
        Array.from({ length: AT_ONCE }, () =>
          rows.call('TransactWriteItems', { TransactItems: [{ Update: { ...rows.of('a'), ...increment } }] }),
        ),
      );
      committed += answers.filter(({ status }) => status < 300).length;
      conflicts += answers.filter((answer) => reasonsOf(answer).includes('TransactionConflict')).length;
    }
    const stored = Number((await rows.get('a'))?.['n']?.N ?? 0);
    return { transactions: TRANSACTIONS, committed, conflicts, stored };
  },

  async 'dynamodb-write-conflict'(measuring) {
    const rows = new Rows(measuring, 'write');
    let writes = 0;
    let accepted = 0;
    let conflicts = 0;
    for (let begun = 0; begun < TRANSACTIONS; begun += AT_ONCE) {
      const transactions = Array.from({ length: AT_ONCE }, (_, index) => {
        const others = Array.from({ length: 10 }, (__, other) => ({
          Update: { ...rows.of(`${index}-${other}`), ...increment },
        }));
        return rows.call('TransactWriteItems', {
          TransactItems: [{ Update: { ...rows.of('a'), ...increment } }, ...others],
        });
      });
      const writing = Array.from({ length: AT_ONCE }, () => rows.call('UpdateItem', { ...rows.of('a'), ...increment }));
      const plain = (await Promise.all([...transactions, ...writing])).slice(AT_ONCE);
      writes += plain.length;
      accepted += plain.filter(({ status }) => status < 300).length;
      conflicts += plain.filter((answer) => errorOf(answer).error === 'TransactionConflictException').length;
    }
    return { writes, accepted, conflicts, otherErrors: writes - accepted - conflicts };
  },

  async 'dynamodb-cancellation-reasons'(measuring) {
    const rows = new Rows(measuring, 'reasons');
    await rows.store('b', { v: { N: '7' } });
    const answer = await rows.call('TransactWriteItems', {
      TransactItems: [
        { Update: { ...rows.of('a'), ...increment } },
        { Update: { ...rows.of('b'), ...isVersion('6') } },
      ],
    });
    const written = (await rows.get('a')) !== undefined || (await rows.get('b'))?.['v']?.N !== '7';
    return { ...errorOf(answer), codes: reasonsOf(answer), written };
  },

  'dynamodb-item-size': async (measuring) =>
    errorOf(await new Rows(measuring, 'size').put('a', { text: { S: 'x'.repeat(410_000) } })),

  async 'dynamodb-transaction-size'(measuring) {
    const rows = new Rows(measuring, 'items');
    const items = Array.from({ length: 101 }, (_, index) => ({ Update: { ...rows.of(`${index}`), ...increment } }));
    return errorOf(await rows.call('TransactWriteItems', { TransactItems: items }));
  },

  async 'dynamodb-query-page'(measuring) {
    const rows = new Rows(measuring, 'page');
    for (let index = 0; index < LARGE_ITEMS; index += 1) {
      await rows.store(`${index}`, { text: { S: 'x'.repeat(LARGE_BYTES) } });
    }
    const { body } = await rows.countPage();
    return {
      storedBytes: LARGE_ITEMS * LARGE_BYTES,
      items: LARGE_ITEMS,
      read: Number(body['Count'] ?? 0),
      hasMore: body['LastEvaluatedKey'] !== undefined,
    };
  },

  async 'dynamodb-expired-item'(measuring) {
    const { calls } = measuring;
    const rows = new Rows(measuring, 'expired');
    const expiredAtMs = calls.nowMs() - EXPIRED_SECONDS * 1_000;
    await rows.store('a', { ttl: { N: String(Math.floor(expiredAtMs / 1_000)) } });
    await calls.pause(Math.min(measuring.windowSeconds * 1_000, 30_000) / 10);
    const isReadable = (await rows.get('a')) !== undefined;
    return { isReadable, readableSeconds: (calls.nowMs() - expiredAtMs) / 1_000 };
  },
};

function reasonsOf({ body }: JsonAnswer): readonly string[] {
  const reasons = (body['CancellationReasons'] ?? []) as readonly { readonly Code?: string }[];
  return reasons.map(({ Code = '' }) => Code);
}
