/** Annotations and finalizers of claims, volumes and classes, as upstream names them. */

/** On a claim: its binding was completed. It stays when the volume is removed: the claim is Lost then. */
export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
/** On a claim or volume: a controller wrote `volumeName` or `claimRef`, so a controller may remove it. */
export const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';
/** On a volume: the provisioner that made it. */
export const PROVISIONED_BY = 'pv.kubernetes.io/provisioned-by';
/** On a claim: the node that the scheduler chose for its first consumer. */
export const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
/** On a claim: who provisions it. The second name is for old provisioners. */
export const STORAGE_PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
export const STORAGE_PROVISIONER_BETA = 'volume.beta.kubernetes.io/storage-provisioner';
/** On a claim or volume: its class, from before the field existed. It has precedence. */
export const CLASS_ANNOTATION = 'volume.beta.kubernetes.io/storage-class';
export const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';
export const DEFAULT_CLASS_BETA = 'storageclass.beta.kubernetes.io/is-default-class';

/** A claim that a pod on a node uses is not removed. */
export const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';
/** A volume that is bound is not removed. */
export const VOLUME_PROTECTION = 'kubernetes.io/pv-protection';

/** The provisioner of directories on machines: the agent. */
export const LOCAL_PROVISIONER = 'nodekeeper.dev/local';
/** Volumes of a class with this provisioner are made by hand. */
export const NO_PROVISIONER = 'kubernetes.io/no-provisioner';
