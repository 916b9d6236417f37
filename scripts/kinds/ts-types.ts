/** TypeScript types of the kinds that code reads, from the table of types. */
import type { TableEntry, TableField, TableScalar, TypeTable } from '../../shared/kubernetes/type-table.ts';
import { CLOSED, CONSTANT, NULLABLE, PARTIAL, UNMARKED } from './roots.ts';

const SCALARS: Readonly<Record<TableScalar, string>> = {
  string: 'string',
  bool: 'boolean',
  int32: 'number',
  int64: 'number',
  double: 'number',
  bytes: 'string',
  time: 'string',
  microTime: 'string',
  quantity: 'string',
  intOrString: 'IntOrString',
  json: 'unknown',
  strings: 'string[]',
};

/**
 * The type of a kind is `KubePod`, any other bears its Go name. An alias is assignable to a record of unknown members.
 */
export function tsTypes(table: TypeTable, kinds: readonly string[]): string {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const texts = new Map<string, string>();
  const wanted = [...kinds];
  const nameOf = (type: string): string => {
    const known = names.get(type);
    if (known !== undefined) return known;
    const [groupVersion = '', own = ''] = [type.slice(0, type.indexOf('.')), type.slice(type.indexOf('.') + 1)];
    const named = table.find(type)?.head === 'kind' ? `Kube${own}` : own;
    const group = groupVersion.slice(0, groupVersion.indexOf('/'));
    const name = taken.has(named) ? `${group.slice(0, 1).toUpperCase()}${group.slice(1)}${named}` : named;
    taken.add(name);
    names.set(type, name);
    wanted.push(type);
    return name;
  };
  for (let type = wanted.shift(); type !== undefined; type = wanted.shift()) {
    const name = nameOf(type);
    if (!texts.has(name)) texts.set(name, declarationOf(table, type, name, nameOf));
  }
  return [...texts.keys()]
    .sort()
    .map((name) => texts.get(name))
    .join('\n');
}

function declarationOf(table: TypeTable, type: string, name: string, nameOf: (type: string) => string): string {
  const entry = table.find(type);
  const values = UNMARKED[type] ?? (entry?.head === 'string' ? entry.of.split(/\|\s*/) : undefined);
  if (values !== undefined) return `export type ${name} = ${values.map((value) => `'${value}'`).join(' | ')};\n`;
  if (entry === undefined) throw new Error(`the table has no type ${type}`);
  const isKind = entry.head === 'kind';
  const members = entry.fields
    .filter((field) => field.name !== '' && !(isKind && field.name === 'metadata'))
    .map((field) => `  ${field.name}${isOptional(type, entry, field) ? '?' : ''}: ${typeOf(type, field, nameOf)};\n`);
  const inlined = entry.fields.flatMap((field) =>
    field.name === '' && field.type.kind === 'struct' ? [nameOf(field.type.name)] : [],
  );
  if (isKind)
    return `export interface ${name} extends ${['KubeObject', ...inlined].join(', ')} {\n${members.join('')}}\n`;
  return `export type ${name} = ${inlined.map((each) => `${each} & `).join('')}{\n${members.join('')}};\n`;
}

function typeOf(owner: string, { name, type, shape, presence }: TableField, nameOf: (type: string) => string): string {
  if (type.kind === 'scalar') {
    const isUnset = (type.scalar === 'time' || type.scalar === 'microTime') && presence === 'always';
    const item = SCALARS[type.scalar];
    const isNullable = (isUnset && shape === 'single') || NULLABLE.has(`${owner}.${name}`);
    const text = shaped(isNullable ? `${item} | null` : item, shape);
    return shape === 'list' && CONSTANT.has(owner) ? `readonly ${text}` : text;
  }
  const isText = type.kind === 'named' && !CLOSED.has(type.name) && UNMARKED[type.name] === undefined;
  return shaped(isText ? 'string' : nameOf(type.name), shape);
}

const shaped = (item: string, shape: TableField['shape']): string =>
  shape === 'list' ? `${item}[]` : shape === 'map' ? `Record<string, ${item}>` : item;

/**
 * What upstream requires is there, but for what is read before it is complete: kinds, what is wanted, what was
 * observed, and PARTIAL types.
 */
const isOptional = (type: string, entry: TableEntry, field: TableField): boolean =>
  !field.required || entry.head === 'kind' || /(Spec|Status|Template)$/.test(type) || PARTIAL.has(type);
