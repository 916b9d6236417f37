/** What is generated: the kinds of the registry, and what differs from the sources. */
import { alwaysEmptyResources } from '../../shared/kinds/always-empty/serve.ts';
import { CUSTOM_RESOURCE_DEFINITIONS } from '../../shared/kinds/customresourcedefinitions/resource.ts';
import { IDENTITY_GROUP } from '../../shared/kinds/identities/resource.ts';
import { METRICS_GROUP } from '../../shared/kinds/node-metrics/serve.ts';
import { resources } from '../../shared/kinds/registry.ts';
import { apiVersionOf } from '../../shared/kubernetes/normal-form.ts';
import { tableGroupVersion } from '../../shared/kubernetes/type-table.ts';

const served = resources
  .filter((resource) => !alwaysEmptyResources.includes(resource))
  .filter(
    ({ group }) => group !== IDENTITY_GROUP && group !== METRICS_GROUP && group !== CUSTOM_RESOURCE_DEFINITIONS.group,
  )
  .map((resource) => `${tableGroupVersion(apiVersionOf(resource))}.${resource.kind}`);

/** Kinds of requests and answers, which have no resource with objects. */
const NOT_STORED = [
  'meta/v1.DeleteOptions',
  'meta/v1.Status',
  'core/v1.Binding',
  'authentication/v1.SelfSubjectReview',
  'authentication/v1.TokenRequest',
  'authentication/v1.TokenReview',
  'authorization/v1.LocalSubjectAccessReview',
  'authorization/v1.SelfSubjectAccessReview',
  'authorization/v1.SelfSubjectRulesReview',
  'authorization/v1.SubjectAccessReview',
  'autoscaling/v1.Scale',
  'policy/v1.Eviction',
  'policy/v1beta1.Eviction',
];

/** Forms of a kind that are converted to the stored form at the door. They have no TypeScript type. */
const OTHER_FORMS = new Set([
  'autoscaling/v1.HorizontalPodAutoscaler',
  'events/v1.Event',
  'policy/v1beta1.PodDisruptionBudget',
]);

/** Reasons by field, `core/v1.PodSpec.schedulingGroup`. */
export type LeftOut = Readonly<Record<string, string>>;

/**
 * Fields that the server does not keep, each with the reason. A body that has one is read as one with an unknown field.
 */
const LEFT_OUT: LeftOut = {
  'core/v1.PodSpec.schedulingGroup': 'alpha (GenericWorkload), off upstream; pods are not scheduled in groups',
  'core/v1.PodStatus.nodeAllocatableResourceClaimStatuses': 'alpha (DRANodeAllocatableResources), off upstream',
  'meta/v1.ListMeta.shardInfo': 'alpha (ShardedListAndWatch), off upstream; lists have no shards',
  'storage/v1.CSIDriverSpec.preventPodSchedulingIfMissing': 'alpha (VolumeLimitScaling), off upstream',
};

/** Kinds with a schema are `roots`, those of them with a TypeScript type `typed`. Names are as in `core/v1.Pod`. */
export interface Wanted {
  readonly roots: readonly string[];
  readonly typed: readonly string[];
  readonly leftOut: LeftOut;
}

export const WANTED: Wanted = {
  roots: [...served, ...NOT_STORED],
  typed: served.filter((name) => !OTHER_FORMS.has(name)),
  leftOut: LEFT_OUT,
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
