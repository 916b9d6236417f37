/** Priority of a pod by its class (plugin/pkg/admission/priority/admission.go). */

import type { ResolvedPriority } from '../descriptor.ts';
import { numberOf, recordOf, textOf } from '../normal-form.ts';
import type { KubeObject } from '../types.ts';

export const DEFAULT_PREEMPTION_POLICY = 'PreemptLowerPriority';

export type PriorityOutcome =
  | { readonly kind: 'resolved'; readonly priority: ResolvedPriority }
  /** Answer 403 with this text: forbidden(pods, name, why). `field` of the spec is what it is about. */
  | { readonly kind: 'refused'; readonly field: string; readonly why: string };

/** What priority admission needs to know about the classes of the cluster. */
export interface PriorityClasses {
  /** The class that the pod names, if that exists. */
  readonly named?: KubeObject | undefined;
  /** The class for pods that name none, if there is one. */
  readonly globalDefault?: KubeObject | undefined;
}

/** The class for pods that name none. There should be one; of several the lowest counts, as upstream. */
export function defaultPriorityClass(classes: readonly KubeObject[]): KubeObject | undefined {
  const value = (each: KubeObject): number => numberOf(each['value']) ?? 0;
  const defaults = classes.filter((each) => each['globalDefault'] === true);
  return defaults.sort((left, right) => value(left) - value(right))[0];
}

/** Name of the PriorityClass to look up; '' when the pod names none. */
export const priorityClassNameOf = (pod: KubeObject): string => textOf(recordOf(pod.spec)['priorityClassName']);

const ofClass = (priorityClass: KubeObject): ResolvedPriority => ({
  priority: numberOf(priorityClass['value']) ?? 0,
  priorityClassName: priorityClass.metadata.name ?? '',
  preemptionPolicy: textOf(priorityClass['preemptionPolicy']) || DEFAULT_PREEMPTION_POLICY,
});

/** What priority a new pod gets. */
export function resolvePriority(pod: KubeObject, classes: PriorityClasses): PriorityOutcome {
  const name = priorityClassNameOf(pod);
  if (name !== '' && classes.named === undefined) {
    return { kind: 'refused', field: 'priorityClassName', why: `no PriorityClass with name ${name} was found` };
  }
  const chosen = name === '' ? classes.globalDefault : classes.named;
  const priority: ResolvedPriority =
    chosen === undefined ? { priority: 0, preemptionPolicy: DEFAULT_PREEMPTION_POLICY } : ofClass(chosen);
  const spec = recordOf(pod.spec);
  const given = numberOf(spec['priority']);
  if (given !== undefined && given !== priority.priority) {
    return {
      kind: 'refused',
      field: 'priority',
      why: `the integer value of priority (${given}) must not be provided in pod spec; priority admission controller computed ${priority.priority} from the given PriorityClass name`,
    };
  }
  const policy = textOf(spec['preemptionPolicy']);
  if (policy !== '' && policy !== priority.preemptionPolicy) {
    return {
      kind: 'refused',
      field: 'preemptionPolicy',
      why: `the string value of PreemptionPolicy (${policy}) must not be provided in pod spec; priority admission controller computed ${priority.preemptionPolicy} from the given PriorityClass name`,
    };
  }
  return { kind: 'resolved', priority };
}
