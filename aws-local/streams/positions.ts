import { existsSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { delayedWrite } from '../../shared/host/delayed-write.ts';
import { replaceFile } from '../../shared/host/write-file.ts';

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
  /** Writes the last changes. */
  end(): void;
}

const WRITE_EVERY_MS = 1_000;

/** @param file undefined keeps positions in memory only. */
export function openPositions(file: string | undefined, onTrouble: (message: string) => void): Positions {
  const positions = new Map<string, Partial<StreamPosition>>(Object.entries(file === undefined ? {} : read(file)));
  const stored =
    file === undefined
      ? undefined
      : delayedWrite({
          file: basename(file),
          delayMs: WRITE_EVERY_MS,
          write: () => replaceFile(file, JSON.stringify(Object.fromEntries(positions))),
          onTrouble,
        });

  function change(mapping: string, position: Partial<StreamPosition>): void {
    positions.set(mapping, position);
    stored?.soon();
  }

  return {
    get: (mapping) => positions.get(mapping),
    begin: (mapping) => {
      if (!positions.has(mapping)) change(mapping, {});
    },
    set: change,
    end: () => stored?.end(),
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
