import { storedResource } from '../stored-resource.ts';

export const RUNTIME_CLASSES = storedResource({
  group: 'node.k8s.io',
  resource: 'runtimeclasses',
  kind: 'RuntimeClass',
  scope: 'cluster',
});
