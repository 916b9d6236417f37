/** Namespace (pkg/apis/core/validation/validation.go: ValidateNamespace and its updates). */
import type { Cause } from '../status.ts';
import type { KubeObject } from '../types.ts';
import { invalidValue, notSupported, sameJson } from './causes.ts';
import { validateObjectMetadata } from './metadata.ts';
import { labelName, qualifiedNameComplaints } from './names.ts';

export const NAMESPACE_PHASES = ['Active', 'Terminating'];

export function validateNamespace(namespace: KubeObject, old: KubeObject | undefined, subresource: string): Cause[] {
  const causes = validateObjectMetadata(namespace, old, { namespaced: false, name: labelName });
  const finalizers = namespace.spec?.['finalizers'];
  if (Array.isArray(finalizers) && !sameJson(finalizers, old?.spec?.['finalizers'])) {
    for (const [index, finalizer] of finalizers.entries()) {
      // 'kubernetes' is the one that needs no prefix.
      if (finalizer === 'kubernetes') continue;
      for (const complaint of qualifiedNameComplaints(String(finalizer))) {
        causes.push(invalidValue(`spec.finalizers[${index}]`, finalizer, complaint));
      }
    }
  }
  const phase = namespace.status?.['phase'];
  if (phase !== undefined && !NAMESPACE_PHASES.includes(String(phase))) {
    causes.push(notSupported('status.phase', phase, NAMESPACE_PHASES));
  }
  if (old === undefined || subresource !== 'status') return causes;
  const [expected, why] =
    old.metadata.deletionTimestamp === undefined
      ? ['Active', "may only be 'Active' if `deletionTimestamp` is empty"]
      : ['Terminating', "may only be 'Terminating' if `deletionTimestamp` is not empty"];
  return phase === expected ? causes : [...causes, invalidValue('status.Phase', phase, why)];
}
