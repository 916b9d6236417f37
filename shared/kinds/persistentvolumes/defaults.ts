/**
 * Defaults of claims and volumes, for the API and for controllers that create claims.
 *
 * Source: pkg/apis/core/v1/defaults.go; the finalizers are those of the admission plugin StorageObjectInUseProtection,
 * the class that of DefaultStorageClass.
 */
import { withoutNulls } from '../../kubernetes/normal-form.ts';
import type { PrepareContext } from '../descriptor.ts';
import { type Prepare, preparesStatus } from '../served-kind.ts';
import type { KubeObject, PersistentVolumeClaimSpec, PersistentVolumeSpec } from '../types.ts';
import { CLAIM_PROTECTION, VOLUME_PROTECTION } from './annotations.ts';
import { wantsDefaultClass } from './binding.rule.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from './resource.ts';

function storedVolumeSpec(given: PersistentVolumeSpec = {}): PersistentVolumeSpec {
  const spec = withoutNulls(given);
  return {
    ...spec,
    persistentVolumeReclaimPolicy: spec.persistentVolumeReclaimPolicy || 'Retain',
    volumeMode: spec.volumeMode ?? 'Filesystem',
    ...(spec.hostPath === undefined ? {} : { hostPath: { type: '', ...spec.hostPath } }),
  };
}

const storedClaimSpec = (given: PersistentVolumeClaimSpec = {}): PersistentVolumeClaimSpec => ({
  ...withoutNulls(given),
  volumeMode: given.volumeMode ?? 'Filesystem',
});

const PHASE = { emptyStatus: { phase: 'Pending' }, hasGeneration: false } as const;

function withFinalizer(object: KubeObject, finalizer: string): KubeObject {
  const { finalizers = [] } = object.metadata;
  if (finalizers.includes(finalizer)) return object;
  return { ...object, metadata: { ...object.metadata, finalizers: [...finalizers, finalizer] } };
}

const plainVolume = preparesStatus(PERSISTENT_VOLUMES, storedVolumeSpec, PHASE);

export const preparePersistentVolume: Prepare = {
  ...plainVolume,
  prepareForCreate: (object, context) =>
    withFinalizer(plainVolume.prepareForCreate(object, context), VOLUME_PROTECTION),
};

const plainClaim = preparesStatus(PERSISTENT_VOLUME_CLAIMS, storedClaimSpec, PHASE);

export const preparePersistentVolumeClaim: Prepare = {
  ...plainClaim,
  prepareForCreate(object: KubeObject, context: PrepareContext) {
    const claim = withFinalizer(plainClaim.prepareForCreate(object, context), CLAIM_PROTECTION);
    const { defaultClassName } = context;
    if (defaultClassName === undefined || !wantsDefaultClass(claim)) return claim;
    return { ...claim, spec: { ...claim.spec, storageClassName: defaultClassName } };
  },
};
