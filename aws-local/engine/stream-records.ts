import { DatabaseSync } from 'node:sqlite';

/** DynamoDB keeps them for as long. */
const KEPT_SECONDS = 24 * 3_600;
/** Waiting for the engine's own write to end. Milliseconds. */
const BUSY_MAX_MS = 5_000;

/**
 * Keeps the engine's stream table fast: it looks for the highest sequence number of a table on each write, and has no
 * index for that, and a write would cost more with every record kept (0.46 ms at first, 1.67 ms after 15,000). Also
 * drops records that DynamoDB would no longer have. Safe to repeat, and while the engine runs.
 */
export function tendStreamRecords(databaseFile: string, nowMs: number): void {
  const database = new DatabaseSync(databaseFile, { timeout: BUSY_MAX_MS });
  try {
    database.exec(`
      CREATE INDEX IF NOT EXISTS stream_records_by_sequence
        ON _stream_records (table_name, CAST(sequence_number AS INTEGER));
      CREATE INDEX IF NOT EXISTS stream_records_by_shard
        ON _stream_records (table_name, shard_id, sequence_number);
    `);
    // The last record of a table stays: the next sequence number is counted from it.
    database
      .prepare(
        `DELETE FROM _stream_records
          WHERE created_at < ?
            AND id NOT IN (SELECT MAX(id) FROM _stream_records GROUP BY table_name)`,
      )
      .run(Math.floor(nowMs / 1_000) - KEPT_SECONDS);
  } finally {
    database.close();
  }
}
