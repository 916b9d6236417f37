/** Reads Kubernetes' Go types: names, struct tags and `+` markers. Prose of the comments is not read. */

/** Values of the `+` markers above a declaration: `+listMapKey=ip` is `ip` of `listMapKey`. */
type Markers = ReadonlyMap<string, readonly string[]>;

export interface GoField {
  /** Number of the field in the protobuf message. */
  readonly number: number;
  /** Name in JSON; '' for a struct that is inlined into the JSON object. */
  readonly jsonName: string;
  /** `omitempty`, `omitzero`, `inline`. */
  readonly jsonOptions: readonly string[];
  /** The Go type as in the source: `*metav1.Time`, `[]Container`, `map[string][]byte`. */
  readonly type: string;
  /** Values of the tags `patchStrategy` and `patchMergeKey`. */
  readonly patchStrategy: string | undefined;
  readonly patchMergeKey: string | undefined;
  readonly markers: Markers;
}

export interface GoStruct {
  readonly markers: Markers;
  /** Those with a protobuf tag, which TypeMeta has not. */
  readonly fields: readonly GoField[];
}

export interface GoNamedType {
  readonly underlying: string;
  readonly markers: Markers;
}

export interface GoPackage {
  readonly structs: ReadonlyMap<string, GoStruct>;
  /** Named types that are no structs. */
  readonly named: ReadonlyMap<string, GoNamedType>;
  /** Text constants by the name of their type. */
  readonly constants: ReadonlyMap<string, readonly string[]>;
}

const STRUCT_START = /^type (\w+) struct \{$/;
const NAMED_TYPE = /^type (\w+) ([^\s{]+)$/;
const FIELD = /^\t(?:(\w+)\s+)?([\w.*[\]]+)\s+`([^`]*)`/;
const CONSTANT = /^(?:const|\t)\s*\w+ +(\w+) += +"([^"]*)"/;
const COMMENT = /^\t?\/\//;
const MARKER = /^\t?\/\/ ?\+([\w:]+)(?:=(.*))?$/;

/** Reads a types.go file. */
export function readGoTypes(source: string): GoPackage {
  const structs = new Map<string, { markers: Markers; fields: GoField[] }>();
  const named = new Map<string, GoNamedType>();
  const constants = new Map<string, string[]>();
  let fields: GoField[] | undefined;
  let markers = new Map<string, string[]>();
  for (const line of source.split('\n')) {
    const [, marker, value = ''] = MARKER.exec(line) ?? [];
    if (marker !== undefined) markers.set(marker, [...(markers.get(marker) ?? []), value.trim()]);
    // A comment is apart from its declaration by a blank line at most.
    if (COMMENT.test(line) || line.trim() === '') continue;
    const [, name, type] = NAMED_TYPE.exec(line) ?? [];
    const struct = STRUCT_START.exec(line)?.[1];
    const [, constantOf, text] = CONSTANT.exec(line) ?? [];
    if (struct !== undefined) {
      fields = [];
      structs.set(struct, { markers, fields });
    } else if (line === '}') {
      fields = undefined;
    } else if (fields !== undefined) {
      const field = fieldOf(line, markers);
      if (field !== undefined) fields.push(field);
    } else if (name !== undefined && type !== undefined) {
      named.set(name, { underlying: type, markers });
    } else if (constantOf !== undefined && text !== undefined) {
      constants.set(constantOf, [...(constants.get(constantOf) ?? []), text]);
    }
    markers = new Map();
  }
  return { structs, named, constants };
}

function fieldOf(line: string, markers: Markers): GoField | undefined {
  const [, , type, tags = ''] = FIELD.exec(line) ?? [];
  const tag = (name: string): string | undefined => new RegExp(`(?:^| )${name}:"([^"]*)"`).exec(tags)?.[1];
  const number = /^\w+,(\d+),/.exec(tag('protobuf') ?? '')?.[1];
  const [jsonName = '', ...jsonOptions] = (tag('json') ?? '').split(',');
  if (type === undefined || number === undefined || jsonName === '-') return undefined;
  return {
    number: Number(number),
    jsonName: jsonOptions.includes('inline') ? '' : jsonName,
    jsonOptions,
    type,
    patchStrategy: tag('patchStrategy'),
    patchMergeKey: tag('patchMergeKey'),
    markers,
  };
}
