/** DaemonSet (pkg/apis/apps/validation/validation.go), as far as what we do with one depends on it. */
import { type LabelSelectorSpec, selectorFromSpec } from '../selectors.ts';
import type { Cause } from '../status.ts';
import type { KubeObject } from '../types.ts';
import { immutable, invalidValue, required } from './causes.ts';
import { validateSelector } from './disruption-budget.ts';
import { validateLabels, validateObjectMetadata } from './metadata.ts';
import { subdomainName } from './names.ts';

type Json = Record<string, unknown>;
const record = (value: unknown): Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};

export function validateDaemonSet(set: KubeObject, old: KubeObject | undefined, subresource: string): Cause[] {
  const causes = validateObjectMetadata(set, old, { namespaced: true, name: subdomainName });
  if (subresource === 'status') return causes;
  const spec = record(set.spec);
  const selector = record(spec['selector']);
  const template = record(spec['template']);
  const labels = record(record(template['metadata'])['labels']) as Record<string, string>;
  const selectorFaults = validateSelector(selector, 'spec.selector');
  causes.push(...selectorFaults);
  if (Object.keys(selector).length === 0) causes.push(required('spec.selector'));
  causes.push(...validateLabels(labels, 'spec.template.labels'));
  if (selectorFaults.length === 0 && !selectorFromSpec(selector as LabelSelectorSpec).matches(labels)) {
    causes.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  }
  const containers = record(template['spec'])['containers'];
  if (!Array.isArray(containers) || containers.length === 0) causes.push(required('spec.template.spec.containers'));
  if (old !== undefined) causes.push(...immutable('spec.selector', selector, record(old.spec)['selector']));
  return causes;
}
