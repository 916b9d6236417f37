/** RuntimeClass (pkg/apis/node/validation/validation.go). */

import { duplicate, immutable, invalidValue } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import {
  labelErrors,
  subdomainName,
  validateLabels,
  validateObjectMetadata,
} from '../../kubernetes/validate-metadata.ts';
import { validateResources, validateTolerations } from '../pods/validate.ts';
import type { KubeRuntimeClass } from '../types.ts';

export function validateRuntimeClass(runtimeClass: KubeRuntimeClass, old: KubeRuntimeClass | undefined): Cause[] {
  const causes = validateObjectMetadata(runtimeClass, old, { namespaced: false, name: subdomainName });
  const { handler = '', scheduling = {} } = runtimeClass;
  if (old !== undefined) return [...causes, ...immutable('handler', handler, old.handler)];
  for (const error of labelErrors(handler)) causes.push(invalidValue('handler', handler, error));
  const { tolerations = [] } = scheduling;
  const seen = new Set<string>();
  for (const [index, { key, operator, value, effect }] of tolerations.entries()) {
    const identity = JSON.stringify([key, operator, value, effect]);
    if (seen.has(identity)) causes.push(duplicate(`scheduling.tolerations[${index}]`, tolerations[index]));
    seen.add(identity);
  }
  return [
    ...causes,
    ...validateResources({ limits: runtimeClass.overhead?.podFixed ?? {} }, 'overhead'),
    ...validateLabels(scheduling.nodeSelector, 'scheduling.nodeSelector'),
    ...validateTolerations(tolerations, 'scheduling.tolerations'),
  ];
}
