import { condition, deleteOptions, labelSelector, metadata } from './meta.ts';
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
} from './schema.ts';

const POLICY = 'io.k8s.api.policy.v1';

const budgetSpec = struct(`${POLICY}.PodDisruptionBudgetSpec`, 'How many pods must stay.', {
  minAvailable: intOrString('Pods that must stay, a number or a share such as 50%.'),
  selector: optionalStruct(replacedOnPatch(labelSelector), 'Pods the budget is for; all of the namespace if {}.'),
  maxUnavailable: intOrString('Pods that may be missing, a number or a share.'),
  unhealthyPodEvictionPolicy: pointer(text('When unhealthy pods may be evicted: IfHealthyBudget or AlwaysAllow.')),
});

const budgetStatus = struct(`${POLICY}.PodDisruptionBudgetStatus`, 'What the budget leaves.', {
  observedGeneration: int64('Generation the status was made from.'),
  disruptedPods: timeMap('Pods whose eviction was granted and is not seen yet, with the time it was.'),
  disruptionsAllowed: required(int32('Evictions that are allowed now.')),
  currentHealthy: required(int32('Healthy pods now.')),
  desiredHealthy: required(int32('Healthy pods that must stay.')),
  expectedPods: required(int32('Pods the budget counts.')),
  conditions: keyedList(condition, 'Conditions of the budget, one a type.', { mergeKey: 'type' }),
});

export const podDisruptionBudget: StructSchema = kindStruct(
  `${POLICY}.PodDisruptionBudget`,
  { group: 'policy', version: 'v1', kind: 'PodDisruptionBudget' },
  'PodDisruptionBudget is an object to define the max disruption that can be caused to a collection of pods. A dead node evicts regardless.',
  {
    metadata,
    spec: embedded(budgetSpec, 'How many pods must stay.'),
    status: embedded(budgetStatus, 'What the budget leaves.'),
  },
);

const evictionOf = (version: string): StructSchema =>
  kindStruct(
    `io.k8s.api.policy.${version}.Eviction`,
    { group: 'policy', version, kind: 'Eviction' },
    'Asks for a pod to be deleted, if its budgets allow it.',
    {
      metadata,
      deleteOptions: optionalStruct(deleteOptions, 'How it is to be deleted.'),
    },
  );

export const eviction: StructSchema = evictionOf('v1');
/** What kubectl before 1.22 posts. */
export const evictionV1beta1: StructSchema = evictionOf('v1beta1');
