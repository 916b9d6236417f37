/**
 * Tolerations that pods get when they bring none for silent and not-ready nodes: with them every pod survives a short
 * silence, and leaves after it.
 *
 * Source: plugin/pkg/admission/defaulttolerationseconds/admission.go.
 */
import type { TaintEffect, Toleration } from './kubernetes.ts';
import { TAINT_NOT_READY, TAINT_UNREACHABLE } from './taint.ts';

export interface DefaultTolerationSeconds {
  readonly notReadySeconds: number;
  readonly unreachableSeconds: number;
}

const covers = (toleration: Toleration, key: string, effect: TaintEffect): boolean =>
  (toleration.key === undefined || toleration.key === '' || toleration.key === key) &&
  (toleration.effect === undefined || (toleration.effect as string) === '' || toleration.effect === effect);

/**
 * On create and on update of a pod (no subresource): appends not-ready, then unreachable (`Exists`, `NoExecute`, the
 * given seconds; 0 is allowed), each unless a toleration covers that key and NoExecute. Operator and seconds of the
 * existing ones are not looked at. Returns the same list when there is nothing to add.
 */
export function withDefaultTolerations(
  tolerations: readonly Toleration[],
  defaults: DefaultTolerationSeconds,
): readonly Toleration[] {
  const added: Toleration[] = [];
  const wanted: readonly [string, number][] = [
    [TAINT_NOT_READY, defaults.notReadySeconds],
    [TAINT_UNREACHABLE, defaults.unreachableSeconds],
  ];
  for (const [key, tolerationSeconds] of wanted) {
    if (tolerations.some((toleration) => covers(toleration, key, 'NoExecute'))) continue;
    added.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds });
  }
  return added.length === 0 ? tolerations : [...tolerations, ...added];
}
