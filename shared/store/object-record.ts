/**
 * Items that hold Kubernetes objects and their changes.
 *
 *   object  o the object as JSON, without its resourceVersion; rv resourceVersion; k kind, n name (for stream filters);
 *           ttl epoch seconds, on objects that expire (events); w 1 when the commit changed what workload
 *           controllers read (workload-change.ts)
 *   log     one change: o the object as JSON at that version (of a deleted one: its last state); t ADDED, MODIFIED or
 *           DELETED; key the object's sort key; p JSON of the labels and selectable fields before, when they differ;
 *           ttl epoch seconds
 *   log     several changes of one commit: e a JSON list of the above without ttl, each with its rv, in that order;
 *           rv the highest of them; ttl epoch seconds
 *   head    rv the version below which nothing can be committed any more; c the highest version committed
 *   pod     (per node) u uid of the pod; b when it was bound, by our clock (ms)
 *
 * Only `rv` holds the version, so a commit that retries with a higher version need not serialise the object again.
 * `o` and `e` may be compressed (packed-text.ts).
 */
import { defined } from '../defined.ts';
import type { KubeObject, KubePod, ObjectRef } from '../kinds/types.ts';
import { jsonEqual } from '../kubernetes/wire/json.ts';
import type { Item } from './item-store.ts';
import { packText, type StoredText, unpackText } from './packed-text.ts';

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

type ObjectRow = { readonly o: StoredText; readonly rv: number };
type LogRow = ObjectRow & { readonly t: ChangeType; readonly key: string; readonly p?: string };
type FoldedLogRow = { readonly e: StoredText; readonly rv: number };

/** A change to be written to the log. */
export interface LoggedChange {
  readonly type: ChangeType;
  /** The object's sort key. */
  readonly key: string;
  readonly resourceVersion: number;
  /** JSON of the object, as objectText returns it, and as the object's own item stores it. */
  readonly text: string;
  readonly stored: StoredText;
  /** The text that previousText returns. */
  readonly previous: string | undefined;
}

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
  const object = JSON.parse(unpackText(o)) as KubeObject;
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

/** The attributes of a log item with these changes of one shard, oldest first. */
export function logAttributes(changes: readonly LoggedChange[]): Item {
  const last = changes.at(-1)!;
  if (changes.length === 1) {
    const { resourceVersion: rv, type: t, key, stored: o, previous: p } = last;
    return { rv, t, key, o, ...defined({ p }) };
  }
  const entries = changes.map(
    ({ resourceVersion, type, key, text, previous }) =>
      `{"rv":${resourceVersion},"t":"${type}","key":${JSON.stringify(key)},"o":${text}` +
      `${previous === undefined ? '' : `,"p":${previous}`}}`,
  );
  return { rv: last.resourceVersion, e: packText(`[${entries.join(',')}]`) };
}

/** A change in the log, read when it is needed. */
export interface LogEntry {
  readonly resourceVersion: number;
  change(): ObjectChange;
}

/** The changes of a log item, oldest first. */
export function logEntries(resource: string, item: Item): readonly LogEntry[] {
  if (item['e'] === undefined) {
    return [{ resourceVersion: (item as LogRow).rv, change: () => singleChange(resource, item as LogRow) }];
  }
  const folded = JSON.parse(unpackText((item as FoldedLogRow).e)) as readonly FoldedChange[];
  return folded.map((each) => ({ resourceVersion: each.rv, change: () => foldedChange(resource, each) }));
}

interface FoldedChange {
  readonly rv: number;
  readonly t: ChangeType;
  readonly key: string;
  readonly o: KubeObject;
  readonly p?: Selectable;
}

function foldedChange(resource: string, { rv, t: type, key, o: object, p: previous }: FoldedChange): ObjectChange {
  object.metadata.resourceVersion = String(rv);
  return { type, resourceVersion: rv, ref: refOf(resource, key), object, ...defined({ previous }) };
}

function singleChange(resource: string, row: LogRow): ObjectChange {
  const { t: type, rv: resourceVersion, key, p } = row;
  const previous = p === undefined ? undefined : (JSON.parse(p) as Selectable);
  return { type, resourceVersion, ref: refOf(resource, key), object: objectOf(row), ...defined({ previous }) };
}

/** The node a pod is bound to; undefined for unbound pods and everything else. */
export function nodeNameOf(resource: string, object: KubePod | undefined): string | undefined {
  const { nodeName = '' } = resource === 'pods' ? (object?.spec ?? {}) : {};
  return nodeName === '' ? undefined : nodeName;
}

/** `p` of a log item: undefined if no selector can distinguish the two states. */
export const previousText = (before: Selectable, after: Selectable): string | undefined =>
  jsonEqual(before, after) ? undefined : JSON.stringify(sorted(before));

const sorted = ({ labels, fields }: Selectable): Selectable => ({
  labels: Object.fromEntries(Object.entries(labels).sort(byName)),
  fields: Object.fromEntries(Object.entries(fields).sort(byName)),
});
const byName = ([one]: [string, string], [other]: [string, string]): number => (one < other ? -1 : 1);
