/**
 * Records of decisions in the `objects` table, outside the change log: a record never changes, and a log entry would
 * triple its cost.
 *
 *   pk `d#<shard>` sk <about>.<ms, 13 digits>-<hash>   d JSON of the record, compressed if long; ttl epoch seconds
 *
 * <about> names the object (`node.n1`, `pod.default.web-0`, `zone.<name>`, `fleet`) and selects the shard: all
 * decisions about one object are one query. The time is that of the decision, or `once.atMs`. The hash distinguishes
 * decisions of one millisecond. The key follows from the decision, so a repeated write finds the first record.
 *
 *   pk `ds#<shard>` sk <ms, 13 digits>-<node>   d JSON of several records, compressed; ttl epoch seconds
 *
 * Records of one commit about many Nodes share an item (docs/decisions/0046): they differ in few characters, so
 * together they compress to a tenth. The shard is that of each of the Nodes by its name. <node> is the first of them: a
 * commit marks a Node once, so no other item has this key.
 *
 *   pk `dp#<shard>` sk <set>.<time before the end of time, 13 digits>-<hash>
 *                   d JSON of several records, compressed; ttl
 *
 * Records of one commit about pods of one set share an item (docs/decisions/0046). The set is the namespace and the
 * name up to its last hyphen: pods of a ReplicaSet have it in common, and it follows from the name of a deleted pod.
 * The hash is that of the first record. The newest item of a set is the first one: a read is limited to the newest
 * records.
 */
import { defined } from '../defined.ts';
import {
  compareKeys,
  type Item,
  type ItemKey,
  type ItemStore,
  type PutWrite,
  type QueryPage,
  StoreFault,
} from '../store/item-store.ts';
import { decisionPartition, decisionsPartition, podDecisionsPartition, shardOf } from '../store/layout.ts';
import { mergePages, type PageReader } from '../store/merge-pages.ts';
import { packText, type StoredText, unpackText } from '../store/object-record.ts';
import { shortHash } from '../text.ts';
import type { DecisionAbout, DecisionDraft, DecisionRecord } from './decision-record.ts';

/** Retention of records. Seconds. */
const DECISION_SECONDS = 30 * 86_400;
/** Part of the keys: must not change. */
const DECISION_SHARDS = 16;
/**
 * Shards of items with several records. Part of the keys: must not change. As many as Nodes have: a commit has one
 * item.
 */
const SHARED_SHARDS = 8;
/** Pages of one of these shards, at 1 MB each: 150,000 records or more. */
const SHARED_PAGES_MAX = 16;
/** Pages of one set of pods, at 1 MB each: the newest 30,000 records or more. */
const SET_PAGES_MAX = 4;
/** Shards of items about pods. Part of the keys: must not change. */
const SET_SHARDS = 16;
const TIME_DIGITS = 13;
const TIME_END = 10 ** TIME_DIGITS - 1;
/** Characters of the object's name in a key. The whole key is a valid object name. */
const SUBJECT_LENGTH_MAX = 200;
const PREFIX = {
  Node: 'node.',
  Pod: 'pod.',
  Zone: 'zone.',
  Fleet: '',
  ReplicaSet: 'replicaset.',
  Deployment: 'deployment.',
  ReplicationController: 'replicationcontroller.',
  DaemonSet: 'daemonset.',
  StatefulSet: 'statefulset.',
  Job: 'job.',
  CronJob: 'cronjob.',
  Object: 'object.',
} as const;

export interface NamedDecision {
  /** Unique, and a valid name of a Kubernetes object. */
  readonly name: string;
  readonly record: DecisionRecord;
  /** `continueAfter` of what follows it in a list of all decisions. Absent: its name. */
  readonly position?: string;
}

/** The part of a record's name that identifies its object. */
function subjectOf({ kind, namespace, name }: DecisionAbout): string {
  const plain = namespace === undefined || kind === 'Node' ? name : `${namespace}.${name}`;
  const tidy = plain
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, SUBJECT_LENGTH_MAX)
    .replace(/^[.-]+|[.-]+$/g, '');
  // Zone names are free text. A name that had to be changed gets a hash, which keeps names distinct.
  return `${PREFIX[kind]}${tidy === plain && plain !== '' ? plain : [tidy, shortHash(plain)].filter((each) => each !== '').join('-')}`;
}

/** Replaces the time and the outcome in the name of a record that is stored once. */
export interface OnceKey {
  readonly atMs?: number;
  readonly key?: string;
}

const timeKey = (atMs: number): string => String(Math.max(0, Math.floor(atMs))).padStart(TIME_DIGITS, '0');

export function decisionName(record: DecisionDraft, once: OnceKey = {}): string {
  const { about, act, atMs, rule, outcome } = record;
  return `${subjectOf(about)}.${timeKey(once.atMs ?? atMs)}-${shortHash([act, rule, about.uid ?? '', once.key ?? JSON.stringify(outcome)].join('|'))}`;
}

/** The subject in the name of a decision. Time and hash have no dot. */
const subjectIn = (name: string): string => name.slice(0, Math.max(0, name.lastIndexOf('.')));

function keyOf(name: string): ItemKey {
  return { table: 'objects', pk: decisionPartition(shardOf(subjectIn(name), DECISION_SHARDS)), sk: name };
}

/** For the commit of the decision. A second write stores the same item. */
export const decisionWrite = (record: DecisionRecord, once?: OnceKey): PutWrite => ({
  kind: 'put',
  key: keyOf(decisionName(record, once)),
  item: {
    d: packText(JSON.stringify(record)),
    ttl: Math.ceil(record.atMs / 1_000) + DECISION_SECONDS,
  },
});

/** For a decision without another write: the first record stays. */
export const decisionWriteOnce = (record: DecisionRecord, once: OnceKey): PutWrite => ({
  ...decisionWrite(record, once),
  when: { kind: 'itemAbsent' },
});

const nodeOfSubject = (subject: string): string | undefined =>
  subject.startsWith(PREFIX.Node) ? subject.slice(PREFIX.Node.length) : undefined;

/** The set of a pod; undefined if its name has no hyphen. A namespace has no dot. */
function setOfSubject(subject: string): string | undefined {
  if (!subject.startsWith(PREFIX.Pod)) return undefined;
  const nameAt = subject.indexOf('.', PREFIX.Pod.length) + 1;
  const end = subject.lastIndexOf('-');
  return nameAt > 0 && end > nameAt ? subject.slice(0, end) : undefined;
}

/** Where the records about an object are that share items with others. */
interface SharedPlace {
  readonly pk: string;
  /** What the keys of its items begin with. */
  readonly prefix: string;
  /** The same with a time. */
  readonly at: (atMs: number) => string;
  readonly pagesMax: number;
  /** A read ends after `pagesMax` pages. Otherwise more pages are a fault. */
  readonly isCut: boolean;
}

/** Undefined: each record about it has an item of its own. */
function sharedPlaceOf(subject: string): SharedPlace | undefined {
  const node = nodeOfSubject(subject);
  if (node !== undefined) return { ...nodeShard(shardOf(node, SHARED_SHARDS)), at: timeKey };
  const set = setOfSubject(subject);
  if (set === undefined) return undefined;
  const prefix = `${set}.`;
  return {
    pk: podDecisionsPartition(shardOf(set, SET_SHARDS)),
    prefix,
    at: (atMs) => `${prefix}${timeKey(TIME_END - Math.floor(atMs))}`,
    pagesMax: SET_PAGES_MAX,
    isCut: true,
  };
}

const nodeShard = (shard: number) => ({
  pk: decisionsPartition(shard),
  prefix: '',
  pagesMax: SHARED_PAGES_MAX,
  isCut: false,
});

/** The place of a record, if its name shows its object. A long name does not. */
function placeOf({ about }: DecisionRecord): SharedPlace | undefined {
  const { kind, namespace, name } = about;
  const subject = subjectOf(about);
  const isShown = subject === `${PREFIX[kind]}${kind === 'Pod' ? `${namespace}.` : ''}${name}`;
  return isShown ? sharedPlaceOf(subject) : undefined;
}

/**
 * For a commit with many decisions of one moment: records about Nodes share items, and records about pods of one set.
 */
export function decisionWrites(records: readonly DecisionRecord[]): PutWrite[] {
  const writes: PutWrite[] = [];
  const shared = new Map<string, DecisionRecord[]>();
  for (const record of records) {
    const place = placeOf(record);
    if (place === undefined) writes.push(decisionWrite(record));
    else {
      const key = `${place.pk} ${place.at(record.atMs)}`;
      shared.set(key, [...(shared.get(key) ?? []), record]);
    }
  }
  for (const some of shared.values()) {
    const [first] = some as [DecisionRecord, ...DecisionRecord[]];
    const place = placeOf(first);
    if (some.length === 1 || place === undefined) writes.push(decisionWrite(first));
    else writes.push(sharedWrite(place, some));
  }
  return writes;
}

function sharedWrite({ pk, at }: SharedPlace, records: readonly DecisionRecord[]): PutWrite {
  const first = records[0]!;
  const { about, atMs } = first;
  const own = about.kind === 'Node' ? about.name : decisionName(first).slice(subjectOf(about).length + TIME_DIGITS + 2);
  return {
    kind: 'put',
    key: { table: 'objects', pk, sk: `${at(atMs)}-${own}` },
    item: { d: packText(JSON.stringify(records)), ttl: Math.ceil(atMs / 1_000) + DECISION_SECONDS },
  };
}

export interface DecisionPage {
  readonly decisions: readonly NamedDecision[];
  /** `continueAfter` of the next page, when more may follow. */
  readonly next?: string;
}

export interface DecisionStore {
  /** Both calls leave out expired records that DynamoDB has not deleted yet. */
  get(name: string, nowMs: number): Promise<NamedDecision | undefined>;
  /**
   * With `about`, the records of one object, in the order of their names. Without, all records, by their objects:
   * records about pods of one set that share an item follow each other.
   */
  list(request: {
    readonly nowMs: number;
    readonly limit: number;
    readonly about?: DecisionAbout;
    readonly continueAfter?: string;
  }): Promise<DecisionPage>;
}

type Items = Pick<ItemStore, 'get' | 'query'>;

export function decisionStore(items: Items): DecisionStore {
  const reader =
    (shard: number, beginsWith?: string): PageReader =>
    (page) =>
      items.query({
        table: 'objects',
        pk: decisionPartition(shard),
        consistent: false,
        ...defined({ beginsWith }),
        ...page,
      });
  return {
    async get(name, nowMs) {
      const item = await items.get(keyOf(name), { consistent: true });
      if (item !== undefined) return isOld(item, nowMs) ? undefined : decisionOf(item);
      return sharedDecision(items, name, nowMs);
    },
    async list({ nowMs, limit, about, continueAfter }) {
      if (about === undefined) return listAll(items, reader, { nowMs, limit, continueAfter });
      const subject = subjectOf(about);
      const place = sharedPlaceOf(subject);
      const page = await mergePages(
        [
          reader(shardOf(subject, DECISION_SHARDS), `${subject}.`),
          ...(place === undefined ? [] : [sharedReader(items, { place, subject, limit })]),
        ],
        { limit, ...defined({ after: continueAfter }) },
      );
      // The keys of `node.a` begin as those of `node.a.b` do.
      const isAbout = ({ sk }: Item): boolean => subjectIn(String(sk)) === subject;
      return {
        decisions: page.items.filter((item) => isAbout(item) && !isOld(item, nowMs)).map(decisionOf),
        ...defined({ next: page.next }),
      };
    },
  };
}

/** Between the key of an item and the name of a record in the next item. Neither contains it. */
const BETWEEN = ' ';

/**
 * All records. A page may end within an item that several records share. The position of such a record is the key
 * before this item, and the name of the record.
 */
async function listAll(
  items: Items,
  reader: (shard: number) => PageReader,
  request: { readonly nowMs: number; readonly limit: number; readonly continueAfter: string | undefined },
): Promise<DecisionPage> {
  const { nowMs, limit, continueAfter } = request;
  const [after, lastName] = (continueAfter ?? '').split(BETWEEN) as [string, string?];
  const ofSet =
    (shard: number): PageReader =>
    (page) =>
      items.query({ table: 'objects', pk: podDecisionsPartition(shard), consistent: false, ...page });
  const page = await mergePages(
    [
      ...Array.from({ length: DECISION_SHARDS }, (_, shard) => reader(shard)),
      ...Array.from({ length: SHARED_SHARDS }, (_, shard) => sharedReader(items, { place: nodeShard(shard), limit })),
      ...Array.from({ length: SET_SHARDS }, (_, shard) => ofSet(shard)),
    ],
    { limit, ...defined({ after: after || undefined }) },
  );
  const decisions: NamedDecision[] = [];
  let previous = after;
  for (const item of page.items) {
    const records = isOld(item, nowMs) ? [] : namedRecordsIn(item);
    // Usually of the first item. A new one may be before it.
    const seen = records.findIndex(({ name }) => name === lastName) + 1;
    for (const each of records.slice(seen)) {
      const last = decisions.at(-1);
      if (decisions.length === limit) return { decisions, ...defined({ next: last?.position ?? last?.name }) };
      decisions.push(each.name === item['sk'] ? each : { ...each, position: `${previous}${BETWEEN}${each.name}` });
    }
    previous = String(item['sk']);
  }
  return { decisions, ...defined({ next: page.next }) };
}

/**
 * The shared records of a place in the order of their names. Items are in the order of time, so each page reads the
 * whole place: half a read unit while it is empty, 110 for each of eight shards of Nodes after 100,000 marks.
 */
const sharedReader =
  (
    items: Items,
    {
      place,
      subject,
      limit,
    }: { readonly place: Omit<SharedPlace, 'at'>; readonly subject?: string; readonly limit: number },
  ): PageReader =>
  async ({ after }): Promise<QueryPage> => {
    let found: Item[] = [];
    let isCut = false;
    const cut = (): void => {
      found.sort((one, other) => compareKeys(one['sk'] as string, other['sk'] as string));
      isCut ||= found.length > limit;
      found = found.slice(0, limit);
    };
    for await (const item of sharedItems(items, place)) {
      for (const record of decisionsIn(item)) {
        if (subject !== undefined && subjectOf(record.about) !== subject) continue;
        const sk = decisionName(record);
        if (after === undefined || compareKeys(sk, after) > 0) {
          found.push({ sk, d: JSON.stringify(record), ttl: item['ttl'] as number });
        }
      }
      if (found.length > 2 * limit) cut();
    }
    cut();
    return { items: found, ...(isCut ? { next: found.at(-1)!['sk'] as string } : {}) };
  };

async function sharedDecision(items: Items, name: string, nowMs: number): Promise<NamedDecision | undefined> {
  const subject = subjectIn(name);
  const place = sharedPlaceOf(subject);
  const atMs = Number(name.slice(subject.length + 1, subject.length + 1 + TIME_DIGITS));
  if (place === undefined || !Number.isFinite(atMs)) return undefined;
  for await (const item of sharedItems(items, { ...place, prefix: place.at(atMs) })) {
    const record = decisionsIn(item).find((each) => decisionName(each) === name);
    if (record !== undefined) return isOld(item, nowMs) ? undefined : { name, record };
  }
  return undefined;
}

async function* sharedItems(
  items: Items,
  { pk, prefix, pagesMax, isCut }: Omit<SharedPlace, 'at'>,
): AsyncGenerator<Item> {
  let after: string | undefined;
  for (let pages = 0; pages < pagesMax; pages += 1) {
    const page = await items.query({
      table: 'objects',
      pk,
      consistent: false,
      ...defined({ beginsWith: prefix || undefined, after }),
    });
    yield* page.items;
    if (page.next === undefined) return;
    after = page.next;
  }
  if (isCut) return;
  throw new StoreFault('too-large', 'there are more decisions than one read may return', { retryable: false });
}

const isOld = (item: Item, nowMs: number): boolean => (item['ttl'] as number) * 1_000 <= nowMs;
/** The records that share an item. */
export const decisionsIn = (item: Item): readonly DecisionRecord[] =>
  JSON.parse(unpackText(item['d'] as StoredText)) as readonly DecisionRecord[];
function namedRecordsIn(item: Item): readonly NamedDecision[] {
  const stored = JSON.parse(unpackText(item['d'] as StoredText)) as DecisionRecord | readonly DecisionRecord[];
  return 'length' in stored
    ? stored.map((record) => ({ name: decisionName(record), record }))
    : [{ name: item['sk'] as string, record: stored }];
}
const decisionOf = (item: Item): NamedDecision => ({
  name: item['sk'] as string,
  record: JSON.parse(unpackText(item['d'] as StoredText)) as DecisionRecord,
});
