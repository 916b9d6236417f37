import { storedResource } from '../stored-resource.ts';

export const SCHEDULING_GROUP = 'scheduling.k8s.io';

export const PRIORITY_CLASSES = storedResource({
  group: SCHEDULING_GROUP,
  resource: 'priorityclasses',
  kind: 'PriorityClass',
  scope: 'cluster',
});
