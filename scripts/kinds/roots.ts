/** Kinds by package, such as `core/v1`. */
export type Roots = Readonly<Record<string, readonly string[]>>;

/** Kinds that clients send, by package. Every message that they contain is part of the table. */
export const ROOTS: Roots = {
  'meta/v1': ['DeleteOptions Status'],
  'core/v1': [
    'Binding ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod',
    'PodTemplate ReplicationController ResourceQuota Secret Service ServiceAccount',
  ],
  'apps/v1': ['ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet'],
  'authentication/v1': ['SelfSubjectReview TokenRequest TokenReview'],
  'authorization/v1': ['LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview'],
  'autoscaling/v1': ['HorizontalPodAutoscaler Scale'],
  'autoscaling/v2': ['HorizontalPodAutoscaler'],
  'batch/v1': ['CronJob Job'],
  'certificates/v1': ['CertificateSigningRequest'],
  'coordination/v1': ['Lease'],
  'discovery/v1': ['EndpointSlice'],
  'events/v1': ['Event'],
  'networking/v1': ['Ingress IngressClass NetworkPolicy'],
  'node/v1': ['RuntimeClass'],
  'policy/v1': ['Eviction PodDisruptionBudget'],
  'policy/v1beta1': ['Eviction PodDisruptionBudget'],
  'rbac/v1': ['ClusterRole ClusterRoleBinding Role RoleBinding'],
  'scheduling/v1': ['PriorityClass'],
  'storage/v1': ['CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment'],
};

/** Reasons by field, `core/v1.PodSpec.schedulingGroup`. */
export type LeftOut = Readonly<Record<string, string>>;

/** Fields that the server does not keep, each with the reason. A body that has one is read as one with an unknown field. */
export const LEFT_OUT: LeftOut = {
  'core/v1.PodSpec.schedulingGroup': 'alpha (GenericWorkload), off upstream; pods are not scheduled in groups',
  'core/v1.PodStatus.nodeAllocatableResourceClaimStatuses': 'alpha (DRANodeAllocatableResources), off upstream',
  'meta/v1.ListMeta.shardInfo': 'alpha (ShardedListAndWatch), off upstream; lists have no shards',
  'storage/v1.CSIDriverSpec.preventPodSchedulingIfMissing': 'alpha (VolumeLimitScaling), off upstream',
};
