/**
 * The constraints of upstream's validation as data: what a field must hold, a counterexample, and the cause with which
 * the API refuses it. `test/conformance/validation.test.ts` sends every counterexample, and writes
 * docs/validation.md: what is not checked.
 */

/** Reasons of causes (staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go). */
export type CauseReason =
  | 'FieldValueInvalid'
  | 'FieldValueRequired'
  | 'FieldValueNotSupported'
  | 'FieldValueForbidden'
  | 'FieldValueDuplicate'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany'
  | 'FieldValueNotFound';

/** Values by path, such as `spec.containers[0].name`. undefined removes. */
export type Edits = Readonly<Record<string, unknown>>;

export interface ExpectedCause {
  readonly reason: CauseReason;
  /** Absent: the field of the constraint. */
  readonly field?: string;
  /** End of the message. Absent: the text differs between versions of upstream. */
  readonly text?: string;
}

interface Named {
  readonly field: string;
  /** What must hold, in words. */
  readonly rule: string;
}

export interface Checked extends Named {
  readonly kind: 'checked';
  readonly on: 'create' | 'update' | 'status' | 'resize';
  /** Edits of the base object that is stored before an update. */
  readonly before: Edits;
  /** The counterexample: edits of the new object, or of the stored one. */
  readonly wrong: Edits;
  readonly cause: ExpectedCause;
}

/** It has no meaning here. */
export interface LeftOut extends Named {
  readonly kind: 'leftOut';
  readonly reason: string;
}

export type Constraint = Checked | LeftOut;

export const on = (field: string, rule: string, wrong: Edits, cause: ExpectedCause): Checked => ({
  kind: 'checked',
  on: 'create',
  field,
  rule,
  before: {},
  wrong,
  cause,
});

/** `wrong` is one value for the field. */
export const at = (field: string, rule: string, value: unknown, cause: ExpectedCause): Checked =>
  on(field, rule, { [field]: value }, cause);

export const onUpdate = (
  field: string,
  rule: string,
  wrong: Edits,
  cause: ExpectedCause,
  before: Edits = {},
): Checked => ({
  ...on(field, rule, wrong, cause),
  on: 'update',
  before,
});

/** On the subresource of that name. */
export const onResize = (field: string, rule: string, wrong: Edits, cause: ExpectedCause, before: Edits): Checked => ({
  ...on(field, rule, wrong, cause),
  on: 'resize',
  before,
});

export const onStatus = (
  field: string,
  rule: string,
  wrong: Edits,
  cause: ExpectedCause,
  before: Edits = {},
): Checked => ({
  ...on(field, rule, wrong, cause),
  on: 'status',
  before,
});

export const leftOut = (field: string, rule: string, reason: string): LeftOut => ({
  kind: 'leftOut',
  field,
  rule,
  reason,
});

const cause =
  (reason: CauseReason) =>
  (text?: string, field?: string): ExpectedCause => ({
    reason,
    ...(text === undefined ? {} : { text }),
    ...(field === undefined ? {} : { field }),
  });

export const invalid = cause('FieldValueInvalid');
export const required = cause('FieldValueRequired');
export const unsupported = cause('FieldValueNotSupported');
export const forbidden = cause('FieldValueForbidden');
export const duplicate = cause('FieldValueDuplicate');
export const tooLong = cause('FieldValueTooLong');
export const tooMany = cause('FieldValueTooMany');
export const notFound = cause('FieldValueNotFound');

export const NOT_NEGATIVE = 'must be greater than or equal to 0';
export const IMMUTABLE = 'field is immutable';

/** The same constraint under other circumstances: with the edits of a base that allows the field at all. */
export const given = (base: Edits, constraints: readonly Constraint[]): Constraint[] =>
  constraints.map((each) => (each.kind === 'checked' ? { ...each, before: { ...base, ...each.before } } : each));

export const nonNegative = (...fields: readonly string[]): Checked[] =>
  fields.map((field) => at(field, 'at least 0', -1, invalid(NOT_NEGATIVE)));

/** `prefix` is the path of a template, such as `spec.template.`. */
export const within = (prefix: string, constraints: readonly Constraint[]): Constraint[] =>
  constraints.map((each) => {
    const field = `${prefix}${each.field}`;
    if (each.kind !== 'checked') return { ...each, field };
    const edits = (of: Edits): Edits =>
      Object.fromEntries(Object.entries(of).map(([path, value]) => [`${prefix}${path}`, value]));
    const { cause: expected } = each;
    return {
      ...each,
      field,
      before: edits(each.before),
      wrong: edits(each.wrong),
      cause: expected.field === undefined ? expected : { ...expected, field: `${prefix}${expected.field}` },
    };
  });

/** A copy of the object with the edits. */
export function edited<T>(object: T, edits: Edits): T {
  const copy = structuredClone(object);
  for (const [path, value] of Object.entries(edits)) set(copy as Record<string, unknown>, path, value);
  return copy;
}

function set(object: Record<string, unknown>, path: string, value: unknown): void {
  const keys = path.split(/[.[\]]+/).filter((key) => key !== '');
  const last = keys.pop() ?? '';
  let at = object;
  for (const [index, key] of keys.entries()) {
    const next = keys[index + 1] ?? last;
    at[key] ??= /^\d+$/.test(next) ? [] : {};
    at = at[key] as Record<string, unknown>;
  }
  if (value === undefined) delete at[last];
  else at[last] = structuredClone(value);
}
