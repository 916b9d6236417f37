/** What names in an expression mean: variables, functions, and types with fields. */

import type { Functions } from './functions.ts';
import { qualifiedName } from './parse.ts';
import type { Expression } from './syntax.ts';
import type { CelType } from './types.ts';

export interface Environment {
  readonly variables: ReadonlyMap<string, CelType>;
  readonly functions: Functions;
  /** The types of fields. undefined: there is no such type, or its fields are not known. */
  readonly fieldsOf: (typeName: string) => Fields | undefined;
  /** Types that `Name{field: value}` makes. */
  readonly isConstructible: (typeName: string) => boolean;
}

export interface Fields {
  /** undefined: there is no such field. */
  readonly typeOf: (field: string) => CelType | undefined;
}

export const withoutDot = (name: string): string => (name.startsWith('.') ? name.slice(1) : name);

/** Types that an expression can name as values, such as `int` in `type(x) == int`. */
const TYPE_NAMES = new Set(
  (
    'bool bytes double int list map null_type string type uint google.protobuf.Timestamp google.protobuf.Duration ' +
    'optional_type kubernetes.Quantity kubernetes.URL kubernetes.NamedFormat kubernetes.Semver net.IP net.CIDR'
  ).split(' '),
);

/** The type that the whole expression names. undefined: it names none, or a variable hides it. */
export function namedType(expression: Expression, isVariable: (name: string) => boolean): string | undefined {
  const qualified = qualifiedName(expression);
  if (qualified === undefined) return undefined;
  const name = withoutDot(qualified);
  return TYPE_NAMES.has(name) && !isVariable(name.split('.', 1)[0] as string) ? name : undefined;
}

/** The function of a namespace that a call on a name means, such as `sets.contains(a, b)`. */
export function namespacedFunction(
  { functions }: Environment,
  { target, name }: { readonly target?: Expression; readonly name: string },
  isVariable: (name: string) => boolean,
): string | undefined {
  const qualified = target === undefined ? undefined : qualifiedName(target);
  if (qualified === undefined || isVariable(withoutDot(qualified).split('.', 1)[0] as string)) return undefined;
  const full = `${withoutDot(qualified)}.${name}`;
  return functions.has(full) ? full : undefined;
}
