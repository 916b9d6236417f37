import { storedResource } from '../stored-resource.ts';
import type { KubeNamespace } from '../types.ts';

export const NAMESPACES = storedResource({
  group: '',
  resource: 'namespaces',
  kind: 'Namespace',
  scope: 'cluster',
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  selectableFields: {
    'status.phase': (object: KubeNamespace) => object.status?.phase ?? '',
  },
});
