/**
 * Stands between local mode and its DynamoDB engine, asks for the consumed capacity of every request, and sums what the
 * engine answers. The engine counts as DynamoDB does: 4 KB a read unit, 1 KB a write unit, twice in a transaction. A
 * write that is refused answers no capacity and is billed all the same: one unit an item is counted, two in a
 * transaction.
 */

import { Agent, createServer, request as httpRequest } from 'node:http';
import { listenOnLoopback } from '../shared/host/loopback.ts';

export interface UnitCounts {
  /** Requests by operation, for example UpdateItem. */
  readonly requests: Readonly<Record<string, number>>;
  readonly readUnits: number;
  readonly writeUnits: number;
  /** The part of `writeUnits` of refused writes. */
  readonly refusedWriteUnits: number;
  /** Items that refused a write, by cause and kind, for example `TransactionConflict h#pods`. */
  readonly refusals: Readonly<Record<string, number>>;
  /** By name of the table. */
  readonly tables: Readonly<Record<string, { readonly readUnits: number; readonly writeUnits: number }>>;
}

export interface CountingProxy {
  readonly endpoint: string;
  /** Sums since the last call, and starts over. */
  take(): UnitCounts;
  close(): Promise<void>;
}

const WRITES = ['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem', 'TransactWriteItems'];
const READS = ['GetItem', 'Query', 'Scan', 'BatchGetItem', 'TransactGetItems'];

const REFUSALS = /ConditionalCheckFailedException|TransactionCanceledException/;

interface Capacity {
  readonly TableName?: string;
  readonly CapacityUnits?: number;
  readonly ReadCapacityUnits?: number;
  readonly WriteCapacityUnits?: number;
}

interface Action {
  readonly TableName?: string;
  readonly Key?: { readonly pk?: { readonly S?: string } };
  readonly Item?: { readonly pk?: { readonly S?: string } };
}

/** The part of a key that is the same for all items of a kind: `h#pods`, `owner`. */
function kindOf(action: Action | undefined): string {
  const words = ((action?.Key ?? action?.Item)?.pk?.S ?? '').split('#');
  return words.slice(0, words[0]?.length === 1 ? 2 : 1).join('#');
}

export async function startCountingProxy(engineEndpoint: string): Promise<CountingProxy> {
  const engine = new URL(engineEndpoint);
  const agent = new Agent({ keepAlive: true });
  let requests: Record<string, number> = {};
  let tables: Record<string, { readUnits: number; writeUnits: number }> = {};
  let refusedWriteUnits = 0;
  let refusals: Record<string, number> = {};

  function add(table: string, units: { readonly readUnits?: number; readonly writeUnits?: number }): void {
    const sums = tables[table] ?? { readUnits: 0, writeUnits: 0 };
    tables[table] = sums;
    sums.readUnits += units.readUnits ?? 0;
    sums.writeUnits += units.writeUnits ?? 0;
  }

  function countRefused(operation: string, sent: string, text: string): void {
    const body = JSON.parse(sent) as Action & { TransactItems?: Record<string, Action>[] };
    const actions = (body.TransactItems ?? []).flatMap((item) => Object.values(item));
    for (const { TableName = '' } of actions) add(TableName, { writeUnits: 2 });
    const isTransaction = operation === 'TransactWriteItems';
    if (!isTransaction) add(body.TableName ?? '', { writeUnits: 1 });
    refusedWriteUnits += isTransaction ? 2 * actions.length : 1;
    const { CancellationReasons = [] } = JSON.parse(text) as { CancellationReasons?: { Code?: string }[] };
    const causes = isTransaction ? CancellationReasons.map(({ Code = 'None' }) => Code) : ['ConditionalCheckFailed'];
    for (const [index, cause] of causes.entries()) {
      if (cause === 'None') continue;
      const name = `${cause} ${kindOf(isTransaction ? actions[index] : body)}`;
      refusals[name] = (refusals[name] ?? 0) + 1;
    }
  }

  function count(operation: string, text: string): void {
    requests[operation] = (requests[operation] ?? 0) + 1;
    if (!WRITES.includes(operation) && !READS.includes(operation)) return;
    const { ConsumedCapacity } = JSON.parse(text) as { ConsumedCapacity?: Capacity | Capacity[] };
    for (const capacity of [ConsumedCapacity ?? []].flat()) {
      const table = capacity.TableName ?? '';
      if (WRITES.includes(operation)) {
        add(table, { writeUnits: capacity.WriteCapacityUnits ?? capacity.CapacityUnits ?? 0 });
      } else add(table, { readUnits: capacity.ReadCapacityUnits ?? capacity.CapacityUnits ?? 0 });
    }
  }

  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const operation =
        String(incoming.headers['x-amz-target'] ?? '')
          .split('.')
          .at(-1) ?? '';
      const sent = Buffer.concat(chunks);
      const counted = WRITES.includes(operation) || READS.includes(operation);
      const body = counted
        ? Buffer.from(JSON.stringify({ ...JSON.parse(sent.toString('utf8')), ReturnConsumedCapacity: 'TOTAL' }))
        : sent;
      const onward = httpRequest(
        {
          agent,
          hostname: engine.hostname,
          port: engine.port,
          method: incoming.method,
          path: incoming.url,
          headers: { ...incoming.headers, host: engine.host, 'content-length': body.length },
        },
        (answer) => {
          const parts: Buffer[] = [];
          answer.on('data', (part: Buffer) => parts.push(part));
          answer.on('end', () => {
            const text = Buffer.concat(parts);
            const isRefusal = answer.statusCode === 400 && REFUSALS.test(text.toString('utf8'));
            if (isRefusal && WRITES.includes(operation)) {
              requests[operation] = (requests[operation] ?? 0) + 1;
              countRefused(operation, sent.toString('utf8'), text.toString('utf8'));
            } else count(operation, text.toString('utf8'));
            outgoing.writeHead(answer.statusCode ?? 502, answer.headers).end(text);
          });
        },
      );
      onward.on('error', () => outgoing.destroy());
      onward.end(body);
    });
  });
  const port = await listenOnLoopback(server);
  return {
    endpoint: `http://127.0.0.1:${port}`,
    take() {
      const sum = (of: 'readUnits' | 'writeUnits') => Object.values(tables).reduce((all, each) => all + each[of], 0);
      const counts = {
        requests,
        tables,
        readUnits: sum('readUnits'),
        writeUnits: sum('writeUnits'),
        refusedWriteUnits,
        refusals,
      };
      requests = {};
      tables = {};
      refusedWriteUnits = 0;
      refusals = {};
      return counts;
    },
    close: () =>
      new Promise((resolve) => {
        agent.destroy();
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
