/** The documents of a configuration file, YAML or JSON, with the line of every field. */
import { type Document, isMap, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';
import type { ConfigDocument, ConfigFault } from '../../rules/config-settings.ts';

export type ReadDocuments =
  | { readonly kind: 'read'; readonly documents: readonly ConfigDocument[] }
  | { readonly kind: 'malformed'; readonly faults: readonly ConfigFault[] };

/** Aliases in one document: enough for any configuration, too few to blow one up. */
const ALIASES_MAX = 100;

/**
 * YAML 1.1, as in Kubernetes, which includes JSON. A document with a duplicate key is malformed.
 *
 * @param fileName as it should appear in faults
 */
export function readDocuments(text: string, fileName: string): ReadDocuments {
  const lines = new LineCounter();
  const parsed = parseAllDocuments(text, { version: '1.1', uniqueKeys: true, lineCounter: lines, logLevel: 'silent' });
  // An empty stream has no documents. The library marks it by a property instead of by an empty list.
  const documents: Document[] = 'empty' in parsed ? [] : [...parsed];
  const at = (offset: number): string => `${fileName}:${lines.linePos(offset).line || 1}`;

  const faults = documents.flatMap(({ errors }) =>
    errors.map((error): ConfigFault => {
      const firstLine = error.message.split('\n', 1)[0] ?? error.code;
      return { field: '', message: firstLine.replace(/ at line \d+.*$/, ''), at: at(error.pos[0]) };
    }),
  );
  const read: ConfigDocument[] = [];
  for (const document of faults.length > 0 ? [] : documents) {
    try {
      const value = document.toJS({ maxAliasCount: ALIASES_MAX }) as unknown;
      read.push({ value, at: (path) => at(offsetOf(document, path)) });
    } catch (error) {
      if (!(error instanceof ReferenceError)) throw error;
      faults.push({ field: '', message: error.message, at: at(document.range?.[0] ?? 0) });
    }
  }
  return faults.length > 0 ? { kind: 'malformed', faults } : { kind: 'read', documents: read };
}

/** Position of the value at this path, or of its nearest existing parent. */
function offsetOf(document: Document, path: readonly (string | number)[]): number {
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
