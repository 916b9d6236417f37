/** The table of protobuf messages that the decoder uses, derived from Kubernetes' Go types. */
import { type GoField, type GoPackage, readGoTypes } from './go-source.ts';
import type { Roots } from './roots.ts';

/** Reads a file of the sources, such as `api/core/v1/types.go` or `apimachinery/pkg/apis/meta/v1/types.go`. */
export type ReadSource = (path: string) => string;

/** Types with an encoding of their own, by Go name. The codes are those of shared/kubernetes/wire/protobuf-table.ts. */
const OWN_ENCODINGS: Readonly<Record<string, string>> = {
  'metav1.Time': 'time',
  'metav1.MicroTime': 'microTime',
  'metav1.FieldsV1': 'json',
  'runtime.RawExtension': 'json',
  'resource.Quantity': 'quantity',
  'intstr.IntOrString': 'intOrString',
  'types.UID': 'string',
  ExtraValue: 'strings',
  '[]byte': 'bytes',
  string: 'string',
  bool: 'bool',
  int32: 'int',
  int64: 'int',
  byte: 'int',
};

/** The prefix of a type from another package, as the sources import it, with the path of that package. */
const IMPORTED: Readonly<Record<string, string>> = {
  'metav1.': 'meta/v1',
  'v1.': 'core/v1',
  'corev1.': 'core/v1',
  'apiv1.': 'core/v1',
};

/** One line of the table per message: its name, and its fields as `number name type`. */
export function protobufMessages(read: ReadSource, roots: Roots): ReadonlyMap<string, readonly string[]> {
  const packages = new Map<string, GoPackage>();
  const packageOf = (path: string): GoPackage => {
    const known = packages.get(path) ?? readGoTypes(read(sourceOf(path)));
    packages.set(path, known);
    return known;
  };
  const messages = new Map<string, readonly string[]>();
  const wanted = Object.entries(roots).flatMap(([path, lines]) =>
    lines
      .join(' ')
      .split(' ')
      .map((name) => ({ path, name })),
  );
  for (let message = wanted.shift(); message !== undefined; message = wanted.shift()) {
    const { path, name } = message;
    const key = `${path}.${name}`;
    if (messages.has(key)) continue;
    const fields = packageOf(path).structs.get(name);
    if (fields === undefined) throw new Error(`${sourceOf(path)} has no struct ${name}`);
    const entries = fields.map((field) => {
      const { code, message: refers } = typeOf(field, path, packageOf);
      if (refers !== undefined) wanted.push(refers);
      return `${field.number} ${field.jsonName === '' ? '=' : field.jsonName} ${code}`;
    });
    messages.set(key, entries);
  }
  return new Map([...messages].sort(([left], [right]) => (left < right ? -1 : 1)));
}

const sourceOf = (path: string): string =>
  path === 'meta/v1' ? 'apimachinery/pkg/apis/meta/v1/types.go' : `api/${path}/types.go`;

interface WireType {
  readonly code: string;
  readonly message?: { readonly path: string; readonly name: string };
}

function typeOf(field: GoField, path: string, packageOf: (path: string) => GoPackage): WireType {
  const type = field.type.replace(/^\*/, '');
  const own = OWN_ENCODINGS[type] ?? (path === 'meta/v1' ? OWN_ENCODINGS[`metav1.${type}`] : undefined);
  if (own !== undefined) return { code: own };
  const list = /^\[\](.+)$/.exec(type)?.[1];
  if (list !== undefined) return prefixed('*', typeOf({ ...field, type: list }, path, packageOf));
  const map = /^map\[[\w.]+\](.+)$/.exec(type)?.[1];
  if (map !== undefined) return prefixed('%', typeOf({ ...field, type: map }, path, packageOf));
  const prefix = Object.keys(IMPORTED).find((each) => type.startsWith(each)) ?? '';
  const home = IMPORTED[prefix] ?? path;
  const name = type.slice(prefix.length);
  const underlying = packageOf(home).named.get(name);
  if (underlying !== undefined) return typeOf({ ...field, type: underlying }, home, packageOf);
  return { code: home === path ? name : `${home}.${name}`, message: { path: home, name } };
}

const prefixed = (prefix: string, { code, ...rest }: WireType): WireType => ({ code: `${prefix}${code}`, ...rest });
