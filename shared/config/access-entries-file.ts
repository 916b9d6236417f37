import { type AccessEntriesFault, type ParsedAccessEntries, parseAccessEntries } from './access-entries.ts';
import { readOneYaml } from './yaml-documents.ts';

/** Access entries from a YAML file: a list. Faults carry `file:line`. @param fileName as it should appear in faults */
export function accessEntriesFromYaml(text: string, fileName: string): ParsedAccessEntries {
  const read = readOneYaml(text, fileName);
  if (read.kind === 'malformed') {
    return { kind: 'faults', faults: read.faults.map(({ message: rule, at }) => ({ field: '', rule, at })) };
  }
  const { value, at } = read.document;
  const parsed = parseAccessEntries(value ?? []);
  if (parsed.kind === 'ok') return parsed;
  const pathOf = ({ index, field }: AccessEntriesFault) => [...(index === undefined ? [] : [index]), field];
  return { kind: 'faults', faults: parsed.faults.map((fault) => ({ ...fault, at: at(pathOf(fault)) })) };
}
