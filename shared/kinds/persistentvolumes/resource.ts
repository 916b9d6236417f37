import { storedResource } from '../stored-resource.ts';

export const PERSISTENT_VOLUMES = storedResource({
  group: '',
  resource: 'persistentvolumes',
  kind: 'PersistentVolume',
  scope: 'cluster',
});

export const PERSISTENT_VOLUME_CLAIMS = storedResource({
  group: '',
  resource: 'persistentvolumeclaims',
  kind: 'PersistentVolumeClaim',
  scope: 'namespaced',
});
