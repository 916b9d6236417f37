/** Default values of a pod template (pkg/apis/core/v1/defaults.go). */

import { tidyMetadata } from '../../kubernetes/normal-form.ts';
import type { KubeObject, PodTemplateSpec } from '../types.ts';
import { defaultTemplateSpec } from './spec-defaults.ts';

export const defaultTemplate = (template: PodTemplateSpec = {}): PodTemplateSpec => ({
  ...template,
  metadata: { creationTimestamp: null, ...tidyMetadata(template.metadata ?? {}) },
  spec: defaultTemplateSpec(template.spec),
});

/** Labels of the template, for an object without labels. Jobs and ReplicationControllers have this default. */
export function withTemplateLabels<T extends KubeObject>(object: T, template: PodTemplateSpec = {}): T {
  const labels = template.metadata?.labels ?? {};
  if (Object.keys(object.metadata.labels ?? {}).length > 0 || Object.keys(labels).length === 0) return object;
  return { ...object, metadata: { ...object.metadata, labels } };
}
