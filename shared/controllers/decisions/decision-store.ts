/**
 * Records of decisions in the `objects` table, outside the change log: a record never changes, and a log entry would triple
 * what it costs.
 *
 *   pk `d#<shard>` sk <about>.<ms, 13 digits>-<hash>   d JSON of the record; ttl epoch seconds
 *
 * <about> names the object (`node.n1`, `pod.default.web-0`, `zone.<name>`, `fleet`) and chooses the shard: what was decided
 * about one object is one query. The time is that of the decision, or of what it is told once for; the hash tells apart
 * what was decided in one millisecond. So the key follows from the decision, and a repetition meets the first telling.
 */

import { shortHash } from '../../domain/text-hash.ts';
import type { Item, ItemKey, ItemStore, PutWrite, QueryPage } from '../../ports/item-store.ts';
import { decisionPartition, shardOf } from '../../store/layout.ts';
import { mergePages } from '../../store/merge-pages.ts';
import type { DecisionAbout, DecisionDraft, DecisionRecord } from './decision-record.ts';

/** Records are cleaned up when they are this old. Seconds. */
const DECISION_SECONDS = 30 * 86_400;
/** Changing it moves keys. */
const DECISION_SHARDS = 16;
const TIME_DIGITS = 13;
/** Of the object's name in a key; with kind, time and hash a name stays a valid one. */
const SUBJECT_LENGTH_MAX = 200;
const PREFIX = { Node: 'node.', Pod: 'pod.', Zone: 'zone.', Fleet: '' } as const;

export interface NamedDecision {
  /** Unique, and a valid name of a Kubernetes object. */
  readonly name: string;
  readonly record: DecisionRecord;
}

/** The part of a record's name that says what it is about. */
function subjectOf({ kind, namespace, name }: DecisionAbout): string {
  const plain = kind === 'Pod' ? `${namespace ?? ''}.${name}` : name;
  const tidy = plain
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .slice(0, SUBJECT_LENGTH_MAX)
    .replace(/^[.-]+|[.-]+$/g, '');
  // Names of zones are free text; what had to be changed is told apart by its hash.
  return `${PREFIX[kind]}${tidy === plain && plain !== '' ? plain : [tidy, shortHash(plain)].filter((each) => each !== '').join('-')}`;
}

/** What tells a record apart where it is told once; with a time in place of that of the decision. */
export interface Telling {
  readonly atMs?: number;
  readonly key?: string;
}

export function decisionName(record: DecisionDraft, once: Telling = {}): string {
  const { about, act, atMs, rule, outcome } = record;
  const time = String(Math.max(0, Math.floor(once.atMs ?? atMs))).padStart(TIME_DIGITS, '0');
  return `${subjectOf(about)}.${time}-${shortHash([act, rule, about.uid ?? '', once.key ?? JSON.stringify(outcome)].join('|'))}`;
}

function keyOf(name: string): ItemKey {
  const subject = name.slice(0, Math.max(0, name.lastIndexOf('.')));
  return { table: 'objects', pk: decisionPartition(shardOf(subject, DECISION_SHARDS)), sk: name };
}

/** For the commit of what was decided. Written again it is the same. */
export const decisionWrite = (record: DecisionRecord, once?: Telling): PutWrite => ({
  kind: 'put',
  key: keyOf(decisionName(record, once)),
  item: { d: JSON.stringify(record), ttl: Math.ceil(record.atMs / 1_000) + DECISION_SECONDS },
});

/** Where nothing is written with it: the first telling stays. */
export const decisionWriteOnce = (record: DecisionRecord, once?: Telling): PutWrite => ({
  ...decisionWrite(record, once),
  when: { kind: 'itemAbsent' },
});

export interface DecisionPage {
  readonly decisions: readonly NamedDecision[];
  /** Name of the last one read, when more may follow. */
  readonly next?: string;
}

export interface DecisionStore {
  /** Those that are too old, and only waiting to be cleaned up, are left out everywhere. */
  get(name: string, nowMs: number): Promise<NamedDecision | undefined>;
  /** In order of their names; with `about` those of one object, by one query. */
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
        ...(beginsWith === undefined ? {} : { beginsWith }),
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
        ...(continueAfter === undefined ? {} : { after: continueAfter }),
      });
      return {
        decisions: page.items.filter((item) => !isOld(item, nowMs)).map(decisionOf),
        ...(page.next === undefined ? {} : { next: page.next }),
      };
    },
  };
}

const isOld = (item: Item, nowMs: number): boolean => (item['ttl'] as number) * 1_000 <= nowMs;
const decisionOf = (item: Item): NamedDecision => ({
  name: item['sk'] as string,
  record: JSON.parse(item['d'] as string) as DecisionRecord,
});
