/** Priority of a pod by its class (plugin/pkg/admission/priority/admission.go). */

import type { ResolvedPriority } from '../descriptor.ts';
import type { KubePod, KubePriorityClass } from '../types.ts';

export const DEFAULT_PREEMPTION_POLICY = 'PreemptLowerPriority';

export type PriorityOutcome =
  | { readonly kind: 'resolved'; readonly priority: ResolvedPriority }
  /** Answer 403 with this text: forbidden(pods, name, why). `field` is the refused field of the spec. */
  | { readonly kind: 'refused'; readonly field: string; readonly why: string };

/** The classes of the cluster that priority admission reads. */
export interface PriorityClasses {
  /** The class that the pod names, if it exists. */
  readonly named?: KubePriorityClass | undefined;
  /** The class for pods that name none, if there is one. */
  readonly globalDefault?: KubePriorityClass | undefined;
}

/** The class for pods that name none. If there are several, the one with the lowest value applies, as upstream. */
export function defaultPriorityClass(classes: readonly KubePriorityClass[]): KubePriorityClass | undefined {
  const defaults = classes.filter((each) => each.globalDefault === true);
  return defaults.sort((left, right) => (left.value ?? 0) - (right.value ?? 0))[0];
}

/** Name of the PriorityClass to look up; '' when the pod names none. */
export const priorityClassNameOf = (pod: KubePod): string => pod.spec?.priorityClassName ?? '';

const ofClass = (priorityClass: KubePriorityClass): ResolvedPriority => ({
  priority: priorityClass.value ?? 0,
  priorityClassName: priorityClass.metadata.name ?? '',
  preemptionPolicy: priorityClass.preemptionPolicy || DEFAULT_PREEMPTION_POLICY,
});

/** The priority of a new pod. */
export function resolvePriority(pod: KubePod, classes: PriorityClasses): PriorityOutcome {
  const name = priorityClassNameOf(pod);
  if (name !== '' && classes.named === undefined) {
    return { kind: 'refused', field: 'priorityClassName', why: `no PriorityClass with name ${name} was found` };
  }
  const chosen = name === '' ? classes.globalDefault : classes.named;
  const priority: ResolvedPriority =
    chosen === undefined ? { priority: 0, preemptionPolicy: DEFAULT_PREEMPTION_POLICY } : ofClass(chosen);
  const { priority: given, preemptionPolicy: policy } = pod.spec ?? {};
  if (given !== undefined && given !== priority.priority) {
    return {
      kind: 'refused',
      field: 'priority',
      why: `the integer value of priority (${given}) must not be provided in pod spec; priority admission controller computed ${priority.priority} from the given PriorityClass name`,
    };
  }
  if (policy !== undefined && policy !== priority.preemptionPolicy) {
    return {
      kind: 'refused',
      field: 'preemptionPolicy',
      why: `the string value of PreemptionPolicy (${policy}) must not be provided in pod spec; priority admission controller computed ${priority.preemptionPolicy} from the given PriorityClass name`,
    };
  }
  return { kind: 'resolved', priority };
}
