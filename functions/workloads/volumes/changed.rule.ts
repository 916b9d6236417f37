/** Parts of claims and volumes, changed. Pure. */
import type {
  KubeObject,
  KubePersistentVolume,
  KubePersistentVolumeClaim,
  PersistentVolumeClaimStatus,
} from '../../../shared/kinds/types.ts';
import { formatTime } from '../../../shared/kubernetes/time.ts';

export type ClaimPhase = 'Pending' | 'Bound' | 'Lost';
export type VolumePhase = 'Available' | 'Bound' | 'Released' | 'Failed';

export function withAnnotations<Changed extends KubeObject>(
  object: Changed,
  changes: Readonly<Record<string, string | undefined>>,
): Changed {
  const { annotations: before = {}, ...metadata } = object.metadata;
  const kept = Object.entries({ ...before, ...changes }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const annotations = kept.length === 0 ? {} : { annotations: Object.fromEntries(kept) };
  return { ...object, metadata: { ...metadata, ...annotations } };
}

export function withoutFinalizer<Changed extends KubeObject>(object: Changed, finalizer: string): Changed {
  const { finalizers = [], ...metadata } = object.metadata;
  const left = finalizers.filter((each) => each !== finalizer);
  return { ...object, metadata: { ...metadata, ...(left.length === 0 ? {} : { finalizers: left }) } };
}

/** Without a volume there are no modes and no capacity. The capacity of a claim that was bound is not set again. */
export function withClaimPhase(
  claim: KubePersistentVolumeClaim,
  phase: ClaimPhase,
  volume?: KubePersistentVolume,
): KubePersistentVolumeClaim {
  const { accessModes: _modes, capacity: before, ...status } = claim.status ?? {};
  const wasBound = claim.status?.phase === 'Bound' && before !== undefined;
  const next: PersistentVolumeClaimStatus = { ...status, phase };
  if (volume?.spec?.accessModes !== undefined) next.accessModes = volume.spec.accessModes;
  const capacity = wasBound ? before : volume?.spec?.capacity;
  if (volume !== undefined && capacity !== undefined) next.capacity = capacity;
  return { ...claim, status: next };
}

export function withVolumePhase(
  volume: KubePersistentVolume,
  phase: VolumePhase,
  nowMs: number,
  why = '',
): KubePersistentVolume {
  if (volume.status?.phase === phase && (volume.status.message ?? '') === why) return volume;
  const { message: _message, ...status } = volume.status ?? {};
  const lastPhaseTransitionTime = formatTime(nowMs);
  return { ...volume, status: { ...status, phase, lastPhaseTransitionTime, ...(why === '' ? {} : { message: why }) } };
}
