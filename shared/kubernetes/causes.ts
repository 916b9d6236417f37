/**
 * Causes of a 422 with the reasons and texts of apimachinery
 * (staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go).
 */

import { isJsonObject, jsonPrefix } from './json.ts';
import type { Cause } from './status.ts';

/**
 * Longest value in a message. A cause may repeat the list that contains its item, so a longer one would make the work
 * of a refusal grow with the square of the body. Characters.
 */
const SHOWN_CHARACTERS_MAX = 1_024;

/** A value as printed in a message: text in quotes, numbers and booleans without, all others as JSON. */
export function shown(value: unknown): string {
  if (value === undefined || value === null) return 'null';
  return typeof value === 'number' || typeof value === 'boolean'
    ? String(value)
    : jsonPrefix(value, SHOWN_CHARACTERS_MAX);
}

const withDetail = (head: string, detail: string): string => (detail === '' ? head : `${head}: ${detail}`);

export const required = (field: string, detail = ''): Cause => ({
  reason: 'FieldValueRequired',
  message: withDetail('Required value', detail),
  field,
});

export const invalidValue = (field: string, value: unknown, detail: string): Cause => ({
  reason: 'FieldValueInvalid',
  message: withDetail(`Invalid value: ${shown(value)}`, detail),
  field,
});

/** For a value that the message does not repeat. */
export const invalidWhole = (field: string, detail: string): Cause => ({
  reason: 'FieldValueInvalid',
  message: `Invalid value: ${detail}`,
  field,
});

export const duplicate = (field: string, value: unknown, detail = ''): Cause => ({
  reason: 'FieldValueDuplicate',
  message: withDetail(`Duplicate value: ${shown(value)}`, detail),
  field,
});

export const notSupported = (field: string, value: unknown, supported: readonly string[]): Cause => ({
  reason: 'FieldValueNotSupported',
  message: withDetail(
    `Unsupported value: ${shown(value)}`,
    supported.length === 0 ? '' : `supported values: ${supported.map(shown).join(', ')}`,
  ),
  field,
});

/** One cause for each error of a text. */
export const errorsAt = (field: string, value: string, errorsOf: (value: string) => string[]): Cause[] =>
  errorsOf(value).map((error) => invalidValue(field, value, error));

/** For optional texts: an absent or empty one is valid. */
export const optionalAt = (field: string, value: string | undefined, errorsOf: (value: string) => string[]): Cause[] =>
  value === undefined || value === '' ? [] : errorsAt(field, value, errorsOf);

/** For required texts. `detail` says what is missing. */
export const requiredAt = (
  field: string,
  value: string | undefined,
  errorsOf: (value: string) => string[],
  detail = '',
): Cause[] => (value === undefined || value === '' ? [required(field, detail)] : errorsAt(field, value, errorsOf));

/** A text of a list. `empty` is the cause of an empty text; absent: it is valid. */
export function oneOf(field: string, value: string | undefined, supported: readonly string[], empty?: Cause): Cause[] {
  if (value === undefined || value === '') return empty === undefined ? [] : [empty];
  return supported.includes(value) ? [] : [notSupported(field, value, supported)];
}

/** The same for a text that must be set. */
export const requiredOneOf = (field: string, value: string | undefined, supported: readonly string[]): Cause[] =>
  oneOf(field, value, supported, required(field));

export const forbiddenField = (field: string, detail: string): Cause => ({
  reason: 'FieldValueForbidden',
  message: withDetail('Forbidden', detail),
  field,
});

export const tooLong = (field: string, bytesMax: number): Cause => ({
  reason: 'FieldValueTooLong',
  message: `Too long: may not be more than ${bytesMax} bytes`,
  field,
});

export const tooMany = (field: string, count: number, countMax: number): Cause => ({
  reason: 'FieldValueTooMany',
  message: `Too many: ${count}: must have at most ${countMax} items`,
  field,
});

export const notFoundValue = (field: string, value: unknown): Cause => ({
  reason: 'FieldValueNotFound',
  message: `Not found: ${shown(value)}`,
  field,
});

export const IMMUTABLE = 'field is immutable';
export const NOT_NEGATIVE = 'must be greater than or equal to 0';

export const nonNegative = (field: string, value: number | undefined): Cause[] =>
  value !== undefined && value < 0 ? [invalidValue(field, value, NOT_NEGATIVE)] : [];

/** For counters that only grow. Absent counts as 0. */
export const notDecremented = (field: string, value = 0, old = 0): Cause[] =>
  value < old ? [invalidValue(field, value, 'cannot be decremented')] : [];

export const immutable = (field: string, next: unknown, old: unknown): Cause[] =>
  sameJson(next, old) ? [] : [invalidValue(field, next, IMMUTABLE)];

const isEmpty = (value: unknown): boolean =>
  value === undefined ||
  value === null ||
  (Array.isArray(value) && value.length === 0) ||
  (isJsonObject(value) && Object.values(value).every(isEmpty));

/** Semantic equality of Kubernetes: the order of keys does not matter; absent, null, [] and {} are equal. */
export function sameJson(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => sameJson(item, right[index]));
  }
  if (isJsonObject(left) && isJsonObject(right)) {
    const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
    for (const key of keys) if (!sameJson(left[key], right[key])) return false;
    return true;
  }
  return isEmpty(left) && isEmpty(right);
}
