/**
 * What rules of a custom kind see: the static type of each node of its schema, and a value as one of its node. Members
 * without a schema are not visible. Pure.
 *
 * Source: k8s.io/apiserver pkg/cel/common/{schemas,valuesunstructured}.go, pkg/cel/escaping.go.
 */

import type { Fields } from '../../kubernetes/cel/environment.ts';
import { parseDuration, parseTimestamp } from '../../kubernetes/cel/times.ts';
import {
  BOOL,
  BYTES,
  type CelType,
  DOUBLE,
  DYN,
  INT,
  listOf,
  mapOf,
  objectType,
  STRING,
} from '../../kubernetes/cel/types.ts';
import {
  CelDuration,
  CelFailure,
  CelMap,
  CelOpaque,
  type CelValue,
  celFromJson,
  comparisons,
  type KeyOfItem,
  keyedList,
} from '../../kubernetes/cel/values.ts';
import { isJsonObject, type JsonObject, jsonEqual } from '../../kubernetes/json.ts';
import { type SchemaNode, TYPE_AND_METADATA } from './schema-node.ts';

const RESERVED = new Set(
  (
    'true false null in as break const continue else for function if import let loop package namespace return ' +
    'var void while'
  ).split(' '),
);
const ESCAPES: Readonly<Record<string, string>> = {
  __: '__underscores__',
  '.': '__dot__',
  '-': '__dash__',
  '/': '__slash__',
};

/** The name of a member in an expression. undefined: it has none, and no expression sees the member. */
export function escapedName(name: string): string | undefined {
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined;
  return RESERVED.has(name) ? `__${name}__` : name.replaceAll(/__|[-./]/g, (found) => ESCAPES[found] as string);
}

/** Texts with these formats have a type of their own. */
const TEXT_TYPES = new Map<string, CelType>([
  ['byte', BYTES],
  ['duration', objectType('google.protobuf.Duration')],
  ['date', objectType('google.protobuf.Timestamp')],
  ['date-time', objectType('google.protobuf.Timestamp')],
]);

export interface RuleTypes {
  /** undefined: the node has no type, and rules cannot read it. */
  readonly typeOf: (node: SchemaNode) => CelType | undefined;
  readonly fieldsOf: (typeName: string) => Fields | undefined;
}

/** The types of all nodes below the root of a custom resource. Objects of different nodes have different types. */
export function ruleTypes(root: SchemaNode): RuleTypes {
  const types = new Map<SchemaNode, CelType>();
  const fields = new Map<string, ReadonlyMap<string, CelType>>();

  function declareObject(name: string, members: ReadonlyMap<string, CelType>): CelType {
    fields.set(name, members);
    return objectType(name);
  }

  function declare(node: SchemaNode, name: string, isResource: boolean): CelType | undefined {
    const items = node.items && declare(node.items, `${name}.@idx`, node.items.isEmbedded);
    const { additional } = node;
    const values =
      typeof additional === 'object' ? declare(additional, `${name}.@elem`, additional.isEmbedded) : undefined;
    const members = new Map<string, CelType>();
    for (const [key, property] of node.properties) {
      const type = declare(property, `${name}.${key}`, property.isEmbedded);
      const escaped = escapedName(key);
      if (type !== undefined && escaped !== undefined) members.set(escaped, type);
    }
    if (isResource) {
      members.set('apiVersion', STRING).set('kind', STRING);
      const names = new Map([
        ['name', STRING],
        ['generateName', STRING],
      ]);
      members.set('metadata', declareObject(`${name}.metadata`, names));
    }
    const type = typeOfNode(node, { items, values, object: () => declareObject(name, members) });
    if (type !== undefined) types.set(node, type);
    return type;
  }

  declare(root, 'selfType', true);
  return {
    typeOf: (node) => types.get(node),
    fieldsOf(name) {
      const members = fields.get(name);
      return members && { typeOf: (field) => members.get(field) };
    },
  };
}

interface Parts {
  readonly items: CelType | undefined;
  readonly values: CelType | undefined;
  readonly object: () => CelType;
}

function typeOfNode(node: SchemaNode, { items, values, object }: Parts): CelType | undefined {
  if (node.schema['x-kubernetes-int-or-string'] === true) return DYN;
  switch (node.schema.type) {
    case 'array':
      return items && listOf(items);
    case 'object':
      if (typeof node.additional !== 'object') return object();
      return values && mapOf(STRING, values);
    case 'string':
      return TEXT_TYPES.get(node.schema.format ?? '') ?? STRING;
    case 'boolean':
      return BOOL;
    case 'number':
      return DOUBLE;
    case 'integer':
      return INT;
    default:
      return undefined;
  }
}

/** Makes each value of one validation once, although rules of several nodes read it. */
export class RuleValues {
  readonly #types: RuleTypes;
  readonly #known = new Map<SchemaNode, Map<unknown, CelValue>>();

  constructor(types: RuleTypes) {
    this.#types = types;
  }

  /** A failure where the value does not have the type of the node: an update may keep one that is not valid. */
  of(node: SchemaNode, json: unknown, isResource: boolean): CelValue {
    if (json === null) return node.schema.nullable === true ? null : new CelFailure(NULL_VALUE);
    if (node.schema['x-kubernetes-int-or-string'] === true) return celFromJson(json);
    if (typeof json !== 'object') return scalar(node, json);
    const known = this.#known.get(node) ?? new Map<unknown, CelValue>();
    this.#known.set(node, known);
    const made = known.get(json) ?? this.#whole(node, json, isResource);
    known.set(json, made);
    return made;
  }

  #whole(node: SchemaNode, json: object | null, isResource: boolean): CelValue {
    const { items, additional } = node;
    if (Array.isArray(json) && items !== undefined && node.schema.type === 'array') {
      const values = json.map((item: unknown) => this.of(items, item, items.isEmbedded));
      const keyOf = itemKeys(node);
      return keyOf === undefined ? values : keyedList(values, keyOf);
    }
    if (!isJsonObject(json) || node.schema.type !== 'object') return mismatch(node);
    const values = new Map<string, CelValue>();
    if (typeof additional === 'object') {
      for (const key of Object.keys(json)) values.set(key, this.of(additional, json[key], additional.isEmbedded));
      return new CelMap(values);
    }
    const hidden: [string, unknown][] = [];
    for (const [key, member] of Object.entries(json)) {
      const property = node.properties.get(key);
      const escaped = escapedName(key);
      if (member === undefined || (isResource && TYPE_AND_METADATA.has(key))) continue;
      if (property === undefined || escaped === undefined || this.#types.typeOf(property) === undefined) {
        hidden.push([key, member]);
      } else values.set(escaped, this.of(property, member, property.isEmbedded));
    }
    if (isResource) addTypeAndNames(values, json);
    return new CelMap(values, undefined, hidden.length === 0 ? undefined : new HiddenMembers(hidden));
  }
}

const scalarKey = (value: CelValue | undefined): string => `${typeof value} ${value}`;

/** What names the items of a set of scalars, and of a list with keys. undefined: the order counts. */
function itemKeys({ schema, items }: SchemaNode): KeyOfItem | undefined {
  const { 'x-kubernetes-list-type': listType, 'x-kubernetes-list-map-keys': keys = [] } = schema;
  if (listType === 'map') {
    const names = keys.map((key) => escapedName(key) ?? key);
    return (item) =>
      JSON.stringify(names.map((name) => scalarKey(item instanceof CelMap ? item.get(name) : undefined)));
  }
  const { type = '', format = '' } = items?.schema ?? {};
  const isScalar = ['string', 'integer', 'number', 'boolean'].includes(type) && !TEXT_TYPES.has(format);
  return listType === 'set' && isScalar ? scalarKey : undefined;
}

/** Members without a schema: a rule that compares the whole value with its former one sees that they changed. */
class HiddenMembers extends CelOpaque {
  readonly typeName = 'unknown';
  readonly #json: JsonObject;
  #text: string | undefined;
  constructor(members: readonly [string, unknown][]) {
    super();
    this.#json = Object.fromEntries(members);
  }
  equals(other: CelOpaque): boolean {
    this.#text ??= JSON.stringify(this.#json);
    // The cost of the comparison counts them too.
    comparisons.count += this.#text.length;
    return other instanceof HiddenMembers && jsonEqual(this.#json, other.#json);
  }
}

/** Every resource has them, whatever its schema says. */
function addTypeAndNames(values: Map<string, CelValue>, { apiVersion, kind, metadata }: JsonObject): void {
  if (typeof apiVersion === 'string') values.set('apiVersion', apiVersion);
  if (typeof kind === 'string') values.set('kind', kind);
  if (!isJsonObject(metadata)) return;
  const names = ['name', 'generateName'].flatMap((key): [string, CelValue][] => {
    const name = metadata[key];
    return typeof name === 'string' ? [[key, name]] : [];
  });
  values.set('metadata', new CelMap(new Map(names)));
}

const NULL_VALUE = 'invalid data, got null for schema with nullable=false';

const mismatch = ({ schema }: SchemaNode): CelFailure =>
  new CelFailure(`invalid data, expected ${schema.type ?? 'no value'}`);

function scalar(node: SchemaNode, json: unknown): CelValue {
  switch (node.schema.type) {
    case 'string':
      return typeof json === 'string' ? textValue(node, json) : mismatch(node);
    case 'boolean':
      return typeof json === 'boolean' ? json : mismatch(node);
    case 'number':
      return typeof json === 'number' ? json : mismatch(node);
    case 'integer':
      return Number.isInteger(json) ? BigInt(json as number) : mismatch(node);
    default:
      return mismatch(node);
  }
}

function textValue({ schema: { format = '' } }: SchemaNode, text: string): CelValue {
  switch (format) {
    case 'byte':
      return new Uint8Array(Buffer.from(text, 'base64'));
    case 'duration':
      return parseDuration(text) ?? wordedDuration(text) ?? new CelFailure(`invalid duration ${text}`);
    case 'date':
      return parseTimestamp(`${text}T00:00:00Z`) ?? new CelFailure(`invalid date formatted string ${text}`);
    case 'date-time':
      return parseTimestamp(text.replace(' ', 'T')) ?? new CelFailure(`invalid date-time formatted string ${text}`);
    default:
      return text;
  }
}

const WORD_NANOS = new Map([
  ['nanosecond', 1],
  ['microsecond', 1e3],
  ['millisecond', 1e6],
  ['second', 1e9],
  ['minute', 60e9],
  ['hour', 3_600e9],
  ['day', 86_400e9],
  ['week', 604_800e9],
]);
const LETTER_UNITS: Readonly<Record<string, string>> = {
  ns: 'nanosecond',
  us: 'microsecond',
  ms: 'millisecond',
  s: 'second',
  m: 'minute',
  h: 'hour',
  d: 'day',
  w: 'week',
};

/** A duration in words, such as `3 weeks 2 d`, which Go's format does not have (kube-openapi, strfmt/duration.go). */
function wordedDuration(text: string): CelDuration | undefined {
  let nanos = 0;
  for (const [, amount = '', unit = ''] of text
    .toLowerCase()
    .matchAll(/(\d{1,19}(?:\.\d{1,19})?) ?([a-z\u00b5\u03bc]+)/g)) {
    const letters = unit.replace(/[\u00b5\u03bc]/, 'u');
    const size = WORD_NANOS.get(LETTER_UNITS[letters] ?? letters.replace(/s$/, ''));
    if (size === undefined) return undefined;
    nanos += Number(amount) * size;
  }
  return new CelDuration(BigInt(Math.round(text.startsWith('-') ? -nanos : nanos)));
}
