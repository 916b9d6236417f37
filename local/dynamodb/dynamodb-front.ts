/**
 * Stands between the functions and the DynamoDB engine, and refuses what DynamoDB would refuse: requests beyond the capacity
 * of a partition or of a provisioned table (partition-capacity.ts), and writes that conflict with a transaction in progress
 * (transaction-locks.ts). The engine alone serves every request at once, one after the other.
 *
 * A transaction takes `transactionMs` besides the engine's own time; concurrent ones overlap, as they do on AWS.
 *
 * Sources: Amazon DynamoDB API Reference, "TransactWriteItems", "BatchGetItem", "ThrottlingReason"; Developer Guide, "Error
 * handling with DynamoDB".
 */
import { setTimeout as pause } from 'node:timers/promises';
import { transactionLocks } from '../../shared/adapters/memory/transaction-locks.ts';
import { type LoopbackClient, type LoopbackResponse, loopbackClient } from '../http/loopback-client.ts';
import type { Message } from '../http/loopback-message.ts';
import { startLoopbackServer } from '../http/loopback-server.ts';
import {
  type PartitionCapacity,
  partitionCapacity,
  type TableCapacity,
  type ThrottlingLimit,
} from './partition-capacity.ts';
import { type ItemAccess, itemAccesses, type KeyNames } from './table-request.ts';

export interface FrontTable {
  readonly tableName: string;
  readonly arn: string;
  readonly keys: KeyNames;
  readonly capacity: TableCapacity;
}

/** Requests that were refused since the start. */
export interface FrontCounters {
  readonly throttled: number;
  readonly conflicts: number;
}

export interface DynamoDbFront {
  readonly endpoint: string;
  readonly counters: FrontCounters;
  stop(): Promise<void>;
}

export interface DynamoDbFrontOptions {
  readonly engineEndpoint: string;
  readonly tables: readonly FrontTable[];
  nowMs(): number;
  /** How long a transaction is in progress before it is applied. Milliseconds. */
  readonly transactionMs?: number;
}

/** A transaction of some items takes 10 to 20 ms on AWS. */
const TRANSACTION_MS = 10;
const BODY_BYTES_MAX = 20_000_000;
type Body = Record<string, unknown>;

export async function startDynamoDbFront(options: DynamoDbFrontOptions): Promise<DynamoDbFront> {
  const front = new Front(options);
  const server = await startLoopbackServer(BODY_BYTES_MAX, (request) => front.serve(request));
  return {
    endpoint: `http://127.0.0.1:${server.port}`,
    get counters() {
      return { throttled: front.throttled, conflicts: front.conflicts };
    },
    async stop() {
      front.close();
      await server.stop();
    },
  };
}

/** Sends a body to the engine. */
type Forward = (body: Buffer) => Promise<LoopbackResponse>;
type Answer = LoopbackResponse | { readonly refusal: Body };

class Front {
  throttled = 0;
  conflicts = 0;
  readonly #options: DynamoDbFrontOptions;
  readonly #tables: ReadonlyMap<string, FrontTable & { readonly partitions: PartitionCapacity }>;
  readonly #locks = transactionLocks();
  readonly #engine: LoopbackClient;

  constructor(options: DynamoDbFrontOptions) {
    this.#options = options;
    this.#engine = loopbackClient(new URL(options.engineEndpoint));
    const nowMs = options.nowMs();
    this.#tables = new Map(
      options.tables.map((table) => [
        table.tableName,
        { ...table, partitions: partitionCapacity(table.capacity, nowMs) },
      ]),
    );
  }

  close(): void {
    this.#engine.close();
  }

  async serve({ startLine, headers, body: sent }: Message): Promise<LoopbackResponse> {
    const target = headers.find(([name]) => name.toLowerCase() === 'x-amz-target')?.[1] ?? '';
    const operation = target.slice(target.lastIndexOf('.') + 1);
    const body = operation === '' ? {} : (JSON.parse(sent.toString('utf8')) as Body);
    const accesses = itemAccesses(operation, body, (tableName) => this.#tables.get(tableName)?.keys);
    const path = startLine.split(' ')[1] ?? '/';
    const forward: Forward = (admitted) => this.#engine.post(path, headers, admitted);
    if (accesses.length === 0) return forward(sent);
    const answer = await this.#admit(operation, { sent, body }, accesses, forward);
    if (!('refusal' in answer)) return answer;
    const refusal = Buffer.from(JSON.stringify(answer.refusal));
    return { status: '400 Bad Request', headers: [['content-type', 'application/x-amz-json-1.0']], body: refusal };
  }

  async #admit(
    operation: string,
    request: Request,
    accesses: readonly ItemAccess[],
    forward: Forward,
  ): Promise<Answer> {
    if (operation === 'TransactWriteItems') return this.#transact(request, accesses, forward);
    if (operation === 'BatchGetItem') return this.#batchGet(request, accesses, forward);
    const [access] = accesses as [ItemAccess];
    const limit = this.#refusal(access);
    if (limit !== undefined) return { refusal: this.#throttling([{ access, limit }]) };
    if (access.access === 'write' && access.item !== undefined && this.#locks.isLocked(access.item)) {
      this.conflicts += 1;
      return { refusal: { __type: `${TYPE}TransactionConflictException`, message: CONFLICT_MESSAGE } };
    }
    const served = await forward(withConsumedCapacity(request));
    this.#consume(operation, accesses, served);
    return served;
  }

  async #transact(request: Request, accesses: readonly ItemAccess[], forward: Forward): Promise<Answer> {
    const limits = accesses.map((access) => this.#refusal(access));
    if (limits.some((limit) => limit !== undefined)) {
      this.throttled += 1;
      return { refusal: cancelled(accesses.map((access, index) => limits[index] && this.#cancellationCode(access))) };
    }
    const locked = this.#locks.begin(accesses.map(({ item = '' }) => item));
    if (locked.kind === 'conflict') {
      this.conflicts += 1;
      return {
        refusal: cancelled(accesses.map((_, index) => (locked.at.includes(index) ? 'TransactionConflict' : undefined))),
      };
    }
    try {
      await pause(this.#options.transactionMs ?? TRANSACTION_MS);
      const served = await forward(withConsumedCapacity(request));
      this.#consume('TransactWriteItems', accesses, served);
      return served;
    } finally {
      locked.end();
    }
  }

  /** Keys of partitions without capacity are answered as unprocessed; when there are no others, the request is refused. */
  async #batchGet(request: Request, accesses: readonly ItemAccess[], forward: Forward): Promise<Answer> {
    const refused = accesses.flatMap((access) => {
      const limit = this.#refusal(access);
      return limit === undefined ? [] : [{ access, limit }];
    });
    if (refused.length === accesses.length) return { refusal: this.#throttling(refused) };
    if (refused.length === 0) {
      const served = await forward(withConsumedCapacity(request));
      this.#consume('BatchGetItem', accesses, served);
      return served;
    }
    this.throttled += 1;
    const refusedItems = new Set(refused.map(({ access }) => access.item));
    const { admitted, unprocessed } = this.#splitBatch(request.body, refusedItems);
    const sent = Buffer.from(JSON.stringify(admitted));
    const served = await forward(withConsumedCapacity({ sent, body: admitted }));
    this.#consume(
      'BatchGetItem',
      accesses.filter(({ item }) => !refusedItems.has(item)),
      served,
    );
    if (!isSuccess(served)) return served;
    const answer = JSON.parse(served.body.toString('utf8')) as Body;
    return withBody(served, { ...answer, UnprocessedKeys: mergedKeys(answer['UnprocessedKeys'], unprocessed) });
  }

  #splitBatch(body: Body, refusedItems: ReadonlySet<string | undefined>): { admitted: Body; unprocessed: Batch } {
    const admitted: Batch = {};
    const unprocessed: Batch = {};
    for (const [tableName, { Keys, ...rest }] of Object.entries(body['RequestItems'] as Batch)) {
      for (const key of Keys) {
        const [access] = itemAccesses(
          'BatchGetItem',
          { RequestItems: { [tableName]: { Keys: [key] } } },
          (name) => this.#tables.get(name)?.keys,
        );
        const part = refusedItems.has(access?.item) ? unprocessed : admitted;
        part[tableName] ??= { ...rest, Keys: [] };
        part[tableName].Keys.push(key);
      }
    }
    return { admitted: { ...body, RequestItems: admitted }, unprocessed };
  }

  #refusal({ tableName, partitionKey, access }: ItemAccess): ThrottlingLimit | undefined {
    const table = this.#tables.get(tableName);
    // A scan is spread over all partitions and throttled by none of them here.
    if (table === undefined || partitionKey === undefined) return undefined;
    return table.partitions.refusal(partitionKey, access, this.#options.nowMs());
  }

  #throttling(refused: readonly { readonly access: ItemAccess; readonly limit: ThrottlingLimit }[]): Body {
    this.throttled += 1;
    const isOnDemand = refused.some(({ access }) => this.#tables.get(access.tableName)?.capacity.mode === 'onDemand');
    return {
      __type: `${TYPE}${isOnDemand ? 'ThrottlingException' : 'ProvisionedThroughputExceededException'}`,
      message: 'Throughput exceeds the current capacity of your table or index.',
      ThrottlingReasons: refused.map(({ access: { tableName, access }, limit }) => ({
        reason: `Table${access === 'read' ? 'Read' : 'Write'}${limit}`,
        resource: this.#tables.get(tableName)?.arn,
      })),
    };
  }

  #cancellationCode({ tableName }: ItemAccess): string {
    return this.#tables.get(tableName)?.capacity.mode === 'onDemand'
      ? 'ThrottlingError'
      : 'ProvisionedThroughputExceeded';
  }

  /** Units of a request over several items are spread over those of the same table alike. */
  #consume(operation: string, accesses: readonly ItemAccess[], served: LoopbackResponse): void {
    const nowMs = this.#options.nowMs();
    const byTable = Map.groupBy(accesses, ({ tableName }) => tableName);
    for (const [tableName, items] of byTable) {
      const units = consumedUnits(operation, served, { tableName, items: items.length });
      const { partitions } = this.#tables.get(tableName)!;
      for (const { partitionKey, access } of items)
        partitions.consume(partitionKey, access, units / items.length, nowMs);
    }
  }
}

/** A request as it was sent, and read. */
interface Request {
  readonly sent: Buffer;
  readonly body: Body;
}

const isSuccess = ({ status }: LoopbackResponse): boolean => status.startsWith('200');

const TYPE = 'com.amazonaws.dynamodb.v20120810#';
const CONFLICT_MESSAGE = 'Transaction is ongoing for the item';

type Batch = Record<string, { Keys: Body[]; [option: string]: unknown }>;

const MESSAGES: Readonly<Record<string, string>> = {
  TransactionConflict: CONFLICT_MESSAGE,
  ThrottlingError: 'Throughput exceeds the current capacity of your table or index.',
  ProvisionedThroughputExceeded: 'The level of configured provisioned throughput for the table was exceeded.',
};

/** A cancelled transaction, with the reason of each part; undefined: the part is not the reason. */
function cancelled(codes: readonly (string | undefined)[]): Body {
  const names = codes.map((code) => code ?? 'None');
  return {
    __type: `${TYPE}TransactionCanceledException`,
    message: `Transaction cancelled, please refer cancellation reasons for specific reasons [${names.join(', ')}]`,
    CancellationReasons: names.map((code) =>
      code === 'None' ? { Code: code } : { Code: code, Message: MESSAGES[code] },
    ),
  };
}

/** The member is added to the text: writing a large body anew costs more than the rest of its way. */
function withConsumedCapacity({ sent, body }: Request): Buffer {
  if (body['ReturnConsumedCapacity'] !== undefined) return sent;
  return Buffer.concat([sent.subarray(0, sent.lastIndexOf('}')), CONSUMED_WANTED]);
}

const CONSUMED_WANTED = Buffer.from(',"ReturnConsumedCapacity":"TOTAL"}');

function withBody(served: LoopbackResponse, answer: Body): LoopbackResponse {
  // The checksum is that of the other body.
  const headers = served.headers.filter(([name]) => name.toLowerCase() !== 'x-amz-crc32');
  return { ...served, headers, body: Buffer.from(JSON.stringify(answer)) };
}

function mergedKeys(answered: unknown, unprocessed: Batch): Batch {
  const merged: Batch = structuredClone((answered ?? {}) as Batch);
  for (const [tableName, { Keys, ...rest }] of Object.entries(unprocessed)) {
    merged[tableName] = { ...rest, Keys: [...(merged[tableName]?.Keys ?? []), ...Keys] };
  }
  return merged;
}

/** Units that a request consumed of one table. A refused condition is billed as well: one unit per item, two in a transaction. */
function consumedUnits(
  operation: string,
  served: LoopbackResponse,
  { tableName, items }: { readonly tableName: string; readonly items: number },
): number {
  if (!isSuccess(served)) return operation === 'TransactWriteItems' ? 2 * items : items;
  return consumedCapacity(served.body)
    .filter((each) => each.TableName === tableName)
    .reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
}

const CONSUMED = Buffer.from('"ConsumedCapacity":');
/** More than the entries of 100 tables. */
const CONSUMED_BYTES_MAX = 20_000;

/**
 * The member of an answer, read without the rest of it: a page has a megabyte. In a string the name would have
 * backslashes before its quotes, and no table has an attribute of this name.
 */
function consumedCapacity(answer: Buffer): readonly ConsumedCapacity[] {
  const at = answer.lastIndexOf(CONSUMED);
  if (at === -1) return [];
  const text = answer.toString('utf8', at + CONSUMED.length, at + CONSUMED.length + CONSUMED_BYTES_MAX);
  // Names of tables and numbers have no brackets.
  let depth = 0;
  for (let end = 0; end < text.length; end += 1) {
    const character = text[end];
    if (character === '{' || character === '[') depth += 1;
    if (character !== '}' && character !== ']') continue;
    depth -= 1;
    if (depth <= 0) return [JSON.parse(text.slice(0, end + 1)) as ConsumedCapacity | ConsumedCapacity[]].flat();
  }
  return [];
}

interface ConsumedCapacity {
  readonly TableName?: string;
  readonly CapacityUnits?: number;
}
