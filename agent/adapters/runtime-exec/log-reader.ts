/**
 * Reads the output of one run as `kubectl logs` requests it. Source: upstream pkg/kubelet/kuberuntime/logs/logs.go
 * (ReadLogs): `tail` selects the start, `since` skips lines before it, `limitBytes` counts times of lines, too.
 */

import type { LogQuery } from '../../ports/pod-runtime.ts';
import type { AgentTime } from '../../ports/time.ts';
import { type LogName, type LogSegment, logSegments, readOutput, type SeenOutput, seenOutput } from './log-file.ts';

/** Bytes per read, and per piece of output. */
const READ_BYTES = 64 * 1024;
/** Between two looks at a followed log. Milliseconds. */
const FOLLOW_MS = 250;
const LINE_FEED = 10;

export interface LogReading {
  readonly time: AgentTime;
  /** Whether this run may still write. */
  readonly isRunning: () => boolean;
  readonly stop: AbortSignal;
}

/** Pieces of at most READ_BYTES, and the times of their lines. */
export async function* readLog(name: LogName, query: LogQuery, reading: LogReading): AsyncGenerator<Uint8Array> {
  let leftBytes = query.limitBytes ?? Number.POSITIVE_INFINITY;
  for await (const piece of pieces(name, query, reading)) {
    const kept = piece.subarray(0, leftBytes);
    leftBytes -= kept.length;
    if (kept.length > 0) yield kept;
    if (leftBytes <= 0) return;
  }
}

async function* pieces(name: LogName, query: LogQuery, { time, isRunning, stop }: LogReading): AsyncGenerator<Buffer> {
  let offset = startOffset(name, query);
  const stamps = query.timestamps ? new LineTimes(() => time.nowMs()) : undefined;
  while (!stop.aborted) {
    const mayGrow = query.follow && isRunning();
    const segments = logSegments(name);
    // A full disk made the agent discard all output: offsets start again.
    if (offset > (segments.at(-1)?.end ?? 0)) offset = 0;
    // The limits removed output: the next one that exists follows.
    offset = Math.max(offset, segments.find(({ end }) => end > offset)?.start ?? offset);
    const bytes = readOutput(segments, offset, READ_BYTES);
    if (bytes.length > 0) {
      yield stamps === undefined ? bytes : stamps.add(bytes, offset, seenOutput(name));
      offset += bytes.length;
    } else if (mayGrow) await time.sleep(FOLLOW_MS, stop);
    else return;
  }
}

function startOffset(name: LogName, { tailLines, sinceMs }: LogQuery): number {
  const segments = logSegments(name);
  // Stryker disable next-line ConditionalExpression: without it all lines are searched, with the same result
  const tail = tailLines === undefined ? (segments[0]?.start ?? 0) : tailOffset(segments, tailLines);
  if (sinceMs === undefined) return tail;
  const seen = seenOutput(name);
  const index = seen.findIndex(({ atMs }) => atMs >= sinceMs);
  const lastSeen = seen.at(-1)?.end ?? 0;
  const from = index === -1 ? lastSeen : (seen[index - 1]?.end ?? 0);
  return Math.max(tail, from === 0 ? 0 : nextLine(segments, from));
}

/** Where the last `lines` lines start. A line without its end counts. */
function tailOffset(segments: readonly LogSegment[], lines: number): number {
  const first = segments[0]?.start ?? 0;
  const end = segments.at(-1)?.end ?? 0;
  if (lines === 0) return end;
  let found = 0;
  for (let index = segments.length - 1; index >= 0; index -= 1) {
    const { start, end: segmentEnd } = segments[index]!;
    // Stryker disable next-line EqualityOperator: a block without bytes has no line
    for (let blockEnd = segmentEnd; blockEnd > start; blockEnd -= READ_BYTES) {
      const blockStart = Math.max(start, blockEnd - READ_BYTES);
      const block = readOutput(segments, blockStart, blockEnd - blockStart);
      // Stryker disable next-line ArithmeticOperator: no line feed is behind the block
      for (let at = block.length - 1; at >= 0; at -= 1) {
        if (block[at] !== LINE_FEED || blockStart + at === end - 1) continue;
        found += 1;
        if (found === lines) return blockStart + at + 1;
      }
    }
  }
  return first;
}

/** The first start of a line at or after `offset`. */
function nextLine(segments: readonly LogSegment[], offset: number): number {
  let at = offset - 1;
  for (;;) {
    const block = readOutput(segments, at, READ_BYTES);
    if (block.length === 0) return Math.max(at, offset);
    const feed = block.indexOf(LINE_FEED);
    if (feed !== -1) return at + feed + 1;
    at += block.length;
  }
}

/** Puts the time before each line, as the kubelet does: RFC 3339 with nine digits. */
class LineTimes {
  readonly #nowMs: () => number;
  #startsLine = true;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** @param offset of the first byte */
  add(bytes: Buffer, offset: number, seen: readonly SeenOutput[]): Buffer {
    const parts: Buffer[] = [];
    for (let at = 0; at < bytes.length; ) {
      if (this.#startsLine) parts.push(Buffer.from(`${timeText(this.#timeOf(offset + at, seen))} `));
      const feed = bytes.indexOf(LINE_FEED, at);
      const next = feed === -1 ? bytes.length : feed + 1;
      parts.push(bytes.subarray(at, next));
      this.#startsLine = feed !== -1;
      at = next;
    }
    return Buffer.concat(parts);
  }

  /** Output that the agent has not seen before is new. */
  #timeOf(offset: number, seen: readonly SeenOutput[]): number {
    let low = 0;
    let high = seen.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (seen[middle]!.end > offset) high = middle;
      else low = middle + 1;
    }
    return seen[low]?.atMs ?? this.#nowMs();
  }
}

const timeText = (atMs: number): string => `${new Date(atMs).toISOString().slice(0, -1)}000000Z`;
