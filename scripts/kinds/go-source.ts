/** Reads Kubernetes' Go types: names, struct tags and `+` markers. Prose of the comments is not read. */

export interface GoField {
  readonly number: number;
  /** Name in JSON; '' for a message that is inlined into the JSON object. */
  readonly jsonName: string;
  /** The Go type as in the source: `*metav1.Time`, `[]Container`, `map[string][]byte`. */
  readonly type: string;
}

export interface GoPackage {
  /** Tagged fields by struct name. */
  readonly structs: ReadonlyMap<string, readonly GoField[]>;
  /** The underlying type of each named type that is not a struct. */
  readonly named: ReadonlyMap<string, string>;
}

const STRUCT_START = /^type (\w+) struct \{$/;
const NAMED_TYPE = /^type (\w+) ([^\s{]+)$/;
const FIELD = /^\t(?:(\w+)\s+)?([\w.*[\]]+)\s+`([^`]*)`/;
const PROTOBUF_TAG = /protobuf:"\w+,(\d+),/;
const JSON_TAG = /json:"([^",]*)([^"]*)"/;

/** Reads a types.go file. Fields without a protobuf tag (TypeMeta) are left out. */
export function readGoTypes(source: string): GoPackage {
  const structs = new Map<string, GoField[]>();
  const named = new Map<string, string>();
  let current: GoField[] | undefined;
  for (const line of source.split('\n')) {
    const start = STRUCT_START.exec(line)?.[1];
    if (start !== undefined) {
      current = [];
      structs.set(start, current);
    } else if (line === '}') {
      current = undefined;
    } else if (current === undefined) {
      const [, name, type] = NAMED_TYPE.exec(line) ?? [];
      if (name !== undefined && type !== undefined) named.set(name, type);
    } else {
      const field = fieldOf(line);
      if (field !== undefined) current.push(field);
    }
  }
  return { structs, named };
}

function fieldOf(line: string): GoField | undefined {
  const [, , type, tags = ''] = FIELD.exec(line) ?? [];
  const number = PROTOBUF_TAG.exec(tags)?.[1];
  const [, jsonName = '', jsonOptions = ''] = JSON_TAG.exec(tags) ?? [];
  if (type === undefined || number === undefined || jsonName === '-') return undefined;
  return { number: Number(number), jsonName: jsonOptions.includes('inline') ? '' : jsonName, type };
}
