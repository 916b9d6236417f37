import { storedResource } from '../stored-resource.ts';
import { STORAGE_GROUP } from '../volumeattachments/resource.ts';

export const STORAGE_CLASSES = storedResource({
  group: STORAGE_GROUP,
  resource: 'storageclasses',
  kind: 'StorageClass',
  scope: 'cluster',
});
