/** The embedded DynamoDB engine, as local mode runs it, for tests: a process on a free port with the three tables. */

import { type ChildProcess, spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { dynamoDbClient } from '../../shared/aws/dynamodb-client.ts';
import { freePort } from '../../shared/host/loopback.ts';
import type { TableName } from '../../shared/store/item-store.ts';

export interface TestEngine {
  readonly endpoint: string;
  readonly client: DynamoDBClient;
  readonly tables: Readonly<Record<TableName, string>>;
  stop(): Promise<void>;
}

const START_ATTEMPTS_MAX = 200;
const START_PAUSE_MS = 50;
const TABLES: Record<TableName, string> = { health: 'test-health', objects: 'test-objects', control: 'test-control' };

/**
 * Starts dynoxide; `dbPath` keeps its data in a file. Tables have streams only when asked: the engine (1.2) looks for
 * the next sequence number by reading all stream records, so every write to a table with a stream is slower than the
 * last.
 */
export async function startEngine(
  options: { readonly dbPath?: string; readonly streams?: boolean } = {},
): Promise<TestEngine> {
  const binary = createRequire(import.meta.url).resolve('@dynoxide/linux-x64/dynoxide');
  const port = await freePort();
  const args = ['serve', '--host', '127.0.0.1', '-p', String(port)];
  if (options.dbPath !== undefined) args.push('--db-path', options.dbPath);
  return await startProcess(spawn(binary, args, { stdio: 'ignore' }), port, options.streams);
}

/** Waits for the port and creates the tables; with `streams`, as the deployment has them: on health and objects. */
export async function startProcess(child: ChildProcess, port: number, streams = false): Promise<TestEngine> {
  const endpoint = `http://127.0.0.1:${port}`;
  const client = dynamoDbClient({
    region: 'eu-central-1',
    endpoint,
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    // A machine shared by many tests, a virtual machine that warms up: patience, not speed.
    connectionTimeoutMs: 10_000,
    requestTimeoutMs: 10_000,
  });
  const stop = async (): Promise<void> => {
    client.destroy();
    if (child.exitCode !== null || child.signalCode !== null) return;
    await new Promise<void>((resolve) => {
      child.once('exit', () => resolve());
      child.kill();
    });
  };
  try {
    await untilListening(child, port);
    for (const [table, name] of Object.entries(TABLES)) {
      await client.send(
        new CreateTableCommand({
          TableName: name,
          BillingMode: 'PAY_PER_REQUEST',
          AttributeDefinitions: ['pk', 'sk'].map((key) => ({ AttributeName: key, AttributeType: 'S' })),
          KeySchema: [
            { AttributeName: 'pk', KeyType: 'HASH' },
            { AttributeName: 'sk', KeyType: 'RANGE' },
          ],
          ...(!streams || table === 'control'
            ? {}
            : { StreamSpecification: { StreamEnabled: true, StreamViewType: 'NEW_AND_OLD_IMAGES' } }),
        }),
      );
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return { endpoint, client, tables: TABLES, stop };
}

async function untilListening(child: ChildProcess, port: number): Promise<void> {
  for (let attempt = 0; attempt < START_ATTEMPTS_MAX; attempt += 1) {
    if (child.exitCode !== null) throw new Error(`the engine ended with code ${child.exitCode}`);
    const open = await new Promise<boolean>((resolve) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => {
        socket.destroy();
        resolve(true);
      });
      socket.once('error', () => resolve(false));
    });
    if (open) return;
    await sleep(START_PAUSE_MS);
  }
  throw new Error('the engine did not listen in time');
}
