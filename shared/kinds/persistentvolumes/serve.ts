/** PersistentVolumes and their claims, bound by functions/workloads/volumes. */

import { ageColumn, nameColumn, textColumn } from '../../kubernetes/columns.ts';
import { canonicalQuantity } from '../../kubernetes/quantity.ts';
import { accessModesCell, ageOf, nameOf } from '../cells.ts';
import type { ResourceDescriptor } from '../descriptor.ts';
import { STATUS_PART, servedKind } from '../served-kind.ts';
import type { KubePersistentVolume, KubePersistentVolumeClaim, ResourceList } from '../types.ts';
import { preparePersistentVolume, preparePersistentVolumeClaim } from './defaults.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from './resource.ts';
import { validatePersistentVolume, validatePersistentVolumeClaim } from './validate.ts';

const storageOf = (amounts: ResourceList = {}): string =>
  amounts['storage'] === undefined ? '' : canonicalQuantity(amounts['storage']);

const claimName = ({ spec }: KubePersistentVolume): string =>
  spec?.claimRef === undefined ? '' : `${spec.claimRef.namespace ?? ''}/${spec.claimRef.name ?? ''}`;

const phaseOf = (object: KubePersistentVolume | KubePersistentVolumeClaim): string =>
  object.metadata.deletionTimestamp === undefined ? (object.status?.phase ?? '') : 'Terminating';

export const persistentvolumes: ResourceDescriptor = servedKind(PERSISTENT_VOLUMES, {
  shortNames: ['pv'],
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Capacity', 'Size of the volume.'),
    textColumn('Access Modes', 'How the volume can be mounted.'),
    textColumn('Reclaim Policy', 'What happens after the claim is deleted.'),
    textColumn('Status', 'Phase of the volume.'),
    textColumn('Claim', 'Claim that the volume is bound to.'),
    textColumn('StorageClass', 'Storage class of the volume.'),
    textColumn('VolumeAttributesClass', 'Class of its attributes.', 1),
    textColumn('Reason', 'Why the volume is in its phase.'),
    ageColumn,
    textColumn('VolumeMode', 'Filesystem or Block.', 1),
  ],
  row: (object: KubePersistentVolume, nowMs) => [
    nameOf(object),
    storageOf(object.spec?.capacity),
    accessModesCell(object.spec?.accessModes),
    object.spec?.persistentVolumeReclaimPolicy ?? '',
    phaseOf(object),
    claimName(object),
    object.spec?.storageClassName ?? '',
    '<unset>',
    object.status?.reason ?? '',
    ageOf(object, nowMs),
    object.spec?.volumeMode ?? '<unset>',
  ],
  prepare: preparePersistentVolume,
  validate: validatePersistentVolume,
});

export const persistentvolumeclaims: ResourceDescriptor = servedKind(PERSISTENT_VOLUME_CLAIMS, {
  shortNames: ['pvc'],
  subresources: [STATUS_PART],
  columns: [
    nameColumn,
    textColumn('Status', 'Phase of the claim.'),
    textColumn('Volume', 'Volume that the claim is bound to.'),
    textColumn('Capacity', 'Size of the bound volume.'),
    textColumn('Access Modes', 'How the bound volume can be mounted.'),
    textColumn('StorageClass', 'Storage class of the claim.'),
    textColumn('VolumeAttributesClass', 'Class of the attributes.'),
    ageColumn,
    textColumn('VolumeMode', 'Filesystem or Block.', 1),
  ],
  row: (object: KubePersistentVolumeClaim, nowMs) => {
    const isBound = (object.spec?.volumeName ?? '') !== '';
    return [
      nameOf(object),
      phaseOf(object),
      object.spec?.volumeName ?? '',
      isBound ? storageOf(object.status?.capacity) : '',
      isBound ? accessModesCell(object.status?.accessModes) : '',
      object.spec?.storageClassName ?? '',
      '<unset>',
      ageOf(object, nowMs),
      object.spec?.volumeMode ?? '<unset>',
    ];
  },
  prepare: preparePersistentVolumeClaim,
  validate: validatePersistentVolumeClaim,
});
