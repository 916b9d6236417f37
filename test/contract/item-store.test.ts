import { expect } from 'vitest';
import { leanUpdater } from '../../functions/heartbeat/lean-updater.ts';
import { dynamoDbItemStore } from '../../shared/aws/dynamodb-store.ts';
import { findDynamoDbLocal, startDynamoDbLocal } from '../support/dynamodb-local.ts';
import { startEngine, type TestEngine } from '../support/engine.ts';
import { sqliteStoreForTest } from '../support/sqlite-store.ts';
import { defineItemStoreContract, type StoreUnderTest } from './item-store.ts';

const over = (engine: TestEngine): StoreUnderTest => ({
  store: dynamoDbItemStore({ client: engine.client, tables: engine.tables }),
  close: () => engine.stop(),
});

for (const synchronous of ['full', 'normal'] as const) {
  defineItemStoreContract(`SQLite, synchronous ${synchronous}`, {
    open: async () => {
      const { store, remove } = sqliteStoreForTest({ synchronous });
      return {
        store: store.items,
        async close() {
          expect(store.wrongCacheEntries()).toEqual([]);
          await remove();
        },
      };
    },
  });
}

defineItemStoreContract('embedded engine', { open: async () => over(await startEngine()), scanNeedsStart: true });

defineItemStoreContract('embedded engine, updates without the SDK', {
  scanNeedsStart: true,
  open: async () => {
    const engine = await startEngine();
    const { store, close } = over(engine);
    const updater = leanUpdater({
      connection: {
        region: 'eu-central-1',
        endpoint: engine.endpoint,
        credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
      },
      tables: engine.tables,
      nowMs: Date.now,
    });
    return {
      store: {
        ...store,
        write: (write, wanted) => (write.kind === 'update' ? updater.write(write, wanted) : store.write(write, wanted)),
      },
      close: async () => {
        updater.close();
        await close();
      },
    };
  },
});

const local = await findDynamoDbLocal({ required: Boolean(process.env['CI']) });
if (local.kind === 'absent') console.warn(local.reason);
defineItemStoreContract('DynamoDB Local', {
  open: async () => over(await startDynamoDbLocal(local.kind === 'installed' ? local.directory : '')),
  ...(local.kind === 'absent' ? { skip: local.reason } : {}),
});
