import type { KindStorage } from '../../api/kind-storage.ts';
import { limitranges, resourcequotas } from './serve.ts';

/** This process enforces a new quota or LimitRange at once. */
const admitting: KindStorage[1] = (descriptor, { plain, namespacePolicies }) => {
  const storage = plain(descriptor);
  return {
    ...storage,
    async create(object, along) {
      const created = await storage.create(object, along);
      namespacePolicies.forget(object.metadata.namespace ?? '');
      return created;
    },
  };
};

export const quotaStorages: readonly KindStorage[] = [
  [resourcequotas, admitting],
  [limitranges, admitting],
];
