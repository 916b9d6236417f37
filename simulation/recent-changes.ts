/**
 * What was written to the tables of late, and when in true time: for reads that lag behind, for streams, and for
 * everybody who watches. The tables themselves forget their changes after they were read.
 */

import type { TableName } from '../shared/store/item-store.ts';
import type { ItemChange } from '../shared/store/memory/item-changes.ts';
import type { MemoryItemStore } from '../shared/store/memory/item-store.ts';

/** A change with its true time. */
export interface TimedChange extends ItemChange {
  readonly atMs: number;
}

const TABLES = ['health', 'objects', 'control'] as const;
/** Partitions of nodes' rows, and of heads of the change log: nothing else is read as eventually consistent. */
const READ_LATE: Readonly<Partial<Record<TableName, string>>> = { health: '', objects: 'h#' };
/** A read may lag as much. */
const KEPT_MS = 5_000;

export interface RecentChanges {
  /** Returns new changes, in order within each table. */
  take(nowMs: number): readonly TimedChange[];
  /** Changes of a partition since a moment, oldest first. */
  since(table: TableName, pk: string, momentMs: number): readonly TimedChange[];
  /** Partitions in which something changed of late. */
  partitions(table: TableName): readonly string[];
}

export function recentChanges(tables: MemoryItemStore): RecentChanges {
  const seen: Record<TableName, number> = { health: 0, objects: 0, control: 0 };
  /** By partition. */
  const kept: Record<TableName, Map<string, TimedChange[]>> = {
    health: new Map(),
    objects: new Map(),
    control: new Map(),
  };
  return {
    take(nowMs) {
      const taken: TimedChange[] = [];
      for (const table of TABLES) {
        for (const change of tables.changes(table, seen[table])) {
          seen[table] = change.sequence;
          const timed = { ...change, atMs: nowMs };
          taken.push(timed);
          const { pk } = change.key;
          const prefix = READ_LATE[table];
          if (prefix === undefined || !pk.startsWith(prefix)) continue;
          const before = (kept[table].get(pk) ?? []).filter(({ atMs }) => atMs > nowMs - KEPT_MS);
          kept[table].set(pk, [...before, timed]);
        }
      }
      return taken;
    },
    since: (table, pk, momentMs) => (kept[table].get(pk) ?? []).filter(({ atMs }) => atMs > momentMs),
    partitions: (table) => [...kept[table].keys()],
  };
}
