/** The storage of objects that no client writes: how they are read. */
import type { ResourceStorage, WriteResult } from './resource-storage.ts';

type Reading = Omit<ResourceStorage, 'create' | 'update' | 'remove' | 'keepsManagedFields'>;

/** Never reached by a client: kinds/read-only.ts has no verb for a write. */
const refused = async (): Promise<WriteResult> => ({ kind: 'conflict' });

export const readOnlyStorage = (reading: Reading): ResourceStorage => ({
  ...reading,
  create: refused,
  update: refused,
  remove: refused,
  keepsManagedFields: () => false,
});
