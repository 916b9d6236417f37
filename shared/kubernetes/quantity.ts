/**
 * Kubernetes quantities such as `500m`, `1.5Gi`, `1e3`
 * (staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go): exact decimal numbers down to a nano, with a
 * canonical form in the family of suffixes they were written in.
 *
 * With the names and amounts of resources (pkg/apis/core/validation/validation.go, pkg/apis/core/helper/helpers.go).
 */
import { invalidValue, NOT_NEGATIVE } from './causes.ts';
import type { Cause } from './status.ts';
import { qualifiedNameErrors } from './validate-metadata.ts';

export type QuantityFormat = 'decimal' | 'binary' | 'exponent';

export interface Quantity {
  /** The value times 10⁹. */
  readonly nanos: bigint;
  readonly format: QuantityFormat;
}

export type ParsedQuantity =
  | { readonly kind: 'parsed'; readonly quantity: Quantity }
  | { readonly kind: 'malformed'; readonly message: string };

const NANO = 1_000_000_000n;
const VALUE_MAX = (2n ** 63n - 1n) * NANO;

const DECIMAL_SUFFIXES = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY_SUFFIXES = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
/** Exponents beyond this cannot stand for a value we hold; it bounds the arithmetic. */
const EXPONENT_MAX = 40;
const DIGITS_MAX = 60;

const FORMAT_TEXT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX_TEXT = "unable to parse quantity's suffix";
const NUMBER_TEXT = "unable to parse quantity's numeric part";

const malformed = (message: string): ParsedQuantity => ({ kind: 'malformed', message });

/** value · 10^exponent · multiplier in nanos; what is finer than a nano is rounded away from zero. */
function scale(digits: bigint, exponent: number, multiplier: bigint): bigint {
  const power = exponent + 9;
  if (power >= 0) return digits * 10n ** BigInt(power) * multiplier;
  const divisor = 10n ** BigInt(-power);
  const product = digits * multiplier;
  return (product + divisor - 1n) / divisor;
}

/** The same few texts are read several times with each write of a Node or pod. */
const KNOWN_MAX = 1_000;
const KNOWN_LENGTH_MAX = 24;
const known = new Map<string, ParsedQuantity>();

export function parseQuantity(text: string): ParsedQuantity {
  const before = known.get(text);
  if (before !== undefined) return before;
  const parsed = parsedQuantity(text);
  if (text.length > KNOWN_LENGTH_MAX) return parsed;
  if (known.size >= KNOWN_MAX) known.clear();
  known.set(text, parsed);
  return parsed;
}

function parsedQuantity(text: string): ParsedQuantity {
  const match = /^([+-]?)(\d*)(?:\.(\d*))?([A-Za-z]*)([+-]\d*|(?<=[A-Za-z])\d+)?$/.exec(text);
  if (match === null || text === '') return malformed(FORMAT_TEXT);
  const [, sign, whole = '', fraction = '', letters = '', trailing = ''] = match;
  if (whole === '' && fraction === '') return malformed(FORMAT_TEXT);
  if (whole.length + fraction.length > DIGITS_MAX) return malformed(NUMBER_TEXT);
  let format: QuantityFormat = 'decimal';
  let exponent = 0;
  let multiplier = 1n;
  if (trailing !== '') {
    if ((letters !== 'e' && letters !== 'E') || !/\d/.test(trailing)) return malformed(SUFFIX_TEXT);
    exponent = Number(trailing);
    if (Math.abs(exponent) > EXPONENT_MAX) return malformed(SUFFIX_TEXT);
    format = 'exponent';
  } else if (BINARY_SUFFIXES.includes(letters)) {
    multiplier = 1024n ** BigInt(BINARY_SUFFIXES.indexOf(letters) + 1);
    format = 'binary';
  } else if (DECIMAL_SUFFIXES.includes(letters)) {
    exponent = (DECIMAL_SUFFIXES.indexOf(letters) - 3) * 3;
  } else return malformed(SUFFIX_TEXT);
  const magnitude = scale(BigInt(whole + fraction), exponent - fraction.length, multiplier);
  const capped = magnitude > VALUE_MAX ? VALUE_MAX : magnitude;
  return { kind: 'parsed', quantity: { nanos: sign === '-' ? -capped : capped, format } };
}

function removeFactor(value: bigint, factor: bigint): { rest: bigint; times: number } {
  let rest = value;
  let times = 0;
  while (rest !== 0n && rest % factor === 0n) {
    rest /= factor;
    times += 1;
  }
  return { rest, times };
}

/** The canonical text: no fraction, the largest suffix that keeps the number whole. */
export function formatQuantity(quantity: Quantity): string {
  const { nanos } = quantity;
  if (nanos === 0n) return '0';
  const magnitude = nanos < 0n ? -nanos : nanos;
  if (quantity.format === 'binary' && magnitude >= 1024n * NANO && nanos % NANO === 0n) {
    const { rest, times } = removeFactor(nanos / NANO, 1024n);
    const used = Math.min(times, BINARY_SUFFIXES.length);
    const number = rest * 1024n ** BigInt(times - used);
    return `${number}${used === 0 ? '' : BINARY_SUFFIXES[used - 1]}`;
  }
  const { rest, times } = removeFactor(nanos, 1000n);
  const used = Math.min(times, DECIMAL_SUFFIXES.length - 1);
  const number = rest * 1000n ** BigInt(times - used);
  if (quantity.format === 'exponent') return used === 3 ? `${number}` : `${number}e${(used - 3) * 3}`;
  return `${number}${DECIMAL_SUFFIXES[used]}`;
}

/** The canonical text of a text (or JSON number). A text that is no quantity is returned unchanged. */
export function canonicalQuantity(value: string | number): string {
  const text = String(value);
  const parsed = parseQuantity(text);
  return parsed.kind === 'parsed' ? formatQuantity(parsed.quantity) : text;
}

/** Negative, zero or positive as left is less than, equal to or greater than right. */
export function compareQuantities(left: Quantity, right: Quantity): number {
  if (left.nanos === right.nanos) return 0;
  return left.nanos < right.nanos ? -1 : 1;
}

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
