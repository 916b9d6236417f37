/**
 * Tolerations that pods get when they bring none for silent and not-ready nodes: with them every pod survives a short
 * silence, and leaves after it.
 *
 * Source: plugin/pkg/admission/defaulttolerationseconds/admission.go.
 */
import type { TaintEffect, Toleration } from '../../kubernetes/kubernetes.ts';
import { TAINT_NOT_READY, TAINT_UNREACHABLE } from './taint.ts';

/**
 * When a pod is bound to a node of a profile with another podEvictionTimeoutSeconds: the tolerations that
 * withDefaultTolerations added have the seconds of the profile. One that a user wrote in the same form, with the
 * seconds of the policy, cannot be distinguished. Returns the same list if nothing changes.
 */
export function withProfileTolerations(
  tolerations: readonly Toleration[],
  { fromSeconds, toSeconds }: { readonly fromSeconds: number; readonly toSeconds: number },
): readonly Toleration[] {
  const isAdded = ({ key, operator, effect, tolerationSeconds, value = '' }: Toleration): boolean =>
    (key === TAINT_NOT_READY || key === TAINT_UNREACHABLE) &&
    operator === 'Exists' &&
    effect === 'NoExecute' &&
    value === '' &&
    tolerationSeconds === fromSeconds;
  if (fromSeconds === toSeconds || !tolerations.some(isAdded)) return tolerations;
  return tolerations.map((each) => (isAdded(each) ? { ...each, tolerationSeconds: toSeconds } : each));
}

const covers = (toleration: Toleration, key: string, effect: TaintEffect): boolean =>
  (toleration.key === undefined || toleration.key === '' || toleration.key === key) &&
  (toleration.effect === undefined || (toleration.effect as string) === '' || toleration.effect === effect);

/**
 * On create and on update of a pod (no subresource): appends tolerations of not-ready, then of unreachable (`Exists`,
 * `NoExecute`, both with `tolerationSeconds`; 0 is allowed). Neither is added if a toleration covers its key and
 * NoExecute; operator and seconds of that toleration do not matter. Returns the same list if nothing is added.
 */
export function withDefaultTolerations(
  tolerations: readonly Toleration[],
  tolerationSeconds: number,
): readonly Toleration[] {
  const added: Toleration[] = [];
  for (const key of [TAINT_NOT_READY, TAINT_UNREACHABLE]) {
    if (tolerations.some((toleration) => covers(toleration, key, 'NoExecute'))) continue;
    added.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds });
  }
  return added.length === 0 ? tolerations : [...tolerations, ...added];
}
