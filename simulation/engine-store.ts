/** The embedded DynamoDB engine for simulations: one process for a run, tables of its own for each scenario. */
import { fileURLToPath } from 'node:url';
import { connectEngine, engineBinary, startEngine } from '../aws-local/engine/engine.ts';
import { leanUpdater } from '../functions/heartbeat/lean-updater.ts';
import { dynamoDbClient } from '../shared/aws/dynamodb-client.ts';
import { dynamoDbItemStore } from '../shared/aws/dynamodb-store.ts';
import type { ConsumedUnits, ItemStore, ItemUpdater, TableName } from '../shared/store/item-store.ts';

const PROJECT = fileURLToPath(new URL('..', import.meta.url));
const TABLES: readonly TableName[] = ['health', 'objects', 'control'];
/** A machine shared by many; patience, not speed. */
const REQUEST_TIMEOUT_MS = 20_000;

export interface EngineStores {
  /** Empty tables, and the two adapters over them. `drop` removes them again. */
  open(options?: { readonly onConsumed?: (units: ConsumedUnits) => void }): Promise<{
    readonly items: ItemStore;
    readonly beats: ItemUpdater;
    drop(): Promise<void>;
  }>;
  stop(): Promise<void>;
}

/** @throws StartError with what to do when no engine can be had */
export async function startEngineStores(
  environment: Readonly<Record<string, string | undefined>>,
): Promise<EngineStores> {
  const endpoint = environment['DYNAMODB_ENDPOINT'];
  const engine =
    endpoint === undefined || endpoint === ''
      ? await startEngine(engineBinary(PROJECT), undefined)
      : await connectEngine(endpoint);
  const connection = {
    region: 'eu-central-1',
    endpoint: engine.endpoint,
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    connectionTimeoutMs: REQUEST_TIMEOUT_MS,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
  };
  const client = dynamoDbClient(connection);
  let opened = 0;
  return {
    async open(options = {}) {
      opened += 1;
      const names = { health: `s${opened}-health`, objects: `s${opened}-objects`, control: `s${opened}-control` };
      for (const table of TABLES) {
        await engine.client.call('DynamoDB_20120810.CreateTable', {
          TableName: names[table],
          BillingMode: 'PAY_PER_REQUEST',
          AttributeDefinitions: ['pk', 'sk'].map((key) => ({ AttributeName: key, AttributeType: 'S' })),
          KeySchema: [
            { AttributeName: 'pk', KeyType: 'HASH' },
            { AttributeName: 'sk', KeyType: 'RANGE' },
          ],
        });
      }
      const consumption = options.onConsumed === undefined ? {} : { onConsumed: options.onConsumed };
      const beats = leanUpdater({ connection, tables: { health: names.health }, nowMs: Date.now, ...consumption });
      return {
        items: dynamoDbItemStore({ client, tables: names, ...consumption }),
        beats,
        async drop() {
          beats.close();
          for (const table of TABLES) {
            await engine.client.call('DynamoDB_20120810.DeleteTable', { TableName: names[table] });
          }
        },
      };
    },
    async stop() {
      client.destroy();
      await engine.stop();
    },
  };
}
