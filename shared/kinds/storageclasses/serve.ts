import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { ageOf, booleanColumn, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { isDefaultClass } from '../persistentvolumes/binding.rule.ts';
import { validateStorageClass } from '../persistentvolumes/validate.ts';
import { preparesWhole, servedKind } from '../served-kind.ts';
import type { KubeStorageClass } from '../types.ts';
import { STORAGE_CLASSES } from './resource.ts';

export const storageclasses: ResourceDescriptor = servedKind(STORAGE_CLASSES, {
  shortNames: ['sc'],
  columns: [
    nameColumn,
    textColumn('Provisioner', 'Provisioner of the volumes.'),
    textColumn('ReclaimPolicy', 'Reclaim policy of the volumes.'),
    textColumn('VolumeBindingMode', 'Immediate or WaitForFirstConsumer.'),
    booleanColumn('AllowVolumeExpansion', 'Whether volumes can be expanded.'),
    ageColumn,
  ],
  row: (object: KubeStorageClass, nowMs) => [
    isDefaultClass(object) ? `${nameOf(object)} (default)` : nameOf(object),
    object.provisioner ?? '',
    object.reclaimPolicy ?? '',
    object.volumeBindingMode ?? '',
    object.allowVolumeExpansion === true,
    ageOf(object, nowMs),
  ],
  prepare: preparesWhole(STORAGE_CLASSES, (object: KubeStorageClass) => ({
    ...object,
    reclaimPolicy: object.reclaimPolicy ?? 'Delete',
    volumeBindingMode: object.volumeBindingMode ?? 'Immediate',
  })),
  validate: validateStorageClass,
});
