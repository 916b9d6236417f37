/**
 * One sync of a PersistentVolume. Pure.
 *
 * Source: pkg/controller/volume/persistentvolume/pv_controller.go (syncVolume, unbindVolume, reclaimVolume),
 * pkg/controller/volume/pvprotection/pv_protection_controller.go.
 */
import {
  BOUND_BY_CONTROLLER,
  LOCAL_PROVISIONER,
  PROVISIONED_BY,
  VOLUME_PROTECTION,
} from '../../../shared/kinds/persistentvolumes/annotations.ts';
import { annotationOf, sameVolumeMode } from '../../../shared/kinds/persistentvolumes/binding.rule.ts';
import { localNodeOf } from '../../../shared/kinds/persistentvolumes/local-volume.rule.ts';
import type { KubePersistentVolume, KubePersistentVolumeClaim } from '../../../shared/kinds/types.ts';
import { withAnnotations, withoutFinalizer, withVolumePhase } from './changed.rule.ts';
import type { VolumeEvent } from './claim.rule.ts';

export interface VolumeWorld {
  readonly volume: KubePersistentVolume;
  /** The claim of the name and namespace in claimRef. */
  readonly claim?: KubePersistentVolumeClaim;
  readonly nowMs: number;
}

export interface VolumeDecision {
  /** The same object: it does not change. */
  readonly volume: KubePersistentVolume;
  readonly event?: VolumeEvent;
  /** The claim must be synced: it does not name the volume yet. */
  readonly claimWaits?: true;
  /** The agent of this node removes the directory, and then the volume. */
  readonly removeOn?: string;
}

export function decideVolume({ volume, claim: named, nowMs }: VolumeWorld): VolumeDecision {
  const { claimRef } = volume.spec ?? {};
  if (volume.metadata.deletionTimestamp !== undefined && volume.status?.phase !== 'Bound') {
    const isHeld = (volume.metadata.finalizers ?? []).includes(VOLUME_PROTECTION);
    return { volume: isHeld ? withoutFinalizer(volume, VOLUME_PROTECTION) : volume };
  }
  if (claimRef === undefined) return { volume: withVolumePhase(volume, 'Available', nowMs) };
  // It is reserved by a person. The claim binds it.
  if ((claimRef.uid ?? '') === '') {
    return {
      volume: withVolumePhase(volume, 'Available', nowMs),
      ...(named === undefined ? {} : { claimWaits: true }),
    };
  }
  // Another claim of the name is none of its claims.
  const claim = named?.metadata.uid === claimRef.uid ? named : undefined;
  if (claim === undefined) return released(volume, nowMs);
  const { volumeName = '' } = claim.spec ?? {};
  if (volumeName === '') {
    if (sameVolumeMode(claim, volume)) return { volume, claimWaits: true };
    const message = `Cannot bind PersistentVolume to requested PersistentVolumeClaim ${JSON.stringify(claim.metadata.name)} due to incompatible volumeMode.`;
    return { volume, event: { type: 'Warning', reason: 'VolumeMismatch', message } };
  }
  if (volumeName === volume.metadata.name) {
    return { volume: withVolumePhase(volume, 'Bound', nowMs), ...(isComplete(claim) ? {} : { claimWaits: true }) };
  }
  // The claim is bound to another volume.
  const isProvisioned = annotationOf(volume, PROVISIONED_BY) !== undefined;
  if (isProvisioned && volume.spec?.persistentVolumeReclaimPolicy === 'Delete') return released(volume, nowMs);
  return { volume: withVolumePhase(unbound(volume), 'Available', nowMs) };
}

const isComplete = ({ status }: KubePersistentVolumeClaim): boolean => status?.phase === 'Bound';

function unbound(volume: KubePersistentVolume): KubePersistentVolume {
  const { claimRef, ...spec } = volume.spec ?? {};
  if (annotationOf(volume, BOUND_BY_CONTROLLER) !== undefined) {
    return withAnnotations({ ...volume, spec }, { [BOUND_BY_CONTROLLER]: undefined });
  }
  const { uid: _uid, resourceVersion: _version, ...reserved } = claimRef ?? {};
  return { ...volume, spec: { ...spec, claimRef: reserved } };
}

function released(volume: KubePersistentVolume, nowMs: number): VolumeDecision {
  const isDone = volume.status?.phase === 'Released' || volume.status?.phase === 'Failed';
  const next = isDone ? volume : withVolumePhase(volume, 'Released', nowMs);
  if (volume.spec?.persistentVolumeReclaimPolicy !== 'Delete') return { volume: next };
  const provisioner = annotationOf(volume, PROVISIONED_BY);
  if (provisioner === LOCAL_PROVISIONER) {
    const nodeName = localNodeOf(volume);
    return { volume: next, ...(nodeName === undefined ? {} : { removeOn: nodeName }) };
  }
  // An external provisioner removes what it made.
  if (provisioner !== undefined || volume.spec.csi !== undefined) return { volume: next };
  const why = `error getting deleter volume plugin for volume ${JSON.stringify(volume.metadata.name)}: no deletable volume plugin matched`;
  if (volume.status?.phase === 'Failed') return { volume };
  return {
    volume: withVolumePhase(volume, 'Failed', nowMs, why),
    event: { type: 'Warning', reason: 'VolumeFailedDelete', message: why },
  };
}
