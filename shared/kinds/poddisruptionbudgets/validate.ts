/** PodDisruptionBudget (pkg/apis/policy/validation/validation.go). */

import { invalidValue, NOT_NEGATIVE, nonNegative, notSupported, required } from '../../kubernetes/causes.ts';
import type { LabelSelectorSpec } from '../../kubernetes/selectors.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { validateConditions } from '../../kubernetes/validate-conditions.ts';
import {
  labelValueErrors,
  qualifiedNameErrors,
  subdomainName,
  validateLabels,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import type { IntOrString, KubePodDisruptionBudget } from '../types.ts';

const EVICTION_POLICIES = ['AlwaysAllow', 'IfHealthyBudget'];
const SELECTOR_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'];

const PERCENT_TEXT =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

/** A count of pods, or a share of them such as 25%. A share is at most 100%, unless it is `unlimited`. */
export function validateShare(field: string, value: IntOrString | undefined, share?: 'unlimited'): Cause[] {
  if (value === undefined) return [];
  if (typeof value === 'number') return value < 0 ? [invalidValue(field, value, NOT_NEGATIVE)] : [];
  const match = /^(\d+)%$/.exec(value);
  if (match === null) return [invalidValue(field, value, PERCENT_TEXT)];
  return share !== 'unlimited' && Number(match[1]) > 100
    ? [invalidValue(field, value, 'must not be greater than 100%')]
    : [];
}

/**
 * The number of a count or share: 25 for 25 and for 25%. Upstream counts a malformed text, and an absent value, as 0.
 */
export const shareValue = (value: IntOrString = 0): number =>
  typeof value === 'number' ? value : Number(/^(\d+)%?$/.exec(value)?.[1] ?? 0);

export function validateSelector(selector: LabelSelectorSpec | undefined, field: string): Cause[] {
  const causes = validateLabels(selector?.matchLabels, `${field}.matchLabels`);
  for (const [index, expression] of (selector?.matchExpressions ?? []).entries()) {
    const path = `${field}.matchExpressions[${index}]`;
    const { key = '', operator = '', values = [] } = expression;
    for (const error of qualifiedNameErrors(key)) causes.push(invalidValue(`${path}.key`, key, error));
    if (!SELECTOR_OPERATORS.includes(operator)) {
      causes.push(invalidValue(`${path}.operator`, operator, 'not a valid selector operator'));
    } else if (operator.endsWith('In')) {
      if (values.length === 0) {
        causes.push(required(`${path}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
      }
    } else if (values.length > 0) {
      causes.push({
        reason: 'FieldValueForbidden',
        message: "Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        field: `${path}.values`,
      });
    }
    for (const [at, value] of values.entries()) {
      for (const error of labelValueErrors(value)) {
        causes.push(invalidValue(`${path}.values[${at}]`, value, error));
      }
    }
  }
  return causes;
}

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
