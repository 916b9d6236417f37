/**
 * Output of one run of a container, in files. Its processes write to the file themselves, so they can outlive the
 * agent.
 *
 *   <container>.<run>.log            current file
 *   <container>.<run>.log.<offset>   earlier output; `offset` of its first byte, counted from the start of the run
 *   <container>.<run>.times          when output was seen: entries of an end offset and a time, 6 bytes each
 *
 * The agent looks every second. So the time of a line is up to a second late, and a file is longer than its limit for a
 * while. Output written between copying and truncating is lost.
 */
import {
  appendFileSync,
  closeSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { removeQuietly } from './pod-record.ts';

/** One run of a container. */
export interface LogName {
  readonly directory: string;
  readonly container: string;
  /** restartCount of the run. */
  readonly run: number;
}

export interface LogLimits {
  /** The current file is moved away when it is longer. Bytes. */
  readonly bytesMax: number;
  /** The current file included. */
  readonly filesMax: number;
}

/** A part of the output. Offsets count from the start of the run. */
export interface LogSegment {
  readonly path: string;
  readonly start: number;
  readonly end: number;
}

/** The output up to `end` was seen at `atMs` for the first time. */
export interface SeenOutput {
  readonly end: number;
  readonly atMs: number;
}

/** Digits of an offset in a file name. */
const OFFSET_DIGITS = 15;
const NUMBER_BYTES = 6;
const ENTRY_BYTES = 2 * NUMBER_BYTES;
/** Above this size every second entry is dropped: older times become coarser. Bytes. */
const TIMES_BYTES_MAX = 21_845 * ENTRY_BYTES;

const baseName = ({ container, run }: LogName): string => `${container}.${run}`;
const timesPath = (name: LogName): string => join(name.directory, `${baseName(name)}.times`);
export const logPath = (name: LogName): string => join(name.directory, `${baseName(name)}.log`);

/** Opened for appending: writers continue at the new end after the file was truncated. */
export const openLog = (name: LogName): number => openSync(logPath(name), 'a', 0o640);

/** The output that exists, oldest first. The last one is the current file; there is none before the first start. */
export function logSegments(name: LogName): readonly LogSegment[] {
  const prefix = `${baseName(name)}.log`;
  const rotated: LogSegment[] = [];
  let hasCurrent = false;
  for (const file of readdirSync(name.directory)) {
    if (file === prefix) hasCurrent = true;
    if (!file.startsWith(`${prefix}.`)) continue;
    const digits = file.slice(prefix.length + 1);
    if (digits.length !== OFFSET_DIGITS || !/^\d+$/.test(digits)) continue;
    const path = join(name.directory, file);
    const start = Number(digits);
    rotated.push({ path, start, end: start + sizeOf(path) });
  }
  // Stryker disable next-line ArithmeticOperator,MethodExpression,CallExpression: Node.js lists files by name today
  rotated.sort((a, b) => a.start - b.start);
  if (!hasCurrent) return rotated;
  const start = rotated.at(-1)?.end ?? 0;
  return [...rotated, { path: logPath(name), start, end: start + sizeOf(logPath(name)) }];
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/**
 * Moves the last `bytesMax` of a longer file away, and removes the oldest files above `filesMax`. The file is truncated
 * even if there is no space for the copy, because its growth may have filled the disk. Offsets then start again at 0.
 *
 * @throws Error when the file was not truncated, or was truncated without a copy
 */
export function boundLog(name: LogName, { bytesMax, filesMax }: LogLimits): void {
  const path = logPath(name);
  if (sizeOf(path) <= bytesMax) return;
  const segments = logSegments(name);
  const { start = 0, end = 0 } = segments.at(-1) ?? {};
  const file = openSync(path, 'r+');
  try {
    // Stryker disable next-line ArithmeticOperator: the file is longer, unless it was truncated meanwhile
    const tail = Buffer.alloc(Math.min(bytesMax, end - start));
    const tailStart = end - tail.length;
    const read = readSync(file, tail, 0, tail.length, tailStart - start);
    const copy = `${path}.${String(tailStart).padStart(OFFSET_DIGITS, '0')}`;
    try {
      writeFileSync(copy, tail.subarray(0, read), { mode: 0o640 });
    } catch (cause) {
      removeQuietly(copy);
      if (['ENOSPC', 'EDQUOT'].includes((cause as NodeJS.ErrnoException).code ?? '')) {
        ftruncateSync(file);
        for (const segment of segments) if (segment.path !== path) removeQuietly(segment.path);
        removeQuietly(timesPath(name));
      }
      throw cause;
    }
    ftruncateSync(file);
  } finally {
    closeSync(file);
  }
  const rotated = logSegments(name).slice(0, -1);
  for (const { path: oldest } of rotated.slice(0, Math.max(0, rotated.length - (filesMax - 1)))) removeQuietly(oldest);
}

/** The last bytes of the current file. */
export function logTail(name: LogName, bytesMax: number): Buffer {
  const segments = logSegments(name);
  const { start = 0, end = 0 } = segments.at(-1) ?? {};
  return readOutput(segments, Math.max(start, end - bytesMax), bytesMax);
}

/** Removes the files of runs before this one. */
export function removeOlderRuns({ directory, container, run }: LogName): void {
  for (const file of readdirSync(directory)) {
    if (!file.startsWith(`${container}.`)) continue;
    const older = /^(\d+)\.(?:log|times)/.exec(file.slice(container.length + 1))?.[1];
    // NaN for other files, which is not less.
    if (Number(older) < run) removeQuietly(join(directory, file));
  }
}

/**
 * Records when the output was written, if it has grown since the last entry. Returns what the file was like; with the
 * same `before` a call without new output costs one stat.
 */
export function recordOutputTime(name: LogName, before?: string): string | undefined {
  const current = statSync(logPath(name), { throwIfNoEntry: false });
  if (current === undefined) return undefined;
  const state = `${name.run} ${current.size} ${current.mtimeMs}`;
  if (state === before || current.size === 0) return state;
  const end = logSegments(name).at(-1)?.end ?? 0;
  const last = lastSeen(name);
  if (last !== undefined && last.end >= end) return state;
  // A time that runs backwards, after a correction of the clock, would make the order of the entries useless.
  const entry = { end, atMs: Math.max(Math.floor(current.mtimeMs), last?.atMs ?? 0) };
  if (sizeOf(timesPath(name)) + ENTRY_BYTES <= TIMES_BYTES_MAX) {
    appendFileSync(timesPath(name), encoded([entry]), { mode: 0o640 });
    return state;
  }
  const kept = seenOutput(name).filter((_, index) => index % 2 === 1);
  writeFileSync(timesPath(name), encoded([...kept, entry]));
  return state;
}

function lastSeen(name: LogName): SeenOutput | undefined {
  const path = timesPath(name);
  const count = Math.floor(sizeOf(path) / ENTRY_BYTES);
  const bytes = readOutput([{ path, start: 0, end: count * ENTRY_BYTES }], (count - 1) * ENTRY_BYTES, ENTRY_BYTES);
  return decoded(bytes)[0];
}

/** The recorded times, oldest first. */
export function seenOutput(name: LogName): readonly SeenOutput[] {
  return decoded(contentOf(timesPath(name)));
}

function decoded(bytes: Buffer): readonly SeenOutput[] {
  return Array.from({ length: Math.floor(bytes.length / ENTRY_BYTES) }, (_, index) => ({
    end: bytes.readUIntBE(index * ENTRY_BYTES, NUMBER_BYTES),
    atMs: bytes.readUIntBE(index * ENTRY_BYTES + NUMBER_BYTES, NUMBER_BYTES),
  }));
}

function contentOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw cause;
  }
}

function encoded(entries: readonly SeenOutput[]): Buffer {
  const bytes = Buffer.alloc(entries.length * ENTRY_BYTES);
  for (const [index, { end, atMs }] of entries.entries()) {
    bytes.writeUIntBE(end, index * ENTRY_BYTES, NUMBER_BYTES);
    bytes.writeUIntBE(atMs, index * ENTRY_BYTES + NUMBER_BYTES, NUMBER_BYTES);
  }
  return bytes;
}

/** Bytes from an offset on, up to the end of their file. Empty at the end, or if the output was removed meanwhile. */
export function readOutput(segments: readonly LogSegment[], offset: number, bytesMax: number): Buffer {
  const segment = segments.find(({ start, end }) => offset >= start && offset < end);
  if (segment === undefined) return Buffer.alloc(0);
  const bytes = Buffer.alloc(Math.min(bytesMax, segment.end - offset));
  const file = openSync(segment.path, 'r');
  try {
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, offset - segment.start));
  } finally {
    closeSync(file);
  }
}
