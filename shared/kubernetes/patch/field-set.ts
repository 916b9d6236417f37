/**
 * Sets of fields. managedFields stores one set per manager.
 *
 * A set is a tree with the keys of FieldsV1: `f:<name>` for a member, `k:<json of the keys>` for an item of a keyed
 * list, `v:<json>` for a value of a set. A path is in the set when its tree node has `owned`. A tree node without
 * `owned` only leads to its children.
 * Source: Kubernetes documentation, "Server-Side Apply"; API reference, FieldsV1.
 */

import { getMember, isJsonObject, type JsonObject, jsonEqual } from '../json.ts';
import { type Field, type ListSchema, memberSchema, type Schema, type StructSchema } from '../schema.ts';

export interface FieldSet {
  readonly owned: boolean;
  readonly children: ReadonlyMap<string, FieldSet>;
  /** The value at this path, to detect changes. Only in sets of fieldSetOf. */
  readonly value?: unknown;
}

export const EMPTY_FIELD_SET: FieldSet = { owned: false, children: new Map() };
const OWNED_LEAF: FieldSet = { owned: true, children: new Map() };

/** Paths to leave out, by their first name. */
type Ignored = ReadonlyMap<string, Ignored | 'whole'>;

const NOTHING_IGNORED: Ignored = new Map();

function alsoIgnoring(ignored: Ignored, [name = '', ...rest]: readonly string[]): Ignored {
  const below = ignored.get(name);
  if (below === 'whole') return ignored;
  return new Map(ignored).set(name, rest.length === 0 ? 'whole' : alsoIgnoring(below ?? NOTHING_IGNORED, rest));
}

/** Fields that the server sets or that name the object. No manager owns them. */
const UNOWNED: Ignored = [
  ['apiVersion'],
  ['kind'],
  ...[
    ...['name', 'generateName', 'namespace', 'uid', 'resourceVersion', 'generation', 'creationTimestamp'],
    ...['deletionTimestamp', 'deletionGracePeriodSeconds', 'selfLink', 'managedFields'],
  ].map((name) => ['metadata', name]),
].reduce(alsoIgnoring, NOTHING_IGNORED);

/**
 * The fields that an object sets. A field that the API server always writes is in the set only if it is not empty:
 * otherwise no client has set it. `ignored`: further paths to leave out, such as `['status']`.
 */
export const fieldSetOf = (
  schema: StructSchema,
  object: Readonly<JsonObject>,
  ignored: readonly (readonly string[])[] = [],
): FieldSet => setOfObject(schema, object, undefined, ignored.reduce(alsoIgnoring, UNOWNED));

/**
 * The fields in which an object differs from one before it; `before` undefined: all that it sets.
 *
 * Only what differs is made into sets, because most of an object is the same before and after a write. The result is
 * that of whole sets: a value that is equal in both has equal sets, which neither change nor remove a field.
 */
export function changesOf(
  schema: StructSchema,
  before: Readonly<JsonObject> | undefined,
  after: Readonly<JsonObject>,
  ignored: readonly (readonly string[])[] = [],
): FieldChanges {
  const all = ignored.reduce(alsoIgnoring, UNOWNED);
  const old = before === undefined ? EMPTY_FIELD_SET : setOfObject(schema, before, after, all);
  const next = setOfObject(schema, after, before, all);
  return { changed: changedIn(old, next), removed: difference(old, next) };
}

/** `other`: members that are equal to those of this object are left out. */
function setOfObject(
  schema: StructSchema,
  object: Readonly<JsonObject>,
  other: Readonly<JsonObject> | undefined,
  ignored: Ignored,
): FieldSet {
  const children = new Map<string, FieldSet>();
  addMembers(children, schema, object, other, ignored);
  return { owned: false, children };
}

/** Returns the names of those left out. */
function addMembers(
  into: Map<string, FieldSet>,
  schema: Schema,
  object: Readonly<JsonObject>,
  other: Readonly<JsonObject> | undefined,
  ignored: Ignored,
): readonly string[] {
  const equal: string[] = [];
  for (const name of Object.keys(object)) {
    if (other !== undefined && Object.hasOwn(other, name) && jsonEqual(object[name], other[name])) equal.push(name);
    else {
      const set = setOfMember(schema, object, name, other, ignored);
      if (set !== undefined) into.set(`f:${name}`, set);
    }
  }
  return equal;
}

function setOfMember(
  schema: Schema,
  object: Readonly<JsonObject>,
  name: string,
  other: Readonly<JsonObject> | undefined,
  ignored: Ignored,
): FieldSet | undefined {
  const ignoredBelow = ignored.get(name) ?? NOTHING_IGNORED;
  const value = object[name];
  if (ignoredBelow === 'whole' || value === undefined || value === null) return undefined;
  const field = schema.kind === 'struct' && Object.hasOwn(schema.fields, name) ? schema.fields[name] : undefined;
  if (field !== undefined && isUnset(field, value)) return undefined;
  const otherValue = other === undefined ? undefined : getMember(other, name);
  return setOfValue(memberSchema(schema, name), value, otherValue, { isEntry: field === undefined, ignoredBelow });
}

function isUnset(field: Field, value: unknown): boolean {
  if (field.presence !== 'always') return false;
  if (isJsonObject(value)) return Object.keys(value).length === 0;
  return value === '' || value === 0 || value === false || value === '0';
}

/**
 * The set of one value and its members. A map key, a list item and a member that a struct does not name are owned
 * themselves, a struct only by its members.
 */
function setOfValue(
  schema: Schema | undefined,
  value: unknown,
  other: unknown,
  { isEntry, ignoredBelow }: { readonly isEntry: boolean; readonly ignoredBelow: Ignored },
): FieldSet | undefined {
  if (isJsonObject(value) && (schema?.kind === 'struct' || schema?.kind === 'map') && !schema.atomic) {
    const children = new Map<string, FieldSet>();
    const equal = addMembers(children, schema, value, isJsonObject(other) ? other : undefined, ignoredBelow);
    const isSet = (name: string): boolean => setOfMember(schema, value, name, undefined, ignoredBelow) !== undefined;
    if (children.size > 0 || equal.some(isSet)) return { owned: isEntry, children };
    // An empty object is owned itself. One with members that are all ignored or unset is not.
    return isEntry || Object.keys(value).length === 0 ? { ...OWNED_LEAF, value: {} } : undefined;
  }
  if (Array.isArray(value) && schema?.kind === 'list') {
    const keys = itemKeys(schema, value);
    if (keys !== undefined) {
      if (value.length === 0) return undefined;
      const others = itemsByKey(schema, other);
      const children = new Map<string, FieldSet>();
      for (const [index, key] of keys.entries()) {
        const item = value[index];
        const otherItem = others?.get(key);
        if (otherItem !== undefined && jsonEqual(item, otherItem)) continue;
        const set = setOfValue(schema.items, item, otherItem, { isEntry: true, ignoredBelow: NOTHING_IGNORED });
        children.set(key, set ?? { ...OWNED_LEAF, value: item });
      }
      return { owned: false, children };
    }
  }
  return { ...OWNED_LEAF, value };
}

function itemsByKey(schema: ListSchema, items: unknown): ReadonlyMap<string, unknown> | undefined {
  const keys = Array.isArray(items) ? itemKeys(schema, items) : undefined;
  return keys && new Map(keys.map((key, index) => [key, (items as readonly unknown[])[index]]));
}

/**
 * The keys of the items of a list, in order. Undefined for a list that is owned as one value: an atomic list, or a list
 * with a missing or duplicate key. A Node may have two addresses of one type, for example.
 */
export function itemKeys(schema: ListSchema, items: readonly unknown[]): string[] | undefined {
  if (schema.listType === 'atomic') return undefined;
  const keys: string[] = [];
  for (const item of items) {
    const key = schema.listType === 'set' ? `v:${JSON.stringify(item)}` : keyOfItem(schema, item);
    if (key === undefined) return undefined;
    keys.push(key);
  }
  return new Set(keys).size === keys.length ? keys : undefined;
}

function keyOfItem(schema: ListSchema, item: unknown): string | undefined {
  if (!isJsonObject(item)) return undefined;
  const key: JsonObject = {};
  for (const name of [...schema.mapKeys].sort()) {
    const field = schema.items.kind === 'struct' ? schema.items.fields[name] : undefined;
    const value = getMember(item, name) ?? field?.defaultText;
    if (value === undefined || value === null || typeof value === 'object') return undefined;
    key[name] = value;
  }
  return `k:${JSON.stringify(key)}`;
}

export function isEmptySet(set: FieldSet): boolean {
  return !set.owned && set.children.size === 0;
}

/** The fields below keys that match, one pattern per level. */
export function partOf(set: FieldSet, [pattern, ...below]: readonly RegExp[]): FieldSet {
  if (pattern === undefined) return set;
  const found = [...set.children].filter(([key]) => pattern.test(key));
  const parts = found.map(([key, child]): [string, FieldSet] => [key, partOf(child, below)]);
  return { owned: false, children: new Map(parts.filter(([, part]) => !isEmptySet(part))) };
}

export function union(left: FieldSet, right: FieldSet): FieldSet {
  const children = new Map(left.children);
  for (const [key, child] of right.children) {
    const known = children.get(key);
    children.set(key, known === undefined ? child : union(known, child));
  }
  return { owned: left.owned || right.owned, children };
}

export function difference(left: FieldSet, right: FieldSet): FieldSet {
  return combine(left, right, (inLeft, inRight) => inLeft && !inRight);
}

export function intersection(left: FieldSet, right: FieldSet): FieldSet {
  return combine(left, right, (inLeft, inRight) => inLeft && inRight);
}

function combine(left: FieldSet, right: FieldSet, owned: (inLeft: boolean, inRight: boolean) => boolean): FieldSet {
  const children = new Map<string, FieldSet>();
  for (const [key, child] of left.children) {
    const combined = combine(child, right.children.get(key) ?? EMPTY_FIELD_SET, owned);
    if (!isEmptySet(combined)) children.set(key, combined);
  }
  return { owned: owned(left.owned, right.owned), children };
}

export function equalSets(left: FieldSet, right: FieldSet): boolean {
  if (left.owned !== right.owned || left.children.size !== right.children.size) return false;
  return [...left.children].every(([key, child]) => {
    const other = right.children.get(key);
    return other !== undefined && equalSets(child, other);
  });
}

export interface FieldChanges {
  /** Fields that are new or have another value. */
  readonly changed: FieldSet;
  /** Fields that are no longer set. */
  readonly removed: FieldSet;
}

function changedIn(before: FieldSet, after: FieldSet): FieldSet {
  const children = new Map<string, FieldSet>();
  for (const [key, child] of after.children) {
    const changed = changedIn(before.children.get(key) ?? EMPTY_FIELD_SET, child);
    if (!isEmptySet(changed)) children.set(key, changed);
  }
  return { owned: after.owned && !(before.owned && jsonEqual(before.value, after.value)), children };
}

/** The paths in a set as people read them: `.spec.taints`, `.status.conditions[type="Ready"].status`. */
export function pathsOf(set: FieldSet, prefix = ''): string[] {
  const own = set.owned && prefix !== '' ? [prefix] : [];
  return [...own, ...[...set.children].flatMap(([key, child]) => pathsOf(child, `${prefix}${readableKey(key)}`))];
}

function readableKey(key: string): string {
  const rest = key.slice(2);
  if (key.startsWith('f:')) return `.${rest}`;
  if (key.startsWith('v:')) return `[=${rest}]`;
  const keys = Object.entries(JSON.parse(rest) as JsonObject);
  return `[${keys.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`;
}

/** The JSON form: `{"f:metadata":{"f:labels":{"f:a":{}}}}`. */
export function toFieldsV1(set: FieldSet): JsonObject {
  const fields: JsonObject = set.owned && set.children.size > 0 ? { '.': {} } : {};
  for (const key of [...set.children.keys()].sort()) fields[key] = toFieldsV1(set.children.get(key)!);
  return fields;
}

/** Reads the JSON form; `undefined` if it is none. */
export function fromFieldsV1(fields: unknown): FieldSet | undefined {
  return isJsonObject(fields) ? readNode(fields, false) : undefined;
}

function readNode(fields: JsonObject, isEntry: boolean): FieldSet | undefined {
  const children = new Map<string, FieldSet>();
  let owned = isEntry && Object.keys(fields).length === 0;
  for (const key of Object.keys(fields)) {
    if (key === '.') {
      owned = true;
      continue;
    }
    const inner = fields[key];
    if (!isJsonObject(inner) || !isKey(key)) return undefined;
    const child = readNode(inner, true);
    if (child === undefined) return undefined;
    children.set(key, child);
  }
  return { owned, children };
}

function isKey(key: string): boolean {
  if (key.startsWith('f:')) return true;
  if (!key.startsWith('k:') && !key.startsWith('v:')) return false;
  try {
    return key.startsWith('v:') ? JSON.parse(key.slice(2)) !== undefined : isJsonObject(JSON.parse(key.slice(2)));
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
