/** CSIDrivers and CSIStorageCapacities. They are stored for the clients that read them. */

import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { withoutEmpty, withoutNulls } from '../../kubernetes/normal-form.ts';
import { ageOf, booleanColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { validateCsiDriver, validateCsiStorageCapacity } from '../persistentvolumes/validate.ts';
import { preparesSpec, preparesWhole, servedKind } from '../served-kind.ts';
import type { KubeCSIDriver, KubeCSIStorageCapacity } from '../types.ts';
import { CSI_DRIVERS, CSI_STORAGE_CAPACITIES } from './resource.ts';

/** Defaults of pkg/apis/storage/v1/defaults.go. */
const storedDriver = (spec: KubeCSIDriver['spec'] = {}): NonNullable<KubeCSIDriver['spec']> => ({
  attachRequired: true,
  podInfoOnMount: false,
  storageCapacity: false,
  fsGroupPolicy: 'ReadWriteOnceWithFSType',
  requiresRepublish: false,
  seLinuxMount: false,
  ...withoutEmpty(withoutNulls(spec), 'volumeLifecycleModes'),
  volumeLifecycleModes:
    (spec.volumeLifecycleModes ?? []).length > 0 ? (spec.volumeLifecycleModes ?? []) : ['Persistent'],
});

export const csidrivers: ResourceDescriptor = servedKind(CSI_DRIVERS, {
  unconditionalUpdate: false,
  columns: [
    nameColumn,
    booleanColumn('AttachRequired', 'Whether volumes must be attached.'),
    booleanColumn('PodInfoOnMount', 'Whether the driver needs information about the pod.'),
    booleanColumn('StorageCapacity', 'Whether the scheduler considers storage capacity.'),
    textColumn('TokenRequests', 'Tokens that the driver needs.'),
    booleanColumn('RequiresRepublish', 'Whether volumes are published again periodically.'),
    textColumn('Modes', 'Persistent, Ephemeral or both.'),
    ageColumn,
  ],
  row: (object: KubeCSIDriver, nowMs) => {
    const { spec = {} } = object;
    return [
      nameOf(object),
      spec.attachRequired === true,
      spec.podInfoOnMount === true,
      spec.storageCapacity === true,
      (spec.tokenRequests ?? []).map(({ audience = '' }) => audience).join(',') || '<unset>',
      spec.requiresRepublish === true,
      (spec.volumeLifecycleModes ?? []).join(','),
      ageOf(object, nowMs),
    ];
  },
  prepare: preparesSpec(CSI_DRIVERS, storedDriver),
  validate: validateCsiDriver,
});

export const csistoragecapacities: ResourceDescriptor = servedKind(CSI_STORAGE_CAPACITIES, {
  unconditionalUpdate: false,
  columns: [
    nameColumn,
    textColumn('StorageClass', 'Storage class of the capacity.'),
    textColumn('Capacity', 'Available capacity.'),
    ageColumn,
  ],
  row: (object: KubeCSIStorageCapacity, nowMs) => [
    nameOf(object),
    object.storageClassName ?? '',
    object.capacity ?? '<unset>',
    ageOf(object, nowMs),
  ],
  prepare: preparesWhole(CSI_STORAGE_CAPACITIES),
  validate: validateCsiStorageCapacity,
});
