/** HorizontalPodAutoscaler and Scale (pkg/apis/autoscaling/validation/validation.go). */

import { invalidValue, nonNegative } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { subdomainName, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import type { KubeHorizontalPodAutoscaler } from '../types.ts';
import { validateMetric, validateReference, validateScaling } from './validate-metrics.ts';

export function validateAutoscaler(
  autoscaler: KubeHorizontalPodAutoscaler,
  old: KubeHorizontalPodAutoscaler | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(autoscaler, old, { namespaced: true, name: subdomainName });
  if (subresource === 'status') {
    const { currentReplicas, desiredReplicas } = autoscaler.status ?? {};
    return [
      ...causes,
      ...nonNegative('status.currentReplicas', currentReplicas),
      ...nonNegative('status.desiredReplicas', desiredReplicas),
    ];
  }
  const { minReplicas, maxReplicas = 0, scaleTargetRef = {}, metrics = [], behavior = {} } = autoscaler.spec ?? {};
  if (minReplicas !== undefined && minReplicas < 1) {
    causes.push(invalidValue('spec.minReplicas', minReplicas, 'must be greater than or equal to 1'));
  }
  if (maxReplicas < 1) causes.push(invalidValue('spec.maxReplicas', maxReplicas, 'must be greater than 0'));
  if (minReplicas !== undefined && maxReplicas < minReplicas) {
    const why = 'must be greater than or equal to `minReplicas`';
    causes.push(invalidValue('spec.maxReplicas', maxReplicas, why));
  }
  causes.push(
    ...validateReference(scaleTargetRef, 'spec.scaleTargetRef'),
    ...metrics.flatMap((metric, index) => validateMetric(metric, `spec.metrics[${index}]`)),
  );
  for (const name of ['scaleUp', 'scaleDown'] as const) {
    const rules = behavior[name];
    if (rules !== undefined) causes.push(...validateScaling(rules, `spec.behavior.${name}`));
  }
  return causes;
}
