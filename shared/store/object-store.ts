/**
 * Kubernetes objects in the `objects` table. Every write is a `commit`: one transaction that changes the objects, the
 * change log, the heads of their shards, and other items that must change with them.
 *
 * resourceVersion is a hybrid clock of milliseconds and a counter. It is always above the head of the shard, which
 * every commit checks and raises. Two shards of a resource never issue the same version: a version modulo the number of
 * shards is its shard. So a version identifies one change of its resource, and a watch can resume after any of them.
 * Why a watch misses no change: change-log.ts.
 *
 * Cost of a commit, in write units, doubled by the transaction: the object's KB, the log entry's KB, one for each
 * head, and one for a pod's pointer when the pod is bound or removed. Compressed, a Node or a pod is below 1 KB. The
 * changes of one shard in one commit share a log item.
 */
import { type Backoff, backoffMs } from '../backoff.ts';
import type { Clock } from '../clock.ts';
import { defined } from '../defined.ts';
import type { KubeObject, ObjectRef } from '../kinds/types.ts';
import { utf8Bytes } from '../text.ts';
import {
  type Condition,
  ITEM_BYTES_MAX,
  type Item,
  type ItemKey,
  type ItemStore,
  itemBytes,
  SORT_KEY_BYTES_MAX,
  StoreFault,
  TRANSACT_BYTES_MAX,
  TRANSACT_WRITES_MAX,
  type TransactWrite,
} from './item-store.ts';
import {
  ALONE,
  any,
  below,
  changeOf,
  headPartition,
  holds,
  LOG_RETENTION_SECONDS,
  logPartition,
  namesOf,
  nodePodsPartition,
  objectPartition,
  objectSortKey,
  RESOURCE_VERSIONS_PER_MS,
  readRow,
  resourceVersionKey,
  shardOf,
} from './layout.ts';
import { mergePages } from './merge-pages.ts';
import {
  type ChangeType,
  HEAD,
  isExpired,
  type LoggedChange,
  logAttributes,
  NODE_POD,
  type NodePod,
  nodeNameOf,
  OBJECT,
  objectOf,
  objectText,
  packObjectText,
  previousText,
  refOf,
  resourceVersionOf,
  type Selectable,
  type StoredText,
  storedText,
} from './object-record.ts';
import { ownerIndexWrites } from './owners.ts';
import { changesWorkloads } from './workload-change.ts';

/** Objects in one commit that always fit a transaction (object, log, pod pointer and head each), without `extra`. */
export const COMMIT_OBJECTS_MAX = 25;
/**
 * JSON of one object, in UTF-16 units: its item stays below 400 KB even if every unit needs three bytes. Clients may
 * use CLIENT_TEXT_MAX of them. The difference is reserved for controllers: a mark, taints and conditions always fit.
 */
export const OBJECT_TEXT_MAX = 120_000;
/** JSON of one object as a client may write it, UTF-16 units. */
export const CLIENT_TEXT_MAX = 100_000;
/** JSON of the changes in one log item, in UTF-16 units; a larger change has an item of its own. */
const LOG_ITEM_LENGTH_MAX = 100_000;
/** Keys and attributes beside the JSON, in each of an object's item and its log entry. Bytes. */
const ITEM_EXTRA_BYTES = 2_048;
/** Assumed size of a head update and of an item of unknown size, such as a health row. Bytes per write. */
const WRITE_EXTRA_BYTES = 1_024;
/** UTF-8 bytes of one UTF-16 unit at most. */
const UNIT_BYTES_MAX = 3;
/** Log entries are kept this much longer than the retention, for a reader that is late. Seconds. */
const LOG_MARGIN_SECONDS = 300;

/** Attempts at a commit that conflicts with another: each uses a higher version or waits briefly. */
const COMMIT_ATTEMPTS_MAX = 10;
const PAUSES: Backoff = { firstMs: 5, limitMs: 200, jitter: [0.5, 1] };
/** Pages of one node's pods, at 1 MB: a kubelet runs about a hundred pods. */
const NODE_PAGES_MAX = 8;

export type SelectableFields = (object: KubeObject) => Readonly<Record<string, string>>;

export type ObjectWrite =
  | {
      readonly kind: 'create';
      readonly ref: ObjectRef;
      readonly object: KubeObject;
      readonly expiresAtSeconds?: number;
    }
  | {
      readonly kind: 'update';
      readonly ref: ObjectRef;
      readonly object: KubeObject;
      /** The object as read: its resourceVersion must still be stored. */
      readonly previous: KubeObject;
      readonly expiresAtSeconds?: number;
      /** Fields that a field selector may name. Absent: those of the store for this resource. */
      readonly selectableFields?: SelectableFields;
    }
  | {
      readonly kind: 'delete';
      readonly ref: ObjectRef;
      /** The object as read: its resourceVersion must still be stored. Watches receive it as the last state. */
      readonly previous: KubeObject;
    };

export interface Commit {
  /**
   * On distinct objects; 1 to COMMIT_OBJECTS_MAX, or more. A transaction has room for TRANSACT_WRITES_MAX items: one
   * for each object, extra write, bound or removed pod, log item and head.
   */
  readonly writes: readonly ObjectWrite[];
  /** Written in the same transaction as the objects, to other items. */
  readonly extra?: readonly TransactWrite[];
  /**
   * A client's write: CLIENT_TEXT_MAX applies, unless the stored object is as large already (from before this limit, or
   * because of what controllers added). Absent: a controller's write, which may use the reserve.
   */
  readonly byClient?: boolean;
}

export type CommitOutcome =
  /**
   * The objects as stored (a deleted one in its last state), each with its new resourceVersion, in order of the writes.
   */
  | { readonly kind: 'committed'; readonly objects: readonly KubeObject[] }
  /** Another version of writes[index] is stored: `current`; absent if none is. */
  | { readonly kind: 'conflict'; readonly index: number; readonly current?: KubeObject }
  /** The condition of extra[index] did not hold. */
  | { readonly kind: 'extraRefused'; readonly index: number; readonly current?: Item }
  /** Writes[index] is larger than an item may be. */
  | { readonly kind: 'tooLarge'; readonly index: number }
  /**
   * Nothing was written: each object fits, but together they have more items or bytes than a transaction may have.
   * Commit fewer.
   */
  | { readonly kind: 'overfull' }
  /** Nothing was written: every attempt conflicted with other commits. Retry later. */
  | { readonly kind: 'contended' };

export interface ListRequest {
  readonly resource: string;
  /** '' or absent: every namespace. */
  readonly namespace?: string;
  readonly limit?: number;
  /** Sort key (`[namespace/]name`) of the last object of the page before. */
  readonly continueAfter?: string;
}

export interface ObjectList {
  readonly objects: readonly KubeObject[];
  /** Of the stored text of each. UTF-16 units. */
  readonly lengths?: readonly number[];
  /** continueAfter of the next page; absent when this was the last. */
  readonly next?: string;
}

/** A pod and when it was bound. */
export interface BoundPod {
  readonly pod: KubeObject;
  /** Server time of the commit that bound it. */
  readonly boundAtMs: number;
}

/** Reads omit expired objects, and a create replaces one, also before DynamoDB has deleted them. */
export interface ObjectStore {
  /** Strongly consistent. */
  get(ref: ObjectRef): Promise<KubeObject | undefined>;
  /** Strongly consistent, in order of the refs. */
  getMany(refs: readonly ObjectRef[]): Promise<readonly (KubeObject | undefined)[]>;
  /**
   * One page in order of namespace and name, strongly consistent. For a watch from here: ChangeLog.currentVersion
   * first. A page with `next` may be shorter than the limit, even empty, because expired objects count in the limit.
   */
  list(request: ListRequest): Promise<ObjectList>;
  /** The pods bound to a node, strongly consistent. */
  listByNode(nodeName: string): Promise<readonly KubeObject[]>;
  /**
   * The same, with the time of each binding. Reads no more than listByNode. `only`: those of these `NAMESPACE/NAME`;
   * the others are not read.
   */
  listBound(nodeName: string, only?: ReadonlySet<string>): Promise<readonly BoundPod[]>;
  commit(commit: Commit): Promise<CommitOutcome>;
}

export interface ObjectStoreOptions {
  readonly items: ItemStore;
  readonly clock: Clock;
  /** Number of shards of a resource, from its descriptor. */
  readonly shardsOf: (resource: string) => number;
  /** Fields that a field selector may name, with their values; metadata.name and namespace need not be among them. */
  readonly selectableFields?: (resource: string, object: KubeObject) => Readonly<Record<string, string>>;
  /** A number in [0, 1), for jitter. */
  readonly random?: () => number;
  /** Waits between attempts. Milliseconds. Absent: attempts follow at once. */
  readonly pause?: (milliseconds: number) => Promise<unknown>;
}

export const objectKey = (ref: ObjectRef, shards: number): ItemKey => {
  const sk = objectSortKey(ref.namespace, ref.name);
  return { table: 'objects', pk: objectPartition(ref.resource, shardOf(sk, shards)), sk };
};

/** Names come from clients as well, as those of owners. No object has a longer key, and a store refuses to read one. */
const isStorable = ({ sk }: ItemKey): boolean => utf8Bytes(sk) <= SORT_KEY_BYTES_MAX;

export function objectStore(options: ObjectStoreOptions): ObjectStore {
  const { items, clock, shardsOf } = options;
  const issuer = versionIssuer(clock);
  const turns = headTurns();
  const keysOf = (refs: readonly ObjectRef[]): ItemKey[] => refs.map((ref) => objectKey(ref, shardsOf(ref.resource)));
  const getMany = async (refs: readonly ObjectRef[]): Promise<readonly (KubeObject | undefined)[]> => {
    const keys = keysOf(refs);
    const found = (await items.getMany(keys.filter(isStorable), { consistent: true })).values();
    return keys.map((key) => (isStorable(key) ? liveObject(found.next().value, clock.nowMs()) : undefined));
  };
  const listBound: ObjectStore['listBound'] = async (nodeName, only) => {
    const pointers =
      only === undefined ? await readPointers(items, nodeName) : await namedPointers(items, nodeName, only);
    return readBoundPods(pointers, nodeName, getMany);
  };
  return {
    async get(ref) {
      const key = objectKey(ref, shardsOf(ref.resource));
      return isStorable(key) ? liveObject(await items.get(key, { consistent: true }), clock.nowMs()) : undefined;
    },
    getMany,
    list: (request) => listObjects(options, request),
    listByNode: async (nodeName) => (await listBound(nodeName)).map(({ pod }) => pod),
    listBound,
    commit: (commit) => turns.take(headsOf(commit, shardsOf), () => commitObjects(options, issuer, commit)),
  };
}

const liveObject = (item: Item | undefined, nowMs: number): KubeObject | undefined =>
  item === undefined || isExpired(item, nowMs) ? undefined : objectOf(item);

/** What a list reads of an object's item. */
const LISTED = namesOf({ object: OBJECT.object, version: OBJECT.version, expiry: OBJECT.expiresAtSeconds });

async function listObjects(
  { items, clock, shardsOf }: ObjectStoreOptions,
  { resource, namespace = '', limit, continueAfter }: ListRequest,
): Promise<ObjectList> {
  const readers = Array.from(
    { length: shardsOf(resource) },
    (_, shard) => (page: { after?: string; limit?: number }) =>
      items.query({
        table: 'objects',
        pk: objectPartition(resource, shard),
        consistent: true,
        attributes: LISTED,
        ...(namespace === '' ? {} : { beginsWith: `${namespace}/` }),
        ...page,
      }),
  );
  const page = await mergePages(readers, defined({ limit, after: continueAfter }));
  const nowMs = clock.nowMs();
  const live = page.items.filter((item) => !isExpired(item, nowMs));
  const lengths: number[] = [];
  // One text at a time: 500 of OBJECT_TEXT_MAX have 60 million characters.
  const objects = live.map((item) => {
    const text = storedText(item);
    lengths.push(text.length);
    return objectOf(item, text);
  });
  return { objects, lengths, ...defined({ next: page.next }) };
}

async function readBoundPods(
  pointers: readonly Item[],
  nodeName: string,
  getMany: ObjectStore['getMany'],
): Promise<readonly BoundPod[]> {
  const pods = await getMany(pointers.map(({ sk }) => refOf('pods', String(sk))));
  // Deleted, or deleted and recreated on another node, between the two reads.
  return pods.flatMap((pod, index) =>
    pod === undefined || nodeNameOf('pods', pod) !== nodeName
      ? []
      : [boundPod(pod, readRow(NODE_POD, pointers[index]!))],
  );
}

async function namedPointers(items: ItemStore, nodeName: string, pods: ReadonlySet<string>): Promise<readonly Item[]> {
  const keys = [...pods].map((sk): ItemKey => ({ table: 'objects', pk: nodePodsPartition(nodeName), sk }));
  const found = await items.getMany(keys, { consistent: true });
  return found.filter((item) => item !== undefined);
}

async function readPointers(items: ItemStore, nodeName: string): Promise<readonly Item[]> {
  const pointers: Item[] = [];
  let after: string | undefined;
  for (let pages = 0; pages < NODE_PAGES_MAX; pages += 1) {
    const pk = nodePodsPartition(nodeName);
    const page = await items.query({ table: 'objects', pk, consistent: true, ...defined({ after }) });
    pointers.push(...page.items);
    if (page.next === undefined) return pointers;
    after = page.next;
  }
  throw new StoreFault('too-large', 'a node has more pods than one read may return', { retryable: false });
}

/** A write with the version that another store has issued. */
export type IssuedWrite = ObjectWrite & { readonly version: number };

/**
 * The items that the commit of these writes has in the other store: for a copy of its objects, in one transaction.
 * Versions of a head ascend, here and from one commit to the next. `logged` false: without the change log and its
 * heads.
 */
export function issuedItems(
  options: Pick<ObjectStoreOptions, 'clock' | 'shardsOf' | 'selectableFields'>,
  writes: readonly IssuedWrite[],
  { logged }: { readonly logged: boolean },
): readonly TransactWrite[] {
  const drafts = writes.map((write) => draftOf(write, options));
  const stored = drafts.map(({ text }) => packObjectText(text));
  let issued = 0;
  const issuer: VersionIssuer = {
    issue() {
      issued += 1;
      return writes[issued - 1]!.version;
    },
  };
  const plan = planTransaction({ drafts, stored, extra: [] }, issuer, new Map());
  if (logged) return plan.writes;
  const ofLog = new Set(drafts.flatMap(({ head, log }) => [head, log]));
  return plan.writes.filter(({ key }) => !ofLog.has(key.pk));
}

async function commitObjects(
  options: ObjectStoreOptions,
  issuer: VersionIssuer,
  commit: Commit,
): Promise<CommitOutcome> {
  const { writes, extra = [], byClient = false } = commit;
  if (writes.length === 0) throw new RangeError('a commit writes at least one object');
  const drafts = writes.map((write) => draftOf(write, options));
  const tooLarge = drafts.findIndex((draft) => isTooLarge(draft, byClient));
  if (tooLarge >= 0) return { kind: 'tooLarge', index: tooLarge };
  if (isOverfull(drafts, extra)) return { kind: 'overfull' };
  /** By head: a version that the next attempt must exceed. */
  const floors = new Map<string, number>();
  const stored = drafts.map(({ text }) => packObjectText(text));
  for (let attempt = 1; attempt <= COMMIT_ATTEMPTS_MAX; attempt += 1) {
    const plan = planTransaction({ drafts, stored, extra }, issuer, floors);
    if (plan.writes.length > TRANSACT_WRITES_MAX) return { kind: 'overfull' };
    const outcome = await options.items.transact(plan.writes);
    if (outcome.kind === 'written') {
      return { kind: 'committed', objects: drafts.map((draft, index) => versioned(draft, plan.versions[index]!)) };
    }
    if (outcome.kind === 'refused') {
      const answer = refusalOf(outcome.failures, plan);
      if (answer !== undefined) return answer;
      // Only heads refused: another commit or a reader raised that shard. Its version is our lower bound.
      for (const { index, current } of outcome.failures) {
        floors.set(plan.headAt.get(index)!, (current && HEAD.version.of(current)) ?? 0);
      }
    }
    if (attempt < COMMIT_ATTEMPTS_MAX) await pauseAfter(attempt, outcome.kind, options);
  }
  return { kind: 'contended' };
}

/** A write as it will be stored, without its version. */
interface Draft {
  readonly write: ObjectWrite;
  readonly type: ChangeType;
  readonly key: ItemKey;
  /** Partition key of the shard's head, and of its log. */
  readonly head: string;
  readonly log: string;
  readonly shard: number;
  readonly shards: number;
  readonly text: string;
  readonly previous: string | undefined;
  /** Items that find the object by its node or its owners. */
  readonly pointers: readonly TransactWrite[];
  /** Our clock when the commit began. */
  readonly nowMs: number;
}

function draftOf(
  write: ObjectWrite,
  options: Pick<ObjectStoreOptions, 'clock' | 'shardsOf' | 'selectableFields'>,
): Draft {
  const { ref } = write;
  const { resource } = ref;
  const shards = options.shardsOf(resource);
  const key = objectKey(ref, shards);
  const shard = shardOf(key.sk, shards);
  const object = write.kind === 'delete' ? write.previous : write.object;
  const nowMs = options.clock.nowMs();
  const ofWrite = write.kind === 'update' ? write.selectableFields : undefined;
  const selectable = (of: KubeObject): Selectable => ({
    labels: of.metadata.labels ?? {},
    fields: ofWrite?.(of) ?? options.selectableFields?.(resource, of) ?? {},
  });
  return {
    write,
    type: write.kind === 'create' ? 'ADDED' : write.kind === 'update' ? 'MODIFIED' : 'DELETED',
    key,
    head: headPartition(resource, shard),
    log: logPartition(resource, shard),
    shard,
    shards,
    text: objectText(object),
    previous: write.kind === 'update' ? previousText(selectable(write.previous), selectable(write.object)) : undefined,
    pointers: pointersOf(write, nowMs),
    nowMs,
  };
}

/** Measured on the plain text: an object must also fit while objects are stored plain. */
function isTooLarge({ write, text, previous = '' }: Draft, byClient: boolean): boolean {
  if (byClient && text.length > CLIENT_TEXT_MAX && write.kind !== 'delete') {
    const before = write.kind === 'update' ? objectText(write.previous).length : 0;
    // A deletion mark is allowed at any size; it adds two timestamps to the metadata.
    const isDeletion = write.kind === 'update' && isNewlyDeleted(write.previous, write.object);
    if (text.length > before && !isDeletion) return true;
  }
  if (text.length > OBJECT_TEXT_MAX) return true;
  if ((text.length + previous.length) * UNIT_BYTES_MAX + ITEM_EXTRA_BYTES <= ITEM_BYTES_MAX) return false;
  return utf8Bytes(text) + utf8Bytes(previous) + ITEM_EXTRA_BYTES > ITEM_BYTES_MAX;
}

const isNewlyDeleted = (before: KubeObject, after: KubeObject): boolean =>
  before.metadata.deletionTimestamp === undefined && after.metadata.deletionTimestamp !== undefined;

/**
 * Bytes of the object and its log entry, both with the JSON. Texts are measured only if their length is not conclusive.
 */
function isOverfull(drafts: readonly Draft[], extra: readonly TransactWrite[]): boolean {
  let bytes = (drafts.length + extra.length) * WRITE_EXTRA_BYTES;
  for (const write of extra) {
    if (write.kind === 'put') bytes += itemBytes(write.item);
    if (write.kind === 'update') bytes += itemBytes({ ...write.set, ...write.setIfAbsent });
  }
  const units = drafts.reduce((sum, { text, previous = '' }) => sum + 2 * text.length + previous.length, 0);
  const around = bytes + drafts.length * 2 * ITEM_EXTRA_BYTES;
  if (around + units * UNIT_BYTES_MAX <= TRANSACT_BYTES_MAX) return false;
  const texts = drafts.reduce((sum, { text, previous = '' }) => sum + 2 * utf8Bytes(text) + utf8Bytes(previous), 0);
  return around + texts > TRANSACT_BYTES_MAX;
}

const pointerKey = (nodeName: string, { namespace, name }: Omit<ObjectRef, 'resource'>): ItemKey => ({
  table: 'objects',
  pk: nodePodsPartition(nodeName),
  sk: objectSortKey(namespace, name),
});

const bindingOf = (pod: KubeObject, boundAtMs: number): Item =>
  changeOf(NODE_POD, { uid: pod.metadata.uid ?? '', boundAtMs }).set;

/**
 * A pointer with another uid belongs to an earlier pod of the same name, deleted between the two reads. The time of the
 * pod's version is never before its binding, so no eviction is early.
 */
function boundPod(pod: KubeObject, { boundAtMs, uid }: NodePod): BoundPod {
  return uid === pod.metadata.uid
    ? { pod, boundAtMs }
    : { pod, boundAtMs: Math.floor(resourceVersionOf(pod) / RESOURCE_VERSIONS_PER_MS) };
}

const ownerPointersOf = (write: ObjectWrite): readonly TransactWrite[] =>
  ownerIndexWrites(
    write.ref,
    write.kind === 'create' ? undefined : write.previous,
    write.kind === 'delete' ? undefined : write.object,
  );

function pointersOf(write: ObjectWrite, nowMs: number): readonly TransactWrite[] {
  const ofNode = pointerOf(write, nowMs);
  return [...(ofNode === undefined ? [] : [ofNode]), ...ownerPointersOf(write)];
}

/**
 * The item that finds a pod by its node and stores when it was bound. It is written when the pod is bound and deleted
 * with the pod. A binding never changes. The time is not stored in the object, because nodes write the pod's status
 * there.
 */
function pointerOf(write: ObjectWrite, nowMs: number): TransactWrite | undefined {
  const before = write.kind === 'create' ? undefined : nodeNameOf(write.ref.resource, write.previous);
  const after = write.kind === 'delete' ? undefined : nodeNameOf(write.ref.resource, write.object);
  if (before === after) return undefined;
  if (before !== undefined && after !== undefined) throw new RangeError('a bound pod does not change its node');
  const key = pointerKey((after ?? before)!, write.ref);
  return write.kind === 'delete' || after === undefined
    ? { kind: 'delete', key }
    : { kind: 'put', key, item: bindingOf(write.object, nowMs) };
}

interface TransactionPlan {
  readonly writes: readonly TransactWrite[];
  /** The version of each object write, in order. */
  readonly versions: readonly number[];
  /** By position in `writes`: index of the object write, partition key of the head, index of the extra write. */
  readonly objectAt: ReadonlyMap<number, number>;
  readonly headAt: ReadonlyMap<number, string>;
  readonly extraAt: ReadonlyMap<number, number>;
}

interface DraftedCommit {
  readonly drafts: readonly Draft[];
  /** The text of each draft as its item stores it. */
  readonly stored: readonly StoredText[];
  readonly extra: readonly TransactWrite[];
}

function planTransaction(
  { drafts, stored, extra }: DraftedCommit,
  issuer: VersionIssuer,
  floors: ReadonlyMap<string, number>,
): TransactionPlan {
  const writes: TransactWrite[] = [];
  const versions: number[] = [];
  const objectAt = new Map<number, number>();
  const headAt = new Map<number, string>();
  const extraAt = new Map<number, number>();
  const heads = new Map<string, { first: number; last: number }>();
  const logged = new Map<string, LoggedChange[]>();
  drafts.forEach((draft, index) => {
    const { key, head } = draft;
    const moved = heads.get(head);
    // A Lease is renewed without its head (shared/kinds/leases/renew-object.ts).
    const replaced = draft.write.kind === 'create' ? 0 : resourceVersionOf(draft.write.previous);
    const floor = Math.max(moved?.last ?? floors.get(head) ?? 0, replaced);
    const version = issuer.issue(draft.shard, draft.shards, floor);
    versions.push(version);
    heads.set(head, { first: moved?.first ?? version, last: version });
    objectAt.set(writes.length, index);
    writes.push(objectItem(draft, stored[index]!, version));
    writes.push(...draft.pointers);
    const { type, text, previous } = draft;
    const change = { type, key: key.sk, resourceVersion: version, text, stored: stored[index]!, previous };
    logged.set(draft.log, [...(logged.get(draft.log) ?? []), change]);
  });
  for (const [pk, changes] of logged) {
    for (const part of logParts(changes)) writes.push(logItem(pk, part));
  }
  for (const [pk, { first, last }] of heads) {
    headAt.set(writes.length, pk);
    writes.push({
      kind: 'update',
      key: { table: 'objects', pk, sk: ALONE },
      set: changeOf(HEAD, { version: last, committed: last }).set,
      when: below(HEAD.version, first),
    });
  }
  extra.forEach((write, index) => {
    extraAt.set(writes.length, index);
    writes.push(write);
  });
  return { writes, versions, objectAt, headAt, extraAt };
}

/** The changes of one shard, divided over log items. */
function logParts(changes: readonly LoggedChange[]): readonly (readonly LoggedChange[])[] {
  const parts: LoggedChange[][] = [];
  let length = 0;
  for (const change of changes) {
    const own = change.text.length + (change.previous?.length ?? 0);
    const part = parts.at(-1);
    if (part !== undefined && length + own <= LOG_ITEM_LENGTH_MAX) {
      part.push(change);
      length += own;
    } else {
      parts.push([change]);
      length = own;
    }
  }
  return parts;
}

function logItem(pk: string, changes: readonly LoggedChange[]): TransactWrite {
  const { resourceVersion } = changes.at(-1)!;
  const atSeconds = Math.ceil(resourceVersion / RESOURCE_VERSIONS_PER_MS / 1_000);
  return {
    kind: 'put',
    key: { table: 'objects', pk, sk: resourceVersionKey(resourceVersion) },
    item: logAttributes(changes, atSeconds + LOG_RETENTION_SECONDS + LOG_MARGIN_SECONDS),
  };
}

function objectItem(draft: Draft, text: StoredText, version: number): TransactWrite {
  const { write, key } = draft;
  if (write.kind === 'create') {
    return { kind: 'put', key, item: attributesOf(write, text, version), when: absence(write, draft.nowMs) };
  }
  const when = holds(OBJECT.version, resourceVersionOf(write.previous));
  return write.kind === 'delete'
    ? { kind: 'delete', key, when }
    : { kind: 'put', key, item: attributesOf(write, text, version), when };
}

/** An expired object counts as absent. Only objects that are created with an expiry can have expired. */
const absence = ({ expiresAtSeconds }: { readonly expiresAtSeconds?: number }, nowMs: number): Condition =>
  expiresAtSeconds === undefined
    ? { kind: 'itemAbsent' }
    : any(
        { kind: 'itemAbsent' },
        { kind: 'compare', attribute: OBJECT.expiresAtSeconds.name, op: '<=', value: Math.floor(nowMs / 1_000) },
      );

function attributesOf(write: Exclude<ObjectWrite, { kind: 'delete' }>, text: StoredText, version: number): Item {
  const { object, ref } = write;
  return changeOf(OBJECT, {
    version,
    object: text,
    kind: isCustomName(ref.resource) ? ref.resource : (object.kind ?? ref.resource),
    isCustom: isCustomName(ref.resource),
    name: ref.name,
    changesWorkloads: changesWorkloads(ref.resource, write.kind === 'update' ? write.previous : undefined, object),
    expiresAtSeconds: write.expiresAtSeconds,
  }).set;
}

/** `<plural>.<group>`; the plural of a built-in kind has no dot. */
const isCustomName = (resource: string): boolean => resource.includes('.');

/** The outcome for the caller; undefined if only heads refused, in which case the commit is tried again. */
function refusalOf(
  failures: readonly { readonly index: number; readonly current?: Item }[],
  plan: TransactionPlan,
): CommitOutcome | undefined {
  for (const { index, current } of failures) {
    const write = plan.objectAt.get(index);
    if (write !== undefined) {
      return { kind: 'conflict', index: write, ...(current === undefined ? {} : { current: objectOf(current) }) };
    }
  }
  for (const { index, current } of failures) {
    const extra = plan.extraAt.get(index);
    if (extra !== undefined) {
      return { kind: 'extraRefused', index: extra, ...defined({ current }) };
    }
  }
  return undefined;
}

function versioned(draft: Draft, version: number): KubeObject {
  const object = draft.write.kind === 'delete' ? draft.write.previous : draft.write.object;
  return { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
}

async function pauseAfter(
  attempt: number,
  outcome: 'refused' | 'contended',
  { pause, random }: ObjectStoreOptions,
): Promise<void> {
  // A refused head contains the version to exceed: the first retry does not wait.
  if (pause === undefined || (outcome === 'refused' && attempt === 1)) return;
  await pause(backoffMs(PAUSES, attempt, random?.() ?? 0.5));
}

/** Partition keys of the heads that a commit raises. */
const headsOf = ({ writes }: Commit, shards: ObjectStoreOptions['shardsOf']): ReadonlySet<string> =>
  new Set(
    writes.map(({ ref }) => {
      const shard = shardOf(objectSortKey(ref.namespace, ref.name), shards(ref.resource));
      return headPartition(ref.resource, shard);
    }),
  );

interface HeadTurns {
  /** Runs a commit after all commits of this process that asked before for one of its heads. */
  take<Outcome>(heads: ReadonlySet<string>, commit: () => Promise<Outcome>): Promise<Outcome>;
}

/**
 * Commits of one process on one head follow each other. In DynamoDB concurrent transactions on an item cancel each
 * other, and each cancelled one is billed. A commit asks for all of its heads at once, so no two commits wait for each
 * other.
 */
function headTurns(): HeadTurns {
  const last = new Map<string, Promise<unknown>>();
  return {
    async take(heads, commit) {
      const before = [...heads].flatMap((head) => last.get(head) ?? []);
      const turn = before.length === 0 ? commit() : Promise.all(before).then(commit);
      const ended = turn.catch(() => undefined);
      for (const head of heads) last.set(head, ended);
      try {
        return await turn;
      } finally {
        for (const head of heads) if (last.get(head) === ended) last.delete(head);
      }
    },
  };
}

interface VersionIssuer {
  /** The next version for a shard: above `floor`, above the clock, above the last one issued here. */
  issue(shard: number, shards: number, floor: number): number;
}

function versionIssuer(clock: Clock): VersionIssuer {
  let last = 0;
  return {
    issue(shard, shards, floor) {
      const least = Math.max(clock.nowMs() * RESOURCE_VERSIONS_PER_MS, last + 1, floor + 1);
      last = least + ((((shard - least) % shards) + shards) % shards);
      return last;
    },
  };
}
