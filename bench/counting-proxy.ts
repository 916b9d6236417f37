/**
 * Stands between local mode and its DynamoDB engine, asks for the consumed capacity of every request, and sums what the
 * engine answers. The engine counts as DynamoDB does: 4 KB a read unit, 1 KB a write unit, twice in a transaction.
 */
import { Agent, createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface UnitCounts {
  /** Requests by operation, for example UpdateItem. */
  readonly requests: Readonly<Record<string, number>>;
  readonly readUnits: number;
  readonly writeUnits: number;
}

export interface CountingProxy {
  readonly endpoint: string;
  /** Sums since the last call, and starts over. */
  take(): UnitCounts;
  close(): Promise<void>;
}

const WRITES = ['PutItem', 'UpdateItem', 'DeleteItem', 'BatchWriteItem', 'TransactWriteItems'];
const READS = ['GetItem', 'Query', 'Scan', 'BatchGetItem', 'TransactGetItems'];

interface Capacity {
  readonly CapacityUnits?: number;
  readonly ReadCapacityUnits?: number;
  readonly WriteCapacityUnits?: number;
}

export async function startCountingProxy(engineEndpoint: string): Promise<CountingProxy> {
  const engine = new URL(engineEndpoint);
  const agent = new Agent({ keepAlive: true });
  let requests: Record<string, number> = {};
  let readUnits = 0;
  let writeUnits = 0;

  function count(operation: string, text: string): void {
    requests[operation] = (requests[operation] ?? 0) + 1;
    if (!WRITES.includes(operation) && !READS.includes(operation)) return;
    const { ConsumedCapacity } = JSON.parse(text) as { ConsumedCapacity?: Capacity | Capacity[] };
    for (const capacity of [ConsumedCapacity ?? []].flat()) {
      if (WRITES.includes(operation)) writeUnits += capacity.WriteCapacityUnits ?? capacity.CapacityUnits ?? 0;
      else readUnits += capacity.ReadCapacityUnits ?? capacity.CapacityUnits ?? 0;
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
            count(operation, text.toString('utf8'));
            outgoing.writeHead(answer.statusCode ?? 502, answer.headers).end(text);
          });
        },
      );
      onward.on('error', () => outgoing.destroy());
      onward.end(body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    take() {
      const counts = { requests, readUnits, writeUnits };
      requests = {};
      readUnits = 0;
      writeUnits = 0;
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
