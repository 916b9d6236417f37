import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

export interface StreamPosition {
  readonly shardId: string;
  /** Of the last record that is done with. */
  readonly sequenceNumber: string;
}

/**
 * How far each event source mapping has come, kept in a file so that a restart goes on there. Written at most once a
 * second: after a crash up to a second of records is delivered again, which mappings must bear anyway.
 */
export interface Positions {
  /** Undefined for a mapping never started; without shardId for one that has seen no record yet. */
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

/** An unreadable file is as good as none: the mappings then begin where the template says. */
function read(file: string): Record<string, Partial<StreamPosition>> {
  if (!existsSync(file)) return {};
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Record<string, Partial<StreamPosition>>;
  } catch {
    return {};
  }
}
