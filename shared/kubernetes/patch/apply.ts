import { decodeStrict, type TypeFault } from '../decode.ts';
import { cloneJson, getMember, isJsonObject, type JsonObject, nestsDeeperThan, parseJson, setMember } from '../json.ts';
import { type ListSchema, memberSchema, type Schema, type StructSchema } from '../schema.ts';
import {
  changesOf,
  difference,
  EMPTY_FIELD_SET,
  type FieldSet,
  fieldSetOf,
  intersection,
  isEmptySet,
  itemKeys,
  partOf,
  pathsOf,
  union,
} from './field-set.ts';
import {
  entryOf,
  isEntryOf,
  managedFieldsOf,
  type Ownership,
  readManagedFields,
  type Writer,
  withoutFields,
  writeManagedFields,
} from './managed-fields.ts';
import { PATCH_DEPTH_MAX } from './result.ts';

export interface ApplyRequest {
  readonly schema: StructSchema;
  /** The stored object; `undefined` if the apply creates it. */
  readonly live: Readonly<JsonObject> | undefined;
  /** The applied configuration, parsed. */
  readonly applied: unknown;
  readonly writer: Writer;
  /** True: fields of other managers that would change are taken over. False: they are conflicts. */
  readonly force: boolean;
  /** Paths that this write does not change: `[['status']]` on the object, `[['spec']]` on its status. */
  readonly ignored?: readonly (readonly string[])[];
  /** False: the storage keeps no managedFields, and what is stored has no manager. */
  readonly isTracked?: boolean;
  /** The part of the fields that this write changes, by the keys that lead to it. Absent: all that is not ignored. */
  readonly within?: readonly RegExp[];
}

export interface ConflictCause {
  readonly reason: 'FieldManagerConflict';
  readonly message: string;
  /** Path of the field: `.metadata.labels.zone`. */
  readonly field: string;
}

export type ApplyResult =
  | {
      readonly kind: 'applied';
      /** The object to store, with managedFields. It is normalised, but has no defaults yet. */
      readonly object: JsonObject;
      /** Paths in the configuration that the schema does not know. They were left out. */
      readonly unknownFields: readonly string[];
    }
  /** Other managers own fields that would change (409 Conflict). */
  | { readonly kind: 'conflict'; readonly message: string; readonly causes: readonly ConflictCause[] }
  /** The configuration cannot be read (400 BadRequest); `typeFaults` when its types are wrong. */
  | { readonly kind: 'malformed'; readonly message: string; readonly typeFaults: readonly TypeFault[] };

/**
 * Applies `application/apply-patch+yaml`: server-side apply.
 *
 * - The configuration contains every field that its manager wants. It is merged into the object.
 * - A field that the manager applied before and now omits is removed, unless another manager owns it too.
 * - A change of a field that another manager owns is a conflict, unless `force` is set.
 * - Two managers that apply the same value share the field.
 * - An object that has no managedFields has had one manager before its first apply.
 * - kubectl may take over what `kubectl apply` without `--server-side` wrote, if it has not changed since. It also
 *   writes the annotation with the last applied configuration.
 *
 * The arguments are not changed.
 *
 * Source: Kubernetes documentation, "Server-Side Apply"; apimachinery, pkg/util/managedfields/internal, files
 * skipnonapplied.go, lastappliedmanager.go and lastappliedupdater.go.
 */
export function applyServerSide(request: ApplyRequest): ApplyResult {
  const { schema, live, writer, ignored = [], within = [], isTracked = true } = request;
  if (!isJsonObject(request.applied)) return malformed('an apply configuration must be an object');
  if (nestsDeeperThan(request.applied, PATCH_DEPTH_MAX)) {
    return malformed(`an apply configuration nests at most ${PATCH_DEPTH_MAX} levels deep`);
  }
  const sentManagedFields = managedFieldsOf(request.applied) ?? [];
  if (!Array.isArray(sentManagedFields) || sentManagedFields.length > 0) {
    return malformed('metadata.managedFields must be nil');
  }
  const decoded = decodeStrict(schema, request.applied, { sparse: true, keepsNulls: true });
  const [typeFault] = decoded.typeFaults;
  if (typeFault !== undefined) return { kind: 'malformed', message: typeFault.message, typeFaults: decoded.typeFaults };
  const duplicate = ambiguousList(schema, decoded.value, '');
  if (duplicate !== undefined) return malformed(duplicate);
  const applied = withoutPaths(decoded.value, ignored);

  const applier = { ...writer, operation: 'Apply' as const };
  const known = live === undefined ? [] : readManagedFields(managedFieldsOf(live));
  const ownerships = known ?? (live !== undefined && isTracked ? [beforeApply(request, live)] : []);
  const previous = ownerships.find((ownership) => isEntryOf(ownership, applier));
  const others = ownerships.filter((ownership) => ownership !== previous);
  const fields = partOf(fieldSetOf(schema, applied, ignored), within);

  const merged = live === undefined ? cloneJson(applied) : (mergeValue(schema, live, applied) as JsonObject);
  const wanted = others.reduce((all, ownership) => union(all, ownership.fields), fields);
  removeFields(schema, merged, difference(previous?.fields ?? EMPTY_FIELD_SET, wanted), wanted);
  // Normalised like the live object. An empty map is absent in both, so it is not a change.
  const object = decodeStrict(schema, merged, { keepsNulls: true }).value;

  const changes = changesOf(schema, live, object, ignored);
  const [changed, removed] = [partOf(changes.changed, within), partOf(changes.removed, within)];
  // A field applied with an empty value (false, []) is absent from the normalised object. That is a change too.
  const contested = union(changed, intersection(removed, fields));
  const own = live === undefined || writer.manager !== KUBECTL ? EMPTY_FIELD_SET : appliedBefore(request, live);
  const conflicts = others
    .map((ownership) => ({ ownership, fields: difference(intersection(ownership.fields, contested), own) }))
    .filter((conflict) => !isEmptySet(conflict.fields));
  if (conflicts.length > 0 && !request.force) return conflictOf(conflicts);

  const left = withoutFields(others, union(changed, removed));
  setManagedFields(object, writeManagedFields([...left, ...entryOf(previous, applier, fields)]));
  if (writer.manager === KUBECTL) keepLastApplied(object, request.applied);
  return { kind: 'applied', object, unknownFields: decoded.unknownFields };
}

const KUBECTL = 'kubectl';
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** The manager of all that the object had before anybody applied it. */
const beforeApply = ({ schema, writer, ignored }: ApplyRequest, live: Readonly<JsonObject>): Ownership => ({
  ...writer,
  manager: 'before-first-apply',
  operation: 'Update',
  fields: fieldSetOf(schema, live, ignored),
});

function annotationsOf(object: Readonly<JsonObject>): JsonObject | undefined {
  const metadata = getMember(object, 'metadata');
  const annotations = isJsonObject(metadata) ? getMember(metadata, 'annotations') : undefined;
  return isJsonObject(annotations) ? annotations : undefined;
}

function lastAppliedText(object: Readonly<JsonObject>): string {
  const annotations = annotationsOf(object);
  const text = annotations && getMember(annotations, LAST_APPLIED);
  return typeof text === 'string' ? text : '';
}

/** Fields of the last configuration that kubectl applied by itself, as far as they still have those values. */
function appliedBefore({ schema, writer, ignored }: ApplyRequest, live: Readonly<JsonObject>): FieldSet {
  const parsed = parseJson(lastAppliedText(live));
  if (parsed.kind === 'malformed' || !isJsonObject(parsed.value)) return EMPTY_FIELD_SET;
  const last = parsed.value;
  if (getMember(last, 'apiVersion') !== writer.apiVersion) return EMPTY_FIELD_SET;
  const { changed, removed } = changesOf(schema, last, live, ignored);
  return difference(fieldSetOf(schema, last, ignored), union(changed, removed));
}

/** In place. Without it, a later client-side apply would compare with a configuration that was replaced since. */
function keepLastApplied(object: JsonObject, applied: Readonly<JsonObject>): void {
  const annotations = annotationsOf(object);
  if (annotations === undefined || lastAppliedText(object) === '') return;
  const configuration = cloneJson(applied);
  delete annotationsOf(configuration)?.[LAST_APPLIED];
  annotations[LAST_APPLIED] = `${JSON.stringify(configuration)}\n`;
}

function malformed(message: string): ApplyResult {
  return { kind: 'malformed', message, typeFaults: [] };
}

function setManagedFields(object: JsonObject, managedFields: JsonObject[]): void {
  const metadata = getMember(object, 'metadata');
  const { managedFields: _replaced, ...kept } = isJsonObject(metadata) ? metadata : {};
  object['metadata'] = managedFields.length === 0 ? kept : { ...kept, managedFields };
}

function withoutPaths(object: JsonObject, paths: readonly (readonly string[])[]): JsonObject {
  const copy = cloneJson(object);
  for (const path of paths) {
    let parent: unknown = copy;
    for (const name of path.slice(0, -1)) parent = isJsonObject(parent) ? getMember(parent, name) : undefined;
    const last = path.at(-1);
    if (isJsonObject(parent) && last !== undefined) delete parent[last];
  }
  return copy;
}

/**
 * The fault of the first keyed list in the configuration with missing or duplicate keys, undefined if there is none.
 * Stored lists may be like that, applied ones may not, because managers own them item by item.
 */
function ambiguousList(schema: Schema | undefined, value: unknown, path: string): string | undefined {
  if (Array.isArray(value) && schema?.kind === 'list') {
    if (schema.listType !== 'atomic' && itemKeys(schema, value) === undefined) {
      return `${path}: every item must have its key (${schema.mapKeys.join(', ') || 'its value'}), and no key may occur twice`;
    }
    return firstFault(value.map((item, index) => [schema.items, item, `${path}[${index}]`]));
  }
  if (!isJsonObject(value)) return undefined;
  return firstFault(Object.keys(value).map((key) => [memberSchema(schema, key), value[key], `${path}.${key}`]));
}

function firstFault(places: [Schema | undefined, unknown, string][]): string | undefined {
  for (const [schema, value, path] of places) {
    const fault = ambiguousList(schema, value, path);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** The live value with the applied value merged in, as a copy. */
function mergeValue(schema: Schema | undefined, live: unknown, applied: unknown): unknown {
  const isMember = (schema?.kind === 'struct' || schema?.kind === 'map') && !schema.atomic;
  if (isMember && isJsonObject(live) && isJsonObject(applied)) {
    const merged = cloneJson(live);
    for (const key of Object.keys(applied)) {
      setMember(merged, key, mergeValue(memberSchema(schema, key), getMember(live, key), applied[key]));
    }
    return merged;
  }
  if (schema?.kind === 'list' && Array.isArray(live) && Array.isArray(applied)) return mergeList(schema, live, applied);
  return cloneJson(applied);
}

/** Merges items by key. Applied items are in the applied order. Items that are only in `live` keep their position. */
function mergeList(schema: ListSchema, live: readonly unknown[], applied: readonly unknown[]): unknown[] {
  const liveKeys = itemKeys(schema, live);
  const appliedKeys = itemKeys(schema, applied);
  if (liveKeys === undefined || appliedKeys === undefined) return cloneJson([...applied]);
  const liveByKey = new Map(liveKeys.map((key, index) => [key, live[index]]));
  const mergedItems = appliedKeys.map((key, index) => {
    const item = applied[index];
    return liveByKey.has(key) ? mergeValue(schema.items, liveByKey.get(key), item) : cloneJson(item);
  });
  const applies = new Set(appliedKeys);
  let next = 0;
  const merged: unknown[] = [];
  for (const [index, key] of liveKeys.entries()) {
    if (!applies.has(key)) merged.push(cloneJson(live[index]));
    else merged.push(mergedItems[next++]);
  }
  return [...merged, ...mergedItems.slice(next)];
}

/**
 * Removes fields from an object, in place. A map key or list item is removed with all that others have set in it,
 * unless they own the key or item itself; a field of a struct only when none within it is wanted.
 * Source: structured-merge-diff, merge/update.go, prune and addBackOwnedItems.
 */
function removeFields(schema: Schema | undefined, value: unknown, unwanted: FieldSet, wanted: FieldSet): void {
  if (isEmptySet(unwanted)) return;
  if (isJsonObject(value)) {
    for (const [key, child] of unwanted.children) {
      const name = key.slice(2);
      if (!key.startsWith('f:') || !Object.hasOwn(value, name)) continue;
      const kept = wanted.children.get(key) ?? EMPTY_FIELD_SET;
      if (child.owned && (schema?.kind === 'map' || isEmptySet(kept))) delete value[name];
      else removeFields(memberSchema(schema, name), value[name], child, kept);
    }
  } else if (Array.isArray(value) && schema?.kind === 'list') {
    removeItems(schema, value, unwanted, wanted);
  }
}

function removeItems(schema: ListSchema, items: unknown[], unwanted: FieldSet, wanted: FieldSet): void {
  const keys = itemKeys(schema, items);
  if (keys === undefined) return;
  const left = items.filter((item, index) => {
    const key = keys[index] ?? '';
    const child = unwanted.children.get(key);
    if (child === undefined) return true;
    if (child.owned) return false;
    const kept = wanted.children.get(key) ?? EMPTY_FIELD_SET;
    removeFields(schema.items, item, withoutKeys(child, schema.mapKeys), kept);
    return true;
  });
  items.splice(0, items.length, ...left);
}

/** The set without the key fields of a list item: an item that is not removed keeps its key. */
function withoutKeys(set: FieldSet, mapKeys: readonly string[]): FieldSet {
  const children = new Map(set.children);
  for (const key of mapKeys) children.delete(`f:${key}`);
  return { ...set, children };
}

/** All fields that are listed in a conflict. Characters: a field may be named by a path of any length. */
const LISTED_CHARACTERS_MAX = 65_536;

function conflictOf(conflicts: readonly { readonly ownership: Ownership; readonly fields: FieldSet }[]): ApplyResult {
  const all = conflicts.flatMap(({ ownership, fields }) => {
    const owner = nameOf(ownership);
    return pathsOf(fields).map((field) => ({ owner, field }));
  });
  let characters = 0;
  const listed = all.filter(({ owner, field }) => {
    characters += owner.length + field.length;
    return characters <= LISTED_CHARACTERS_MAX;
  });
  const causes = listed.map(({ owner, field }) => ({
    reason: 'FieldManagerConflict' as const,
    message: `conflict with ${owner}`,
    field,
  }));
  const [first] = causes;
  if (all.length === 1 && first !== undefined) {
    return { kind: 'conflict', causes, message: `Apply failed with 1 conflict: ${first.message}: ${first.field}` };
  }
  const byOwner = [...Map.groupBy(listed, ({ owner }) => owner)]
    .map(([owner, fields]) => [`conflicts with ${owner}:`, ...fields.map(({ field }) => `- ${field}`)].join('\n'))
    .sort();
  const rest = all.length - listed.length;
  const lines = rest === 0 ? byOwner : [...byOwner, `and ${rest} more, which are not listed`];
  return { kind: 'conflict', causes, message: `Apply failed with ${all.length} conflicts: ${lines.join('\n')}` };
}

/** Name of a manager in a message: `"alpha"`, or for an Update `"kubectl-edit" with subresource "status" using v1`. */
function nameOf({ manager, operation, apiVersion, subresource }: Ownership): string {
  const part = subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`;
  return `${JSON.stringify(manager)}${part}${operation === 'Update' ? ` using ${apiVersion}` : ''}`;
}
