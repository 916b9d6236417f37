import type { AccessEntry } from '../../shared/access/access-entry.ts';
import {
  type AccessEntriesFault,
  describeAccessEntriesFault,
  type ParsedAccessEntries,
} from '../../shared/config/access-entries.ts';
import { accessEntriesFromYaml } from '../../shared/config/access-entries-file.ts';
import { readInputFile } from './input-file.ts';

/** The access entries cannot be deployed. `message` has one line per fault: `file:line accessEntries[i].field rule`. */
export class InvalidAccessEntriesError extends Error {
  override readonly name = 'InvalidAccessEntriesError';
  readonly code = 'access-entries-invalid';
  readonly faults: readonly AccessEntriesFault[];
  constructor(faults: readonly AccessEntriesFault[]) {
    super(faults.map(describeAccessEntriesFault).join('\n'));
    this.faults = faults;
  }
}

/** @throws InvalidAccessEntriesError with every fault */
export function requireAccessEntries(parsed: ParsedAccessEntries): readonly AccessEntry[] {
  if (parsed.kind === 'ok') return parsed.entries;
  throw new InvalidAccessEntriesError(parsed.faults);
}

/** @throws InvalidAccessEntriesError with every fault; the file system's error when the file cannot be read */
export function readAccessEntriesFile(path: string): readonly AccessEntry[] {
  const { text, name } = readInputFile(path);
  return requireAccessEntries(accessEntriesFromYaml(text, name));
}
