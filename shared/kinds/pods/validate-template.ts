/** Pod templates and the fields around them (pkg/apis/core/validation, pkg/apis/apps/validation). */

import { forbiddenField, invalidValue, notSupported, required } from '../../kubernetes/causes.ts';
import { type LabelSelectorSpec, selectorFromSpec } from '../../kubernetes/selectors.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { validateAnnotations, validateLabels } from '../../kubernetes/validate-metadata.ts';
import { validateSelector } from '../poddisruptionbudgets/validate.ts';
import type { PodTemplateSpec } from '../types.ts';
import { validatePodAnnotations, validatePodSpec } from './validate.ts';

/** The labels, annotations and spec of a template. `field`: its path, such as `spec.template`. */
export function validateTemplate(template: PodTemplateSpec = {}, field: string): Cause[] {
  const { metadata = {}, spec = {} } = template;
  const causes = [
    ...validateLabels(metadata.labels, `${field}.labels`),
    ...validateAnnotations(metadata.annotations, `${field}.annotations`),
    ...validatePodAnnotations(metadata.annotations, spec, `${field}.annotations`),
    ...validatePodSpec(spec).map((cause) => ({ ...cause, field: `${field}.${cause.field ?? 'spec'}` })),
  ];
  if ((spec.ephemeralContainers ?? []).length > 0) {
    causes.push(
      forbiddenField(`${field}.spec.ephemeralContainers`, 'ephemeral containers not allowed in pod template'),
    );
  }
  return causes;
}

export interface SelectionRules {
  /** Lower case, for the message about an empty selector. Absent: an empty selector is valid. */
  readonly kind?: string;
  readonly isRequired: boolean;
  /** Message of the additional cause for a selector that cannot be evaluated. Absent: no such cause. */
  readonly malformedText?: string;
}

interface Selection {
  readonly selector?: LabelSelectorSpec;
  readonly template?: PodTemplateSpec;
}

/** The selector of the pods, and whether it matches the labels of the template. */
export function validateSelection({ selector, template }: Selection, rules: SelectionRules): Cause[] {
  const field = 'spec.selector';
  const causes = validateSelector(selector, field);
  const isMalformed = causes.length > 0;
  if (selector === undefined && rules.isRequired) causes.push(required(field));
  const isEmpty = (selector?.matchExpressions ?? []).length + Object.keys(selector?.matchLabels ?? {}).length === 0;
  if (selector !== undefined && isEmpty && rules.kind !== undefined) {
    causes.push(invalidValue(field, selector, `empty selector is invalid for ${rules.kind}`));
  }
  if (isMalformed) {
    if (rules.malformedText !== undefined) causes.push(invalidValue(field, selector, rules.malformedText));
    return causes;
  }
  const labels = template?.metadata?.labels ?? {};
  if (!selectorFromSpec(selector).matches(labels)) {
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
