import { storedResource } from '../stored-resource.ts';
import { STORAGE_GROUP } from '../volumeattachments/resource.ts';

export const CSI_NODES = storedResource({
  group: STORAGE_GROUP,
  resource: 'csinodes',
  kind: 'CSINode',
  scope: 'cluster',
});
