/**
 * Records of decisions in the `objects` table, outside the change log: a record never changes, and a log entry would
 * triple its cost.
 *
 *   pk `d#<shard>` sk <about>.<ms, 13 digits>-<hash>   d JSON of the record, compressed if long; ttl epoch seconds
 *
 * <about> names the object (`node.n1`, `pod.default.web-0`, `zone.<name>`, `fleet`) and selects the shard: all
 * decisions about one object are one query. The time is that of the decision, or `once.atMs`. The hash distinguishes
 * decisions of one millisecond. The key follows from the decision, so a repeated write finds the first record.
 */

import { defined } from '../../domain/defined.ts';
import { shortHash } from '../../domain/text-hash.ts';
import type { Item, ItemKey, ItemStore, PutWrite, QueryPage } from '../../ports/item-store.ts';
import { decisionPartition, shardOf } from '../../store/layout.ts';
import { mergePages } from '../../store/merge-pages.ts';
import { packText, type StoredText, type TextFormat, unpackText } from '../../store/packed-text.ts';
import type { DecisionAbout, DecisionDraft, DecisionRecord } from './decision-record.ts';

/** Retention of records. Seconds. */
const DECISION_SECONDS = 30 * 86_400;
/** Part of the keys: must not change. */
const DECISION_SHARDS = 16;
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

export function decisionName(record: DecisionDraft, once: OnceKey = {}): string {
  const { about, act, atMs, rule, outcome } = record;
  const time = String(Math.max(0, Math.floor(once.atMs ?? atMs))).padStart(TIME_DIGITS, '0');
  return `${subjectOf(about)}.${time}-${shortHash([act, rule, about.uid ?? '', once.key ?? JSON.stringify(outcome)].join('|'))}`;
}

function keyOf(name: string): ItemKey {
  const subject = name.slice(0, Math.max(0, name.lastIndexOf('.')));
  return { table: 'objects', pk: decisionPartition(shardOf(subject, DECISION_SHARDS)), sk: name };
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

export function decisionStore(items: Pick<ItemStore, 'get' | 'query'>): DecisionStore {
  const reader =
    (shard: number, beginsWith?: string) =>
    (page: { readonly after?: string; readonly limit?: number }): Promise<QueryPage> =>
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
      return item === undefined || isOld(item, nowMs) ? undefined : decisionOf(item);
    },
    async list({ nowMs, limit, about, continueAfter }) {
      const subject = about === undefined ? undefined : subjectOf(about);
      const readers =
        subject === undefined
          ? Array.from({ length: DECISION_SHARDS }, (_, shard) => reader(shard))
          : [reader(shardOf(subject, DECISION_SHARDS), `${subject}.`)];
      const page = await mergePages(readers, {
        limit,
        ...defined({ after: continueAfter }),
      });
      return {
        decisions: page.items.filter((item) => !isOld(item, nowMs)).map(decisionOf),
        ...defined({ next: page.next }),
      };
    },
  };
}

const isOld = (item: Item, nowMs: number): boolean => (item['ttl'] as number) * 1_000 <= nowMs;
const decisionOf = (item: Item): NamedDecision => ({
  name: item['sk'] as string,
  record: JSON.parse(unpackText(item['d'] as StoredText)) as DecisionRecord,
});
