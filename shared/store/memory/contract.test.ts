/** Apart from the other adapters: scripts/mutants leaves out their tests, and needs this one for shared/store. */
import { defineItemStoreContract } from '../../../test/contract/item-store.ts';
import { memoryItemStore } from './item-store.ts';

defineItemStoreContract('memory', { open: async () => ({ store: memoryItemStore(), close: async () => {} }) });
