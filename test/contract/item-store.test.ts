import { dynamoDbItemStore } from '../../shared/adapters/dynamodb/item-store.ts';
import { memoryItemStore } from '../../shared/adapters/memory/item-store.ts';
import { findDynamoDbLocal, startDynamoDbLocal } from '../support/dynamodb-local.ts';
import { startEngine, type TestEngine } from '../support/engine.ts';
import { defineItemStoreContract, type StoreUnderTest } from './item-store.ts';

const over = (engine: TestEngine): StoreUnderTest => ({
  store: dynamoDbItemStore({ client: engine.client, tables: engine.tables }),
  close: () => engine.stop(),
});

defineItemStoreContract('memory', { open: async () => ({ store: memoryItemStore(), close: async () => {} }) });

defineItemStoreContract('embedded engine', { open: async () => over(await startEngine()) });

const local = await findDynamoDbLocal({ required: Boolean(process.env['CI']) });
if (local.kind === 'absent') console.warn(local.reason);
defineItemStoreContract('DynamoDB Local', {
  open: async () => over(await startDynamoDbLocal(local.kind === 'installed' ? local.directory : '')),
  ...(local.kind === 'absent' ? { skip: local.reason } : {}),
});
