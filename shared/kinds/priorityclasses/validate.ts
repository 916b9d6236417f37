/** PriorityClass (pkg/apis/scheduling/validation/validation.go, pkg/apis/scheduling/helpers.go). */

import { forbiddenField, immutable, notSupported } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { subdomainName, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import type { KubePriorityClass } from '../types.ts';
import { SYSTEM_PRIORITIES } from './defaults.ts';

/** Larger values are reserved for system classes. */
export const USER_PRIORITY_MAX = 1_000_000_000;

const PREEMPTION_POLICIES = ['PreemptLowerPriority', 'Never'];

export function validatePriorityClass(priorityClass: KubePriorityClass, old: KubePriorityClass | undefined): Cause[] {
  const causes = validateObjectMetadata(priorityClass, old, { namespaced: false, name: subdomainName });
  const { value, preemptionPolicy: policy } = priorityClass;
  if (old !== undefined) {
    // Upstream writes this field with a capital letter.
    if (value !== old.value) causes.push(forbiddenField('Value', 'may not be changed in an update.'));
    return [...causes, ...immutable('preemptionPolicy', policy, old.preemptionPolicy)];
  }
  const name = priorityClass.metadata.name ?? '';
  if (name.startsWith('system-')) {
    if (SYSTEM_PRIORITIES[name] !== value) {
      causes.push(
        forbiddenField(
          'metadata.name',
          `priority class names with 'system-' prefix are reserved for system use only. error: ${name} is not a known system priority class`,
        ),
      );
    }
  } else if (value !== undefined && value > USER_PRIORITY_MAX) {
    causes.push(forbiddenField('value', `maximum allowed value of a user defined priority is ${USER_PRIORITY_MAX}`));
  }
  if (policy !== undefined && !PREEMPTION_POLICIES.includes(policy)) {
    causes.push(notSupported('preemptionPolicy', policy, PREEMPTION_POLICIES));
  }
  return causes;
}
