/** Access entries of a deployment: a list of {arn, username?, groups}. Every fault is reported. */
import * as z from 'zod/mini';
import { type AccessEntry, accessEntryFaults, canonicalArn } from '../access/access-entry.ts';
import { ConfigError } from './config-error.ts';

/** Name of the file beside the handler of the API. Its size has no limit of an environment, 4 KB for all variables. */
export const ACCESS_ENTRIES_FILE = 'access-entries.json';
/** A cold start reads and checks all of them. */
const ENTRIES_MAX = 10_000;

export interface AccessEntriesFault {
  /** Position in the list; absent for a fault of the whole list. */
  readonly index?: number;
  /** Name of the entry's field, or ''. */
  readonly field: string;
  readonly rule: string;
  /** `file:line`, when they came from a file. */
  readonly at?: string;
}

export type ParsedAccessEntries =
  | { readonly kind: 'ok'; readonly entries: readonly AccessEntry[] }
  | { readonly kind: 'faults'; readonly faults: readonly AccessEntriesFault[] };

const entrySchema = z.strictObject({
  arn: z.string('must be text: the ARN of an IAM role or user'),
  username: z.exactOptional(z.string('must be text')),
  groups: z.array(z.string('must hold names'), 'must be a list of group names'),
});

export function parseAccessEntries(input: unknown): ParsedAccessEntries {
  if (!Array.isArray(input)) {
    return { kind: 'faults', faults: [{ field: '', rule: 'must be a list of {arn, username, groups}' }] };
  }
  const faults: AccessEntriesFault[] = [];
  const entries: AccessEntry[] = [];
  const seen = new Map<string, number>();
  for (const [index, given] of input.entries()) {
    const parsed = entrySchema.safeParse(given);
    if (!parsed.success) {
      for (const issue of parsed.error.issues) {
        const unknown = issue.code === 'unrecognized_keys' ? issue.keys.join(', ') : '';
        const field = unknown === '' ? String(issue.path[0] ?? '') : unknown;
        faults.push({ index, field, rule: unknown === '' ? issue.message : 'is no field of an access entry' });
      }
      continue;
    }
    const entry = parsed.data as AccessEntry;
    faults.push(...accessEntryFaults(entry).map((fault) => ({ index, ...fault })));
    const arn = canonicalArn(entry.arn);
    const earlier = arn === undefined ? undefined : seen.get(arn);
    if (earlier !== undefined) faults.push({ index, field: 'arn', rule: `is entry ${earlier}'s too` });
    else if (arn !== undefined) seen.set(arn, index);
    entries.push(entry);
  }
  if (input.length > ENTRIES_MAX) {
    faults.push({ field: '', rule: `are ${input.length}, of ${ENTRIES_MAX} at most: name roles rather than users` });
  }
  return faults.length > 0 ? { kind: 'faults', faults } : { kind: 'ok', entries: Object.freeze(entries) };
}

/** @param text of the file that the deployment wrote. @throws ConfigError with every fault */
export function accessEntriesFromJson(text: string): readonly AccessEntry[] {
  const variable = 'ACCESS_ENTRIES_FILE';
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw new ConfigError([{ variable, rule: 'must contain JSON' }]);
  }
  const parsed = parseAccessEntries(document);
  if (parsed.kind === 'ok') return parsed.entries;
  throw new ConfigError(parsed.faults.map((fault) => ({ variable, rule: describeAccessEntriesFault(fault) })));
}

/** One line per fault: `file:line accessEntries[2].arn rule`. */
export function describeAccessEntriesFault({ at, index, field, rule }: AccessEntriesFault): string {
  const place = `accessEntries${index === undefined ? '' : `[${index}]`}${field === '' ? '' : `.${field}`}`;
  return [at, place, rule].filter((word) => word !== undefined).join(' ');
}
