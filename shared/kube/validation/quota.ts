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
  causes.push(...scopeCauses(scopes, hard), ...selectorCauses(quota.spec?.scopeSelector, hard, scopes));
  return old === undefined ? causes : [...causes, ...immutable('spec.scopes', scopes, old.spec?.scopes)];
}

const COMPUTE = ['cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory'];
/** Names that a quota may have without a domain (pkg/apis/core/helper/helpers.go). */
const STANDARD = [
  ...COMPUTE,
  'configmaps',
  'ephemeral-storage',
  'limits.ephemeral-storage',
  'persistentvolumeclaims',
  'pods',
  'replicationcontrollers',
  'requests.ephemeral-storage',
  'requests.storage',
  'resourcequotas',
  'secrets',
  'services',
  'services.loadbalancers',
  'services.nodeports',
];
const WRONG_RESOURCE = 'unsupported scope applied to resource';
const CONTRADICTIONS = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
];

/** Names that objects with this scope cannot count for. */
const unscopedNames = (scope: string, hard: ResourceList): readonly string[] =>
  Object.keys(hard).filter(
    (name) => STANDARD.includes(name) && name !== 'pods' && (scope === 'BestEffort' || !COMPUTE.includes(name)),
  );

const contradict = (scopes: readonly string[]): boolean =>
  CONTRADICTIONS.some((pair) => pair.every((scope) => scopes.includes(scope)));

function scopeCauses(scopes: readonly string[], hard: ResourceList): Cause[] {
  const causes = scopes.flatMap((scope) => [
    ...(SCOPES.includes(scope) ? [] : [invalidValue('spec.scopes', scopes, 'unsupported scope')]),
    ...(SCOPES.includes(scope) ? unscopedNames(scope, hard) : []).map(() =>
      invalidValue('spec.scopes', scopes, WRONG_RESOURCE),
    ),
  ]);
  return contradict(scopes) ? [...causes, invalidValue('spec.scopes', scopes, 'conflicting scopes')] : causes;
}

type ScopeSelector = NonNullable<KubeResourceQuota['spec']>['scopeSelector'];

const ONLY_EXISTS =
  "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";

function selectorCauses(selector: ScopeSelector, hard: ResourceList, scopes: readonly string[]): Cause[] {
  const field = 'spec.scopeSelector.matchExpressions';
  const requirements = selector?.matchExpressions ?? [];
  const causes = requirements.flatMap(({ scopeName = '', operator = '', values = [] }): Cause[] => [
    ...(SCOPES.includes(scopeName) ? [] : [invalidValue(`${field}.scopeName`, scopeName, 'unsupported scope')]),
    ...(SCOPES.includes(scopeName) ? unscopedNames(scopeName, hard) : []).map(() =>
      invalidValue(field, selector, WRONG_RESOURCE),
    ),
    ...(SCOPES.includes(scopeName) && scopeName !== 'PriorityClass' && operator !== 'Exists'
      ? [invalidValue(`${field}.operator`, operator, ONLY_EXISTS)]
      : []),
    ...operatorCauses(field, operator, values),
  ]);
  return contradict(requirements.map(({ scopeName = '' }) => scopeName))
    ? [...causes, invalidValue(field, scopes, 'conflicting scopes')]
    : causes;
}

function operatorCauses(field: string, operator: string, values: readonly string[]): Cause[] {
  switch (operator) {
    case 'In':
    case 'NotIn':
      return values.length > 0
        ? []
        : [
            required(
              `${field}.values`,
              "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            ),
          ];
    case 'Exists':
    case 'DoesNotExist':
      return values.length === 0
        ? []
        : [
            invalidValue(
              `${field}.values`,
              values,
              "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            ),
          ];
    default:
      return [invalidValue(`${field}.operator`, operator, 'not a valid selector operator')];
  }
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
