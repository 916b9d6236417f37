/** Metrics and behavior of an autoscaler (pkg/apis/autoscaling/validation/validation.go). */

import { forbiddenField, invalidValue, notSupported, oneOf, required, requiredAt } from '../../kubernetes/causes.ts';
import { containerNameCauses, readAmount } from '../../kubernetes/quantity.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { labelErrors, pathSegmentErrors } from '../../kubernetes/validate-metadata.ts';
import type { HPAScalingRules, MetricSource, MetricSpec, MetricTarget } from '../types.ts';

const WINDOW_SECONDS_MAX = 3_600;
const PERIOD_SECONDS_MAX = 1_800;

const SOURCES = {
  ContainerResource: 'containerResource',
  External: 'external',
  Object: 'object',
  Pods: 'pods',
  Resource: 'resource',
} as const;
const TYPES = Object.keys(SOURCES);

/** What a source without a target lacks. Absent: it needs a utilization or a raw value. */
const MISSING: Partial<Record<keyof MetricSpec, string>> = {
  pods: 'must specify a positive target averageValue',
  object: 'must set either a target value or averageValue',
  external: 'must set either a target value for metric or a per-pod target',
};

export const validateReference = ({ kind, name }: { kind?: string; name?: string }, field: string): Cause[] => [
  ...requiredAt(`${field}.kind`, kind, pathSegmentErrors),
  ...requiredAt(`${field}.name`, name, pathSegmentErrors),
];

function validateTarget(target: MetricTarget, field: string): Cause[] {
  const { type = '', averageUtilization: utilization } = target;
  const causes = type === '' ? [required(`${field}.type`, 'must specify a metric target type')] : [];
  if (!['Utilization', 'Value', 'AverageValue'].includes(type)) {
    causes.push(invalidValue(`${field}.type`, type, 'must be either Utilization, Value, or AverageValue'));
  }
  for (const name of ['value', 'averageValue'] as const) {
    if (target[name] === undefined) continue;
    const { causes: malformed, amount } = readAmount(target[name], `${field}.${name}`);
    causes.push(...malformed);
    if (amount !== undefined && amount.nanos <= 0n) {
      causes.push(invalidValue(`${field}.${name}`, target[name], 'must be positive'));
    }
  }
  if (utilization !== undefined && utilization < 1) {
    causes.push(invalidValue(`${field}.averageUtilization`, utilization, 'must be greater than 0'));
  }
  return causes;
}

function validateSource(source: MetricSource, kind: keyof typeof MISSING, field: string): Cause[] {
  const { name = '', container = '', metric, describedObject, target = {} } = source;
  const { value, averageValue, averageUtilization: utilization } = target;
  const causes: Cause[] = kind === 'object' ? validateReference(describedObject ?? {}, `${field}.describedObject`) : [];
  const missing = MISSING[kind];
  const path = `${field}.target`;
  if (missing === undefined) {
    if (name === '') causes.push(required(`${field}.name`, 'must specify a resource name'));
    else if (kind === 'containerResource') causes.push(...containerNameCauses(name, `${field}.name`));
    if (kind === 'containerResource') {
      if (container === '') causes.push(required(`${field}.container`, 'must specify a container'));
      else causes.push(...labelErrors(container).map((error) => invalidValue(`${field}.container`, container, error)));
    }
    if (utilization === undefined && averageValue === undefined) {
      const why = 'must set either a target raw value or a target utilization';
      causes.push(required(`${path}.averageUtilization`, why));
    }
    if (utilization !== undefined && averageValue !== undefined) {
      const why = 'may not set both a target raw value and a target utilization';
      causes.push(forbiddenField(`${path}.averageValue`, why));
    }
  } else {
    causes.push(...requiredAt(`${field}.metric.name`, metric?.name, pathSegmentErrors, 'must specify a metric name'));
    if (averageValue === undefined && (value === undefined || kind === 'pods')) {
      causes.push(required(`${path}.averageValue`, missing));
    }
    if (kind === 'external' && value !== undefined && averageValue !== undefined) {
      const why = 'may not set both a target value for metric and a per-pod target';
      causes.push(forbiddenField(`${path}.value`, why));
    }
  }
  return [...causes, ...validateTarget(target, path)];
}

export function validateMetric(metric: MetricSpec, field: string): Cause[] {
  const { type = '' } = metric;
  const expected = Object.hasOwn(SOURCES, type) ? SOURCES[type as keyof typeof SOURCES] : undefined;
  const causes: Cause[] = type === '' ? [required(`${field}.type`, 'must specify a metric source type')] : [];
  if (expected === undefined) causes.push(notSupported(`${field}.type`, type, TYPES));
  const present = Object.values(SOURCES).filter((name) => metric[name] !== undefined);
  const [first] = present;
  if (first !== undefined) causes.push(...validateSource(metric[first] ?? {}, first, `${field}.${first}`));
  if (expected !== undefined && metric[expected] === undefined) {
    causes.push(required(`${field}.${expected}`, 'must populate information for the given metric source'));
  }
  const others = present.length === 1 ? [] : present.filter((name) => name !== expected);
  return [
    ...causes,
    ...others.map((name) => forbiddenField(`${field}.${name}`, 'must populate the given metric source only')),
  ];
}

/** One direction of `behavior`. */
export function validateScaling(rules: HPAScalingRules, field: string): Cause[] {
  const { stabilizationWindowSeconds: window, selectPolicy, policies = [] } = rules;
  const causes: Cause[] = [];
  const bounded = (path: string, seconds: number, most: number): void => {
    if (seconds > most) causes.push(invalidValue(path, seconds, `must be less than or equal to ${most}`));
  };
  if (window !== undefined) {
    const path = `${field}.stabilizationWindowSeconds`;
    if (window < 0) causes.push(invalidValue(path, window, 'must be greater than or equal to zero'));
    bounded(path, window, WINDOW_SECONDS_MAX);
  }
  causes.push(...oneOf(`${field}.selectPolicy`, selectPolicy, ['Disabled', 'Max', 'Min']));
  for (const [index, { type = '', value = 0, periodSeconds = 0 }] of policies.entries()) {
    const path = `${field}.policies[${index}]`;
    if (type !== 'Pods' && type !== 'Percent') causes.push(notSupported(`${path}.type`, type, ['Percent', 'Pods']));
    for (const [name, number] of Object.entries({ value, periodSeconds })) {
      if (number <= 0) causes.push(invalidValue(`${path}.${name}`, number, 'must be greater than zero'));
    }
    bounded(`${path}.periodSeconds`, periodSeconds, PERIOD_SECONDS_MAX);
  }
  return causes;
}
