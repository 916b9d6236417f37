import { getMember, isJsonObject, type JsonObject } from '../json.ts';
import type { StructSchema } from '../schema.ts';
import {
  changesOf,
  difference,
  EMPTY_FIELD_SET,
  equalSets,
  type FieldChanges,
  type FieldSet,
  fromFieldsV1,
  isEmptySet,
  toFieldsV1,
  union,
} from './field-set.ts';

/** Maximum number of entries with operation Update, as upstream. The oldest are merged into one entry. */
export const UPDATE_MANAGERS_MAX = 10;
/** Manager of the merged entry, as upstream. */
const OLDER_MANAGERS = 'ancient-changes';

export type Operation = 'Apply' | 'Update';

/** One entry of metadata.managedFields, with its fields as a set. */
export interface Ownership {
  readonly manager: string;
  readonly operation: Operation;
  readonly apiVersion: string;
  /** When the set last changed. RFC 3339, seconds. */
  readonly time: string;
  /** '' for the object itself. */
  readonly subresource: string;
  readonly fields: FieldSet;
}

/** The manager that a write belongs to. */
export interface Writer {
  readonly manager: string;
  readonly apiVersion: string;
  /** '' for the object itself. */
  readonly subresource: string;
  /** Server time, RFC 3339 in seconds. */
  readonly time: string;
}

export interface TrackedUpdate {
  readonly schema: StructSchema;
  /** The stored object; `undefined` on creation. */
  readonly live: Readonly<JsonObject> | undefined;
  /** The object to store, with defaults and the managedFields of the client. */
  readonly next: Readonly<JsonObject>;
  readonly writer: Writer;
  /** Paths that this write does not change: `[['status']]` on the object, `[['spec']]` on its status. */
  readonly ignored?: readonly (readonly string[])[];
}

/**
 * The managedFields after a create, update or patch: the writer owns the fields that it changed, and no manager owns a
 * removed field.
 *
 * A client may send its own managedFields, but not to a subresource. `[{}]` removes all entries of a stored object, and
 * they begin again with its next apply. Without a readable list the stored managedFields are used. Unchanged entries
 * keep their time, so a write without a change does not change managedFields.
 *
 * Source: apimachinery, pkg/util/managedfields/internal/fieldmanager.go and skipnonapplied.go.
 *
 * @returns the new list, `[]` for none
 */
export function trackUpdate({ schema, live, next, writer, ignored = [] }: TrackedUpdate): JsonObject[] {
  const sent = writer.subresource === '' ? managedFieldsOf(next) : undefined;
  const stored = live === undefined || resetsManagedFields(sent) ? undefined : managedFieldsOf(live);
  const ownerships = readManagedFields(sent) ?? readManagedFields(stored) ?? [];
  if (live !== undefined && ownerships.length === 0) return [];
  const changes = changesOf(schema, live, next, ignored);
  return writeManagedFields(takeOver(ownerships, { ...writer, operation: 'Update' }, changes));
}

/** Whether a client removes all managedFields: it sends one empty entry. decodeObject makes one of an empty list. */
const resetsManagedFields = (sent: unknown): boolean =>
  Array.isArray(sent) && sent.length === 1 && isJsonObject(sent[0]) && Object.keys(sent[0]).length === 0;

/** Makes the writer the owner of the changed fields, and removes them from all others. */
function takeOver(
  ownerships: readonly Ownership[],
  writer: Writer & { readonly operation: Operation },
  { changed, removed }: FieldChanges,
): Ownership[] {
  const lost = union(changed, removed);
  const own = ownerships.find((ownership) => isEntryOf(ownership, writer));
  const others = withoutFields(
    ownerships.filter((ownership) => ownership !== own),
    lost,
  );
  const fields = difference(union(own?.fields ?? EMPTY_FIELD_SET, changed), removed);
  return [...others, ...entryOf(own, writer, fields)];
}

/** The entries without the fields `lost`. Entries without fields are removed. */
export function withoutFields(ownerships: readonly Ownership[], lost: FieldSet): Ownership[] {
  return ownerships
    .map((ownership) => ({ ...ownership, fields: difference(ownership.fields, lost) }))
    .filter((ownership) => !isEmptySet(ownership.fields));
}

/** The entry of a writer, or none if it owns no fields. An entry with the same fields as before keeps its time. */
export function entryOf(
  known: Ownership | undefined,
  writer: Writer & { readonly operation: Operation },
  fields: FieldSet,
): Ownership[] {
  if (known !== undefined && equalSets(known.fields, fields)) return [known];
  if (isEmptySet(fields)) return [];
  const { manager, operation, apiVersion, subresource, time } = writer;
  return [{ manager, operation, apiVersion, subresource, time, fields }];
}

export function isEntryOf(ownership: Ownership, writer: Writer & { readonly operation: Operation }): boolean {
  return (
    ownership.manager === writer.manager &&
    ownership.operation === writer.operation &&
    ownership.subresource === writer.subresource &&
    // A manager has one Apply entry for all API versions, and one Update entry per version.
    (ownership.operation === 'Apply' || ownership.apiVersion === writer.apiVersion)
  );
}

/** metadata.managedFields of an object, unchecked. */
export function managedFieldsOf(object: Readonly<JsonObject>): unknown {
  const metadata = getMember(object, 'metadata');
  return isJsonObject(metadata) ? getMember(metadata, 'managedFields') : undefined;
}

/** Reads metadata.managedFields. Undefined if there are none or one entry is malformed. */
export function readManagedFields(entries: unknown): Ownership[] | undefined {
  if (!Array.isArray(entries) || entries.length === 0) return undefined;
  const ownerships: Ownership[] = [];
  for (const entry of entries) {
    const ownership = readEntry(entry);
    if (ownership === undefined) return undefined;
    ownerships.push(ownership);
  }
  return ownerships;
}

function readEntry(entry: unknown): Ownership | undefined {
  if (!isJsonObject(entry)) return undefined;
  const {
    manager = '',
    operation,
    apiVersion = '',
    time = '',
    subresource = '',
    fieldsType = 'FieldsV1',
    fieldsV1,
  } = entry;
  const fields = fromFieldsV1(fieldsV1 ?? {});
  if (operation !== 'Apply' && operation !== 'Update') return undefined;
  if (fields === undefined || fieldsType !== 'FieldsV1') return undefined;
  if (typeof manager !== 'string' || typeof apiVersion !== 'string') return undefined;
  if (typeof subresource !== 'string') return undefined;
  return { manager, operation, apiVersion, subresource, time: typeof time === 'string' ? time : '', fields };
}

/** The entries to store: Apply before Update, then by time and manager. At most UPDATE_MANAGERS_MAX Update entries. */
export function writeManagedFields(ownerships: readonly Ownership[]): JsonObject[] {
  return mergeOldest(ownerships).sort(byOperationAndTime).map(writeEntry);
}

function writeEntry({ manager, operation, apiVersion, subresource, time, fields }: Ownership): JsonObject {
  return {
    manager,
    operation,
    apiVersion,
    ...(time === '' ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: toFieldsV1(fields),
    ...(subresource === '' ? {} : { subresource }),
  };
}

function byOperationAndTime(left: Ownership, right: Ownership): number {
  const rank = ({ operation, time, manager, apiVersion, subresource }: Ownership): string =>
    [operation, time, manager, apiVersion, subresource].join('\u0000');
  return rank(left) < rank(right) ? -1 : 1;
}

function mergeOldest(ownerships: readonly Ownership[]): Ownership[] {
  const updates = ownerships.filter(({ operation }) => operation === 'Update').sort(byOperationAndTime);
  const excess = updates.length - UPDATE_MANAGERS_MAX;
  if (excess <= 0) return [...ownerships];
  // One more than the excess, because the merged entry counts too.
  const oldest = updates.slice(0, excess + 1);
  const merged = oldest.reduce((left, right) => ({
    ...right,
    manager: OLDER_MANAGERS,
    subresource: '',
    fields: union(left.fields, right.fields),
  }));
  return [...ownerships.filter((ownership) => !oldest.includes(ownership)), merged];
}

const MANAGER_CHARACTERS_MAX = 128;

/** The manager of a request without fieldManager: the program in its User-Agent, such as `kubectl/v1.32 (…)`. */
export function managerFromUserAgent(userAgent: string): string {
  const [program = ''] = userAgent.split('/');
  return program.replace(/[^\x20-\x7e]/g, '').slice(0, MANAGER_CHARACTERS_MAX) || 'unknown';
}

/** Why a `fieldManager` is invalid, undefined if it is valid. */
export function fieldManagerFault(manager: string): string | undefined {
  if (manager.length > MANAGER_CHARACTERS_MAX) return `may not be more than ${MANAGER_CHARACTERS_MAX} bytes`;
  return /^[\x20-\x7e]*$/.test(manager) ? undefined : 'should only contain printable characters';
}
