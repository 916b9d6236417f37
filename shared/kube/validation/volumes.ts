/** PersistentVolume, PersistentVolumeClaim, and the kinds of storage.k8s.io around them. */
import type {
  KubeCsiDriver,
  KubeCsiStorageCapacity,
  KubePersistentVolume,
  KubePersistentVolumeClaim,
  KubeStorageClass,
} from '../application-types.ts';
import type { Cause } from '../status.ts';
import { forbiddenField, immutable, invalidValue, notSupported, oneOf, required, sameJson } from './causes.ts';
import { validateObjectMetadata } from './metadata.ts';
import { subdomainErrors, subdomainName } from './names.ts';

const CLUSTER_RULES = { namespaced: false, name: subdomainName };
const NAMESPACE_RULES = { namespaced: true, name: subdomainName };

const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
const RECLAIM_POLICIES = ['Delete', 'Recycle', 'Retain'];
const VOLUME_MODES = ['Block', 'Filesystem'];
const BINDING_MODES = ['Immediate', 'WaitForFirstConsumer'];

const validateModes = (modes: readonly string[] = []): Cause[] =>
  modes.length === 0
    ? [required('spec.accessModes')]
    : modes.flatMap((mode) => oneOf('spec.accessModes', mode, ACCESS_MODES));

/** Fields of the spec of a volume that are not its source. */
const VOLUME_FIELDS = new Set([
  'capacity',
  'accessModes',
  'claimRef',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'mountOptions',
  'volumeMode',
  'nodeAffinity',
  'volumeAttributesClassName',
]);

export function validatePersistentVolume(
  volume: KubePersistentVolume,
  old: KubePersistentVolume | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(volume, old, CLUSTER_RULES);
  if (subresource === 'status') return causes;
  const spec = volume.spec ?? {};
  const sourceOf = (of: object = {}) => Object.entries(of).filter(([key]) => !VOLUME_FIELDS.has(key));
  causes.push(...validateModes(spec.accessModes));
  if (Object.keys(spec.capacity ?? {}).length === 0) causes.push(required('spec.capacity'));
  else if (spec.capacity?.['storage'] === undefined) {
    causes.push(notSupported('spec.capacity', Object.keys(spec.capacity ?? {}), ['storage']));
  }
  const [first, ...more] = sourceOf(spec);
  if (first === undefined) causes.push(required('spec', 'must specify a volume type'));
  for (const [name] of more) causes.push(forbiddenField(`spec.${name}`, 'may not specify more than 1 volume type'));
  causes.push(
    ...oneOf('spec.persistentVolumeReclaimPolicy', spec.persistentVolumeReclaimPolicy, RECLAIM_POLICIES),
    ...oneOf('spec.volumeMode', spec.volumeMode, VOLUME_MODES),
  );
  if (old === undefined) return causes;
  if (!sameJson(Object.fromEntries(sourceOf(spec)), Object.fromEntries(sourceOf(old.spec)))) {
    causes.push(
      forbiddenField('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation'),
    );
  }
  return [...causes, ...immutable('spec.volumeMode', spec.volumeMode, old.spec?.volumeMode)];
}

const CLAIM_FIXED =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

export function validatePersistentVolumeClaim(
  claim: KubePersistentVolumeClaim,
  old: KubePersistentVolumeClaim | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(claim, old, NAMESPACE_RULES);
  if (subresource === 'status') return causes;
  const spec = claim.spec ?? {};
  causes.push(...validateModes(spec.accessModes), ...oneOf('spec.volumeMode', spec.volumeMode, VOLUME_MODES));
  if (spec.resources?.requests?.['storage'] === undefined) causes.push(required('spec.resources[storage]'));
  if ((spec.storageClassName ?? '') !== '') {
    for (const error of subdomainErrors(spec.storageClassName ?? '')) {
      causes.push(invalidValue('spec.storageClassName', spec.storageClassName, error));
    }
  }
  if (old === undefined) return causes;
  // A binder sets the name of the volume.
  const fixed = ({ resources: _resources, volumeName, ...rest }: KubePersistentVolumeClaim['spec'] & object = {}) =>
    (old.spec?.volumeName ?? '') === '' ? rest : { ...rest, volumeName };
  return sameJson(fixed(spec), fixed(old.spec)) ? causes : [...causes, forbiddenField('spec', CLAIM_FIXED)];
}

export function validateStorageClass(storage: KubeStorageClass, old: KubeStorageClass | undefined): Cause[] {
  const causes = validateObjectMetadata(storage, old, CLUSTER_RULES);
  if (old !== undefined) {
    if (!sameJson(storage.parameters, old.parameters)) {
      causes.push(forbiddenField('parameters', 'updates to parameters are forbidden.'));
    }
    if (storage.provisioner !== old.provisioner) {
      causes.push(forbiddenField('provisioner', 'updates to provisioner are forbidden.'));
    }
    if (storage.reclaimPolicy !== old.reclaimPolicy) {
      causes.push(forbiddenField('reclaimPolicy', 'updates to reclaimPolicy are forbidden.'));
    }
    return [...causes, ...immutable('volumeBindingMode', storage.volumeBindingMode, old.volumeBindingMode)];
  }
  if ((storage.provisioner ?? '') === '') causes.push(required('provisioner'));
  return [
    ...causes,
    ...oneOf('reclaimPolicy', storage.reclaimPolicy, ['Delete', 'Retain']),
    ...oneOf('volumeBindingMode', storage.volumeBindingMode, BINDING_MODES),
  ];
}

export function validateCsiDriver(driver: KubeCsiDriver, old: KubeCsiDriver | undefined): Cause[] {
  const causes = validateObjectMetadata(driver, old, CLUSTER_RULES);
  if (old === undefined) return causes;
  return [...causes, ...immutable('spec.attachedRequired', driver.spec?.attachRequired, old.spec?.attachRequired)];
}

export function validateCsiStorageCapacity(
  capacity: KubeCsiStorageCapacity,
  old: KubeCsiStorageCapacity | undefined,
): Cause[] {
  const causes = validateObjectMetadata(capacity, old, NAMESPACE_RULES);
  for (const error of subdomainErrors(capacity.storageClassName ?? '')) {
    causes.push(invalidValue('storageClassName', capacity.storageClassName ?? '', error));
  }
  if (old === undefined) return causes;
  return [...causes, ...immutable('storageClassName', capacity.storageClassName, old.storageClassName)];
}
