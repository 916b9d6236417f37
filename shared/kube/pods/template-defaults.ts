/** Default values of a pod template (pkg/apis/core/v1/defaults.go). */
import type { PodTemplateSpec } from '../application-types.ts';
import { tidyMetadata } from '../normal-form.ts';
import { defaultPodSpec } from './pod-defaults.ts';

export const defaultTemplate = (template: PodTemplateSpec = {}): PodTemplateSpec => ({
  ...template,
  metadata: { creationTimestamp: null, ...tidyMetadata(template.metadata ?? {}) },
  spec: defaultPodSpec(template.spec),
});
