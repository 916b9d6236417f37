import { storedResource } from '../stored-resource.ts';

export const RESOURCE_QUOTAS = storedResource({
  group: '',
  resource: 'resourcequotas',
  kind: 'ResourceQuota',
  scope: 'namespaced',
});

export const LIMIT_RANGES = storedResource({
  group: '',
  resource: 'limitranges',
  kind: 'LimitRange',
  scope: 'namespaced',
});
