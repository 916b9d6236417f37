/**
 * Timers of pod evictions in the `control` table.
 *
 *   pk `evictions#<node>` sk `-`   timers JSON of all timers of the node's pods; version; due the earliest (ms)
 *   pk `evictions-due` sk `<due, 14 digits>#<node>`   finds the node by that time
 *
 * One item a node, because a decision is always over the whole node: a change of its taints moves all its pods by one
 * write, and two deciders that meet see it by the version. Both items move in one transaction, so a timer is never lost
 * to the index. A time may lie any number of days ahead.
 */
import type { EvictionTimer } from '../domain/pod-eviction.ts';
import {
  type Condition,
  type Item,
  type ItemKey,
  type ItemStore,
  type PutWrite,
  StoreFault,
  type TransactWrite,
} from '../ports/item-store.ts';
import { is } from './conditions.ts';
import { ALONE } from './layout.ts';

const DUE_PARTITION = 'evictions-due';
/** Milliseconds since the epoch until the year 5138. */
const DUE_DIGITS = 14;
/** Writes that fit beside those of a node's timers. */
export const TIMERS_ALONG_MAX = 90;
/** Due nodes in one read. */
const DUE_NODES_MAX = 500;

export interface NodeTimers {
  readonly nodeName: string;
  readonly timers: readonly EvictionTimer[];
  /** 0 when nothing is stored. */
  readonly version: number;
  readonly dueMs: number | undefined;
}

export interface EvictionTimerStore {
  /** Strongly consistent. */
  read(nodeName: string): Promise<NodeTimers>;
  /** Nodes with a timer due by then, earliest first, DUE_NODES_MAX at most. */
  readDue(nowMs: number): Promise<readonly string[]>;
  /**
   * Replaces all timers of a node, if nobody else did since `before` was read; `along` is written with them,
   * TIMERS_ALONG_MAX at most.
   */
  replace(
    before: NodeTimers,
    timers: readonly EvictionTimer[],
    along?: readonly PutWrite[],
  ): Promise<'written' | 'conflict'>;
}

const nodeKey = (nodeName: string): ItemKey => ({ table: 'control', pk: `evictions#${nodeName}`, sk: ALONE });
const dueKey = (dueMs: number, nodeName: string): ItemKey => ({
  table: 'control',
  pk: DUE_PARTITION,
  sk: `${dueText(dueMs)}#${nodeName}`,
});
const dueText = (dueMs: number): string => String(Math.max(0, Math.floor(dueMs))).padStart(DUE_DIGITS, '0');

const earliestOf = (timers: readonly EvictionTimer[]): number | undefined =>
  timers.length === 0 ? undefined : Math.min(...timers.map((timer) => timer.atMs));

export function evictionTimerStore(items: ItemStore): EvictionTimerStore {
  return {
    async read(nodeName) {
      return timersOf(nodeName, await items.get(nodeKey(nodeName), { consistent: true }));
    },

    async readDue(nowMs) {
      const page = await items.query({
        table: 'control',
        pk: DUE_PARTITION,
        consistent: true,
        // Sorts after every node of this very millisecond: names hold no such character.
        through: `${dueText(nowMs)}#~`,
        limit: DUE_NODES_MAX,
      });
      return page.items.map((item) => (item['sk'] as string).slice(DUE_DIGITS + 1));
    },

    async replace(before, timers, along = []) {
      const { nodeName, version } = before;
      const due = earliestOf(timers);
      if (version === 0 && due === undefined) return 'written';
      const when: Condition = version === 0 ? { kind: 'itemAbsent' } : is('version', version);
      const writes: TransactWrite[] =
        due === undefined
          ? [{ kind: 'delete', key: nodeKey(nodeName), when }]
          : [
              {
                kind: 'put',
                key: nodeKey(nodeName),
                item: { timers: JSON.stringify(timers), due, version: version + 1 },
                when,
              },
            ];
      if (before.dueMs !== due) {
        if (before.dueMs !== undefined) writes.push({ kind: 'delete', key: dueKey(before.dueMs, nodeName) });
        if (due !== undefined) writes.push({ kind: 'put', key: dueKey(due, nodeName), item: {} });
      }
      const outcome = await items.transact([...writes, ...along]);
      return outcome.kind === 'written' ? 'written' : 'conflict';
    },
  };
}

function timersOf(nodeName: string, item: Item | undefined): NodeTimers {
  if (item === undefined) return { nodeName, timers: [], version: 0, dueMs: undefined };
  const version = item['version'];
  if (typeof version !== 'number') {
    throw new StoreFault('rejected', 'timers without a version', { retryable: false });
  }
  return {
    nodeName,
    timers: JSON.parse(item['timers'] as string) as EvictionTimer[],
    version,
    dueMs: item['due'] as number,
  };
}
