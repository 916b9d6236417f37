/** HorizontalPodAutoscaler and Scale (pkg/apis/autoscaling/validation/validation.go). */
import type { KubeHorizontalPodAutoscaler } from '../application-types.ts';
import type { Cause } from '../status.ts';
import { invalidValue, required } from './causes.ts';
import { validateObjectMetadata } from './metadata.ts';
import { pathSegmentName, subdomainName } from './names.ts';

export function validateAutoscaler(
  autoscaler: KubeHorizontalPodAutoscaler,
  old: KubeHorizontalPodAutoscaler | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(autoscaler, old, { namespaced: true, name: subdomainName });
  if (subresource === 'status') return causes;
  const { minReplicas, maxReplicas = 0, scaleTargetRef: target = {} } = autoscaler.spec ?? {};
  if (minReplicas !== undefined && minReplicas < 1) {
    causes.push(invalidValue('spec.minReplicas', minReplicas, 'must be greater than or equal to 1'));
  }
  if (maxReplicas < 1) causes.push(invalidValue('spec.maxReplicas', maxReplicas, 'must be greater than 0'));
  if (minReplicas !== undefined && maxReplicas < minReplicas) {
    const why = 'must be greater than or equal to `minReplicas`';
    causes.push(invalidValue('spec.maxReplicas', maxReplicas, why));
  }
  for (const name of ['kind', 'name'] as const) {
    const value = target[name] ?? '';
    const field = `spec.scaleTargetRef.${name}`;
    if (value === '') causes.push(required(field));
    else for (const error of pathSegmentName(value, false)) causes.push(invalidValue(field, value, error));
  }
  return causes;
}
