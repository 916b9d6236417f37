/** PodDisruptionBudget (pkg/apis/policy/validation/validation.go). */

import { invalidValue, nonNegative, notSupported } from '../../kubernetes/causes.ts';
import { validateSelector } from '../../kubernetes/selectors.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { validateConditions } from '../../kubernetes/validate-conditions.ts';
import { subdomainName, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import type { KubePodDisruptionBudget } from '../types.ts';
import { validateShare } from '../validate-workloads.ts';

const EVICTION_POLICIES = ['AlwaysAllow', 'IfHealthyBudget'];

const COUNTS = ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'] as const;

export function validateDisruptionBudget(
  budget: KubePodDisruptionBudget,
  old: KubePodDisruptionBudget | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(budget, old, { namespaced: true, name: subdomainName });
  if (subresource === 'status') {
    const { status = {} } = budget;
    return [
      ...causes,
      ...validateConditions(status.conditions ?? [], 'status.conditions'),
      ...COUNTS.flatMap((name) => nonNegative(`status.${name}`, status[name])),
    ];
  }
  const spec = budget.spec ?? {};
  if (spec.minAvailable !== undefined && spec.maxUnavailable !== undefined) {
    causes.push(invalidValue('spec', spec, 'minAvailable and maxUnavailable cannot be both set'));
  }
  causes.push(
    ...validateShare('spec.minAvailable', spec.minAvailable),
    ...validateShare('spec.maxUnavailable', spec.maxUnavailable),
    ...validateSelector(spec.selector, 'spec.selector'),
  );
  const policy = spec.unhealthyPodEvictionPolicy;
  if (policy !== undefined && !EVICTION_POLICIES.includes(policy)) {
    causes.push(notSupported('spec.unhealthyPodEvictionPolicy', policy, EVICTION_POLICIES));
  }
  return causes;
}
