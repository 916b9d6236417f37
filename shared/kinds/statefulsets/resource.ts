import { storedResource } from '../stored-resource.ts';

export const STATEFUL_SETS = storedResource({
  group: 'apps',
  resource: 'statefulsets',
  kind: 'StatefulSet',
  scope: 'namespaced',
});
