import { createServer, type IncomingMessage, type Server } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import type { UpdateWrite } from '../../shared/store/item-store.ts';
import { leanUpdater } from './lean-updater.ts';

const CREDENTIALS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const NOW_MS = 1_795_197_026_123;

describe('an update without the SDK', () => {
  let server: Server | undefined;
  afterEach(async () => {
    server?.closeAllConnections();
    await new Promise((resolve) => (server === undefined ? resolve(undefined) : server.close(resolve)));
    server = undefined;
  });

  const write: UpdateWrite = {
    kind: 'update',
    key: { table: 'health', pk: 's01', sk: 'edge-1' },
    set: { v: 1 },
  };

  /** Answers each request with the next entry of the script. `hang` never answers, `drop` closes the connection. */
  async function against(script: readonly (readonly [number, unknown] | 'hang' | 'drop')[]) {
    const bodies: string[] = [];
    server = createServer((incoming: IncomingMessage, answer) => {
      let body = '';
      incoming.on('data', (part) => {
        body += part;
      });
      incoming.on('end', () => {
        const next = script[bodies.length];
        bodies.push(body);
        if (next === 'drop' || next === undefined) return incoming.socket.destroy();
        if (next === 'hang') return undefined;
        answer.writeHead(next[0], { 'content-type': 'application/x-amz-json-1.0' });
        return answer.end(typeof next[1] === 'string' ? next[1] : JSON.stringify(next[1]));
      });
    });
    const port = await listenOnLoopback(server!);
    const updater = leanUpdater({
      connection: {
        region: 'eu-central-1',
        endpoint: `http://127.0.0.1:${port}`,
        credentials: CREDENTIALS,
        requestTimeoutMs: 100,
      },
      tables: { health: 'the-table', control: 'the-control-table' },
      nowMs: () => NOW_MS,
      pause: async () => {},
    });
    return { updater, bodies };
  }

  const throttled = [400, { __type: 'com.amazonaws.dynamodb.v20120810#ThrottlingException' }] as const;

  it('sends the request of the SDK', async () => {
    const { updater, bodies } = await against([[200, { Attributes: { v: { N: '1' } } }]]);
    expect(await updater.write(write, { returnItem: true })).toEqual({ kind: 'written', item: { v: 1 } });
    expect(JSON.parse(bodies[0]!)).toEqual({
      TableName: 'the-table',
      Key: { pk: { S: 's01' }, sk: { S: 'edge-1' } },
      UpdateExpression: 'SET #0 = :0',
      ExpressionAttributeNames: { '#0': 'v' },
      ExpressionAttributeValues: { ':0': { N: '1' } },
      ReturnValues: 'ALL_NEW',
    });
  });

  it('returns a refusal with the item that refused', async () => {
    const name = 'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException';
    const { updater, bodies } = await against([[400, { __type: name, Item: { pk: { S: 'p' }, v: { N: '7' } } }]]);
    expect(await updater.write(write)).toEqual({ kind: 'refused', current: { pk: 'p', v: 7 } });
    expect(bodies).toHaveLength(1);
  });

  it.each([
    ['throttling', throttled],
    ['a server error', [500, { __type: 'InternalServerError' }] as const],
    ['an error page of a gateway', [503, '<html>'] as const],
    ['a broken connection', 'drop' as const],
    ['a timeout', 'hang' as const],
  ])('repeats the request after %s', async (_, first) => {
    const { updater, bodies } = await against([first, [200, {}]]);
    expect(await updater.write(write)).toEqual({ kind: 'written' });
    expect(bodies).toHaveLength(2);
  });

  it.each([
    ['throttled', throttled, 3],
    ['timeout', 'hang' as const, 3],
    ['unreachable', 'drop' as const, 3],
    ['rejected', [400, { __type: 'com.amazon.coral.validate#ValidationException' }] as const, 1],
    ['rejected', [400, { __type: 'com.amazonaws.dynamodb.v20120810#ResourceNotFoundException' }] as const, 1],
  ])('fails as %s after its attempts', async (code, answer, attempts) => {
    const { updater, bodies } = await against([answer, answer, answer, answer]);
    await expect(updater.write(write)).rejects.toMatchObject({ name: 'StoreFault', code });
    expect(bodies).toHaveLength(attempts);
  });

  it('repeats a write that conflicts with a transaction', async () => {
    const conflict = [400, { __type: 'com.amazonaws.dynamodb.v20120810#TransactionConflictException' }] as const;
    const { updater, bodies } = await against([conflict, conflict, [200, {}]]);
    expect(await updater.write(write)).toEqual({ kind: 'written' });
    expect(bodies).toHaveLength(3);
  });

  it('reads one item with the request of the SDK', async () => {
    const key = { table: 'control', pk: 'node-keys#01', sk: 'edge-1' } as const;
    const { updater, bodies } = await against([
      [200, { Item: { pk: { S: 'p' }, v: { N: '7' } } }],
      [200, {}],
    ]);
    expect(await updater.get(key, { consistent: false })).toEqual({ pk: 'p', v: 7 });
    expect(await updater.get(key, { consistent: true })).toBeUndefined();
    expect(JSON.parse(bodies[0]!)).toEqual({
      TableName: 'the-control-table',
      Key: { pk: { S: 'node-keys#01' }, sk: { S: 'edge-1' } },
      ConsistentRead: false,
    });
    expect(JSON.parse(bodies[1]!)).toMatchObject({ ConsistentRead: true });
  });

  it('fails as rejected after a denied read', async () => {
    const denied = [400, { __type: 'com.amazon.coral.service#AccessDeniedException' }] as const;
    const { updater } = await against([denied]);
    const key = { table: 'control', pk: 'fleet', sk: 'state' } as const;
    await expect(updater.get(key, { consistent: true })).rejects.toMatchObject({ code: 'rejected' });
  });
});
