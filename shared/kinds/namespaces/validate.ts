/** Namespace (pkg/apis/core/validation/validation.go: ValidateNamespace and its updates). */

import { invalidValue, notSupported, sameJson } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { labelName, qualifiedNameErrors, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import type { KubeNamespace } from '../types.ts';

export const NAMESPACE_PHASES = ['Active', 'Terminating'];

const finalizerErrors = (finalizer: string): string[] => [
  ...qualifiedNameErrors(finalizer),
  ...(finalizer === 'kubernetes' || finalizer.includes('/')
    ? []
    : ['name is neither a standard finalizer name nor is it fully qualified']),
];

export function validateNamespace(
  namespace: KubeNamespace,
  old: KubeNamespace | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(namespace, old, { namespaced: false, name: labelName });
  const finalizers = namespace.spec?.finalizers;
  if (finalizers !== undefined && !sameJson(finalizers, old?.spec?.finalizers)) {
    for (const [index, finalizer] of finalizers.entries()) {
      const field = `spec.finalizers${old === undefined ? '' : `[${index}]`}`;
      causes.push(...finalizerErrors(finalizer).map((error) => invalidValue(field, finalizer, error)));
    }
  }
  const phase = namespace.status?.phase;
  if (phase !== undefined && !NAMESPACE_PHASES.includes(phase)) {
    causes.push(notSupported('status.phase', phase, NAMESPACE_PHASES));
  }
  if (old === undefined || subresource !== 'status') return causes;
  const [expected, why] =
    old.metadata.deletionTimestamp === undefined
      ? ['Active', "may only be 'Active' if `deletionTimestamp` is empty"]
      : ['Terminating', "may only be 'Terminating' if `deletionTimestamp` is not empty"];
  return phase === expected ? causes : [...causes, invalidValue('status.Phase', phase, why)];
}
