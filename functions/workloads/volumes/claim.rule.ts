/**
 * One sync of a PersistentVolumeClaim: what it and its volume must become. Pure.
 *
 * Source: pkg/controller/volume/persistentvolume/pv_controller.go (syncUnboundClaim, syncBoundClaim, bind,
 * provisionClaim), pkg/controller/volume/pvcprotection/pvc_protection_controller.go.
 */
import {
  BIND_COMPLETED,
  BOUND_BY_CONTROLLER,
  CLAIM_PROTECTION,
  LOCAL_PROVISIONER,
  NO_PROVISIONER,
  SELECTED_NODE,
  STORAGE_PROVISIONER,
  STORAGE_PROVISIONER_BETA,
} from '../../../shared/kinds/persistentvolumes/annotations.ts';
import {
  annotationOf,
  classNameOf,
  isBoundToClaim,
  mismatchOf,
  selectedNodeOf,
  volumesFor,
  waitsForConsumer,
  wantsDefaultClass,
} from '../../../shared/kinds/persistentvolumes/binding.rule.ts';
import type { KubePersistentVolume, KubePersistentVolumeClaim, KubeStorageClass } from '../../../shared/kinds/types.ts';
import { withAnnotations, withClaimPhase, withoutFinalizer, withVolumePhase } from './changed.rule.ts';

export interface VolumeEvent {
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
}

export interface ClaimWorld {
  readonly claim: KubePersistentVolumeClaim;
  /** The volume that it names. Absent: it names none, or none has the name. */
  readonly named?: KubePersistentVolume;
  /** Every volume. Read only for a claim that names none. */
  readonly volumes: readonly KubePersistentVolume[];
  /** Its class. Absent: it has none, or none has the name. */
  readonly storage?: KubeStorageClass;
  /** The class of claims without one. */
  readonly fallback?: KubeStorageClass;
  /** A pod on a node has it. Read only for a claim that is being deleted. */
  readonly isUsed: boolean;
  /** The node that the scheduler selected does not exist, or is silent. Read only for a claim that has one. */
  readonly isNodeLost: boolean;
  readonly nowMs: number;
}

export interface ClaimDecision {
  /** The same object: it does not change. */
  readonly claim: KubePersistentVolumeClaim;
  /** Written in the same commit. */
  readonly volume?: { readonly previous: KubePersistentVolume; readonly next: KubePersistentVolume };
  readonly event?: VolumeEvent;
  /** The agent of this node makes the volume. */
  readonly provisionOn?: string;
}

const warning = (reason: string, message: string): VolumeEvent => ({ type: 'Warning', reason, message });
const normal = (reason: string, message: string): VolumeEvent => ({ type: 'Normal', reason, message });

export function decideClaim(world: ClaimWorld): ClaimDecision {
  const { claim, isUsed } = world;
  if (claim.metadata.deletionTimestamp !== undefined) {
    const isHeld = isUsed || claim.metadata.finalizers?.includes(CLAIM_PROTECTION) !== true;
    return { claim: isHeld ? claim : withoutFinalizer(claim, CLAIM_PROTECTION) };
  }
  return annotationOf(claim, BIND_COMPLETED) === undefined ? unbound(world) : bound(world);
}

function unbound(world: ClaimWorld): ClaimDecision {
  const { claim, named, nowMs } = world;
  if ((claim.spec?.volumeName ?? '') === '') return unnamed(world);
  if (named === undefined) return pending(claim);
  const { name = '' } = named.metadata;
  if (named.spec?.claimRef === undefined) {
    const why = mismatchOf(named, claim);
    if (why === undefined) return bind(named, claim, nowMs);
    return pending(claim, warning('VolumeMismatch', `Cannot bind to requested volume ${JSON.stringify(name)}: ${why}`));
  }
  if (isBoundToClaim(named, claim)) return bind(named, claim, nowMs);
  return pending(claim, warning('FailedBinding', `volume ${JSON.stringify(name)} already bound to a different claim.`));
}

/** A person did not choose a volume. */
function unnamed(world: ClaimWorld): ClaimDecision {
  const { claim, volumes, storage, fallback, nowMs } = world;
  const waits = waitsForConsumer(storage) && selectedNodeOf(claim) === '';
  const [match] = volumesFor(claim, volumes, { namedOnly: waitsForConsumer(storage) });
  if (match !== undefined) return bind(match, claim, nowMs);
  if (wantsDefaultClass(claim) && fallback?.metadata.name !== undefined) {
    return { claim: { ...claim, spec: { ...claim.spec, storageClassName: fallback.metadata.name } } };
  }
  if (waits) {
    return pending(claim, normal('WaitForFirstConsumer', 'waiting for first consumer to be created before binding'));
  }
  if (classNameOf(claim) !== '') return provision(world);
  const why = 'no persistent volumes available for this claim and no storage class is set';
  return pending(claim, normal('FailedBinding', why));
}

function provision({ claim, storage, isNodeLost }: ClaimWorld): ClaimDecision {
  if (storage === undefined) {
    const why = `storageclass.storage.k8s.io ${JSON.stringify(classNameOf(claim))} not found`;
    return pending(claim, warning('ProvisioningFailed', why));
  }
  const { provisioner = '' } = storage;
  if (provisioner === NO_PROVISIONER) {
    return pending(claim, warning('ProvisioningFailed', `no volume plugin matched name: ${provisioner}`));
  }
  const nodeName = selectedNodeOf(claim);
  const isLocal = provisioner === LOCAL_PROVISIONER;
  if (isLocal && isNodeLost) {
    // The scheduler selects another one.
    const why = `failed to provision volume with StorageClass ${JSON.stringify(classNameOf(claim))}: node ${JSON.stringify(nodeName)} does not answer`;
    const rescheduled = withAnnotations(claim, { [SELECTED_NODE]: undefined });
    return pending(rescheduled, warning('ProvisioningFailed', why));
  }
  if (isLocal && nodeName === '') {
    const why = `StorageClass ${JSON.stringify(classNameOf(claim))}: provisioner ${provisioner} needs volumeBindingMode WaitForFirstConsumer: a directory is on the node of its first consumer`;
    return pending(claim, warning('ProvisioningFailed', why));
  }
  const asked = withAnnotations(claim, {
    [STORAGE_PROVISIONER]: provisioner,
    [STORAGE_PROVISIONER_BETA]: provisioner,
  });
  const why = `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`;
  return { ...pending(asked, normal('ExternalProvisioning', why)), ...(isLocal ? { provisionOn: nodeName } : {}) };
}

const pending = (claim: KubePersistentVolumeClaim, event?: VolumeEvent): ClaimDecision => ({
  claim: withClaimPhase(claim, 'Pending'),
  ...(event === undefined ? {} : { event }),
});

function bound({ claim, named, nowMs }: ClaimWorld): ClaimDecision {
  if ((claim.spec?.volumeName ?? '') === '') {
    return lost(claim, 'ClaimLost', 'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!');
  }
  if (named === undefined) {
    return lost(claim, 'ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!');
  }
  const claimed = named.spec?.claimRef;
  if (claimed === undefined || claimed.uid === claim.metadata.uid) return bind(named, claim, nowMs);
  return lost(claim, 'ClaimMisbound', 'Two claims are bound to the same volume, this one is bound incorrectly');
}

function lost(claim: KubePersistentVolumeClaim, reason: string, message: string): ClaimDecision {
  if (claim.status?.phase === 'Lost') return { claim };
  return { claim: withClaimPhase(claim, 'Lost'), event: warning(reason, message) };
}

/** Both sides name each other. Repeated until both do; a side that is right stays the same object in content. */
function bind(volume: KubePersistentVolume, claim: KubePersistentVolumeClaim, nowMs: number): ClaimDecision {
  const { name = '' } = volume.metadata;
  const isNamed = claim.spec?.volumeName === name;
  const named = withAnnotations(isNamed ? claim : { ...claim, spec: { ...claim.spec, volumeName: name } }, {
    [BIND_COMPLETED]: 'yes',
    ...(isNamed ? {} : { [BOUND_BY_CONTROLLER]: 'yes' }),
  });
  return {
    claim: withClaimPhase(named, 'Bound', volume),
    volume: { previous: volume, next: withVolumePhase(claimedBy(volume, claim), 'Bound', nowMs) },
  };
}

function claimedBy(volume: KubePersistentVolume, claim: KubePersistentVolumeClaim): KubePersistentVolume {
  const { uid = '', name = '', namespace = '', resourceVersion = '' } = claim.metadata;
  if (volume.spec?.claimRef?.uid === uid) return volume;
  const claimRef = { kind: 'PersistentVolumeClaim', namespace, name, uid, apiVersion: 'v1', resourceVersion };
  const next = { ...volume, spec: { ...volume.spec, claimRef } };
  // A reference that a person wrote is kept when the claim is deleted.
  return isBoundToClaim(volume, claim) ? next : withAnnotations(next, { [BOUND_BY_CONTROLLER]: 'yes' });
}
