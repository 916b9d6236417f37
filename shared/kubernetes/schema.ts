/**
 * Schemas of Kubernetes kinds. Decoding, strict field validation, strategic merge patch, server-side apply and the
 * OpenAPI documents all use the same schema, so they cannot differ.
 *
 * A schema describes the JSON that a Kubernetes API server stores and returns. That includes details of Go that clients
 * see: which empty fields are left out, which are always present, and the type names in error messages.
 */
import type { JsonObject } from './json.ts';

export type Schema = StructSchema | MapSchema | ListSchema | ScalarSchema;

export type ScalarKind =
  | 'string'
  | 'boolean'
  | 'integer'
  | 'number'
  /** RFC 3339 with seconds (metav1.Time). */
  | 'time'
  /** RFC 3339 with six digits of a second (metav1.MicroTime). */
  | 'microTime'
  | 'quantity'
  | 'intOrString'
  /** Any JSON value, not changed. */
  | 'any';

export interface ScalarSchema {
  readonly kind: ScalarKind;
  /** OpenAPI format: int32, int64, double, date-time, byte. */
  readonly format?: string;
  /** Name of the Go type in error messages, if it is not a basic type: `v1.TaintEffect`. */
  readonly goType?: string;
  /** Known values, for `kubectl explain`. Decoding does not check them; validation/ does. */
  readonly values?: readonly string[];
}

export interface StructSchema {
  readonly kind: 'struct';
  /** Name of the definition: `io.k8s.api.core.v1.NodeSpec`. */
  readonly name: string;
  readonly description: string;
  readonly fields: Readonly<Record<string, Field>>;
  /** Server-side apply owns it as one value. */
  readonly atomic: boolean;
  /** A strategic merge patch replaces the struct, or keeps the members that it lists. Absent: it merges the struct. */
  readonly patchStrategy?: 'replace' | 'retainKeys';
  /** Its groups, versions and kinds. Empty for a struct that is only part of other objects. */
  readonly gvks: readonly GroupVersionKind[];
  /** Of the members without a field. Absent: there are none. */
  readonly others?: Schema;
  /** Reads an object of this kind in place of decodeStrict. Absent: decodeStrict does. */
  readonly read?: (value: JsonObject, options: { readonly sparse?: boolean; readonly keepsNulls?: boolean }) => Decoded;
  /** More members of its OpenAPI schema. */
  readonly openApi?: JsonObject;
}

/** A value that was read by a schema. */
export interface Decoded {
  /**
   * The object as an API server stores and returns it: without unknown fields, nulls and empty optional fields, with
   * the fields that are always present, times in UTC. A value of the wrong type is left out.
   */
  readonly value: JsonObject;
  /** Paths of fields that the schema does not know: `spec.taints[0].colour`. */
  readonly unknownFields: readonly string[];
  readonly typeFaults: readonly TypeFault[];
}

/** A value of the wrong type. `message` is the text of Go's JSON decoder. */
export interface TypeFault {
  readonly path: string;
  readonly message: string;
}

export interface MapSchema {
  readonly kind: 'map';
  readonly values: Schema;
  /** Server-side apply owns it as one value. */
  readonly atomic: boolean;
}

export interface ListSchema {
  readonly kind: 'list';
  readonly items: Schema;
  /** Server-side apply: `atomic` has one owner, `set` one per value, `map` one per item. */
  readonly listType: 'atomic' | 'set' | 'map';
  /** Keys of a `map` list. */
  readonly mapKeys: readonly string[];
  /** Strategic merge patch: `replace` the list or `merge` it, by value or by `mergeKey`. */
  readonly patchStrategy: 'replace' | 'merge' | 'merge,retainKeys';
  readonly mergeKey: string | undefined;
}

/**
 * - `optional`: left out when empty (false, 0, "", {}, []).
 * - `pointer`: optional, but an empty value differs from none and is kept.
 * - `always`: present even if it was never set.
 */
export type Presence = 'optional' | 'pointer' | 'always';

export interface Field {
  readonly schema: Schema;
  readonly description: string;
  readonly presence: Presence;
  /** Listed as required in OpenAPI; clients refuse a body without it. */
  readonly required: boolean;
  /** What an absent text means: `protocol` of a port is TCP, which is also its key in a list. */
  readonly defaultText?: string;
  /** Its OpenAPI schema. Absent: it is made from `schema`. */
  readonly openApi?: JsonObject;
}

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

type Fields = Readonly<Record<string, Field>>;

/** A struct. `name` is the OpenAPI definition name; its last part is the Go name in error messages. */
export function struct(name: string, description: string, fields: Fields): StructSchema {
  return { kind: 'struct', name, description, fields, atomic: false, gvks: [] };
}

/** The struct of a kind, with apiVersion and kind. */
export function kindStruct(name: string, gvk: GroupVersionKind, description: string, fields: Fields): StructSchema {
  return { ...struct(name, description, { ...typeMetaFields(), ...fields }), gvks: [gvk] };
}

export const typeMetaFields = (): Fields => ({
  apiVersion: text('Group and version of the API that this object is written in.'),
  kind: text('Kind of the object, in CamelCase.'),
});

const STRING: ScalarSchema = { kind: 'string' };

function field(schema: Schema, description: string): Field {
  return { schema, description, presence: 'optional', required: false };
}

export function text(description: string): Field {
  return field(STRING, description);
}

export function bool(description: string): Field {
  return field({ kind: 'boolean' }, description);
}

export function int32(description: string): Field {
  return field({ kind: 'integer', format: 'int32' }, description);
}

export function int64(description: string): Field {
  return field({ kind: 'integer', format: 'int64' }, description);
}

/** A time with seconds. With presence `always` an unset time is null, as in Go. */
export function time(description: string): Field {
  return field({ kind: 'time', format: 'date-time' }, description);
}

export function intOrString(description: string): Field {
  return pointer(field({ kind: 'intOrString' }, description));
}

export function any(description: string): Field {
  return pointer(field({ kind: 'any' }, description));
}

/** A struct behind a pointer: absent unless it is set, and kept if it is set to an empty value. */
export function optionalStruct(schema: StructSchema, description: string): Field {
  return pointer(field(schema, description));
}

/** A struct by value: always present, at least as `{}`. */
export function embedded(schema: StructSchema, description: string): Field {
  return { ...field(schema, description), presence: 'always' };
}

export function textMap(description: string): Field {
  return field({ kind: 'map', values: STRING, atomic: false }, description);
}

export function atomicTextMap(description: string): Field {
  return field({ kind: 'map', values: STRING, atomic: true }, description);
}

/** Resource names to quantities. */
export function resourceList(description: string): Field {
  return field({ kind: 'map', values: { kind: 'quantity' }, atomic: false }, description);
}

/** A list owned as one value and replaced by a strategic merge patch. */
export function list(items: Schema | Field, description: string): Field {
  return listField(items, description, {});
}

/**
 * A list of structs identified by keys: by `mergeKey` in a strategic merge patch, by `mapKeys` in server-side apply.
 */
export function keyedList(
  items: StructSchema,
  description: string,
  keys: { readonly mergeKey: string; readonly mapKeys?: readonly string[]; readonly retainKeys?: boolean },
): Field {
  return listField(items, description, {
    listType: 'map',
    mapKeys: keys.mapKeys ?? [keys.mergeKey],
    patchStrategy: keys.retainKeys === true ? 'merge,retainKeys' : 'merge',
    mergeKey: keys.mergeKey,
  });
}

function listField(
  items: Schema | Field,
  description: string,
  how: Partial<Omit<ListSchema, 'kind' | 'items'>>,
): Field {
  const schema: ListSchema = {
    kind: 'list',
    items: 'schema' in items ? items.schema : items,
    listType: 'atomic',
    mapKeys: [],
    patchStrategy: 'replace',
    mergeKey: undefined,
    ...how,
  };
  return field(schema, description);
}

/** The field with presence `pointer`: an empty value is kept. */
export function pointer(of: Field): Field {
  return { ...of, presence: 'pointer' };
}

/** The field with presence `always`: it is present even if it was never set. */
export function always(of: Field): Field {
  return { ...of, presence: 'always' };
}

/** The field as required: a client must send it, and it is always present. */
export function required(of: Field): Field {
  return { ...of, required: true, presence: of.presence === 'pointer' ? 'pointer' : 'always' };
}

/** Schema of a member, undefined if the schema has no such member. */
export function memberSchema(schema: Schema | undefined, key: string): Schema | undefined {
  if (schema?.kind === 'map') return schema.values;
  if (schema?.kind !== 'struct') return undefined;
  return Object.hasOwn(schema.fields, key) ? schema.fields[key]?.schema : schema.others;
}
