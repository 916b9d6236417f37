import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

/** A position in the stream of a table. */
export interface StreamPosition {
  readonly shardId: string;
  /** Sequence number of the last processed record. */
  readonly sequenceNumber: string;
}

/**
 * The position of each event source mapping, stored in a file for the next start. The file is written at most once per
 * second. After a crash the records of up to one second are delivered again; delivery is at least once in any case.
 */
export interface Positions {
  /** Undefined for a mapping that was never started. Without shardId before its first record. */
  get(mapping: string): Partial<StreamPosition> | undefined;
  begin(mapping: string): void;
  set(mapping: string, position: StreamPosition): void;
  flush(): void;
}

const WRITE_EVERY_MS = 1_000;

/** @param file undefined keeps positions in memory only. */
export function openPositions(file: string | undefined): Positions {
  const positions = new Map<string, Partial<StreamPosition>>(Object.entries(file === undefined ? {} : read(file)));
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (file === undefined) return;
    const temporary = `${file}.new`;
    writeFileSync(temporary, JSON.stringify(Object.fromEntries(positions)));
    renameSync(temporary, file);
  }

  function change(mapping: string, position: Partial<StreamPosition>): void {
    positions.set(mapping, position);
    if (file === undefined) return;
    timer ??= setTimeout(flush, WRITE_EVERY_MS).unref();
  }

  return {
    get: (mapping) => positions.get(mapping),
    begin: (mapping) => {
      if (!positions.has(mapping)) change(mapping, {});
    },
    set: change,
    flush,
  };
}

/** An unreadable file counts as absent: the mappings then start at the StartingPosition of the template. */
function read(file: string): Record<string, Partial<StreamPosition>> {
  if (!existsSync(file)) return {};
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, Partial<StreamPosition>>;
  } catch {
    return {};
  }
}
