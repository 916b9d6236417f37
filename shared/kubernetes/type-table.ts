/**
 * Reads the table of Kubernetes' types, from which schemas and the decoder of protobuf bodies are made. An entry is
 * `NAME: HEAD, FIELD, FIELD`. Lines after its first begin with a blank.
 *
 * - The name of a type is `<first label of the group>/<version>.<Go name>`; the core group is `core`.
 * - The head is `kind GROUP`, `atomic` (server-side apply owns the struct as one value), `string VALUE|VALUE` for an
 *   enumeration, or absent. A message `union` stands for the last of its fields that is present. A message `omits` has
 *   empty members in a protobuf body, which JSON has not.
 * - A field is `NUMBER NAME TYPE WORDS`, with the number of the protobuf message and the name in JSON. `?` after the
 *   name is presence `pointer`, `+` presence `always`, `!` required in OpenAPI. The name `=` is a struct that is
 *   inlined.
 * - A type is a scalar, or the name of a type, of the same group version unless it names another one. `$` before a name
 *   is a text with a Go type of its own. `*` is a list, `%` a map with text keys.
 * - Words: `set` and `map(KEY/KEY)` are list types; `merge`, `merge(KEY)` and `retain(KEY)` patch strategies of lists,
 *   `patch(replace)` and `patch(retainKeys)` of structs; `atomic` of a map, `granular` of an atomic struct;
 *   `default(TEXT)`.
 *
 * Entries are parsed when they are first used. A process parses only what its clients send.
 */

import { defined } from '../defined.ts';
import {
  type Field,
  type ListSchema,
  type Presence,
  type ScalarKind,
  type ScalarSchema,
  type Schema,
  type StructSchema,
  typeMetaFields,
} from './schema.ts';

const SCALARS = [
  'string',
  'bool',
  'int32',
  'int64',
  'double',
  /** Text in base64. */
  'bytes',
  /** To seconds or to microseconds. */
  'time',
  'microTime',
  'quantity',
  'intOrString',
  /** Any JSON value; in protobuf a message around its text. */
  'json',
  /** A list of texts; in protobuf a message around it. */
  'strings',
] as const;

export type TableScalar = (typeof SCALARS)[number];

export type TableType =
  | { readonly kind: 'scalar'; readonly scalar: TableScalar }
  /** A text with a Go type of its own: `core/v1.TaintEffect`. */
  | { readonly kind: 'named'; readonly name: string }
  | { readonly kind: 'struct'; readonly name: string };

export interface TableField {
  readonly number: number;
  /** Name in JSON; '' for a struct that is inlined. */
  readonly name: string;
  readonly presence: Presence;
  readonly required: boolean;
  readonly shape: 'single' | 'list' | 'map';
  readonly type: TableType;
  /** `map(ip)` is `ip` of `map`, `set` is '' of `set`. */
  readonly words: ReadonlyMap<string, string>;
}

export interface TableEntry {
  /** `atomic`, `kind`, `string`, `union`, `omits` or ''. */
  readonly head: string;
  /** The group of a kind, or the values of an enumeration. */
  readonly of: string;
  readonly fields: readonly TableField[];
}

export interface TypeTable {
  readonly find: (name: string) => TableEntry | undefined;
}

export function typeTable(text: string): TypeTable {
  const parsed = new Map<string, TableEntry>();
  return {
    find(name) {
      const known = parsed.get(name);
      if (known !== undefined) return known;
      const start = text.indexOf(`\n${name}:`);
      if (start < 0) return undefined;
      const rest = text.slice(start + name.length + 2);
      const entry = entryOf(rest.slice(0, rest.search(/\n(?! )/)), name.slice(0, name.indexOf('.')));
      parsed.set(name, entry);
      return entry;
    },
  };
}

/** `core/v1` for `v1`, `rbac/v1` for `rbac.authorization.k8s.io/v1`: how the table writes a group version. */
export function tableGroupVersion(apiVersion: string): string {
  const [group = '', version] = apiVersion.split('/');
  return version === undefined ? `core/${group}` : `${group.split('.')[0]}/${version}`;
}

function entryOf(text: string, home: string): TableEntry {
  const parts = text.split(',').map((part) => part.trim());
  const isHead = !/^\d/.test(parts[0] ?? '');
  const [, head = '', rest = ''] = isHead ? (/^(\w*) ?(.*)$/s.exec(parts[0] ?? '') ?? []) : [];
  return {
    head,
    of: rest,
    fields: (isHead ? parts.slice(1) : parts)
      .filter((part) => part !== '')
      .map((part) => fieldOf(part.split(/\s+/), home)),
  };
}

function fieldOf([number = '', given = '', code = '', ...words]: readonly string[], home: string): TableField {
  const [, name = '', presence = '', required = ''] = /^(.*?)([?+]?)(!?)$/.exec(given) ?? [];
  const shape = code.startsWith('*') ? 'list' : code.startsWith('%') ? 'map' : 'single';
  return {
    number: Number(number),
    name: name === '=' ? '' : name,
    presence: presence === '?' ? 'pointer' : presence === '+' ? 'always' : 'optional',
    required: required === '!',
    shape,
    type: typeOf(shape === 'single' ? code : code.slice(1), home),
    words: new Map(words.map((word) => wordOf(word))),
  };
}

function typeOf(code: string, home: string): TableType {
  const isNamed = code.startsWith('$');
  const name = isNamed ? code.slice(1) : code;
  if (isScalar(name)) return { kind: 'scalar', scalar: name };
  return { kind: isNamed ? 'named' : 'struct', name: name.includes('.') ? name : `${home}.${name}` };
}

function wordOf(word: string): [string, string] {
  const [, name = word, value = ''] = /^(\w+)\((.*)\)$/.exec(word) ?? [];
  return [name, value];
}

const isScalar = (type: string): type is TableScalar => (SCALARS as readonly string[]).includes(type);

export interface SchemaTable {
  /** Undefined for a kind that the table lacks. */
  readonly kind: (apiVersion: string, kind: string) => StructSchema | undefined;
  /** By the name of a type, `meta/v1.ObjectMeta`. @throws Error for a name that the table lacks, a fault of ours */
  readonly struct: (name: string) => StructSchema;
}

/** A schema is made when it is first asked for. It has no texts: kinds/descriptions has those. */
export function schemaTable(table: TypeTable): SchemaTable {
  const made = new Map<string, StructSchema>();

  function structOf(name: string): StructSchema {
    const known = made.get(name);
    if (known !== undefined) return known;
    const entry = table.find(name);
    if (entry === undefined) throw new Error(`the table has no type ${name}`);
    const [groupVersion = '', kind = ''] = splitAt(name, name.indexOf('.'));
    const { head, of: group } = entry;
    const schema: StructSchema = {
      kind: 'struct',
      name: `${definitionPrefix(groupVersion)}.${kind}`,
      description: '',
      fields: { ...(head === 'kind' ? typeMetaFields() : {}), ...Object.fromEntries(fieldsOf(entry.fields)) },
      atomic: head === 'atomic',
      gvks: head === 'kind' ? [{ group, version: groupVersion.slice(groupVersion.indexOf('/') + 1), kind }] : [],
    };
    made.set(name, schema);
    return schema;
  }

  const fieldsOf = (fields: readonly TableField[]): [string, Field][] =>
    fields.flatMap((field): [string, Field][] => {
      const { name, type, presence, required, words } = field;
      if (name === '') return type.kind === 'struct' ? fieldsOf(table.find(type.name)?.fields ?? []) : [];
      const defaultText = words.get('default');
      const schema = shapedSchema(field);
      return [[name, { schema, description: '', presence, required, ...defined({ defaultText }) }]];
    });

  function shapedSchema({ shape, type, words }: TableField): Schema {
    const item = itemSchema(type);
    if (shape === 'map') return { kind: 'map', values: item, atomic: words.has('atomic') };
    if (shape === 'list') return listOf(item, words);
    if (item.kind !== 'struct') return item;
    const patch = words.get('patch');
    if (words.has('granular')) return { ...item, atomic: false };
    return patch === 'replace' || patch === 'retainKeys' ? { ...item, patchStrategy: patch } : item;
  }

  function itemSchema(type: TableType): Schema {
    if (type.kind === 'struct') return structOf(type.name);
    if (type.kind === 'scalar') return SCALAR_SCHEMAS[type.scalar];
    const goType = type.name.slice(type.name.indexOf('/') + 1);
    const values = table.find(type.name)?.of;
    return { kind: 'string', goType, ...(values === undefined ? {} : { values: values.split(/\|\s*/) }) };
  }

  return {
    struct: structOf,
    kind(apiVersion, kind) {
      if (!/^\w+$/.test(kind)) return undefined;
      // Kinds of every group, such as Status, are in the core group for clients.
      const names = [`${tableGroupVersion(apiVersion)}.${kind}`, ...(apiVersion === 'v1' ? [`meta/v1.${kind}`] : [])];
      const name = names.find((each) => table.find(each)?.head === 'kind');
      const schema = name === undefined ? undefined : structOf(name);
      return schema?.gvks.some(({ group, version }) => apiVersion === (group === '' ? version : `${group}/${version}`))
        ? schema
        : undefined;
    },
  };
}

const splitAt = (text: string, at: number): [string, string] => [text.slice(0, at), text.slice(at + 1)];

/** `io.k8s.api.core.v1` for `core/v1`. */
const definitionPrefix = (groupVersion: string): string =>
  groupVersion === 'meta/v1' ? 'io.k8s.apimachinery.pkg.apis.meta.v1' : `io.k8s.api.${groupVersion.replace('/', '.')}`;

function listOf(items: Schema, words: TableField['words']): ListSchema {
  const mapKeys = words.get('map');
  const retained = words.get('retain');
  const mergeKey = retained ?? words.get('merge');
  return {
    kind: 'list',
    items,
    listType: mapKeys !== undefined ? 'map' : words.has('set') ? 'set' : 'atomic',
    mapKeys: mapKeys?.split('/') ?? [],
    patchStrategy: retained !== undefined ? 'merge,retainKeys' : mergeKey !== undefined ? 'merge' : 'replace',
    mergeKey: mergeKey === '' ? undefined : mergeKey,
  };
}

const scalar = (kind: ScalarKind, format?: string): ScalarSchema => ({
  kind,
  ...(format === undefined ? {} : { format }),
});

const SCALAR_SCHEMAS: Readonly<Record<TableScalar, Schema>> = {
  string: scalar('string'),
  bool: scalar('boolean'),
  int32: scalar('integer', 'int32'),
  int64: scalar('integer', 'int64'),
  double: scalar('number', 'double'),
  bytes: scalar('string', 'byte'),
  time: scalar('time', 'date-time'),
  microTime: scalar('microTime', 'date-time'),
  quantity: scalar('quantity'),
  intOrString: scalar('intOrString'),
  json: scalar('any'),
  strings: listOf(scalar('string'), new Map()),
};
