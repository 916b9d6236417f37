import { cloneJson, getMember, isJsonObject, type JsonObject, setMember } from './json.ts';
import { parseQuantity } from './quantity.ts';
import type { Decoded, Field, ListSchema, MapSchema, ScalarSchema, Schema, StructSchema, TypeFault } from './schema.ts';
import { formatTime } from './time.ts';
import { INT32_MAX, INT64_MAX } from './whole-number.ts';

export type { Decoded, TypeFault } from './schema.ts';

/** Maximum number of reported faults of each kind. */
export const DECODE_FAULTS_MAX = 100;

/**
 * Longest list and largest map. An object that fits the store has 100,000 characters, and an item of a list has three.
 * Validation passes faults on as arguments, and a call has room for some 100,000.
 */
const MEMBERS_MAX = 20_000;

/**
 * Reads a JSON value by a schema.
 *
 * `fieldValidation` decides whether unknown fields are refused, reported as warnings or ignored. A type fault is always
 * a 400.
 * The value is normalised: two bodies with the same meaning compare equal.
 */
export function decodeStrict(schema: StructSchema, value: unknown, options: DecodeOptions = {}): Decoded {
  if (schema.read !== undefined && isJsonObject(value)) return schema.read(value, options);
  const faults: Faults = { sparse: options.sparse === true, unknownFields: [], typeFaults: [] };
  const decoded = decodeValue(schema, value, undefined, faults);
  return {
    value: isJsonObject(decoded) ? decoded : emptyStruct(schema),
    unknownFields: faults.unknownFields,
    typeFaults: faults.typeFaults,
  };
}

export interface DecodeOptions {
  /**
   * Keeps exactly the fields of the body, empty values included, and adds none. Server-side apply needs this: a manager
   * owns the fields in its configuration and no others.
   */
  readonly sparse?: boolean;
  /** Keeps a null that the schema of a custom resource does not permit. Validation refuses it. */
  readonly keepsNulls?: boolean;
}

/** Texts of the warnings for `fieldValidation=Warn`, one header each. */
export function fieldWarnings(unknownFields: readonly string[], duplicates: readonly string[] = []): string[] {
  return [...duplicates, ...unknownFields.map((path) => `unknown field "${path}"`)].slice(0, DECODE_FAULTS_MAX);
}

/**
 * Text of the 400 for a body with wrong types: `Node in version "v1" cannot be handled as a Node: json: cannot
 * unmarshal string into Go struct field NodeSpec.spec.unschedulable of type bool`. Only the first fault is reported, as
 * in Go.
 */
export function typeFaultMessage(kind: string, version: string, faults: readonly TypeFault[]): string | undefined {
  const [first] = faults;
  return first && `${kind} in version "${version}" cannot be handled as a ${kind}: ${first.message}`;
}

interface Faults {
  readonly sparse: boolean;
  readonly unknownFields: string[];
  readonly typeFaults: TypeFault[];
}

/**
 * Where a value is, as steps from the object to it: a path is needed only for a fault. Undefined: the object itself.
 */
interface Step {
  readonly above: Place;
  /** Field, map key or index. */
  readonly name: string | number;
  /** The struct that has the field. Absent for a map key or an index. */
  readonly struct?: StructSchema;
}
type Place = Step | undefined;

/** With list indices and map keys, for field paths: `spec.taints[0].key`. */
function pathTo(place: Place): string {
  if (place === undefined) return '';
  const above = pathTo(place.above);
  return typeof place.name === 'number' ? `${above}[${place.name}]` : joinPath(above, place.name);
}

/**
 * The path in messages of Go's JSON decoder: the innermost struct, and the fields alone. Undefined at the object
 * itself.
 */
function goPathTo(place: Place): string | undefined {
  const fields: string[] = [];
  let innermost: StructSchema | undefined;
  for (let at = place; at !== undefined; at = at.above) {
    if (at.struct === undefined) continue;
    innermost ??= at.struct;
    fields.unshift(String(at.name));
  }
  return innermost && `${goName(innermost)}.${fields.join('.')}`;
}

function decodeValue(schema: Schema, value: unknown, place: Place, faults: Faults): unknown {
  if (value === null || value === undefined) return undefined;
  switch (schema.kind) {
    case 'struct':
      return isJsonObject(value) ? decodeStruct(schema, value, place, faults) : mistyped(schema, value, place, faults);
    case 'map':
      return isJsonObject(value) ? decodeMap(schema, value, place, faults) : mistyped(schema, value, place, faults);
    case 'list':
      return Array.isArray(value) ? decodeList(schema, value, place, faults) : mistyped(schema, value, place, faults);
    default:
      return decodeScalar(schema, value, place, faults);
  }
}

function decodeStruct(schema: StructSchema, value: JsonObject, place: Place, faults: Faults): JsonObject {
  for (const key of Object.keys(value)) {
    if (Object.hasOwn(schema.fields, key) || value[key] === undefined) continue;
    if (faults.unknownFields.length < DECODE_FAULTS_MAX) faults.unknownFields.push(joinPath(pathTo(place), key));
  }
  const decoded: JsonObject = {};
  for (const key of Object.keys(schema.fields)) {
    const field = schema.fields[key] as Field;
    const raw = getMember(value, key) ?? null;
    const member =
      raw === null ? undefined : decodeValue(field.schema, raw, { above: place, name: key, struct: schema }, faults);
    const kept = faults.sparse ? member : normalisedField(field, member);
    if (kept !== undefined) decoded[key] = kept;
  }
  return decoded;
}

/** The value of a field in the normalised object, undefined if the field is left out. */
function normalisedField(field: Field, member: unknown): unknown {
  if (field.presence === 'always') return member === undefined ? zeroOf(field.schema) : member;
  if (field.presence === 'optional' && isEmpty(member)) return undefined;
  return member;
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === false || value === 0 || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  return isJsonObject(value) && Object.keys(value).length === 0;
}

/** The zero value that Go writes for a field that was never set. */
function zeroOf(schema: Schema): unknown {
  switch (schema.kind) {
    case 'struct':
      return emptyStruct(schema);
    case 'string':
      return '';
    case 'boolean':
      return false;
    case 'integer':
    case 'number':
      return 0;
    case 'quantity':
      return '0';
    case 'time':
    case 'microTime':
      return null;
    default:
      // Go writes null for an unset list. It is left out here: rules then see only one form of an empty list.
      return undefined;
  }
}

function emptyStruct(schema: StructSchema): JsonObject {
  const empty: JsonObject = {};
  for (const key of Object.keys(schema.fields)) {
    const field = schema.fields[key] as Field;
    const zero = field.presence === 'always' ? zeroOf(field.schema) : undefined;
    if (zero !== undefined) empty[key] = zero;
  }
  return empty;
}

function decodeMap(schema: MapSchema, value: JsonObject, place: Place, faults: Faults): JsonObject | undefined {
  const decoded: JsonObject = {};
  const keys = Object.keys(value);
  if (keys.length > MEMBERS_MAX) return tooManyMembers(keys.length, place, faults);
  for (const key of keys) {
    const inner = { above: place, name: key };
    const raw = value[key];
    // Go reads a null map value as the empty value of its type.
    const member = raw === null ? zeroOf(schema.values) : decodeValue(schema.values, raw, inner, faults);
    if (member !== undefined) setMember(decoded, key, member);
  }
  return decoded;
}

function decodeList(
  schema: ListSchema,
  value: readonly unknown[],
  place: Place,
  faults: Faults,
): unknown[] | undefined {
  if (value.length > MEMBERS_MAX) return tooManyMembers(value.length, place, faults);
  const decoded: unknown[] = [];
  for (const [index, item] of value.entries()) {
    const inner = { above: place, name: index };
    const member = item === null ? zeroOf(schema.items) : decodeValue(schema.items, item, inner, faults);
    if (member !== undefined) decoded.push(member);
  }
  return decoded;
}

const tooManyMembers = (count: number, place: Place, faults: Faults): undefined =>
  fault(`${pathTo(place)} has ${count} members, at most ${MEMBERS_MAX} are allowed`, place, faults);

function decodeScalar(schema: ScalarSchema, value: unknown, place: Place, faults: Faults): unknown {
  switch (schema.kind) {
    case 'string':
      if (typeof value !== 'string') return mistyped(schema, value, place, faults);
      return schema.format === 'byte' ? decodeBytes(value, place, faults) : value;
    case 'boolean':
      return typeof value === 'boolean' ? value : mistyped(schema, value, place, faults);
    case 'integer':
      return isInteger(value, schema.format) ? keptInteger(value) : mistyped(schema, value, place, faults);
    case 'number':
      return Number.isFinite(value) ? value : mistyped(schema, value, place, faults);
    case 'time':
    case 'microTime':
      return decodeTime(schema, value, place, faults);
    case 'quantity':
      return decodeQuantity(schema, value, place, faults);
    case 'intOrString':
      if (typeof value === 'string') return value;
      return isInteger(value, 'int32') ? keptInteger(value) : mistyped(schema, value, place, faults);
    case 'any':
      return isFiniteJson(value) ? cloneJson(value) : mistyped(schema, Number.NaN, place, faults);
  }
}

/** Bytes in base64, in the form that Go prints. Go skips line breaks and refuses any other character. */
function decodeBytes(value: string, place: Place, faults: Faults): unknown {
  const text = value.replace(/[\r\n]/g, '');
  const valid = /^[A-Za-z0-9+/]*={0,2}/.exec(text)?.[0] ?? '';
  if (valid.length === text.length && text.length % 4 === 0) return text;
  const at = valid.length === text.length ? text.length - (text.length % 4) : valid.length;
  return fault(`illegal base64 data at input byte ${at}`, place, faults);
}

/** 2^63. JSON.parse returns this for the largest int64, because a number has 53 bits of precision. */
const INT64_BOUND = 2 ** 63;

function isInteger(value: unknown, format: string | undefined): value is number {
  if (typeof value !== 'number' || !Number.isInteger(value)) return false;
  if (format === 'int32') return value <= INT32_MAX && value >= -INT32_MAX - 1;
  return Math.abs(value) <= INT64_BOUND;
}

/** The number to store: at most INT64_MAX in absolute value, which Go can read, and 0 in place of -0. */
const keptInteger = (value: number): number => (value === 0 ? 0 : Math.min(INT64_MAX, Math.max(-INT64_MAX, value)));

/** False for a value with an infinite number: JSON.parse reads 1e400 as Infinity, which would be stored as null. */
function isFiniteJson(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  if (typeof value !== 'object' || value === null) return true;
  return Object.values(value).every(isFiniteJson);
}

const RFC3339 = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/;

/** Times are kept in UTC: whole seconds, or six digits for micro times. */
function decodeTime(schema: ScalarSchema, value: unknown, place: Place, faults: Faults): unknown {
  if (typeof value !== 'string') return mistyped(schema, value, place, faults);
  const match = RFC3339.exec(value);
  const [, seconds = '', fraction = '', zone = ''] = match ?? [];
  const epochMs = match ? Date.parse(`${seconds}${zone}`) : Number.NaN;
  if (!isCalendarTime(seconds, zone, epochMs)) {
    const layout = schema.kind === 'time' ? '2006-01-02T15:04:05Z07:00' : '2006-01-02T15:04:05.000000Z07:00';
    return fault(`parsing time ${quote(value)} as "${layout}": cannot parse ${quote(value)}`, place, faults);
  }
  const utc = zone === 'Z' ? seconds : formatTime(epochMs).slice(0, 19);
  // With its zone offset a time may be before year 0 or after year 9999 in UTC.
  if (zone !== 'Z' && Date.parse(`${utc}Z`) !== epochMs) {
    return fault(`parsing time ${quote(value)}: year outside of range [0,9999]`, place, faults);
  }
  return schema.kind === 'time' ? `${utc}Z` : `${utc}.${fraction.padEnd(6, '0').slice(0, 6)}Z`;
}

/** False for the 30th of February, for example. `Date.parse` reads it as a day in March; Go refuses it. */
function isCalendarTime(seconds: string, zone: string, epochMs: number): boolean {
  if (Number.isNaN(epochMs)) return false;
  const rolled = zone === 'Z' ? epochMs : Date.parse(`${seconds}Z`);
  return !Number.isNaN(rolled) && new Date(rolled).getUTCDate() === Number(seconds.slice(8, 10));
}

const QUANTITY = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?$/;

function decodeQuantity(schema: ScalarSchema, value: unknown, place: Place, faults: Faults): unknown {
  if (typeof value !== 'string' && typeof value !== 'number') return mistyped(schema, value, place, faults);
  const text = String(value);
  if (!QUANTITY.test(text)) {
    return fault(
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
      place,
      faults,
    );
  }
  // parseQuantity refuses texts with too many digits or too large an exponent, which would be expensive to evaluate.
  const parsed = parseQuantity(text);
  return parsed.kind === 'parsed' ? text : fault(parsed.message, place, faults);
}

function mistyped(schema: Schema, value: unknown, place: Place, faults: Faults): undefined {
  const field = goPathTo(place);
  const target = field === undefined ? 'Go value' : `Go struct field ${field}`;
  return fault(
    `json: cannot unmarshal ${goValueName(schema, value)} into ${target} of type ${goType(schema)}`,
    place,
    faults,
  );
}

function fault(message: string, place: Place, faults: Faults): undefined {
  if (faults.typeFaults.length < DECODE_FAULTS_MAX) faults.typeFaults.push({ path: pathTo(place), message });
  return undefined;
}

function goValueName(schema: Schema, value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  // Go quotes the number when the field is an integer and the number is out of range.
  if (typeof value === 'number' && schema.kind === 'integer') return `number ${value}`;
  return typeof value;
}

function goType(schema: Schema): string {
  switch (schema.kind) {
    case 'struct':
      return schema.name.split('.').slice(-2).join('.');
    case 'map':
      return schema.values.kind === 'quantity' ? 'v1.ResourceList' : `map[string]${goType(schema.values)}`;
    case 'list':
      return `[]${goType(schema.items)}`;
    case 'string':
      return schema.goType ?? 'string';
    case 'boolean':
      return 'bool';
    case 'integer':
      return schema.format ?? 'int';
    case 'number':
      return 'float64';
    case 'time':
    case 'microTime':
      return 'string';
    case 'quantity':
      return 'resource.Quantity';
    case 'intOrString':
      return 'int32';
    case 'any':
      return 'interface {}';
  }
}

function joinPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

/** The value as a Go string literal, at most 100 characters of it, for error messages. */
function quote(value: string): string {
  return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value);
}

/** Last part of a definition name: `NodeSpec`. */
export function goName(schema: StructSchema): string {
  return schema.name.slice(schema.name.lastIndexOf('.') + 1);
}
