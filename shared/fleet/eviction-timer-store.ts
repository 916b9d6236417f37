/**
 * Timers of pod evictions in the `control` table.
 *
 *   pk `evictions#<node>` sk `-`   timers JSON of the timers of the first part; version; due the earliest of all (ms);
 *                                  parts the versions of the other parts, absent when there are none
 *                         sk `p1` … `p15`   timers JSON of the timers of that part; version
 *   pk `evictions-due` sk `<due, 14 digits>#<node>`   finds the node by that time
 *
 * A decision always covers the whole node. A change of its taints moves all its timers in one write, and concurrent
 * writers are detected by the version. All timers of a node and their index item are one transaction, so the index
 * never loses a timer. A timer may lie any number of days ahead.
 *
 * Almost every node has one part. Timers that would overflow an item are divided by the hash of the pod's uid, and only
 * changed parts are written. Beyond TIMERS_BYTES_MAX the earliest timers are stored. The later ones are decided again
 * from the current state when an earlier one is due.
 */

import {
  type Condition,
  type Item,
  type ItemKey,
  type ItemStore,
  type PutWrite,
  StoreFault,
  type TransactWrite,
} from '../store/item-store.ts';
import { ALONE, is, shardOf } from '../store/layout.ts';
import { utf8Bytes } from '../text.ts';
import { DUE_DIGITS, type DueRows, dueText, throughDue } from '../ticks/due-rows.ts';
import type { EvictionTimer } from './eviction.rule.ts';

/** Which nodes have a timer, by its time. */
export const TIMERS_DUE: DueRows = { pk: 'evictions-due', time: 'sortKey' };
/** Writes that fit beside those of a node's timers: PARTS_MAX parts, and two of the index. */
export const TIMERS_ALONG_MAX = 80;
/** JSON of all timers of one node. Bytes; half of a transaction. */
const TIMERS_BYTES_MAX = 2_000_000;
/** JSON of one part to aim at. Bytes. */
const PART_BYTES = 200_000;
/** JSON of one part at most: an item holds 400 KB. Bytes. */
const PART_BYTES_MAX = 380_000;
const PARTS_MAX = 16;
/** Attempts to read all parts in one version. */
const READS_MAX = 4;
/** Due nodes in one read. */
const DUE_NODES_MAX = 500;

export interface NodeTimers {
  readonly nodeName: string;
  readonly timers: readonly EvictionTimer[];
  /** 0 when nothing is stored. */
  readonly version: number;
  readonly dueMs: number | undefined;
  /** The stored parts: only those that change are written. Empty when nothing is stored. */
  readonly parts: readonly TimersPart[];
}

interface TimersPart {
  /** JSON of its timers. */
  readonly text: string;
  readonly version: number;
}

export interface EvictionTimerStore {
  /** Strongly consistent. */
  read(nodeName: string): Promise<NodeTimers>;
  /** Nodes with a timer due by then, earliest first, DUE_NODES_MAX at most. */
  readDue(nowMs: number): Promise<readonly string[]>;
  /**
   * Replaces all timers of a node by those that earliestTimers returns, unless they changed since `before` was read.
   * `along` is written with them, TIMERS_ALONG_MAX at most.
   */
  replace(
    before: NodeTimers,
    timers: readonly EvictionTimer[],
    along?: readonly PutWrite[],
  ): Promise<'written' | 'conflict'>;
}

const dueKey = (dueMs: number, nodeName: string): ItemKey => ({
  table: 'control',
  pk: TIMERS_DUE.pk,
  sk: `${dueText(dueMs)}#${nodeName}`,
});

const earliestOf = (timers: readonly EvictionTimer[]): number | undefined =>
  timers.length === 0 ? undefined : Math.min(...timers.map((timer) => timer.atMs));

export const timersPartition = (nodeName: string): string => `evictions#${nodeName}`;

const partKey = (nodeName: string, part: number): ItemKey => ({
  table: 'control',
  pk: timersPartition(nodeName),
  sk: part === 0 ? ALONE : `p${part}`,
});

const bytesOf = (timer: EvictionTimer): number => utf8Bytes(JSON.stringify(timer)) + 1;

const byTime = (one: EvictionTimer, other: EvictionTimer): number =>
  one.atMs - other.atMs || (one.podUid < other.podUid ? -1 : 1);

/** The timers to store: all, or the earliest ones that fit. In the order of the input. */
export function earliestTimers(timers: readonly EvictionTimer[]): readonly EvictionTimer[] {
  // The usual case, without measuring: a timer has less than 1,000 bytes.
  if (timers.length * 1_000 <= TIMERS_BYTES_MAX) return timers;
  let bytes = 0;
  const kept = new Set<EvictionTimer>();
  for (const timer of timers.toSorted(byTime)) {
    bytes += bytesOf(timer);
    if (bytes > TIMERS_BYTES_MAX) break;
    kept.add(timer);
  }
  return timers.filter((timer) => kept.has(timer));
}

/** Divided by pod: a timer stays in its part while the number of parts is the same. At least one part. */
function divided(timers: readonly EvictionTimer[]): string[] {
  const plain = JSON.stringify(timers);
  const bytes = utf8Bytes(plain);
  if (bytes <= PART_BYTES) return [plain];
  let count = 2;
  while (count < PARTS_MAX && bytes / count > PART_BYTES) count *= 2;
  for (; ; count *= 2) {
    const parts = Array.from({ length: count }, (): EvictionTimer[] => []);
    for (const timer of timers) parts[shardOf(timer.podUid, count)]!.push(timer);
    const texts = parts.map((part) => JSON.stringify(part));
    if (texts.every((text) => utf8Bytes(text) <= PART_BYTES_MAX)) return texts;
    // Too many uids hash to one part, possibly by choice of a client: the earliest of them are stored.
    if (count >= PARTS_MAX) return parts.map(asFarAsFits);
  }
}

function asFarAsFits(part: readonly EvictionTimer[]): string {
  let bytes = 2;
  const kept = part.toSorted(byTime).filter((timer) => {
    bytes += bytesOf(timer);
    return bytes <= PART_BYTES_MAX;
  });
  return JSON.stringify(kept);
}

export function evictionTimerStore(items: ItemStore): EvictionTimerStore {
  return {
    async read(nodeName) {
      for (let attempt = 1; attempt <= READS_MAX; attempt += 1) {
        const head = await items.get(partKey(nodeName, 0), { consistent: true });
        if (head === undefined) return { nodeName, timers: [], version: 0, dueMs: undefined, parts: [] };
        const versions = (head['parts'] as number[] | undefined) ?? [];
        const others = await Promise.all(
          versions.map((_, index) => items.get(partKey(nodeName, index + 1), { consistent: true })),
        );
        // Changed since the head was read: read all parts again.
        if (versions.some((version, index) => others[index]?.['version'] !== version)) continue;
        return timersOf(nodeName, head, others as Item[]);
      }
      throw new StoreFault('throttled', 'timers of a node kept changing while they were read', { retryable: true });
    },

    async readDue(nowMs) {
      const page = await items.query({
        table: 'control',
        pk: TIMERS_DUE.pk,
        consistent: true,
        through: throughDue(nowMs),
        limit: DUE_NODES_MAX,
      });
      return page.items.map((item) => (item['sk'] as string).slice(DUE_DIGITS + 1));
    },

    async replace(before, wanted, along = []) {
      const { nodeName, version } = before;
      const timers = earliestTimers(wanted);
      const due = earliestOf(timers);
      if (version === 0 && due === undefined) return 'written';
      const texts = due === undefined ? [] : divided(timers);
      const next = version + 1;
      const isSame = (index: number): boolean => before.parts[index]?.text === texts[index];
      if (along.length === 0 && texts.length === before.parts.length && texts.every((_, index) => isSame(index))) {
        return 'written';
      }
      const versions = texts.map((_, index) => (isSame(index) ? before.parts[index]!.version : next));
      const when: Condition = version === 0 ? { kind: 'itemAbsent' } : is('version', version);
      const writes: TransactWrite[] = [
        due === undefined
          ? { kind: 'delete', key: partKey(nodeName, 0), when }
          : {
              kind: 'put',
              key: partKey(nodeName, 0),
              item: {
                timers: texts[0]!,
                due,
                version: next,
                ...(texts.length > 1 ? { parts: versions.slice(1) } : {}),
              },
              when,
            },
      ];
      for (let index = 1; index < Math.max(texts.length, before.parts.length); index += 1) {
        const key = partKey(nodeName, index);
        const text = texts[index];
        if (text === undefined) writes.push({ kind: 'delete', key });
        else if (!isSame(index)) writes.push({ kind: 'put', key, item: { timers: text, version: next } });
      }
      if (before.dueMs !== due) {
        if (before.dueMs !== undefined) writes.push({ kind: 'delete', key: dueKey(before.dueMs, nodeName) });
        if (due !== undefined) writes.push({ kind: 'put', key: dueKey(due, nodeName), item: {} });
      }
      const outcome = await items.transact([...writes, ...along]);
      return outcome.kind === 'written' ? 'written' : 'conflict';
    },
  };
}

function timersOf(nodeName: string, head: Item, others: readonly Item[]): NodeTimers {
  const version = head['version'];
  if (typeof version !== 'number') {
    throw new StoreFault('rejected', 'timers without a version', { retryable: false });
  }
  const parts = [head, ...others].map(
    (item): TimersPart => ({ text: item['timers'] as string, version: item['version'] as number }),
  );
  return {
    nodeName,
    timers: parts.flatMap(({ text }) => JSON.parse(text) as EvictionTimer[]),
    version,
    dueMs: head['due'] as number,
    parts,
  };
}
