/** Names and amounts of resources (pkg/apis/core/validation/validation.go, pkg/apis/core/helper/helpers.go). */

import { invalidValue, NOT_NEGATIVE } from './causes.ts';
import { parseQuantity, type Quantity } from './quantity.ts';
import type { Cause } from './status.ts';
import { qualifiedNameErrors } from './validate-names.ts';

const OF_CONTAINERS = ['cpu', 'memory', 'ephemeral-storage'];
const OF_OBJECTS = [
  'configmaps',
  'persistentvolumeclaims',
  'pods',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'services',
  'services.loadbalancers',
  'services.nodeports',
];
const OF_QUOTAS = [
  ...OF_CONTAINERS.flatMap((name) => [name, `requests.${name}`, `limits.${name}`]),
  'requests.storage',
  ...OF_OBJECTS,
];
const WHOLE = new Set(OF_OBJECTS);
const QUOTA = new Set(OF_QUOTAS);
const NANO = 1_000_000_000n;

const isHugePages = (name: string): boolean => name.startsWith('hugepages-');
/** Names that a quota may have without a domain. */
export const isQuotaResource = (name: string): boolean => QUOTA.has(name) || /^(requests\.)?hugepages-/.test(name);

/** Resources of Kubernetes: without a domain, or with its own. */
const isNative = (name: string): boolean => !name.includes('/') || name.includes('kubernetes.io/');

/** Resources of others, such as `example.com/gpu`. */
const isExtended = (name: string): boolean =>
  !isNative(name) && !name.startsWith('requests.') && qualifiedNameErrors(`requests.${name}`).length === 0;

/** Resources that cannot be overcommitted: request and limit must be equal. */
export const isNotOvercommittable = (name: string): boolean => isHugePages(name) || !isNative(name);

/** Any resource. */
export function resourceNameCauses(name: string, field: string): Cause[] {
  const errors = qualifiedNameErrors(name);
  const isKnown = name.includes('/') || name === 'storage' || isQuotaResource(name);
  if (errors.length === 0 && !isKnown) errors.push('must be a standard resource type or fully qualified');
  return errors.map((error) => invalidValue(field, name, error));
}

const named = (field: string, name: string, isValid: boolean, error: string): Cause[] =>
  isValid ? resourceNameCauses(name, field) : [...resourceNameCauses(name, field), invalidValue(field, name, error)];

/** A resource that a quota can limit. */
export const quotaNameCauses = (name: string, field: string): Cause[] =>
  named(field, name, name.includes('/') || isQuotaResource(name), 'must be a standard resource for quota');

/** A resource that a container can have. */
export const containerNameCauses = (name: string, field: string): Cause[] =>
  name.includes('/')
    ? named(field, name, isNative(name) || isExtended(name), "doesn't follow extended resource name standard")
    : named(
        field,
        name,
        OF_CONTAINERS.includes(name) || isHugePages(name),
        'must be a standard resource for containers',
      );

/** The amount, or the causes why there is none. */
export function readAmount(text: unknown, field: string): { readonly causes: Cause[]; readonly amount?: Quantity } {
  const parsed = parseQuantity(String(text));
  return parsed.kind === 'malformed'
    ? { causes: [invalidValue(field, text, parsed.message)] }
    : { causes: [], amount: parsed.quantity };
}

/** At least 0, and whole where objects or devices are counted. */
export function amountCauses(name: string, text: unknown, field: string): Cause[] {
  const { causes, amount } = readAmount(text, field);
  if (amount === undefined) return causes;
  if (amount.nanos < 0n) causes.push(invalidValue(field, text, NOT_NEGATIVE));
  if (amount.nanos % NANO !== 0n && (WHOLE.has(name) || isExtended(name))) {
    causes.push(invalidValue(field, text, 'must be an integer'));
  }
  return causes;
}
