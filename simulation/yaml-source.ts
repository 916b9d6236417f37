/**
 * A YAML document as a tree that remembers where everything stands, and the readers that check it. Every reader answers
 * undefined after it reported an error, so one read reports all errors of a file.
 */

import { isMap, isScalar, isSeq, type Node } from 'yaml';
import { parseYaml } from '../shared/config/yaml-documents.ts';
import { defined } from '../shared/defined.ts';

export interface ScenarioFault {
  readonly file: string;
  readonly line: number;
  /** Path of the field, such as `spec.steps[3].at`; '' for the document as a whole. */
  readonly field: string;
  /** What was expected. */
  readonly expected: string;
  /** What is there instead, when that says more. */
  readonly found?: string;
}

/** One line: `file:line: field: expected …, found …`. */
export const describeFault = ({ file, line, field, expected, found }: ScenarioFault): string =>
  [
    `${file}:${line}`,
    ...(field === '' ? [] : [field]),
    found === undefined ? expected : `${expected}, found ${found}`,
  ].join(': ');

interface At {
  readonly line: number;
  readonly path: string;
}
export type Source =
  | (At & { readonly kind: 'map'; readonly fields: ReadonlyMap<string, Source> })
  | (At & { readonly kind: 'list'; readonly items: readonly Source[] })
  | (At & { readonly kind: 'scalar'; readonly value: string | number | boolean | null; readonly text: string });

export interface Faults {
  readonly all: readonly ScenarioFault[];
  add(at: At, expected: string, found?: string): void;
}

export function faultsOf(file: string): Faults {
  const all: ScenarioFault[] = [];
  return {
    all,
    add: ({ line, path }, expected, found) => all.push({ file, line, field: path, expected, ...defined({ found }) }),
  };
}

/** The document as a tree; undefined when it is no YAML. */
export function sourceOf(text: string, faults: Faults): Source | undefined {
  const { documents, faults: found, lineAt } = parseYaml(text, { version: '1.2', aliasesMax: 0 });
  for (const { message, value, line } of found) {
    faults.add(
      { line, path: '' },
      value === undefined ? `expected YAML: ${message}` : `expected ${value} written out, not an alias`,
    );
  }
  if (documents.length > 1)
    faults.add({ line: lineAt(documents[1]?.range?.[0] ?? 0), path: '' }, 'expected one document');
  if (faults.all.length > 0) return undefined;

  const convert = (node: Node | null, path: string, line: number): Source => {
    if (isMap(node)) {
      const fields = new Map<string, Source>();
      for (const { key, value } of node.items) {
        const name = isScalar(key) ? String(key.source ?? key.value) : String(key);
        const keyLine = isScalar(key) ? lineAt(key.range?.[0] ?? 0) : line;
        fields.set(name, convert(value as Node | null, path === '' ? name : `${path}.${name}`, keyLine));
      }
      return { kind: 'map', line, path, fields };
    }
    if (isSeq(node)) {
      const items = node.items.map((item, index) =>
        convert(item as Node | null, `${path}[${index}]`, lineAt((item as Node).range?.[0] ?? 0)),
      );
      return { kind: 'list', line, path, items };
    }
    const value = isScalar(node) ? node.value : null;
    const plain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? value : null;
    return { kind: 'scalar', line, path, value: plain, text: isScalar(node) ? String(node.source ?? value ?? '') : '' };
  };
  const root = (documents[0]?.contents ?? null) as Node | null;
  return convert(root, '', root === null ? 1 : lineAt(root.range?.[0] ?? 0));
}

/** The source in a message: a scalar by its text, else its kind. */
export const saidOf = (source: Source): string =>
  source.kind === 'scalar' ? (source.value === null ? 'nothing' : JSON.stringify(source.text)) : `a ${source.kind}`;

/** Plain JSON of a tree. */
export function plainOf(source: Source): unknown {
  if (source.kind === 'scalar') return source.value;
  if (source.kind === 'list') return source.items.map(plainOf);
  return Object.fromEntries([...source.fields].map(([name, field]) => [name, plainOf(field)]));
}

export type Fields = ReadonlyMap<string, Source>;

/** The fields of a map that may have these and no others; with `open`, any others too. */
export function readMap(
  source: Source | undefined,
  known: readonly string[] | 'open',
  faults: Faults,
): Fields | undefined {
  if (source === undefined) return undefined;
  if (source.kind !== 'map') {
    faults.add(source, 'expected a map', saidOf(source));
    return undefined;
  }
  if (known !== 'open') {
    for (const [name, field] of source.fields) {
      if (!known.includes(name)) faults.add(field, `unknown field; expected one of ${known.join(', ')}`);
    }
  }
  return source.fields;
}

export function readList(source: Source | undefined, faults: Faults): readonly Source[] | undefined {
  if (source === undefined) return undefined;
  if (source.kind === 'list') return source.items;
  faults.add(source, 'expected a list', saidOf(source));
  return undefined;
}

/** Any text that is not empty; numbers and booleans as they are written, because names may look like them. */
export function readText(source: Source | undefined, faults: Faults, expected = 'expected text'): string | undefined {
  if (source === undefined) return undefined;
  if (source.kind === 'scalar' && source.value !== null && source.text !== '') {
    return typeof source.value === 'string' ? source.value : source.text;
  }
  faults.add(source, expected, saidOf(source));
  return undefined;
}

export function readBoolean(source: Source | undefined, faults: Faults): boolean | undefined {
  if (source === undefined) return undefined;
  if (source.kind === 'scalar' && typeof source.value === 'boolean') return source.value;
  faults.add(source, 'expected true or false', saidOf(source));
  return undefined;
}

export function readNumber(
  source: Source | undefined,
  faults: Faults,
  range: { readonly least: number; readonly most: number; readonly whole: boolean; readonly what: string },
): number | undefined {
  if (source === undefined) return undefined;
  const { least, most, whole, what } = range;
  const value = source.kind === 'scalar' ? source.value : undefined;
  if (typeof value === 'number' && value >= least && value <= most && (!whole || Number.isInteger(value))) return value;
  faults.add(source, `expected ${what}`, saidOf(source));
  return undefined;
}

/** One of these words; a boolean counts as the word it is written as in Kubernetes (`True`, `False`). */
export function readWord<Word extends string>(
  source: Source | undefined,
  words: readonly Word[],
  faults: Faults,
): Word | undefined {
  if (source === undefined) return undefined;
  const value = source.kind === 'scalar' ? source.value : undefined;
  const text = typeof value === 'boolean' ? (value ? 'True' : 'False') : value;
  const word = words.find((each) => each === text);
  if (word === undefined) faults.add(source, `expected one of ${words.join(', ')}`, saidOf(source));
  return word;
}

/** A list of texts; one text alone counts as a list of it. */
export function readTexts(source: Source | undefined, faults: Faults): string[] | undefined {
  if (source === undefined) return undefined;
  if (source.kind === 'scalar') {
    const text = readText(source, faults, 'expected a list of names');
    return text === undefined ? undefined : [text];
  }
  return readList(source, faults)?.flatMap((item) => readText(item, faults) ?? []);
}

/** A map of texts, such as labels. */
export function readTextMap(source: Source | undefined, faults: Faults): Record<string, string> | undefined {
  const fields = readMap(source, 'open', faults);
  if (fields === undefined) return undefined;
  const texts: Record<string, string> = {};
  for (const [name, field] of fields) {
    // A label may be empty.
    if (field.kind === 'scalar') texts[name] = typeof field.value === 'string' ? field.value : field.text;
    else faults.add(field, 'expected text', saidOf(field));
  }
  return texts;
}
