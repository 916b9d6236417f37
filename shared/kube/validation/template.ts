/** Pod templates and the fields around them (pkg/apis/core/validation, pkg/apis/apps/validation). */
import type { PodTemplateSpec } from '../application-types.ts';
import { type LabelSelectorSpec, selectorFromSpec } from '../selectors.ts';
import type { Cause } from '../status.ts';
import { forbiddenField, invalidValue, notSupported, required } from './causes.ts';
import { validateSelector } from './disruption-budget.ts';
import { validateAnnotations, validateLabels } from './metadata.ts';
import { validatePodSpec } from './pod.ts';

/** The labels, annotations and spec of a template. `field`: its path, such as `spec.template`. */
export function validateTemplate(template: PodTemplateSpec = {}, field: string): Cause[] {
  const { metadata = {}, spec = {} } = template;
  const causes = [
    ...validateLabels(metadata.labels, `${field}.labels`),
    ...validateAnnotations(metadata.annotations, `${field}.annotations`),
    ...validatePodSpec(spec).map((cause) => ({ ...cause, field: `${field}.${cause.field ?? 'spec'}` })),
  ];
  if ((spec.ephemeralContainers ?? []).length > 0) {
    causes.push(
      forbiddenField(`${field}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'),
    );
  }
  return causes;
}

/** A selector that must be set, and must match the labels of the template. `kind`: lower case, for the message. */
export function validateSelectedTemplate(
  selector: LabelSelectorSpec | undefined,
  template: PodTemplateSpec | undefined,
  kind: string,
): Cause[] {
  const faults = validateSelector(selector, 'spec.selector');
  const causes = selector === undefined ? [required('spec.selector')] : [...faults];
  const isEmpty = (selector?.matchExpressions ?? []).length + Object.keys(selector?.matchLabels ?? {}).length === 0;
  if (selector !== undefined && isEmpty) {
    causes.push(invalidValue('spec.selector', selector, `empty selector is invalid for ${kind}`));
  }
  const labels = template?.metadata?.labels ?? {};
  if (!isEmpty && faults.length === 0 && !selectorFromSpec(selector).matches(labels)) {
    causes.push(invalidValue('spec.template.metadata.labels', labels, '`selector` does not match template `labels`'));
  }
  return causes;
}

/** Pods of these kinds run until they are deleted. `kind`: for the message. */
export function validateRunsForever(template: PodTemplateSpec | undefined, kind: string): Cause[] {
  const { restartPolicy = '', activeDeadlineSeconds } = template?.spec ?? {};
  const causes: Cause[] = [];
  if (restartPolicy !== 'Always') {
    causes.push(notSupported('spec.template.spec.restartPolicy', restartPolicy, ['Always']));
  }
  if (activeDeadlineSeconds !== undefined) {
    const why = `activeDeadlineSeconds in ${kind} is not Supported`;
    causes.push(forbiddenField('spec.template.spec.activeDeadlineSeconds', why));
  }
  return causes;
}
