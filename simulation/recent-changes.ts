/**
 * What was written to the tables of late, and when in true time: for reads that lag behind, for streams, and for everybody
 * who watches. The tables themselves forget their changes as soon as these were taken.
 */
import type { ItemChange, MemoryItemStore } from '../shared/adapters/memory/item-store.ts';
import type { TableName } from '../shared/ports/item-store.ts';

/** A change with its true time. */
export interface TimedChange extends ItemChange {
  readonly atMs: number;
}

const TABLES = ['health', 'objects', 'control'] as const;
/** As far back as a read may lag. */
const KEPT_MS = 5_000;

export interface RecentChanges {
  /** Takes what is new, in order within each table. */
  take(nowMs: number): readonly TimedChange[];
  /** Changes of a partition since a moment, oldest first. */
  since(table: TableName, pk: string, momentMs: number): readonly TimedChange[];
  /** Partitions in which something changed of late. */
  partitions(table: TableName): readonly string[];
}

export function recentChanges(tables: MemoryItemStore): RecentChanges {
  const seen: Record<TableName, number> = { health: 0, objects: 0, control: 0 };
  /** Of the health table, by partition. */
  const kept = new Map<string, TimedChange[]>();
  return {
    take(nowMs) {
      const taken: TimedChange[] = [];
      for (const table of TABLES) {
        for (const change of tables.changes(table, seen[table])) {
          seen[table] = change.sequence;
          const timed = { ...change, atMs: nowMs };
          taken.push(timed);
          // Only nodes' rows are read as eventually consistent.
          if (table !== 'health') continue;
          const { pk } = change.key;
          const before = (kept.get(pk) ?? []).filter(({ atMs }) => atMs > nowMs - KEPT_MS);
          kept.set(pk, [...before, timed]);
        }
      }
      return taken;
    },
    since: (table, pk, momentMs) =>
      table === 'health' ? (kept.get(pk) ?? []).filter(({ atMs }) => atMs > momentMs) : [],
    partitions: (table) => (table === 'health' ? [...kept.keys()] : []),
  };
}
