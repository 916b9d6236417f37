/** Beside the store, apart from the other adapters: mutation runs of the rules of writes have it. */
import { defineItemStoreContract } from '../../../test/contract/item-store.ts';
import { memoryItemStore } from './item-store.ts';

defineItemStoreContract('memory', { open: async () => ({ store: memoryItemStore(), close: async () => {} }) });
