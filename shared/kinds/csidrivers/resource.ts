import { storedResource } from '../stored-resource.ts';
import { STORAGE_GROUP } from '../volumeattachments/resource.ts';

export const CSI_DRIVERS = storedResource({
  group: STORAGE_GROUP,
  resource: 'csidrivers',
  kind: 'CSIDriver',
  scope: 'cluster',
});

export const CSI_STORAGE_CAPACITIES = storedResource({
  group: STORAGE_GROUP,
  resource: 'csistoragecapacities',
  kind: 'CSIStorageCapacity',
  scope: 'namespaced',
});
