/**
 * Values of the Common Expression Language (CEL: github.com/google/cel-spec, doc/langdef.md) in JavaScript.
 *
 * int: bigint. uint: CelUint. double: number. bytes: Uint8Array. list: an array. map: CelMap. An error is a value too,
 * because `false && error` is false.
 */

export type CelValue =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | readonly CelValue[]
  | CelUint
  | CelMap
  | CelTimestamp
  | CelDuration
  | CelOptional
  | CelTypeName
  | CelMessage
  | CelOpaque
  | CelFailure;

/** A failed evaluation. The texts are those of cel-go. */
export class CelFailure {
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }
}

export class CelUint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

export class CelTypeName {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** Nanoseconds since 1970. */
export class CelTimestamp {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class CelDuration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

export class CelOptional {
  /** undefined: there is none. */
  readonly value: CelValue | undefined;
  constructor(value: CelValue | undefined) {
    this.value = value;
  }
}

export const NONE = new CelOptional(undefined);

/** A value of a named type with fields, such as `Object{}` of a mutation. */
export class CelMessage {
  readonly typeName: string;
  readonly fields: ReadonlyMap<string, CelValue>;
  constructor(typeName: string, fields: ReadonlyMap<string, CelValue>) {
    this.typeName = typeName;
    this.fields = fields;
  }
}

/** A value of a library that expressions use through functions only, such as a quantity. */
export abstract class CelOpaque {
  abstract readonly typeName: string;
  abstract equals(other: CelOpaque): boolean;
}

type KeyForm = string | bigint | boolean;

/** A map. Keys 1, 1u and 1.0 are the same key. */
export class CelMap {
  readonly #values: Map<KeyForm, CelValue>;
  /** Keys that were written as uint. */
  readonly #uints: Set<bigint> | undefined;
  /** What no expression reads, and equality compares. */
  readonly hidden: CelOpaque | undefined;

  constructor(values: Map<KeyForm, CelValue>, uints?: Set<bigint>, hidden?: CelOpaque) {
    this.#values = values;
    this.#uints = uints;
    this.hidden = hidden;
  }

  /** CelFailure: a key is repeated, or has a type that no key has. */
  static of(entries: readonly (readonly [CelValue, CelValue])[]): CelMap | CelFailure {
    const values = new Map<KeyForm, CelValue>();
    const uints = new Set<bigint>();
    for (const [key, value] of entries) {
      const form = typeof key === 'number' ? undefined : keyForm(key);
      if (form === undefined) return new CelFailure(`unsupported key type: ${typeNameOf(key)}`);
      if (values.has(form)) return new CelFailure(`insert failed: key ${String(form)} already exists`);
      if (key instanceof CelUint) uints.add(key.value);
      values.set(form, value);
    }
    return new CelMap(values, uints.size === 0 ? undefined : uints);
  }

  get size(): number {
    return this.#values.size;
  }

  get(key: CelValue): CelValue | undefined {
    const form = keyForm(key);
    return form === undefined ? undefined : this.#values.get(form);
  }

  keys(): CelValue[] {
    return [...this.eachKey()];
  }

  *eachKey(): Generator<CelValue> {
    const uints = this.#uints;
    for (const key of this.#values.keys()) {
      yield typeof key === 'bigint' && uints?.has(key) === true ? new CelUint(key) : key;
    }
  }
}

function keyForm(key: CelValue): KeyForm | undefined {
  switch (typeof key) {
    case 'string':
    case 'bigint':
    case 'boolean':
      return key;
    case 'number':
      return Number.isInteger(key) ? BigInt(key) : undefined;
    default:
      return key instanceof CelUint ? key.value : undefined;
  }
}

/** The name of the type of a value, as `type(value)` shows it. */
export function typeNameOf(value: CelValue): string {
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'bigint':
      return 'int';
    case 'number':
      return 'double';
    case 'boolean':
      return 'bool';
    default:
  }
  if (value === null) return 'null_type';
  if (Array.isArray(value)) return 'list';
  if (value instanceof CelMap) return 'map';
  if (value instanceof CelOpaque || value instanceof CelMessage) return value.typeName;
  if (value instanceof CelUint) return 'uint';
  if (value instanceof Uint8Array) return 'bytes';
  if (value instanceof CelTimestamp) return 'google.protobuf.Timestamp';
  if (value instanceof CelDuration) return 'google.protobuf.Duration';
  if (value instanceof CelOptional) return 'optional_type';
  return value instanceof CelTypeName ? 'type' : 'error';
}

export const isList = (value: CelValue): value is readonly CelValue[] => Array.isArray(value);

/** Numbers of any type as one that can be compared. */
export const numberOf = (value: CelValue): bigint | number | undefined =>
  typeof value === 'bigint' || typeof value === 'number' ? value : value instanceof CelUint ? value.value : undefined;

/** How many values of lists and maps were compared, for the cost of a call. */
export const comparisons = { count: 0 };

/** Names an item of a list. */
export type KeyOfItem = (item: CelValue) => string;

/** Lists of unique items: their order does not count when they are compared, and `+` keeps them unique. */
const keysOfLists = new WeakMap<readonly CelValue[], KeyOfItem>();

export function keyedList(items: readonly CelValue[], keyOf: KeyOfItem): readonly CelValue[] {
  keysOfLists.set(items, keyOf);
  return items;
}

/** An item of `other` replaces the one with its key, if `one` has unique items. */
export function joinLists(one: readonly CelValue[], other: readonly CelValue[]): readonly CelValue[] {
  const keyOf = keysOfLists.get(one);
  if (keyOf === undefined) return [...one, ...other];
  return keyedList([...new Map([...one, ...other].map((item) => [keyOf(item), item])).values()], keyOf);
}

function listsEqual(one: readonly CelValue[], other: readonly CelValue[]): boolean {
  if (one.length !== other.length) return false;
  const keyOf = keysOfLists.get(one);
  if (keyOf === undefined) return one.every((item, i) => celEqual(item, other[i] as CelValue));
  comparisons.count += one.length;
  const items = new Map(one.map((item) => [keyOf(item), item]));
  const found = new Set<string>();
  for (const item of other) {
    const key = keyOf(item);
    const same = items.get(key);
    if (same === undefined || !celEqual(same, item)) return false;
    found.add(key);
  }
  return found.size === items.size;
}

/** Equality of CEL: numbers by value; other values of different types differ; NaN differs from itself. */
export function celEqual(one: CelValue, other: CelValue): boolean {
  comparisons.count += 1;
  if (one === other) return true;
  const left = numberOf(one);
  if (left !== undefined) {
    const right = numberOf(other);
    return right !== undefined && compareNumbers(left, right) === 0;
  }
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) return false;
  if (isList(one)) {
    return isList(other) && listsEqual(one, other);
  }
  if (one instanceof CelMap) {
    if (!(other instanceof CelMap) || one.size !== other.size) return false;
    const { hidden } = other;
    if (one.hidden === undefined || hidden === undefined ? one.hidden !== hidden : !one.hidden.equals(hidden))
      return false;
    return one.keys().every((key) => {
      const right = other.get(key);
      return right !== undefined && celEqual(one.get(key) as CelValue, right);
    });
  }
  if (one instanceof CelOpaque) return other instanceof CelOpaque && one.equals(other);
  if (one instanceof Uint8Array) return other instanceof Uint8Array && Buffer.compare(one, other) === 0;
  if (one instanceof CelTimestamp) return other instanceof CelTimestamp && one.nanos === other.nanos;
  if (one instanceof CelDuration) return other instanceof CelDuration && one.nanos === other.nanos;
  if (one instanceof CelTypeName) return other instanceof CelTypeName && one.name === other.name;
  if (one instanceof CelOptional) return other instanceof CelOptional && optionalEqual(one, other);
  return one instanceof CelMessage && other instanceof CelMessage && messageEqual(one, other);
}

function optionalEqual({ value: left }: CelOptional, { value: right }: CelOptional): boolean {
  if (left === undefined || right === undefined) return left === right;
  return celEqual(left, right);
}

function messageEqual(one: CelMessage, other: CelMessage): boolean {
  if (one.typeName !== other.typeName || one.fields.size !== other.fields.size) return false;
  return [...one.fields].every(([name, value]) => {
    const right = other.fields.get(name);
    return right !== undefined && celEqual(value, right);
  });
}

/** Order of two values of comparable types: negative, 0 or positive. undefined: NaN. 'unordered': no such order. */
export function celCompare(one: CelValue, other: CelValue): number | undefined | 'unordered' {
  const left = numberOf(one);
  const right = numberOf(other);
  if (left !== undefined && right !== undefined) return compareNumbers(left, right);
  if (typeof one === 'string' && typeof other === 'string') return compareText(one, other);
  if (typeof one === 'boolean' && typeof other === 'boolean') return Number(one) - Number(other);
  if (one instanceof Uint8Array && other instanceof Uint8Array) return Buffer.compare(one, other);
  const isTime = one instanceof CelTimestamp && other instanceof CelTimestamp;
  if (isTime || (one instanceof CelDuration && other instanceof CelDuration)) {
    return one.nanos < other.nanos ? -1 : one.nanos > other.nanos ? 1 : 0;
  }
  return 'unordered';
}

/** A double is compared with the double next to a whole number, as cel-go does. undefined: NaN. */
function compareNumbers(left: bigint | number, right: bigint | number): number | undefined {
  if (typeof left !== typeof right) return compareNumbers(Number(left), Number(right));
  if (left < right) return -1;
  if (left > right) return 1;
  return left === right ? 0 : undefined;
}

/** By code points, as Go compares UTF-8. JavaScript compares UTF-16 units. */
function compareText(one: string, other: string): number {
  if (one === other) return 0;
  if (!hasSurrogates(one) && !hasSurrogates(other)) return one < other ? -1 : 1;
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

export const hasSurrogates = (text: string): boolean => /[\ud800-\udfff]/.test(text);

/** Length in code points. */
export function textLength(text: string): number {
  if (!hasSurrogates(text)) return text.length;
  let length = 0;
  for (const _ of text) length += 1;
  return length;
}

/** The size for the cost of an operation; 1 for what has none. */
export function sizeOf(value: CelValue): number {
  if (typeof value === 'string') return textLength(value);
  if (value === null || typeof value !== 'object') return 1;
  if (isList(value) || value instanceof Uint8Array) return value.length;
  return value instanceof CelMap ? value.size : 1;
}

type Json = unknown;

/** A JSON value: whole numbers are int, others double, as in upstream's unstructured objects. Undefined is null. */
export function celFromJson(json: Json): CelValue {
  switch (typeof json) {
    case 'string':
    case 'boolean':
    case 'bigint':
      return json;
    case 'number':
      return Number.isSafeInteger(json) && !Object.is(json, -0) ? BigInt(json) : json;
    default:
  }
  if (json === null || json === undefined) return null;
  if (Array.isArray(json)) return json.map(celFromJson);
  const values = new Map<KeyForm, CelValue>();
  for (const [key, value] of Object.entries(json)) if (value !== undefined) values.set(key, celFromJson(value));
  return new CelMap(values);
}
