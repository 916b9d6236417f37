/** DaemonSet (pkg/apis/apps/validation/validation.go), as far as what we do with one depends on it. */
import { selectorFromSpec } from '../selectors.ts';
import type { Cause } from '../status.ts';
import type { KubeDaemonSet } from '../types.ts';
import { immutable, invalidValue, required } from './causes.ts';
import { validateSelector } from './disruption-budget.ts';
import { validateLabels, validateObjectMetadata } from './metadata.ts';
import { subdomainName } from './names.ts';

export function validateDaemonSet(set: KubeDaemonSet, old: KubeDaemonSet | undefined, subresource: string): Cause[] {
  const causes = validateObjectMetadata(set, old, { namespaced: true, name: subdomainName });
  if (subresource === 'status') return causes;
  const { selector = {}, template } = set.spec ?? {};
  const labels = template?.metadata?.labels ?? {};
  const selectorFaults = validateSelector(selector, 'spec.selector');
  causes.push(...selectorFaults);
  if (Object.keys(selector).length === 0) causes.push(required('spec.selector'));
  causes.push(...validateLabels(labels, 'spec.template.labels'));
  if (selectorFaults.length === 0 && !selectorFromSpec(selector).matches(labels)) {
    causes.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  }
  if ((template?.spec?.containers ?? []).length === 0) causes.push(required('spec.template.spec.containers'));
  if (old !== undefined) causes.push(...immutable('spec.selector', selector, old.spec?.selector));
  return causes;
}
