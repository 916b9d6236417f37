import { storedResource } from '../stored-resource.ts';

export const AUTOSCALERS = storedResource({
  group: 'autoscaling',
  version: 'v2',
  resource: 'horizontalpodautoscalers',
  kind: 'HorizontalPodAutoscaler',
  scope: 'namespaced',
  otherApiVersions: ['autoscaling/v1'],
});
