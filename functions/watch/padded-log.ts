/**
 * A log with parts that are delivered at once, without a change of the output: gzip has padding, plain text has none.
 * kubectl and the JavaScript client accept gzip. Others receive plain text, and the last part of a silent log with its
 * next one.
 */
import type { GzipFrames } from './gzip-frames.ts';

/** @param paddingBytes at least 1 */
export async function* paddedLog(
  output: AsyncIterable<Uint8Array>,
  frames: GzipFrames,
  paddingBytes: number,
): AsyncGenerator<Uint8Array> {
  const padding = frames.padding(paddingBytes);
  yield frames.head();
  yield padding;
  for await (const part of output) {
    yield frames.frame(part);
    yield padding;
  }
  yield frames.end();
}
