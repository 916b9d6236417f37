/**
 * Tolerations that pods get when they bring none for silent and not-ready nodes: with them every pod survives a short
 * silence, and leaves after it.
 *
 * Source: plugin/pkg/admission/defaulttolerationseconds/admission.go.
 */
import type { TaintEffect, Toleration } from '../kubernetes.ts';
import { TAINT_NOT_READY, TAINT_UNREACHABLE } from './taint.ts';

const covers = (toleration: Toleration, key: string, effect: TaintEffect): boolean =>
  (toleration.key === undefined || toleration.key === '' || toleration.key === key) &&
  (toleration.effect === undefined || (toleration.effect as string) === '' || toleration.effect === effect);

/**
 * On create and on update of a pod (no subresource): appends not-ready, then unreachable (`Exists`, `NoExecute`, the
 * given seconds for both; 0 is allowed), each unless a toleration covers that key and NoExecute. Operator and seconds of the
 * existing ones are not looked at. Returns the same list when there is nothing to add.
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
