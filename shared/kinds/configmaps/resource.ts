import { storedResource } from '../stored-resource.ts';

export const CONFIG_MAPS = storedResource({
  group: '',
  resource: 'configmaps',
  kind: 'ConfigMap',
  scope: 'namespaced',
});
