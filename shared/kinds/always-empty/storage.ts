import type { KindStorage } from '../../api/kind-storage.ts';
import { emptyStorage } from '../../api/object-storage.ts';
import { componentStatusStorage } from '../services/api-objects.ts';
import { COMPONENT_STATUSES } from './resource.ts';
import { alwaysEmptyResources } from './serve.ts';

export const alwaysEmptyStorages: readonly KindStorage[] = alwaysEmptyResources.map((descriptor) => [
  descriptor,
  (_, { versionOf }) => {
    const empty = emptyStorage(() => versionOf(descriptor));
    return descriptor.resource === COMPONENT_STATUSES.resource ? componentStatusStorage(empty) : empty;
  },
]);
