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
 * Records of one commit about many Nodes share an item (docs/decisions/0046): they differ in few characters, so together
 * they compress to a tenth. The shard is that of each of the Nodes by its name. <node> is the first of them: a commit
 * marks a Node once, so no other item has this key.
 */

import { defined } from '../../domain/defined.ts';
import { shortHash } from '../../domain/text-hash.ts';
import {
  type Item,
  type ItemKey,
  type ItemStore,
  type PutWrite,
  type QueryPage,
  StoreFault,
} from '../../ports/item-store.ts';
import { compareKeys } from '../../ports/key-order.ts';
import { decisionPartition, decisionsPartition, shardOf } from '../../store/layout.ts';
import { mergePages, type PageReader } from '../../store/merge-pages.ts';
import { packText, type StoredText, type TextFormat, unpackText } from '../../store/packed-text.ts';
import type { DecisionAbout, DecisionDraft, DecisionRecord } from './decision-record.ts';

/** Retention of records. Seconds. */
const DECISION_SECONDS = 30 * 86_400;
/** Part of the keys: must not change. */
const DECISION_SHARDS = 16;
/** Shards of items with several records. Part of the keys: must not change. As many as Nodes have: a commit has one item. */
const SHARED_SHARDS = 8;
/** Pages of one of these shards, at 1 MB each: 150,000 records or more. */
const SHARED_PAGES_MAX = 16;
const TIME_DIGITS = 13;
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

interface DecisionWriteOptions {
  /** @default compressed */
  readonly textFormat?: TextFormat;
  readonly once?: OnceKey;
}

/** For the commit of the decision. A second write stores the same item. */
export const decisionWrite = (
  record: DecisionRecord,
  { textFormat = 'compressed', once }: DecisionWriteOptions = {},
): PutWrite => ({
  kind: 'put',
  key: keyOf(decisionName(record, once)),
  item: {
    d: packText(JSON.stringify(record), textFormat),
    ttl: Math.ceil(record.atMs / 1_000) + DECISION_SECONDS,
  },
});

/** For a decision without another write: the first record stays. */
export const decisionWriteOnce = (record: DecisionRecord, options: DecisionWriteOptions): PutWrite => ({
  ...decisionWrite(record, options),
  when: { kind: 'itemAbsent' },
});

/** The Node that a record is about, if the name of the record shows it. */
function nodeOf({ about }: DecisionRecord): string | undefined {
  return about.kind === 'Node' && nodeOfSubject(subjectOf(about)) === about.name ? about.name : undefined;
}

const nodeOfSubject = (subject: string): string | undefined =>
  subject.startsWith(PREFIX.Node) ? subject.slice(PREFIX.Node.length) : undefined;

/**
 * For a commit with many decisions of one moment: records about Nodes share items. `plain` texts are for releases that read
 * each record by itself.
 */
export function decisionWrites(records: readonly DecisionRecord[], textFormat: TextFormat): PutWrite[] {
  const writes: PutWrite[] = [];
  const shared = new Map<string, DecisionRecord[]>();
  for (const record of records) {
    const node = textFormat === 'plain' ? undefined : nodeOf(record);
    if (node === undefined) writes.push(decisionWrite(record, { textFormat }));
    else {
      const key = `${shardOf(node, SHARED_SHARDS)} ${timeKey(record.atMs)}`;
      shared.set(key, [...(shared.get(key) ?? []), record]);
    }
  }
  for (const some of shared.values()) {
    const [first] = some as [DecisionRecord, ...DecisionRecord[]];
    if (some.length === 1) writes.push(decisionWrite(first, { textFormat }));
    else writes.push(sharedWrite(first, some, textFormat));
  }
  return writes;
}

const sharedWrite = (
  { about, atMs }: DecisionRecord,
  records: readonly DecisionRecord[],
  textFormat: TextFormat,
): PutWrite => ({
  kind: 'put',
  key: {
    table: 'objects',
    pk: decisionsPartition(shardOf(about.name, SHARED_SHARDS)),
    sk: `${timeKey(atMs)}-${about.name}`,
  },
  item: { d: packText(JSON.stringify(records), textFormat), ttl: Math.ceil(atMs / 1_000) + DECISION_SECONDS },
});

export interface DecisionPage {
  readonly decisions: readonly NamedDecision[];
  /** Name of the last record read, when more may follow. */
  readonly next?: string;
}

export interface DecisionStore {
  /** Both calls leave out expired records that DynamoDB has not deleted yet. */
  get(name: string, nowMs: number): Promise<NamedDecision | undefined>;
  /** In the order of their names. With `about`, the records of one object, by one query. */
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
      const subject = about === undefined ? undefined : subjectOf(about);
      const page = await mergePages(
        [
          ...(subject === undefined
            ? Array.from({ length: DECISION_SHARDS }, (_, shard) => reader(shard))
            : [reader(shardOf(subject, DECISION_SHARDS), `${subject}.`)]),
          ...sharedShards(subject).map((shard) => sharedReader(items, { shard, subject, limit })),
        ],
        { limit, ...defined({ after: continueAfter }) },
      );
      // The keys of `node.a` begin as those of `node.a.b` do.
      const isAbout = ({ sk }: Item): boolean => subject === undefined || subjectIn(String(sk)) === subject;
      return {
        decisions: page.items.filter((item) => isAbout(item) && !isOld(item, nowMs)).map(decisionOf),
        ...defined({ next: page.next }),
      };
    },
  };
}

/** Shards with shared records about the subject, or about any. */
function sharedShards(subject: string | undefined): readonly number[] {
  if (subject === undefined) return Array.from({ length: SHARED_SHARDS }, (_, shard) => shard);
  const node = nodeOfSubject(subject);
  return node === undefined ? [] : [shardOf(node, SHARED_SHARDS)];
}

/**
 * The shared records of a shard in the order of their names. Items are in the order of time, so each page reads the whole
 * shard: half a read unit while it is empty, 110 for each of eight shards after 100,000 marks.
 */
const sharedReader =
  (
    items: Items,
    { shard, subject, limit }: { readonly shard: number; readonly subject: string | undefined; readonly limit: number },
  ): PageReader =>
  async ({ after }): Promise<QueryPage> => {
    let found: Item[] = [];
    let isCut = false;
    const cut = (): void => {
      found.sort((one, other) => compareKeys(one['sk'] as string, other['sk'] as string));
      isCut ||= found.length > limit;
      found = found.slice(0, limit);
    };
    for await (const item of sharedItems(items, shard)) {
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
  const node = nodeOfSubject(subject);
  if (node === undefined) return undefined;
  const beginsWith = name.slice(subject.length + 1, subject.length + 1 + TIME_DIGITS);
  for await (const item of sharedItems(items, shardOf(node, SHARED_SHARDS), beginsWith)) {
    const record = decisionsIn(item).find((each) => decisionName(each) === name);
    if (record !== undefined) return isOld(item, nowMs) ? undefined : { name, record };
  }
  return undefined;
}

async function* sharedItems(items: Items, shard: number, beginsWith?: string): AsyncGenerator<Item> {
  let after: string | undefined;
  for (let pages = 0; pages < SHARED_PAGES_MAX; pages += 1) {
    const page = await items.query({
      table: 'objects',
      pk: decisionsPartition(shard),
      consistent: false,
      ...defined({ beginsWith, after }),
    });
    yield* page.items;
    if (page.next === undefined) return;
    after = page.next;
  }
  throw new StoreFault('too-large', 'there are more decisions than one read may return', { retryable: false });
}

const isOld = (item: Item, nowMs: number): boolean => (item['ttl'] as number) * 1_000 <= nowMs;
/** The records that share an item. */
export const decisionsIn = (item: Item): readonly DecisionRecord[] =>
  JSON.parse(unpackText(item['d'] as StoredText)) as readonly DecisionRecord[];
const decisionOf = (item: Item): NamedDecision => ({
  name: item['sk'] as string,
  record: JSON.parse(unpackText(item['d'] as StoredText)) as DecisionRecord,
});
