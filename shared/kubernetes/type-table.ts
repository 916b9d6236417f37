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
import type { Presence } from './schema.ts';

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
