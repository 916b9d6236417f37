/**
 * What a disk may hold after a power cut, for the two files of a store. The model is a disk that keeps what was synced
 * and does as it likes with the rest: each sector of 512 bytes is the old one, the new one, or neither.
 *
 * The log in generations (sqlite.org/walformat.html: its header has a salt). Within one, frames are appended; what was
 * there at the last fdatasync is safe. SQLite syncs the header of a generation before its frames, and the database file
 * before the header. So at the first sight of a generation its header and the whole database file are safe. Pages that
 * a checkpoint writes afterwards are not: the log still has them all.
 */
import { readFileSync, writeFileSync } from 'node:fs';

const SECTOR_BYTES = 512;
const PAGE_BYTES = 4_096;
const LOG_HEADER_BYTES = 32;
/** Place of both salts in the header of the log. */
const SALT_FROM = 16;
const SALT_TO = 24;

type Fate = 'old' | 'new' | 'torn';

export class CutDisk {
  readonly #file: string;
  readonly #fraction: () => number;
  #safeLog: Buffer = Buffer.alloc(0);
  #safeDatabase: Buffer;

  constructor(file: string, fraction: () => number) {
    this.#file = file;
    this.#fraction = fraction;
    this.#safeDatabase = readFileSync(file);
  }

  /** Before a sync: a generation that is new is safe up to its header. */
  see(): void {
    const log = readFileSync(`${this.#file}-wal`);
    if (log.length < LOG_HEADER_BYTES) return;
    if (saltOf(log).equals(saltOf(this.#safeLog))) return;
    const behind = this.#safeLog.subarray(LOG_HEADER_BYTES);
    this.#safeLog = Buffer.concat([log.subarray(0, LOG_HEADER_BYTES), behind]);
    this.#safeDatabase = readFileSync(this.#file);
  }

  /** After a sync: `log` was read before it. */
  synced(log: Buffer): void {
    if (saltOf(log).equals(saltOf(this.#safeLog))) this.#safeLog = log;
  }

  readLog(): Buffer {
    return readFileSync(`${this.#file}-wal`);
  }

  /** The files as they may be if the power is cut now. */
  cutTo(file: string): void {
    const log = this.readLog();
    const database = readFileSync(this.#file);
    const kind = this.#fraction();
    if (kind < 0.2) {
      // Nothing that was not synced.
      writeFileSync(file, this.#safeDatabase);
      writeFileSync(`${file}-wal`, this.#safeLog);
      return;
    }
    if (kind < 0.5) {
      // In order, cut off at any byte.
      const end = this.#safeLog.length + Math.floor(this.#fraction() * (log.length - this.#safeLog.length + 1));
      writeFileSync(file, this.#mixed(this.#safeDatabase, database, PAGE_BYTES, false));
      writeFileSync(`${file}-wal`, cutBehind(this.#safeLog, log, end));
      return;
    }
    writeFileSync(file, this.#mixed(this.#safeDatabase, database, PAGE_BYTES, true));
    writeFileSync(`${file}-wal`, this.#mixed(this.#safeLog, log, SECTOR_BYTES, true));
  }

  /** Each block that differs has a fate of its own. A file may be shorter than what was appended. */
  #mixed(safe: Buffer, written: Buffer, blockBytes: number, mayTear: boolean): Buffer {
    const share = this.#fraction();
    const length =
      written.length <= safe.length
        ? safe.length
        : safe.length + Math.floor(this.#fraction() * (written.length - safe.length + 1));
    const mixed = Buffer.alloc(length);
    safe.copy(mixed);
    for (let at = 0; at < Math.min(length, written.length); at += blockBytes) {
      const end = Math.min(at + blockBytes, length, written.length);
      // What is safe inside of a block stays: a write does not damage bytes beside it (SQLite: powersafe overwrite).
      for (const [from, to] of differing(safe, written, at, end)) {
        const fate = this.#fateOf(share, mayTear);
        if (fate === 'new') written.copy(mixed, from, from, to);
        if (fate === 'torn')
          for (let byte = from; byte < to; byte += 1) mixed[byte] = Math.floor(this.#fraction() * 256);
      }
    }
    return mixed;
  }

  #fateOf(share: number, mayTear: boolean): Fate {
    if (this.#fraction() < share) return 'new';
    return mayTear && this.#fraction() < 0.3 ? 'torn' : 'old';
  }
}

const saltOf = (log: Buffer): Buffer => log.subarray(SALT_FROM, SALT_TO);

/** The range of a block from the first byte that differs to the last. */
function differing(safe: Buffer, written: Buffer, from: number, to: number): readonly (readonly [number, number])[] {
  let first = from;
  while (first < to && first < safe.length && safe[first] === written[first]) first += 1;
  if (first >= to) return [];
  let last = to;
  while (last > first && last <= safe.length && safe[last - 1] === written[last - 1]) last -= 1;
  return [[first, last]];
}

function cutBehind(safe: Buffer, written: Buffer, end: number): Buffer {
  if (written.length <= safe.length)
    return Buffer.concat([written.subarray(0, written.length), safe.subarray(written.length)]);
  return written.subarray(0, end);
}
