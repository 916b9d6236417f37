/**
 * Reads the table of protobuf messages. An entry is `NAME: FIELD, FIELD`, with a field as `NUMBER NAME TYPE`.
 *
 * - The name of a message is `<first label of the group>/<version>.<kind>`; the core group is `core`.
 * - The name `=` is a message that is inlined into the JSON object around it.
 * - The type is one of ProtoScalar or a message, of the same group version unless it names another one. `*` before it
 *   is a list, `%` a map with string keys.
 *
 * Entries are parsed when they are first used. A process parses only what its clients send.
 */

const SCALARS = [
  'string',
  'bool',
  'int',
  /** Text in base64. */
  'bytes',
  /** Timestamp, to seconds or to microseconds. */
  'time',
  'microTime',
  'quantity',
  'intOrString',
  /** A message around JSON text. */
  'json',
  /** A message around a list of strings. */
  'strings',
] as const;

export type ProtoScalar = (typeof SCALARS)[number];

export interface ProtoField {
  /** Name in JSON; '' for a message that is inlined. */
  readonly name: string;
  /** A scalar, or the name of a message. */
  readonly type: { readonly scalar: ProtoScalar } | { readonly message: string };
  readonly shape: 'single' | 'list' | 'map';
}

/** Fields by number. */
export type ProtoMessage = ReadonlyMap<number, ProtoField>;

export interface ProtobufTable {
  /** The message of a kind, by the apiVersion and kind of a request. Undefined for a kind that is read as JSON only. */
  readonly messageOfKind: (apiVersion: string, kind: string) => ProtoMessage | undefined;
  /** @throws Error for a name that the table refers to and does not have, a fault of ours */
  readonly messageNamed: (name: string) => ProtoMessage;
}

export function protobufTable(messages: string): ProtobufTable {
  const parsed = new Map<string, ProtoMessage>();
  function find(name: string): ProtoMessage | undefined {
    const known = parsed.get(name);
    if (known !== undefined) return known;
    const start = messages.indexOf(`\n${name}:`);
    if (start < 0) return undefined;
    const rest = messages.slice(start + name.length + 2);
    const entry = rest.slice(0, rest.search(/\n(?! )/));
    const fields = entry.split(',').filter((text) => text.trim() !== '');
    const message = new Map(fields.map((text) => fieldOf(text.trim(), name.slice(0, name.indexOf('.')))));
    parsed.set(name, message);
    return message;
  }
  return {
    messageOfKind(apiVersion, kind) {
      // Clients send DeleteOptions with the apiVersion of the deleted object.
      if (kind === 'DeleteOptions') return find('meta/v1.DeleteOptions');
      if (!/^\w+$/.test(kind)) return undefined;
      const [group = '', version] = apiVersion.split('/');
      return find(version === undefined ? `core/${group}.${kind}` : `${group.split('.')[0]}/${version}.${kind}`);
    },
    messageNamed(name) {
      const message = find(name);
      if (message === undefined) throw new Error(`the protobuf table has no message ${name}`);
      return message;
    },
  };
}

function fieldOf(text: string, home: string): [number, ProtoField] {
  const [number = '', name = '', code = ''] = text.split(/\s+/);
  const shape = code.startsWith('*') ? 'list' : code.startsWith('%') ? 'map' : 'single';
  const type = shape === 'single' ? code : code.slice(1);
  return [
    Number(number),
    {
      name: name === '=' ? '' : name,
      type: isScalar(type) ? { scalar: type } : { message: type.includes('/') ? type : `${home}.${type}` },
      shape,
    },
  ];
}

const isScalar = (type: string): type is ProtoScalar => (SCALARS as readonly string[]).includes(type);
