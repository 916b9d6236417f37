/** Documents of YAML or JSON, with the line of every field. */
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  type Tags,
  visit,
} from 'yaml';
import { defined } from '../defined.ts';

/** Types of YAML 1.1 without a JSON equivalent. They are read as text, as in Kubernetes. */
const NOT_OF_JSON = new Set(['timestamp', 'binary', 'omap', 'pairs', 'set'].map((name) => `tag:yaml.org,2002:${name}`));

/** `customTags` of the library: only those with a JSON equivalent. */
export const ofJson = (tags: Tags): Tags =>
  tags.filter(
    (tag) => typeof tag === 'string' || !(NOT_OF_JSON.has(tag.tag) || ('format' in tag && tag.format === 'TIME')),
  );

export interface YamlOptions {
  readonly version: '1.1' | '1.2';
  /** Aliases in one document: a few of them can stand for a huge value. 0: each is a fault. */
  readonly aliasesMax: number;
  /** Absent: the tags of the version. */
  readonly customTags?: (tags: Tags) => Tags;
}

/** As Kubernetes reads files. */
export const KUBERNETES_YAML: YamlOptions = { version: '1.1', aliasesMax: 100, customTags: ofJson };

export interface YamlFault {
  readonly message: string;
  /** What is refused, where that is one value. */
  readonly value?: string;
  readonly line: number;
}

export interface ParsedYaml {
  readonly documents: readonly Document[];
  /** Of all documents. A duplicate key is one. */
  readonly faults: readonly YamlFault[];
  lineAt(offset: number): number;
}

export function parseYaml(text: string, { version, aliasesMax, customTags }: YamlOptions): ParsedYaml {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, {
    version,
    // keyFaults finds duplicates: the library would compare every pair of keys.
    uniqueKeys: false,
    lineCounter: lines,
    logLevel: 'silent',
    ...defined({ customTags }),
  });
  // An empty stream has no documents. The library marks it by a property instead of by an empty list.
  const documents: Document[] = 'empty' in parsed ? [] : [...parsed];
  const lineAt = (offset: number): number => lines.linePos(offset).line || 1;
  const faults = documents
    .flatMap((document): YamlFault[] => [
      ...document.errors.map(({ message, code, pos }) => {
        const firstLine = message.split('\n', 1)[0] ?? code;
        return { message: firstLine.replace(/ at line \d+.*$/, ''), line: lineAt(pos[0]) };
      }),
      ...Array.from(keyFaults(document), ({ message, offset }) => ({ message, line: lineAt(offset) })),
    ])
    .sort((one, other) => one.line - other.line);
  for (const document of aliasesMax === 0 && faults.length === 0 ? documents : []) {
    visit(document, {
      Alias: (_key, { source, range }) => {
        const message = 'must be written out, not an alias';
        faults.push({ message, value: `*${source}`, line: lineAt(range?.[0] ?? 0) });
      },
    });
  }
  return { documents, faults, lineAt };
}

export interface KeyFault {
  readonly message: string;
  /** The name of a duplicate key. */
  readonly name?: string;
  readonly offset: number;
}

/** Duplicate keys, and keys that are neither texts nor numbers, in no order. The work is linear. */
export function* keyFaults(document: Document): Generator<KeyFault, undefined> {
  const waiting: unknown[] = [document.contents];
  while (waiting.length > 0) {
    const node = waiting.pop();
    if (!isCollection(node)) continue;
    if (!isMap(node)) {
      for (const item of node.items) waiting.push(item);
      continue;
    }
    const keys = new Set<string>();
    for (const { key, value } of node.items) {
      waiting.push(value);
      const named = isAlias(key) ? key.resolve(document) : key;
      const offset = (isNode(key) ? key : node).range?.[0] ?? 0;
      if (!isScalar(named)) {
        yield { message: 'a key of a map must be a text', offset };
        continue;
      }
      // A map may have several merge keys. Their values are symbols.
      if (typeof named.value === 'symbol') continue;
      const name = String(named.value);
      if (keys.has(name)) yield { message: 'Map keys must be unique', name, offset };
      keys.add(name);
    }
  }
}

/** A path of members and list positions. */
export type YamlPath = readonly (string | number)[];

export interface YamlDocument {
  readonly value: unknown;
  /** `file:line` of the value at this path, or of its nearest existing parent. */
  at(path: YamlPath): string;
}

/** A fault with its `file:line`. */
export type LocatedYamlFault = Pick<YamlFault, 'message' | 'value'> & { readonly at: string };

export type ReadYaml =
  | { readonly kind: 'read'; readonly documents: readonly YamlDocument[] }
  | { readonly kind: 'malformed'; readonly faults: readonly LocatedYamlFault[] };

/** @param fileName as it should appear in faults */
export function readYaml(text: string, fileName: string, options: YamlOptions): ReadYaml {
  const { documents, faults: found, lineAt } = parseYaml(text, options);
  const placeOf = (line: number): string => `${fileName}:${line}`;
  const faults: LocatedYamlFault[] = found.map(({ line, ...fault }) => ({ ...fault, at: placeOf(line) }));
  const read: YamlDocument[] = [];
  for (const document of faults.length > 0 ? [] : documents) {
    try {
      const value: unknown = document.toJS({ maxAliasCount: options.aliasesMax });
      read.push({ value, at: (path) => placeOf(lineAt(offsetOf(document, path))) });
    } catch (error) {
      if (!(error instanceof ReferenceError)) throw error;
      faults.push({ message: error.message, at: placeOf(lineAt(document.range?.[0] ?? 0)) });
    }
  }
  return faults.length > 0 ? { kind: 'malformed', faults } : { kind: 'read', documents: read };
}

/**
 * The same for a file that has one document, or none. YAML 1.2, without aliases: such files are short, and without
 * aliases no value can expand.
 */
export function readOneYaml(
  text: string,
  fileName: string,
): { readonly kind: 'read'; readonly document: YamlDocument } | Extract<ReadYaml, { kind: 'malformed' }> {
  const read = readYaml(text, fileName, { version: '1.2', aliasesMax: 0 });
  if (read.kind === 'malformed') return read;
  const [document = { value: null, at: () => `${fileName}:1` }, second] = read.documents;
  if (second === undefined) return { kind: 'read', document };
  return { kind: 'malformed', faults: [{ message: 'must be one document', at: second.at([]) }] };
}

function offsetOf(document: Document, path: YamlPath): number {
  let node: unknown = document.contents;
  let offset = document.contents?.range?.[0] ?? document.range?.[0] ?? 0;
  for (const step of path) {
    if (isMap(node)) {
      const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === String(step));
      if (pair === undefined || !isScalar(pair.key)) return offset;
      offset = pair.key.range?.[0] ?? offset;
      node = pair.value;
    } else if (isSeq(node) && typeof step === 'number') {
      const item = node.items[step] as { readonly range?: readonly number[] | null } | undefined;
      offset = item?.range?.[0] ?? offset;
      node = item;
    } else return offset;
  }
  return offset;
}
