/** Access entries of a deployment: a list of {arn, username?, groups}. Every fault is reported. */
import * as z from 'zod/mini';
import { type AccessEntry, accessEntryFaults, canonicalArn } from '../domain/access/access-entry.ts';

/** Maximum size in a function's environment, in characters of JSON; an entry has about 100. */
export const ACCESS_ENTRIES_CHARACTERS_MAX = 1_024;

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
  const characters = JSON.stringify(entries).length;
  if (faults.length === 0 && characters > ACCESS_ENTRIES_CHARACTERS_MAX) {
    const rule = `take ${characters} characters, of ${ACCESS_ENTRIES_CHARACTERS_MAX} there is room for: name roles rather than users`;
    faults.push({ field: '', rule });
  }
  return faults.length > 0 ? { kind: 'faults', faults } : { kind: 'ok', entries: Object.freeze(entries) };
}

/** One line per fault: `file:line accessEntries[2].arn rule`. */
export function describeAccessEntriesFault({ at, index, field, rule }: AccessEntriesFault): string {
  const place = `accessEntries${index === undefined ? '' : `[${index}]`}${field === '' ? '' : `.${field}`}`;
  return [at, place, rule].filter((word) => word !== undefined).join(' ');
}
