import { condition, deleteOptions, labelSelector, metadata } from '../../kubernetes/schema/meta.ts';
import {
  embedded,
  int32,
  int64,
  intOrString,
  keyedList,
  kindStruct,
  optionalStruct,
  pointer,
  replacedOnPatch,
  required,
  type StructSchema,
  struct,
  text,
  timeMap,
} from '../../kubernetes/schema/schema.ts';

const POLICY = 'io.k8s.api.policy.v1';

const budgetSpec = struct(`${POLICY}.PodDisruptionBudgetSpec`, 'How many pods must remain.', {
  minAvailable: intOrString('Pods that must remain: a number or a percentage such as 50%.'),
  selector: optionalStruct(
    replacedOnPatch(labelSelector),
    'Selects the pods of the budget; {} selects all pods of the namespace.',
  ),
  maxUnavailable: intOrString('Pods that may be unavailable: a number or a percentage.'),
  unhealthyPodEvictionPolicy: pointer(text('When unhealthy pods may be evicted: IfHealthyBudget or AlwaysAllow.')),
});

const budgetStatus = struct(`${POLICY}.PodDisruptionBudgetStatus`, 'Observed state of the budget.', {
  observedGeneration: int64('Generation that the status was computed from.'),
  disruptedPods: timeMap('Pods with a granted eviction that is not observed yet, each with the time of the grant.'),
  disruptionsAllowed: required(int32('Evictions that are allowed now.')),
  currentHealthy: required(int32('Healthy pods now.')),
  desiredHealthy: required(int32('Healthy pods that must remain.')),
  expectedPods: required(int32('Pods that the budget covers.')),
  conditions: keyedList(condition, 'Conditions of the budget, one per type.', { mergeKey: 'type' }),
});

/** The two versions differ in their selector only: an empty one selects no pods in v1beta1. */
const budgetOf = (version: string): StructSchema =>
  kindStruct(
    `io.k8s.api.policy.${version}.PodDisruptionBudget`,
    { group: 'policy', version, kind: 'PodDisruptionBudget' },
    'PodDisruptionBudget is an object to define the max disruption that can be caused to a collection of pods. Evictions from an unhealthy node ignore it.',
    {
      metadata,
      spec: embedded(budgetSpec, 'How many pods must remain.'),
      status: embedded(budgetStatus, 'Observed state of the budget.'),
    },
  );

export const podDisruptionBudget: StructSchema = budgetOf('v1');
/** What a scheduler of Kubernetes 1.20 watches. */
export const podDisruptionBudgetV1beta1: StructSchema = budgetOf('v1beta1');

const evictionOf = (version: string): StructSchema =>
  kindStruct(
    `io.k8s.api.policy.${version}.Eviction`,
    { group: 'policy', version, kind: 'Eviction' },
    'Asks for a pod to be deleted, if its budgets allow it.',
    {
      metadata,
      deleteOptions: optionalStruct(deleteOptions, 'Options of the deletion.'),
    },
  );

export const eviction: StructSchema = evictionOf('v1');
/** What kubectl before 1.22 posts. */
export const evictionV1beta1: StructSchema = evictionOf('v1beta1');
