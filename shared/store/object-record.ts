/**
 * Items that hold Kubernetes objects and their changes.
 *
 *   object  o the object as JSON, without its resourceVersion; rv resourceVersion; k kind, n name (for stream filters);
 *           ttl epoch seconds, on objects that expire (events)
 *   log     o the object as JSON at that version (of a deleted one: its last state); t ADDED, MODIFIED or DELETED;
 *           key the object's sort key; p JSON of the labels and selectable fields before, when they differ;
 *           ttl epoch seconds
 *   head    rv the version below which nothing can be committed any more; c the highest version committed
 *   pod     (per node) u uid of the pod; b when it was bound, by our clock (ms)
 *
 * Only `rv` holds the version, so a commit that retries with a higher version need not serialise the object again.
 */
import type { KubeObject, KubePod, ObjectRef } from '../kube/types.ts';
import type { Item } from '../ports/item-store.ts';

export type ChangeType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** Labels and selectable fields. They decide whether a watch with a selector has seen the object before. */
export interface Selectable {
  readonly labels: Readonly<Record<string, string>>;
  readonly fields: Readonly<Record<string, string>>;
}

export interface ObjectChange {
  readonly type: ChangeType;
  readonly resourceVersion: number;
  readonly ref: ObjectRef;
  /** The object at this version; for a deleted object its last state, with the version of the deletion. */
  readonly object: KubeObject;
  /** Labels and fields before this change; absent if unchanged, and on ADDED. */
  readonly previous?: Selectable;
}

type ObjectRow = { readonly o: string; readonly rv: number };
type LogRow = ObjectRow & { readonly t: ChangeType; readonly key: string; readonly p?: string };

/** The JSON to store. */
export function objectText(object: KubeObject): string {
  const { resourceVersion: _, ...metadata } = object.metadata;
  return JSON.stringify({ ...object, metadata });
}

/**
 * Whether the object has expired. DynamoDB deletes an expired item within a few days and returns it until then
 * (Amazon DynamoDB Developer Guide, "Working with expired items and time to live (TTL)"), so every read filters.
 */
export const isExpired = ({ ttl }: Item, nowMs: number): boolean => typeof ttl === 'number' && ttl * 1_000 <= nowMs;

/** The object of an object item, a log item or an image of a stream record; a copy, independent of the item. */
export function objectOf(item: Item): KubeObject {
  const { o, rv } = item as ObjectRow;
  const object = JSON.parse(o) as KubeObject;
  object.metadata.resourceVersion = String(rv);
  return object;
}

/** resourceVersion of a stored object, as a number. Throws a RangeError if it has none. */
export function resourceVersionOf(object: KubeObject): number {
  const version = Number(object.metadata.resourceVersion ?? '');
  if (!Number.isSafeInteger(version) || version <= 0) throw new RangeError('the object has no resourceVersion');
  return version;
}

export function refOf(resource: string, sortKey: string): ObjectRef {
  const slash = sortKey.indexOf('/');
  return slash < 0
    ? { resource, namespace: '', name: sortKey }
    : { resource, namespace: sortKey.slice(0, slash), name: sortKey.slice(slash + 1) };
}

export function changeOf(resource: string, item: Item): ObjectChange {
  const { t: type, rv: resourceVersion, key, p: previous } = item as LogRow;
  return {
    type,
    resourceVersion,
    ref: refOf(resource, key),
    object: objectOf(item),
    ...(previous === undefined ? {} : { previous: JSON.parse(previous) as Selectable }),
  };
}

/** The node a pod is bound to; undefined for unbound pods and everything else. */
export function nodeNameOf(resource: string, object: KubePod | undefined): string | undefined {
  const { nodeName = '' } = resource === 'pods' ? (object?.spec ?? {}) : {};
  return nodeName === '' ? undefined : nodeName;
}

/** `p` of a log item: undefined if no selector can distinguish the two states. */
export function previousText(before: Selectable, after: Selectable): string | undefined {
  const text = JSON.stringify(sorted(before));
  return text === JSON.stringify(sorted(after)) ? undefined : text;
}

const sorted = ({ labels, fields }: Selectable): Selectable => ({
  labels: Object.fromEntries(Object.entries(labels).sort(byName)),
  fields: Object.fromEntries(Object.entries(fields).sort(byName)),
});
const byName = ([one]: [string, string], [other]: [string, string]): number => (one < other ? -1 : 1);
