import { isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { type AccessEntriesFault, type ParsedAccessEntries, parseAccessEntries } from './access-entries.ts';

/** Access entries from a YAML file: a list. Faults carry `file:line`. @param fileName as it should appear in faults */
export function accessEntriesFromYaml(text: string, fileName: string): ParsedAccessEntries {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true });
  const at = (offset: number): string => `${fileName}:${lines.linePos(offset).line || 1}`;
  const [error] = document.errors;
  if (error !== undefined) {
    const rule = (error.message.split('\n', 1)[0] ?? error.code).replace(/ at line \d+.*$/, '');
    return { kind: 'faults', faults: [{ field: '', rule, at: at(error.pos[0]) }] };
  }
  const parsed = parseAccessEntries(document.toJS({ maxAliasCount: 0 }) ?? []);
  if (parsed.kind === 'ok') return parsed;
  const root = document.contents;
  const place = ({ index, field }: AccessEntriesFault): string => {
    const entry = isSeq(root) && index !== undefined ? root.items[index] : root;
    const key = isMap(entry)
      ? entry.items.map((pair) => pair.key).find((each) => isScalar(each) && each.value === field)
      : undefined;
    const node = (key ?? entry) as { readonly range?: readonly number[] | null } | null;
    return at(node?.range?.[0] ?? 0);
  };
  return { kind: 'faults', faults: parsed.faults.map((fault) => ({ ...fault, at: place(fault) })) };
}
