/**
 * Stands between the functions and the DynamoDB engine, and refuses what DynamoDB would refuse: requests beyond the
 * capacity of a partition or of a provisioned table (partition-capacity.ts), and writes that conflict with a
 * transaction in progress (transaction-locks.ts). The engine alone serves every request at once, one after the other.
 *
 * A transaction takes `transactionMs` besides the engine's own time; concurrent ones overlap, as they do on AWS.
 *
 * Sources: Amazon DynamoDB API Reference, "TransactWriteItems", "BatchGetItem", "ThrottlingReason"; Developer Guide,
 * "Error handling with DynamoDB".
 */

import { Agent, createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import {
  type PartitionCapacity,
  partitionCapacity,
  type TableCapacity,
  type ThrottlingLimit,
} from './partition-capacity.ts';
import { type ItemAccess, itemAccesses, type KeyNames } from './table-request.ts';
import { transactionLocks } from './transaction-locks.ts';

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
/** Above this size, the units of a page are derived from its bytes instead of being parsed. */
const PARSED_BYTES_MAX = 262_144;
const READ_UNIT_BYTES = 4_096;
const PAGED = ['Query', 'Scan'];

type Body = Record<string, unknown>;

interface Served {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export async function startDynamoDbFront(options: DynamoDbFrontOptions): Promise<DynamoDbFront> {
  const front = new Front(options);
  const server = createServer((incoming, outgoing) => {
    front.serve(incoming, outgoing).catch(() => outgoing.destroy());
  });
  // Longer than any client keeps a connection: none is closed under a request.
  server.keepAliveTimeout = 60_000;
  const port = await listenOnLoopback(server);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    get counters() {
      return { throttled: front.throttled, conflicts: front.conflicts };
    },
    async stop() {
      front.close();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

class Front {
  throttled = 0;
  conflicts = 0;
  readonly #options: DynamoDbFrontOptions;
  readonly #tables: ReadonlyMap<string, FrontTable & { readonly partitions: PartitionCapacity }>;
  readonly #locks = transactionLocks();
  readonly #agent = new Agent({ keepAlive: true });
  readonly #engine: URL;

  constructor(options: DynamoDbFrontOptions) {
    this.#options = options;
    this.#engine = new URL(options.engineEndpoint);
    const nowMs = options.nowMs();
    this.#tables = new Map(
      options.tables.map((table) => [
        table.tableName,
        { ...table, partitions: partitionCapacity(table.capacity, nowMs) },
      ]),
    );
  }

  close(): void {
    this.#agent.destroy();
  }

  async serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const sent = await readBody(incoming);
    const operation =
      String(incoming.headers['x-amz-target'] ?? '')
        .split('.')
        .at(-1) ?? '';
    const body = operation === '' ? {} : (JSON.parse(sent.toString('utf8')) as Body);
    const accesses = itemAccesses(operation, body, (tableName) => this.#tables.get(tableName)?.keys);
    const answer =
      accesses.length === 0
        ? await this.#forward(incoming, sent)
        : await this.#admit(operation, body, accesses, (admitted) => this.#forward(incoming, admitted));
    // A client that went away meanwhile gets nothing.
    if (outgoing.destroyed) return;
    if ('refusal' in answer) {
      outgoing.writeHead(400, { 'content-type': 'application/x-amz-json-1.0' }).end(JSON.stringify(answer.refusal));
    } else outgoing.writeHead(answer.status, answer.headers).end(answer.body);
  }

  async #admit(
    operation: string,
    body: Body,
    accesses: readonly ItemAccess[],
    forward: (sent: Buffer) => Promise<Served>,
  ): Promise<Served | { readonly refusal: Body }> {
    if (operation === 'TransactWriteItems') return this.#transact(body, accesses, forward);
    if (operation === 'BatchGetItem') return this.#batchGet(body, accesses, forward);
    const [access] = accesses as [ItemAccess];
    const limit = this.#refusal(access);
    if (limit !== undefined) return { refusal: this.#throttling([{ access, limit }]) };
    if (access.access === 'write' && access.item !== undefined && this.#locks.isLocked(access.item)) {
      this.conflicts += 1;
      return { refusal: { __type: `${TYPE}TransactionConflictException`, message: CONFLICT_MESSAGE } };
    }
    const served = await forward(withConsumedCapacity(body));
    this.#consume(operation, accesses, served);
    return served;
  }

  async #transact(
    body: Body,
    accesses: readonly ItemAccess[],
    forward: (sent: Buffer) => Promise<Served>,
  ): Promise<Served | { readonly refusal: Body }> {
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
      const served = await forward(withConsumedCapacity(body));
      this.#consume('TransactWriteItems', accesses, served);
      return served;
    } finally {
      locked.end();
    }
  }

  /**
   * Keys of partitions without capacity are answered as unprocessed; when there are no others, the request is refused.
   */
  async #batchGet(
    body: Body,
    accesses: readonly ItemAccess[],
    forward: (sent: Buffer) => Promise<Served>,
  ): Promise<Served | { readonly refusal: Body }> {
    const refused = accesses.flatMap((access) => {
      const limit = this.#refusal(access);
      return limit === undefined ? [] : [{ access, limit }];
    });
    if (refused.length === accesses.length) return { refusal: this.#throttling(refused) };
    if (refused.length === 0) {
      const served = await forward(withConsumedCapacity(body));
      this.#consume('BatchGetItem', accesses, served);
      return served;
    }
    this.throttled += 1;
    const refusedItems = new Set(refused.map(({ access }) => access.item));
    const { admitted, unprocessed } = this.#splitBatch(body, refusedItems);
    const served = await forward(withConsumedCapacity(admitted));
    this.#consume(
      'BatchGetItem',
      accesses.filter(({ item }) => !refusedItems.has(item)),
      served,
    );
    if (served.status !== 200) return served;
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
  #consume(operation: string, accesses: readonly ItemAccess[], served: Served): void {
    const nowMs = this.#options.nowMs();
    const byTable = Map.groupBy(accesses, ({ tableName }) => tableName);
    for (const [tableName, items] of byTable) {
      const units = consumedUnits(operation, served, { tableName, items: items.length });
      const { partitions } = this.#tables.get(tableName)!;
      for (const { partitionKey, access } of items)
        partitions.consume(partitionKey, access, units / items.length, nowMs);
    }
  }

  #forward(incoming: IncomingMessage, body: Buffer): Promise<Served> {
    return new Promise((resolve, reject) => {
      const onward = httpRequest(
        {
          agent: this.#agent,
          hostname: this.#engine.hostname,
          port: this.#engine.port,
          method: incoming.method,
          path: incoming.url,
          headers: { ...incoming.headers, host: this.#engine.host, 'content-length': body.length },
        },
        (answer) => {
          const parts: Buffer[] = [];
          answer.on('data', (part: Buffer) => parts.push(part));
          answer.on('error', reject);
          answer.on('end', () => {
            const text = Buffer.concat(parts);
            const headers = { ...answer.headers };
            delete headers['transfer-encoding'];
            resolve({
              status: answer.statusCode ?? 502,
              headers: { ...headers, 'content-length': String(text.length) },
              body: text,
            });
          });
        },
      );
      onward.on('error', reject);
      onward.end(body);
    });
  }
}

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

const withConsumedCapacity = (body: Body): Buffer =>
  Buffer.from(JSON.stringify({ ...body, ReturnConsumedCapacity: body['ReturnConsumedCapacity'] ?? 'TOTAL' }));

function withBody(served: Served, answer: Body): Served {
  const body = Buffer.from(JSON.stringify(answer));
  const headers: IncomingMessage['headers'] = { ...served.headers, 'content-length': String(body.length) };
  // Checksum of the body as it was.
  delete headers['x-amz-crc32'];
  return { ...served, headers, body };
}

function mergedKeys(answered: unknown, unprocessed: Batch): Batch {
  const merged: Batch = structuredClone((answered ?? {}) as Batch);
  for (const [tableName, { Keys, ...rest }] of Object.entries(unprocessed)) {
    merged[tableName] = { ...rest, Keys: [...(merged[tableName]?.Keys ?? []), ...Keys] };
  }
  return merged;
}

/**
 * Units that a request consumed of one table. A refused condition is billed as well: one unit per item, two in a
 * transaction.
 */
function consumedUnits(
  operation: string,
  { status, body }: Served,
  { tableName, items }: { readonly tableName: string; readonly items: number },
): number {
  if (status !== 200) return operation === 'TransactWriteItems' ? 2 * items : items;
  if (body.length > PARSED_BYTES_MAX && PAGED.includes(operation)) return body.length / READ_UNIT_BYTES / 2;
  const { ConsumedCapacity: consumed } = JSON.parse(body.toString('utf8')) as {
    ConsumedCapacity?: ConsumedCapacity | ConsumedCapacity[];
  };
  return [consumed ?? []]
    .flat()
    .filter((each) => each.TableName === tableName)
    .reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
}

interface ConsumedCapacity {
  readonly TableName?: string;
  readonly CapacityUnits?: number;
}

/** By events: an iterator over the request costs as much as the rest of reading it. */
function readBody(incoming: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let bytes = 0;
    incoming.on('data', (part: Buffer) => {
      bytes += part.byteLength;
      if (bytes > BODY_BYTES_MAX) incoming.destroy(new Error(`the request has more than ${BODY_BYTES_MAX} bytes`));
      else parts.push(part);
    });
    incoming.once('end', () => resolve(parts.length === 1 ? parts[0]! : Buffer.concat(parts)));
    incoming.once('error', reject);
    incoming.once('close', () => reject(new Error('the client disconnected before its request was complete')));
  });
}
