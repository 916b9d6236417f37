/**
 * Which volume may be bound to a claim. Pure; used by the binder and by the scheduler.
 *
 * Source: staging/src/k8s.io/component-helpers/storage/volume/pv_helpers.go (FindMatchingVolume, IsVolumeBoundToClaim,
 * CheckAccessModes, CheckVolumeModeMismatches, IsDelayBindingMode), pkg/controller/volume/persistentvolume/index.go.
 */
import { compareQuantities, parseQuantity } from '../../kubernetes/quantity.ts';
import { selectorFromSpec } from '../../kubernetes/selectors.ts';
import { parseTimeMs } from '../../kubernetes/time.ts';
import type {
  KubeObject,
  KubePersistentVolume,
  KubePersistentVolumeClaim,
  KubeStorageClass,
  NodeSelectorTerm,
} from '../types.ts';
import { BIND_COMPLETED, CLASS_ANNOTATION, DEFAULT_CLASS, DEFAULT_CLASS_BETA, SELECTED_NODE } from './annotations.ts';

export const annotationOf = ({ metadata }: KubeObject, name: string): string | undefined =>
  metadata.annotations?.[name];

/** '': none. A claim has none before its class is decided. */
export const classNameOf = (object: KubePersistentVolume | KubePersistentVolumeClaim): string =>
  annotationOf(object, CLASS_ANNOTATION) ?? object.spec?.storageClassName ?? '';

export const selectedNodeOf = (claim: KubePersistentVolumeClaim): string => annotationOf(claim, SELECTED_NODE) ?? '';

/** It has a volume, and no controller has anything left to do for it. */
export const isFullyBound = (claim: KubePersistentVolumeClaim): boolean =>
  (claim.spec?.volumeName ?? '') !== '' &&
  annotationOf(claim, BIND_COMPLETED) !== undefined &&
  claim.status?.phase === 'Bound';

export const waitsForConsumer = (storage: KubeStorageClass | undefined): boolean =>
  storage?.volumeBindingMode === 'WaitForFirstConsumer';

/** The volume names this claim: by its uid, or by its name alone if a person wrote the reference. */
export function isBoundToClaim(volume: KubePersistentVolume, { metadata }: KubePersistentVolumeClaim): boolean {
  const claimed = volume.spec?.claimRef;
  if (claimed?.name !== metadata.name || claimed?.namespace !== metadata.namespace) return false;
  return (claimed?.uid ?? '') === '' || claimed?.uid === metadata.uid;
}

export const modesAllow = (claim: KubePersistentVolumeClaim, volume: KubePersistentVolume): boolean =>
  (claim.spec?.accessModes ?? []).every((mode) => (volume.spec?.accessModes ?? []).includes(mode));

export const sameVolumeMode = (claim: KubePersistentVolumeClaim, volume: KubePersistentVolume): boolean =>
  (claim.spec?.volumeMode ?? 'Filesystem') === (volume.spec?.volumeMode ?? 'Filesystem');

function storageNanos(amounts: Readonly<Record<string, string>> | undefined): bigint {
  const parsed = parseQuantity(String(amounts?.['storage'] ?? '0'));
  return parsed.kind === 'parsed' ? parsed.quantity.nanos : 0n;
}

export const capacityOf = (volume: KubePersistentVolume): bigint => storageNanos(volume.spec?.capacity);
export const requestOf = (claim: KubePersistentVolumeClaim): bigint => storageNanos(claim.spec?.resources?.requests);

/** Whether the request of a claim became larger. */
export function grows(next: KubePersistentVolumeClaim, old: KubePersistentVolumeClaim): boolean {
  const [left, right] = [next, old].map((each) =>
    parseQuantity(String(each.spec?.resources?.requests?.['storage'] ?? '0')),
  );
  return left?.kind === 'parsed' && right?.kind === 'parsed' && compareQuantities(left.quantity, right.quantity) > 0;
}

/** Why a volume that the claim names cannot be bound to it; undefined: it can. */
export function mismatchOf(volume: KubePersistentVolume, claim: KubePersistentVolumeClaim): string | undefined {
  const { name = '', deletionTimestamp } = volume.metadata;
  if (deletionTimestamp !== undefined) return `the volume is marked for deletion ${JSON.stringify(name)}`;
  if (capacityOf(volume) < requestOf(claim)) return 'requested PV is too small';
  if (classNameOf(volume) !== classNameOf(claim)) return 'storageClassName does not match';
  if (!sameVolumeMode(claim, volume)) return 'incompatible volumeMode';
  return modesAllow(claim, volume) ? undefined : 'incompatible accessMode';
}

const textOrder = (left: string, right: string): number => (left < right ? -1 : left > right ? 1 : 0);

/**
 * Volumes that may be bound to the claim, the best first: the one that names it, alone; else the smallest that satisfy
 * it, those with the fewest access modes first. Of equal ones the first by name: two binders choose the same.
 *
 * @param namedOnly the binder leaves a claim of a class that waits for a consumer to the scheduler, unless a volume
 *   names it
 */
export function volumesFor(
  claim: KubePersistentVolumeClaim,
  volumes: Iterable<KubePersistentVolume>,
  { namedOnly = false }: { readonly namedOnly?: boolean } = {},
): readonly KubePersistentVolume[] {
  const selector = claim.spec?.selector === undefined ? undefined : selectorFromSpec(claim.spec.selector);
  const wanted = requestOf(claim);
  const candidates: { readonly volume: KubePersistentVolume; readonly capacity: bigint; readonly modes: number }[] = [];
  for (const volume of volumes) {
    const { metadata, spec = {}, status } = volume;
    const isNamed = isBoundToClaim(volume, claim);
    if ((spec.claimRef !== undefined || namedOnly) && !isNamed) continue;
    if (metadata.deletionTimestamp !== undefined || !sameVolumeMode(claim, volume) || !modesAllow(claim, volume))
      continue;
    const capacity = capacityOf(volume);
    if (capacity < wanted) continue;
    if (isNamed) return [volume];
    if (status?.phase !== 'Available' || classNameOf(volume) !== classNameOf(claim)) continue;
    if (selector?.matches(metadata.labels ?? {}) === false) continue;
    candidates.push({ volume, capacity, modes: (spec.accessModes ?? []).length });
  }
  return candidates
    .toSorted(
      (one, other) =>
        one.modes - other.modes ||
        (one.capacity < other.capacity ? -1 : one.capacity > other.capacity ? 1 : 0) ||
        textOrder(one.volume.metadata.name ?? '', other.volume.metadata.name ?? ''),
    )
    .map(({ volume }) => volume);
}

export const isDefaultClass = (storage: KubeStorageClass): boolean =>
  annotationOf(storage, DEFAULT_CLASS) === 'true' || annotationOf(storage, DEFAULT_CLASS_BETA) === 'true';

/** The class of claims without one: the newest that is marked, then the first by name. */
export function defaultClass(classes: readonly KubeStorageClass[]): KubeStorageClass | undefined {
  const createdMs = ({ metadata }: KubeStorageClass): number => parseTimeMs(metadata.creationTimestamp) ?? 0;
  return classes
    .filter(isDefaultClass)
    .toSorted(
      (one, other) =>
        createdMs(other) - createdMs(one) || textOrder(one.metadata.name ?? '', other.metadata.name ?? ''),
    )[0];
}

/** The claim asks for the default class: neither the field nor the annotation says anything. `''` asks for none. */
export const wantsDefaultClass = (claim: KubePersistentVolumeClaim): boolean =>
  claim.spec?.storageClassName === undefined && annotationOf(claim, CLASS_ANNOTATION) === undefined;

/** The terms that a node must match to reach the volume; undefined: every node does. */
export const nodeTermsOf = (volume: KubePersistentVolume): readonly NodeSelectorTerm[] | undefined =>
  volume.spec?.nodeAffinity?.required?.nodeSelectorTerms;
