import type { Descriptions } from './descriptions.ts';

export const policy: Descriptions = {
  'node/v1.Overhead': {
    '': 'Resources that a runtime needs for each pod.',
    podFixed: 'Amounts by resource name.',
  },
  'node/v1.RuntimeClass': {
    '': 'RuntimeClass defines a class of container runtime supported in the cluster.',
    handler: "Name of the runtime's configuration on the nodes.",
    overhead: 'Resources that the runtime needs for each pod.',
    scheduling: 'Nodes that support the runtime.',
  },
  'node/v1.Scheduling': {
    '': 'Nodes that support a runtime.',
    nodeSelector: 'Labels of these nodes.',
    tolerations: 'Tolerations that pods of the class have in addition.',
  },
  'policy/v1.Eviction': {
    '': 'Asks for a pod to be deleted, if its budgets allow it.',
    deleteOptions: 'Options of the deletion.',
  },
  'policy/v1.PodDisruptionBudget': {
    '': 'PodDisruptionBudget is an object to define the max disruption that can be caused to a collection of pods. Evictions from an unhealthy node ignore it.',
    spec: 'How many pods must remain.',
    status: 'Observed state of the budget.',
  },
  'policy/v1.PodDisruptionBudgetSpec': {
    '': 'How many pods must remain.',
    minAvailable: 'Pods that must remain: a number or a percentage such as 50%.',
    selector: 'Selects the pods of the budget; {} selects all pods of the namespace.',
    maxUnavailable: 'Pods that may be unavailable: a number or a percentage.',
    unhealthyPodEvictionPolicy: 'When unhealthy pods may be evicted: IfHealthyBudget or AlwaysAllow.',
  },
  'policy/v1.PodDisruptionBudgetStatus': {
    '': 'Observed state of the budget.',
    disruptedPods: 'Pods with a granted eviction that is not observed yet, each with the time of the grant.',
    disruptionsAllowed: 'Evictions that are allowed now.',
    currentHealthy: 'Healthy pods now.',
    desiredHealthy: 'Healthy pods that must remain.',
    expectedPods: 'Pods that the budget covers.',
    conditions: 'Conditions of the budget, one per type.',
  },
  'scheduling/v1.PriorityClass': {
    '': 'PriorityClass defines mapping from a priority class name to the priority integer value.',
    value: 'The priority; pods with a higher one are scheduled first.',
    globalDefault: 'Whether this class applies to pods without a class.',
    description: 'When to use the class.',
    preemptionPolicy: 'Whether its pods may preempt other pods: PreemptLowerPriority or Never.',
  },
};
