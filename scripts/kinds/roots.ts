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

/** Kinds with a TypeScript type: code reads their members. */
export const TYPED: Roots = {
  'core/v1': [
    'ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolume PersistentVolumeClaim Pod PodTemplate',
    'ReplicationController ResourceQuota Secret Service ServiceAccount',
  ],
  'apps/v1': ['ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet'],
  'autoscaling/v2': ['HorizontalPodAutoscaler'],
  'batch/v1': ['CronJob Job'],
  'certificates/v1': ['CertificateSigningRequest'],
  'coordination/v1': ['Lease'],
  'discovery/v1': ['EndpointSlice'],
  'networking/v1': ['Ingress IngressClass NetworkPolicy'],
  'node/v1': ['RuntimeClass'],
  'policy/v1': ['PodDisruptionBudget'],
  'rbac/v1': ['ClusterRole Role RoleBinding'],
  'scheduling/v1': ['PriorityClass'],
  'storage/v1': ['CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment'],
};

/** Text with a type of its values. Any other is `string`: what clients sent is compared where it is read. */
export const CLOSED: ReadonlySet<string> = new Set([
  'apps/v1.DaemonSetUpdateStrategyType',
  'core/v1.DNSPolicy',
  'core/v1.NamespacePhase',
  'core/v1.NodeInclusionPolicy',
  'core/v1.NodeSelectorOperator',
  'core/v1.PodPhase',
  'core/v1.PodQOSClass',
  'core/v1.PreemptionPolicy',
  'core/v1.PullPolicy',
  'core/v1.RestartPolicy',
  'core/v1.TaintEffect',
  'core/v1.TerminationMessagePolicy',
  'core/v1.TolerationOperator',
  'core/v1.UnsatisfiableConstraintAction',
  'policy/v1.UnhealthyPodEvictionPolicyType',
]);

/** The same for types that upstream does not mark as enumerations. */
export const UNMARKED: Readonly<Record<string, readonly string[]>> = {
  'core/v1.ConditionStatus': ['True', 'False', 'Unknown'],
};

/** Types in which a required member may be absent, because rules read them before they are complete. */
export const PARTIAL: ReadonlySet<string> = new Set([
  'autoscaling/v2.CrossVersionObjectReference',
  'autoscaling/v2.MetricTarget',
  'core/v1.CSIPersistentVolumeSource',
  'core/v1.Container',
  'core/v1.ContainerStateTerminated',
  'core/v1.ContainerStatus',
  'core/v1.EndpointPort',
  'core/v1.LimitRangeItem',
  'core/v1.LocalVolumeSource',
  'core/v1.NFSVolumeSource',
  'core/v1.NodeSystemInfo',
  'core/v1.ResourceFieldSelector',
  'rbac/v1.PolicyRule',
  'rbac/v1.RoleRef',
]);

/** Types with lists that are constants. */
export const CONSTANT: ReadonlySet<string> = new Set(['rbac/v1.PolicyRule']);

/** Times that may be null: that of a template, and those of a map. */
export const NULLABLE: ReadonlySet<string> = new Set([
  'meta/v1.ObjectMeta.creationTimestamp',
  'policy/v1.PodDisruptionBudgetStatus.disruptedPods',
]);
