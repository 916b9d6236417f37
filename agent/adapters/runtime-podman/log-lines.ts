/**
 * Output in the format of CRI, which conmon writes with the driver `k8s-file`: each line has a time, a stream, and `F`
 * if it is complete or `P` if more of it follows. Source: Kubernetes, kubelet-cri-logging.md.
 */
import { parseTimeMs } from '../../../shared/kubernetes/time.ts';
import type { LogQuery } from '../../ports/pod-runtime.ts';

const LINE_FEED = 10;
const SPACE = 32;
const LINE_FEED_BYTES = Buffer.from('\n');
/** A longer line without an end is passed on as it is. Conmon splits lines at 8 KiB. */
const LINE_BYTES_MAX = 64 * 1024;

/** What a client requested of these pieces of a log. */
export async function* linesOf(
  pieces: AsyncIterable<Uint8Array>,
  { timestamps, sinceMs, limitBytes = Number.POSITIVE_INFINITY }: LogQuery,
): AsyncGenerator<Uint8Array> {
  let rest = Buffer.alloc(0);
  let leftBytes = limitBytes;
  let startsLine = true;
  for await (const piece of pieces) {
    rest = Buffer.concat([rest, piece]);
    const parts: Buffer[] = [];
    for (let feed = rest.indexOf(LINE_FEED); feed !== -1; feed = rest.indexOf(LINE_FEED)) {
      const { time, isComplete, text } = parsed(rest.subarray(0, feed));
      rest = rest.subarray(feed + 1);
      if (sinceMs === undefined || (parseTimeMs(time) ?? sinceMs) >= sinceMs) {
        if (timestamps && startsLine) parts.push(Buffer.from(`${utcTime(time)} `));
        parts.push(text);
        if (isComplete) parts.push(LINE_FEED_BYTES);
      }
      startsLine = isComplete;
    }
    if (rest.length > LINE_BYTES_MAX) rest = Buffer.alloc(0);
    const bytes = Buffer.concat(parts).subarray(0, leftBytes);
    leftBytes -= bytes.length;
    if (bytes.length > 0) yield bytes;
    if (leftBytes <= 0) return;
  }
}

/** The text of complete lines. */
export const textOfLines = (bytes: Buffer): string =>
  bytes
    .toString('utf8')
    .split('\n')
    .map((line) => (line === '' ? '' : parsed(Buffer.from(line)).text.toString('utf8')))
    .join('\n');

interface Line {
  readonly time: string;
  readonly isComplete: boolean;
  readonly text: Buffer;
}

/** A line without these parts is the rest of one: its start was removed with an older file. */
function parsed(line: Buffer): Line {
  const stream = line.indexOf(SPACE);
  const tag = line.indexOf(SPACE, stream + 1);
  const text = line.indexOf(SPACE, tag + 1);
  if (stream < 0 || tag < 0 || text < 0) return { time: '', isComplete: true, text: Buffer.alloc(0) };
  return {
    time: line.subarray(0, stream).toString('latin1'),
    isComplete: line.subarray(tag + 1, text).toString('latin1') !== 'P',
    text: line.subarray(text + 1),
  };
}

/** Nine digits in UTC, as the kubelet prints times. Conmon writes the time zone of the machine. */
function utcTime(time: string): string {
  const ms = parseTimeMs(time);
  if (ms === undefined) return time;
  const fraction = /\.(\d+)/.exec(time)?.[1] ?? '';
  return `${new Date(ms).toISOString().slice(0, 19)}.${fraction.padEnd(9, '0').slice(0, 9)}Z`;
}
