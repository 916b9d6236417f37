/**
 * Attributes of rows. A row is described once, as a record of attributes. The type of its values, its reader, its
 * writer, its conditions and its projection follow from that record.
 */
import { type AttributeValue, type Condition, type Item, StoreFault, type UpdateWrite } from './item-store.ts';

type Scalar = string | number | boolean | Uint8Array;

/** One attribute of a row. Two attributes may have one name, if only one of them has a value at a time. */
export interface Attribute<T> {
  readonly name: string;
  /** Its value in this row; that of an absent attribute, too. */
  of(row: Item): T;
  /** The stored form. undefined: the attribute is absent. */
  stored(value: T): Scalar | undefined;
}

/** What all attributes have in common. */
type AnyAttribute = Omit<Attribute<unknown>, 'stored'> & { stored(value: never): Scalar | undefined };
export type Attributes = Readonly<Record<string, AnyAttribute>>;

type ValueOf<A> = A extends Attribute<infer T> ? T : never;
type OptionalName<A> = { [N in keyof A]: undefined extends ValueOf<A[N]> ? N : never }[keyof A];

/** The values of a row. One that may be absent is optional. */
export type RowValues<A> = { readonly [N in Exclude<keyof A, OptionalName<A>>]: ValueOf<A[N]> } & {
  readonly [N in OptionalName<A>]?: ValueOf<A[N]>;
};

type Kind<S extends Scalar> = (value: AttributeValue | undefined) => value is S;
const isText = (value: AttributeValue | undefined): value is string => typeof value === 'string';
const isNumber = (value: AttributeValue | undefined): value is number => typeof value === 'number';
const isBytes = (value: AttributeValue | undefined): value is Uint8Array => value instanceof Uint8Array;

const plain = <S extends Scalar>(name: string, isKind: Kind<S>): Attribute<S | undefined> => ({
  name,
  of(row) {
    const value = row[name];
    return isKind(value) ? value : undefined;
  },
  stored: (value) => value,
});

export const text = (name: string): Attribute<string | undefined> => plain(name, isText);
export const number = (name: string): Attribute<number | undefined> => plain(name, isNumber);
export const bytes = (name: string): Attribute<Uint8Array | undefined> => plain(name, isBytes);

/** A text that may be stored packed (packed-text.ts). */
export const packable = (name: string): Attribute<string | Uint8Array | undefined> =>
  plain(name, (value): value is string | Uint8Array => isText(value) || isBytes(value));

/** 1, or absent. */
export const flag = (name: string): Attribute<boolean> => ({
  name,
  of: (row) => row[name] !== undefined,
  stored: (value) => (value ? 1 : undefined),
});

/** A value that is stored in another form. */
export const mapped = <T, S>(
  attribute: Attribute<S>,
  form: { readonly read: (stored: S) => T; readonly write: (value: T) => S },
): Attribute<T> => ({
  name: attribute.name,
  of: (row) => form.read(attribute.of(row)),
  stored: (value) => attribute.stored(form.write(value)),
});

/** One of a few words, which only the store of this row writes. */
export const word = <W extends string>(name: string): Attribute<W | undefined> => ({
  name,
  of: (row) => row[name] as W | undefined,
  stored: (value) => value,
});

/** JSON, which only the store of this row writes. */
export const json = <T extends object>(name: string): Attribute<T | undefined> =>
  mapped(text(name), {
    read: (value) => (value === undefined ? undefined : (JSON.parse(value) as T)),
    write: (value) => (value === undefined ? undefined : JSON.stringify(value)),
  });

/** An attribute that every row of its kind has. */
export const present = <T>(attribute: Attribute<T | undefined>): Attribute<T> => ({
  name: attribute.name,
  of(row) {
    const value = attribute.of(row);
    if (value === undefined) throw new StoreFault('rejected', `a row without ${attribute.name}`, { retryable: false });
    return value;
  },
  stored: attribute.stored,
});

/** The values of a row. Absent ones are left out. */
export function readRow<A extends Attributes>(attributes: A, row: Item): RowValues<A> {
  const values: Record<string, unknown> = {};
  for (const name in attributes) {
    const value = attributes[name]!.of(row);
    if (value !== undefined) values[name] = value;
  }
  return values as RowValues<A>;
}

/** New values of some attributes of a row. undefined removes an attribute. */
export type ChangedValues<A> = { readonly [N in keyof A]?: ValueOf<A[N]> | undefined };

/** The update that sets these values. It removes attributes with the value undefined, and those that are not stored. */
export function changeOf<A extends Attributes>(
  attributes: A,
  values: ChangedValues<A>,
): Required<Pick<UpdateWrite, 'set' | 'remove'>> {
  const set: Item = {};
  const remove: string[] = [];
  for (const name in attributes) {
    if (!(name in values)) continue;
    const attribute: Attribute<unknown> = attributes[name]!;
    const stored = values[name] === undefined ? undefined : attribute.stored(values[name]);
    if (stored === undefined) remove.push(attribute.name);
    else set[attribute.name] = stored;
  }
  return { set, remove };
}

/** Names for a projection, or for a removal. */
export const namesOf = (attributes: Attributes): readonly string[] => [
  ...new Set(Object.values(attributes).map(({ name }) => name)),
];

/** Holds while a row has this value. */
export function holds<T>(attribute: Attribute<T>, value: T): Condition {
  const stored = attribute.stored(value);
  return stored === undefined ? lacks(attribute.name) : is(attribute.name, stored);
}

export const is = (attribute: string, value: string | number | boolean | Uint8Array): Condition => ({
  kind: 'compare',
  attribute,
  op: '=',
  value,
});
/** Holds while a row has no such number, or a lower one. */
export const below = ({ name }: Attribute<number | undefined>, value: number): Condition =>
  any(lacks(name), { kind: 'compare', attribute: name, op: '<', value });
/** Whether a row has the attribute. */
export const isIn =
  ({ name }: Pick<Attribute<never>, 'name'>) =>
  (row: Item): boolean =>
    row[name] !== undefined;
export const lacks = (attribute: string): Condition => ({ kind: 'lacks', attribute });
/** A single condition stays as it is. */
export const all = (...of: Condition[]): Condition => (of.length === 1 ? of[0]! : { kind: 'all', of });
export const any = (...of: Condition[]): Condition => ({ kind: 'any', of });
