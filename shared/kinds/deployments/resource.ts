import { storedResource } from '../stored-resource.ts';

export const DEPLOYMENTS = storedResource({
  group: 'apps',
  resource: 'deployments',
  kind: 'Deployment',
  scope: 'namespaced',
});
