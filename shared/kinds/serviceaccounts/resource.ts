import { storedResource } from '../stored-resource.ts';

export const SERVICE_ACCOUNTS = storedResource({
  group: '',
  resource: 'serviceaccounts',
  kind: 'ServiceAccount',
  scope: 'namespaced',
});
