/** ResourceQuota and LimitRange (pkg/apis/core/validation/validation.go). */

import { duplicate, forbiddenField, IMMUTABLE, invalidValue, required } from '../../kubernetes/causes.ts';
import {
  amountCauses,
  compareQuantities,
  containerNameCauses,
  formatQuantity,
  isNotOvercommittable,
  isQuotaResource,
  type Quantity,
  quotaNameCauses,
  readAmount,
  resourceNameCauses,
} from '../../kubernetes/quantity.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { qualifiedNameErrors, subdomainName, validateObjectMetadata } from '../../kubernetes/validate-metadata.ts';
import type { KubeLimitRange, KubeResourceQuota, LimitRangeItem, ResourceList } from '../types.ts';

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

const validateAmounts = (amounts: ResourceList, field: string): Cause[] =>
  Object.entries(amounts).flatMap(([name, value]) => {
    const path = `${field}[${name}]`;
    return [...quotaNameCauses(name, path), ...amountCauses(name, value, path)];
  });

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
  if (old === undefined) return causes;
  const before = new Set(old.spec?.scopes);
  const same = new Set(scopes).size === before.size && scopes.every((each) => before.has(each));
  return same ? causes : [...causes, invalidValue('spec.scopes', scopes, IMMUTABLE)];
}

const COMPUTE = ['cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory'];
const WRONG_RESOURCE = 'unsupported scope applied to resource';
const CONTRADICTIONS = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
];

/** How many names of the quota objects with this scope cannot count for. Of each scope once: a body may repeat it. */
function unscopedCounts(hard: ResourceList): (scope: string) => number {
  const names = Object.keys(hard).filter((name) => isQuotaResource(name) && name !== 'pods');
  const others = names.filter((name) => !COMPUTE.includes(name)).length;
  return (scope) => (!SCOPES.includes(scope) ? 0 : scope === 'BestEffort' ? names.length : others);
}

const repeated = (cause: Cause, times: number): Cause[] => Array.from({ length: times }, () => cause);

const contradict = (scopes: readonly string[]): boolean =>
  CONTRADICTIONS.some((pair) => pair.every((scope) => scopes.includes(scope)));

function scopeCauses(scopes: readonly string[], hard: ResourceList): Cause[] {
  const cause = (why: string) => invalidValue('spec.scopes', scopes, why);
  const [unknown, wrong] = [cause('unsupported scope'), cause(WRONG_RESOURCE)];
  const unscoped = unscopedCounts(hard);
  const causes = scopes.flatMap((scope) => (SCOPES.includes(scope) ? repeated(wrong, unscoped(scope)) : [unknown]));
  return contradict(scopes) ? [...causes, cause('conflicting scopes')] : causes;
}

type ScopeSelector = NonNullable<KubeResourceQuota['spec']>['scopeSelector'];

const ONLY_EXISTS =
  "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity";

function selectorCauses(selector: ScopeSelector, hard: ResourceList, scopes: readonly string[]): Cause[] {
  const field = 'spec.scopeSelector.matchExpressions';
  const requirements = selector?.matchExpressions ?? [];
  const wrong = invalidValue(field, selector, WRONG_RESOURCE);
  const unscoped = unscopedCounts(hard);
  const causes = requirements.flatMap(({ scopeName = '', operator = '', values = [] }): Cause[] => [
    ...(SCOPES.includes(scopeName) ? [] : [invalidValue(`${field}.scopeName`, scopeName, 'unsupported scope')]),
    ...repeated(wrong, unscoped(scopeName)),
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

/** What must not exceed what, and the field of the cause. */
const ORDERED = [
  ['min', 'max', 'min'],
  ['min', 'defaultRequest', 'defaultRequest'],
  ['defaultRequest', 'max', 'defaultRequest'],
  ['defaultRequest', 'default', 'defaultRequest'],
  ['min', 'default', 'default'],
  ['default', 'max', 'default'],
] as const;

const WORDS = { min: 'min', max: 'max', default: 'default', defaultRequest: 'default request' };
const LISTS = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const;
const OF_PODS = ['max', 'min', 'maxLimitRequestRatio'] as const;
const ONE: Quantity = { nanos: 1_000_000_000n, format: 'decimal' };

type Amount = Quantity | undefined;
type Amounts = Partial<Record<(typeof LISTS)[number], Amount>>;

const exceeds = (left: Amount, right: Amount): boolean =>
  left !== undefined && right !== undefined && compareQuantities(left, right) > 0;

/** The bounds of one resource. `field`: the path of a list. */
function validateBounds(name: string, amounts: Amounts, field: (list: string) => string): Cause[] {
  const { min, max, default: limit, defaultRequest: request, maxLimitRequestRatio: ratio } = amounts;
  const causes: Cause[] = [];
  const refuse = (list: keyof Amounts, why: string): void => {
    causes.push(invalidValue(field(list), formatQuantity(amounts[list]!), why));
  };
  for (const [low, high, list] of ORDERED) {
    if (!exceeds(amounts[low], amounts[high])) continue;
    const word = low === 'defaultRequest' && high === 'default' ? 'default limit' : WORDS[high];
    const [one, other] = [formatQuantity(amounts[low]!), formatQuantity(amounts[high]!)];
    refuse(list, `${WORDS[low]} value ${one} is greater than ${word} value ${other}`);
  }
  if (exceeds(ONE, ratio)) refuse('maxLimitRequestRatio', `ratio ${formatQuantity(ratio!)} is less than 1`);
  if (ratio !== undefined && min !== undefined && max !== undefined) {
    const largest = Number(max.nanos) / Number(min.nanos);
    if (Number(ratio.nanos) / Number(ONE.nanos) > largest) {
      const why = `ratio ${formatQuantity(ratio)} is greater than max/min = ${largest.toFixed(6)}`;
      refuse('maxLimitRequestRatio', why);
    }
  }
  const differ = limit !== undefined && request !== undefined && compareQuantities(limit, request) !== 0;
  if (isNotOvercommittable(name) && differ) {
    const [one, other] = [formatQuantity(limit), formatQuantity(request)];
    refuse('defaultRequest', `default value ${one} must equal to defaultRequest value ${other} in ${name}`);
  }
  return causes;
}

function validateItem(item: LimitRangeItem, field: string): Cause[] {
  const isOfPods = item.type === 'Pod';
  const nameCauses = isOfPods || item.type === 'Container' ? containerNameCauses : resourceNameCauses;
  const causes: Cause[] = [];
  const amounts = new Map<string, Amounts>();
  for (const list of isOfPods ? OF_PODS : LISTS) {
    for (const [name, text] of Object.entries(item[list] ?? {})) {
      const path = `${field}.${list}[${name}]`;
      const { causes: malformed, amount } = readAmount(text, path);
      causes.push(...nameCauses(name, path), ...malformed);
      amounts.set(name, { ...amounts.get(name), [list]: amount });
    }
  }
  for (const list of isOfPods ? (['default', 'defaultRequest'] as const) : []) {
    if (Object.keys(item[list] ?? {}).length > 0) {
      causes.push(forbiddenField(`${field}.${list}`, "may not be specified when `type` is 'Pod'"));
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
  for (const [name, each] of amounts) {
    causes.push(...validateBounds(name, each, (list) => `${field}.${list}[${name}]`));
  }
  return causes;
}

function validateType(type: string, field: string): Cause[] {
  const errors = qualifiedNameErrors(type);
  if (errors.length === 0 && !type.includes('/') && !LIMIT_TYPES.includes(type)) {
    errors.push('must be a standard limit type or fully qualified');
  }
  return errors.map((error) => invalidValue(field, type, error));
}

export function validateLimitRange(range: KubeLimitRange, old: KubeLimitRange | undefined): Cause[] {
  const causes = validateObjectMetadata(range, old, RULES);
  const seen = new Set<string>();
  for (const [index, item] of (range.spec?.limits ?? []).entries()) {
    const field = `spec.limits[${index}]`;
    const { type = '' } = item;
    causes.push(...validateType(type, `${field}.type`));
    if (seen.has(type)) causes.push(duplicate(`${field}.type`, type));
    seen.add(type);
    causes.push(...validateItem(item, field));
  }
  return causes;
}
