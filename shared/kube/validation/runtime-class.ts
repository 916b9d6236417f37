/** RuntimeClass (pkg/apis/node/validation/validation.go). */
import type { KubeRuntimeClass } from '../application-types.ts';
import type { Cause } from '../status.ts';
import { immutable, invalidValue } from './causes.ts';
import { validateLabels, validateObjectMetadata } from './metadata.ts';
import { labelErrors, subdomainName } from './names.ts';
import { validateTolerations } from './pod.ts';

export function validateRuntimeClass(runtimeClass: KubeRuntimeClass, old: KubeRuntimeClass | undefined): Cause[] {
  const causes = validateObjectMetadata(runtimeClass, old, { namespaced: false, name: subdomainName });
  const { handler = '', scheduling = {} } = runtimeClass;
  if (old !== undefined) return [...causes, ...immutable('handler', handler, old.handler)];
  for (const error of labelErrors(handler)) causes.push(invalidValue('handler', handler, error));
  return [
    ...causes,
    ...validateLabels(scheduling.nodeSelector, 'scheduling.nodeSelector'),
    ...validateTolerations(scheduling.tolerations ?? [], 'scheduling.tolerations'),
  ];
}
