/**
 * Items that hold Kubernetes objects and their changes: objects, the change log, its heads, and the pods of a node.
 *
 * Only attribute `rv` holds the version, so a commit that retries with a higher version need not serialise the object
 * again.
 */
import { defined } from '../defined.ts';
import type { KubeObject, KubePod, ObjectRef } from '../kinds/types.ts';
import { jsonEqual } from '../kubernetes/json.ts';
import type { Item } from './item-store.ts';
import {
  changeOf,
  flag,
  number,
  packable,
  present,
  type RowValues,
  readRow,
  TTL_ATTRIBUTE,
  text,
  word,
} from './layout.ts';
import { packObjectText, type StoredText, unpackText } from './packed-text.ts';

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

const version = present(number('rv'));

/** An object. */
export const OBJECT = {
  version,
  /** JSON, without its resourceVersion. */
  object: present(packable('o')),
  /** For stream filters. */
  kind: text('k'),
  name: text('n'),
  /** The object of a custom resource: `kind` has the name of its definition, which no built-in kind has. */
  isCustom: flag('x'),
  /** The commit changed what workload controllers read (workload-change.ts). */
  changesWorkloads: flag('w'),
  /** Of objects that expire: events. */
  expiresAtSeconds: number(TTL_ATTRIBUTE),
};

/** A change in the log, or several of one commit. */
const LOG = {
  /** Of several the highest. */
  version,
  /** One change: the object at that version; of a deleted one its last state. */
  object: OBJECT.object,
  type: present(word<ChangeType>('t')),
  /** Sort key of the object. */
  key: present(text('key')),
  /** JSON of the labels and selectable fields before, when they differ. */
  previous: text('p'),
  /** Several changes: JSON of a list of them in their order, each with its version, without expiry (FoldedChange). */
  changes: packable('e'),
  expiresAtSeconds: present(number(TTL_ATTRIBUTE)),
};

/** The head of a shard of the log. */
export const HEAD = {
  /** Nothing can be committed below it any more. */
  version: number('rv'),
  /** Highest version committed. */
  committed: number('c'),
  /** Only in a copy of another store, which may have missed changes: the log begins after this version. */
  logFrom: number('f'),
  /** The same: changes between these two versions are missing. */
  missedAfter: number('a'),
  missedBefore: number('b'),
};

/** A pod of a node. */
export const NODE_POD = {
  uid: present(text('u')),
  /** By our clock. */
  boundAtMs: present(number('b')),
};
export type NodePod = RowValues<typeof NODE_POD>;

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
export function isExpired(item: Item, nowMs: number): boolean {
  const atSeconds = OBJECT.expiresAtSeconds.of(item);
  return atSeconds !== undefined && atSeconds * 1_000 <= nowMs;
}

/** The object of an object item, a log item or an image of a stream record; a copy, independent of the item. */
export function objectOf(item: Item): KubeObject {
  const object = JSON.parse(unpackText(OBJECT.object.of(item))) as KubeObject;
  object.metadata.resourceVersion = String(version.of(item));
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

/** A log item without its key, with these changes of one shard, oldest first. */
export function logAttributes(changes: readonly LoggedChange[], expiresAtSeconds: number): Item {
  const last = changes.at(-1)!;
  const common = { version: last.resourceVersion, expiresAtSeconds };
  if (changes.length === 1) {
    const { type, key, stored: object, previous } = last;
    return changeOf(LOG, { ...common, type, key, object, previous }).set;
  }
  const entries = changes.map(
    ({ resourceVersion, type, key, text, previous }) =>
      `{"rv":${resourceVersion},"t":"${type}","key":${JSON.stringify(key)},"o":${text}` +
      `${previous === undefined ? '' : `,"p":${previous}`}}`,
  );
  return changeOf(LOG, { ...common, changes: packObjectText(`[${entries.join(',')}]`) }).set;
}

/** A change in the log, read when it is needed. */
export interface LogEntry {
  readonly resourceVersion: number;
  change(): ObjectChange;
}

/** The changes of a log item, oldest first. */
export function logEntries(resource: string, item: Item): readonly LogEntry[] {
  const changes = LOG.changes.of(item);
  if (changes === undefined) {
    return [{ resourceVersion: version.of(item), change: () => singleChange(resource, item) }];
  }
  const folded = JSON.parse(unpackText(changes)) as readonly FoldedChange[];
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

function singleChange(resource: string, item: Item): ObjectChange {
  const { type, version: resourceVersion, key, previous: previousJson } = readRow(LOG, item);
  const previous = previousJson === undefined ? undefined : (JSON.parse(previousJson) as Selectable);
  return { type, resourceVersion, ref: refOf(resource, key), object: objectOf(item), ...defined({ previous }) };
}

/** The node a pod is bound to; undefined for unbound pods and everything else. */
export function nodeNameOf(resource: string, object: KubePod | undefined): string | undefined {
  const { nodeName = '' } = resource === 'pods' ? (object?.spec ?? {}) : {};
  return nodeName === '' ? undefined : nodeName;
}

/** LOG.previous: undefined if no selector can distinguish the two states. */
export const previousText = (before: Selectable, after: Selectable): string | undefined =>
  jsonEqual(before, after) ? undefined : JSON.stringify(sorted(before));

const sorted = ({ labels, fields }: Selectable): Selectable => ({
  labels: Object.fromEntries(Object.entries(labels).sort(byName)),
  fields: Object.fromEntries(Object.entries(fields).sort(byName)),
});
const byName = ([one]: [string, string], [other]: [string, string]): number => (one < other ? -1 : 1);
