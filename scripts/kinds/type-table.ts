/** The table of types, derived from Kubernetes' Go types. shared/kubernetes/type-table.ts describes its form. */
import { type GoField, type GoPackage, readGoTypes } from './go-source.ts';
import type { LeftOut } from './roots.ts';

/** Reads a file of the sources, such as `api/core/v1/types.go` or `apimachinery/pkg/apis/meta/v1/types.go`. */
export type ReadSource = (path: string) => string;

/** Types with a form of their own, by Go name. */
const OWN_FORMS: Readonly<Record<string, string>> = {
  'metav1.Time': 'time',
  'metav1.MicroTime': 'microTime',
  'metav1.FieldsV1': 'json',
  'runtime.RawExtension': 'json',
  'resource.Quantity': 'quantity',
  'intstr.IntOrString': 'intOrString',
  'types.UID': '$types.UID',
  ExtraValue: 'strings',
  '[]byte': 'bytes',
  string: 'string',
  bool: 'bool',
  int32: 'int32',
  int64: 'int64',
};

/** The prefix of a type from another package, as the sources import it, with the path of that package. */
const IMPORTED: Readonly<Record<string, string>> = {
  'metav1.': 'meta/v1',
  'v1.': 'core/v1',
  'corev1.': 'core/v1',
  'apiv1.': 'core/v1',
};

export interface Entry {
  /** `core/v1.Taint`. */
  readonly name: string;
  /** What the entry says before its fields. */
  readonly head: string;
  readonly fields: readonly string[];
}

/**
 * One entry per struct and enumeration that the roots contain, in order of names. @throws Error for a name not found
 */
export function typeTable(read: ReadSource, roots: readonly string[], leftOut: LeftOut): readonly Entry[] {
  const packages = new Map<string, GoPackage>();
  const packageOf = (path: string): GoPackage => {
    const known = packages.get(path) ?? readGoTypes(read(sourceOf(path)));
    packages.set(path, known);
    return known;
  };
  const entries = new Map<string, Entry>();
  const unused = new Set(Object.keys(leftOut));
  const wanted: TypeName[] = roots.map((root) => {
    const at = root.indexOf('.');
    return { path: root.slice(0, at), name: root.slice(at + 1) };
  });
  const kinds = new Set(roots);
  for (let type = wanted.shift(); type !== undefined; type = wanted.shift()) {
    const { path, name } = type;
    const key = `${path}.${name}`;
    if (entries.has(key)) continue;
    const { structs, named, constants } = packageOf(path);
    if (named.has(name)) {
      const values = (constants.get(name) ?? []).filter((value) => value !== '').sort();
      if (named.get(name)?.markers.has('enum'))
        entries.set(key, { name: key, head: `string ${values.join('|')}`, fields: [] });
      continue;
    }
    const struct = structs.get(name);
    if (struct === undefined) throw new Error(`${sourceOf(path)} has no struct ${name}`);
    const fields = struct.fields.flatMap((field) => {
      if (unused.delete(`${key}.${field.jsonName}`)) return [];
      const { code, refers } = typeOf(field.type, path, packageOf);
      if (refers !== undefined) wanted.push(refers);
      return [entryOf(field, code)];
    });
    const atomic = struct.markers.get('structType')?.includes('atomic') === true;
    const head = kinds.has(key) ? `kind ${groupOf(path, read)}` : atomic ? 'atomic' : '';
    entries.set(key, { name: key, head: head.trim(), fields });
  }
  if (unused.size > 0) throw new Error(`left out, but not in the sources: ${[...unused].join(', ')}`);
  return [...entries.values()].sort((left, right) => (left.name < right.name ? -1 : 1));
}

interface TypeName {
  readonly path: string;
  readonly name: string;
}

const folderOf = (path: string): string => (path === 'meta/v1' ? 'apimachinery/pkg/apis/meta/v1' : `api/${path}`);
const sourceOf = (path: string): string => `${folderOf(path)}/types.go`;

/** `coordination.k8s.io`; '' for the core group and for what belongs to every group. */
const groupOf = (path: string, read: ReadSource): string =>
  path === 'meta/v1' ? '' : (/^const GroupName = "([^"]*)"$/m.exec(read(`${folderOf(path)}/register.go`))?.[1] ?? '');

function entryOf(field: GoField, code: string): string {
  if (field.jsonName === '') return `${field.number} = ${code}`;
  const presence = presenceOf(field, code);
  const required = isRequired(field) ? '!' : '';
  const words = code.startsWith('*') ? listWords(field) : otherWords(field);
  return [`${field.number} ${field.jsonName}${presence}${required} ${code}`, ...words].join(' ');
}

/** What Go's encoder does with a field that is not set. */
function presenceOf(field: GoField, code: string): '' | '?' | '+' {
  // Their empty value means none, so it is absent: decode.ts has no zero for them.
  if (field.type.startsWith('*') || code === 'intOrString' || code === 'json') return '?';
  if (field.jsonOptions.includes('omitzero')) return '?';
  if (!field.jsonOptions.includes('omitempty')) return '+';
  const emptied = /^[*%]/.test(code) || ['string', 'bool', 'int32', 'int64', 'bytes', 'strings'].includes(code);
  return emptied || code.startsWith('$') ? '' : '+';
}

/** Source: k8s.io/kube-openapi pkg/generators/openapi.go. A marker overrides the tag. */
function isRequired({ markers, jsonOptions }: GoField): boolean {
  if (markers.has('required')) return true;
  if (markers.has('optional')) return false;
  return !jsonOptions.some((option) => option === 'omitempty' || option === 'omitzero');
}

function listWords({ markers, patchStrategy, patchMergeKey }: GoField): string[] {
  const [listType] = markers.get('listType') ?? [];
  const keys = (markers.get('listMapKey') ?? []).join('/');
  const retains = patchStrategy?.includes('retainKeys') === true;
  const merges = patchStrategy?.split(',').includes('merge') === true;
  return [
    ...(listType === 'set' ? ['set'] : listType === 'map' ? [`map(${keys})`] : []),
    ...(merges ? [`${retains ? 'retain' : 'merge'}${patchMergeKey === undefined ? '' : `(${patchMergeKey})`}`] : []),
  ];
}

function otherWords({ markers, patchStrategy }: GoField): string[] {
  const [mapType] = markers.get('mapType') ?? [];
  const [structType] = markers.get('structType') ?? [];
  const [text] = (markers.get('default') ?? []).map((value) => /^"([^"]*)"$/.exec(value)?.[1]);
  return [
    ...(mapType === 'atomic' ? ['atomic'] : []),
    ...(structType === 'granular' ? ['granular'] : []),
    ...(patchStrategy === 'replace' || patchStrategy === 'retainKeys' ? [`patch(${patchStrategy})`] : []),
    ...(text === undefined || text === '' ? [] : [`default(${text})`]),
  ];
}

interface FieldType {
  readonly code: string;
  readonly refers?: TypeName;
}

function typeOf(goType: string, path: string, packageOf: (path: string) => GoPackage): FieldType {
  const type = goType.replace(/^\*/, '');
  const own = OWN_FORMS[type] ?? (path === 'meta/v1' ? OWN_FORMS[`metav1.${type}`] : undefined);
  if (own !== undefined) return { code: own };
  const list = /^\[\](.+)$/.exec(type)?.[1];
  if (list !== undefined) return prefixed('*', typeOf(list, path, packageOf));
  const map = /^map\[[\w.]+\](.+)$/.exec(type)?.[1];
  if (map !== undefined) return prefixed('%', typeOf(map, path, packageOf));
  const prefix = Object.keys(IMPORTED).find((each) => type.startsWith(each)) ?? '';
  const home = IMPORTED[prefix] ?? path;
  const name = type.slice(prefix.length);
  const refers = { path: home, name };
  const underlying = packageOf(home).named.get(name)?.underlying;
  const code = home === path ? name : `${home}.${name}`;
  if (underlying === 'string') return { code: `$${code}`, refers };
  return underlying === undefined ? { code, refers } : typeOf(underlying, home, packageOf);
}

const prefixed = (prefix: string, { code, ...rest }: FieldType): FieldType => ({ code: `${prefix}${code}`, ...rest });
