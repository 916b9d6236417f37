/** ResourceQuota and LimitRange (pkg/apis/core/validation/validation.go). */
import type { KubeLimitRange, KubeResourceQuota, LimitRangeItem } from '../application-types.ts';
import { compareQuantities, parseQuantity } from '../quantity.ts';
import type { Cause } from '../status.ts';
import type { ResourceList } from '../types.ts';
import { duplicate, immutable, invalidValue, NOT_NEGATIVE, notSupported, required } from './causes.ts';
import { validateObjectMetadata } from './metadata.ts';
import { qualifiedNameErrors, subdomainName } from './names.ts';

const RULES = { namespaced: true, name: subdomainName };
const SCOPES = [
  'BestEffort',
  'CrossNamespacePodAffinity',
  'NotBestEffort',
  'NotTerminating',
  'PriorityClass',
  'Terminating',
];
const LIMIT_TYPES = ['Container', 'PersistentVolumeClaim', 'Pod'];

function validateAmounts(amounts: ResourceList, field: string): Cause[] {
  return Object.entries(amounts).flatMap(([name, value]) => {
    const path = `${field}[${name}]`;
    const causes = qualifiedNameErrors(name).map((error) => invalidValue(path, name, error));
    const parsed = parseQuantity(value);
    if (parsed.kind === 'malformed') return [...causes, invalidValue(path, value, parsed.message)];
    return parsed.quantity.nanos < 0n ? [...causes, invalidValue(path, value, NOT_NEGATIVE)] : causes;
  });
}

export function validateResourceQuota(
  quota: KubeResourceQuota,
  old: KubeResourceQuota | undefined,
  subresource: string,
): Cause[] {
  const causes = validateObjectMetadata(quota, old, RULES);
  if (subresource === 'status') {
    const { hard = {}, used = {} } = quota.status ?? {};
    return [...causes, ...validateAmounts(hard, 'status.hard'), ...validateAmounts(used, 'status.used')];
  }
  const { hard = {}, scopes = [] } = quota.spec ?? {};
  causes.push(...validateAmounts(hard, 'spec.hard'));
  for (const scope of scopes) {
    if (!SCOPES.includes(scope)) causes.push(invalidValue('spec.scopes', scopes, 'unsupported scope'));
  }
  return old === undefined ? causes : [...causes, ...immutable('spec.scopes', scopes, old.spec?.scopes)];
}

/** Pairs of bounds: the first must not exceed the second. */
const ORDERED = [
  ['min', 'max'],
  ['min', 'defaultRequest'],
  ['min', 'default'],
  ['defaultRequest', 'default'],
  ['defaultRequest', 'max'],
  ['default', 'max'],
] as const;

const WORDS = { min: 'min value', max: 'max value', default: 'default value', defaultRequest: 'default request value' };

function validateItem(item: LimitRangeItem, field: string): Cause[] {
  const causes: Cause[] = [];
  for (const name of ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const) {
    causes.push(...validateAmounts(item[name] ?? {}, `${field}.${name}`));
  }
  if (causes.length > 0) return causes;
  for (const [low, high] of ORDERED) {
    for (const [name, value] of Object.entries(item[low] ?? {})) {
      const bound = item[high]?.[name];
      if (bound === undefined || !exceeds(value, bound)) continue;
      const why = `${WORDS[low]} ${value} is greater than ${WORDS[high]} ${bound}`;
      causes.push(invalidValue(`${field}.${low}[${name}]`, value, why));
    }
  }
  if (
    item.type === 'PersistentVolumeClaim' &&
    item.min?.['storage'] === undefined &&
    item.max?.['storage'] === undefined
  ) {
    causes.push(
      required(`${field}.limits`, 'either minimum or maximum storage value is required, but neither was provided'),
    );
  }
  return causes;
}

function exceeds(left: string, right: string): boolean {
  const [one, other] = [parseQuantity(left), parseQuantity(right)];
  return one.kind === 'parsed' && other.kind === 'parsed' && compareQuantities(one.quantity, other.quantity) > 0;
}

export function validateLimitRange(range: KubeLimitRange, old: KubeLimitRange | undefined): Cause[] {
  const causes = validateObjectMetadata(range, old, RULES);
  const seen = new Set<string>();
  for (const [index, item] of (range.spec?.limits ?? []).entries()) {
    const field = `spec.limits[${index}]`;
    const { type = '' } = item;
    if (!LIMIT_TYPES.includes(type) && !type.includes('/')) {
      causes.push(notSupported(`${field}.type`, type, LIMIT_TYPES));
    }
    if (seen.has(type)) causes.push(duplicate(`${field}.type`, type));
    seen.add(type);
    causes.push(...validateItem(item, field));
  }
  return causes;
}
