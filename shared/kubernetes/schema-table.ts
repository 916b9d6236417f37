/** Schemas from the table of types. */
import { defined } from '../defined.ts';
import {
  type Field,
  type ListSchema,
  type ScalarKind,
  type ScalarSchema,
  type Schema,
  type StructSchema,
  typeMetaFields,
} from './schema.ts';
import { type TableField, type TableScalar, type TableType, type TypeTable, tableGroupVersion } from './type-table.ts';

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
