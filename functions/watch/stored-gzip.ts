import { crc32 } from 'node:zlib';
import type { GzipFrames } from './gzip-frames.ts';

/** RFC 1952: magic, deflate, no flags, no time, unknown system. */
const HEAD = Uint8Array.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff);
const STORED_MAX = 65_535;

/** Deflate's stored block (RFC 1951, 3.2.4). An empty one makes decoders deliver what they have, and adds nothing. */
function storedBlock(part: Uint8Array, isLast = false): Uint8Array {
  const block = Buffer.alloc(5 + part.length);
  block[0] = isLast ? 1 : 0;
  block.writeUInt16LE(part.length, 1);
  block.writeUInt16LE(part.length ^ 0xffff, 3);
  block.set(part, 5);
  return block;
}

const EMPTY_BLOCK = storedBlock(new Uint8Array());

/** Gzip without compression, for output that is sent as it comes. */
export function storedGzip(): GzipFrames {
  let checksum = 0;
  let bytes = 0;
  return {
    head: () => HEAD,
    frame(output) {
      checksum = crc32(output, checksum);
      bytes += output.length;
      const blocks: Uint8Array[] = [];
      for (let from = 0; from < output.length; from += STORED_MAX) {
        blocks.push(storedBlock(output.subarray(from, from + STORED_MAX)));
      }
      return Buffer.concat(blocks);
    },
    padding: (bytesMin) => Buffer.alloc(Math.ceil(bytesMin / EMPTY_BLOCK.length) * EMPTY_BLOCK.length, EMPTY_BLOCK),
    end() {
      const trailer = Buffer.alloc(8);
      trailer.writeUInt32LE(checksum, 0);
      trailer.writeUInt32LE(bytes % 2 ** 32, 4);
      return Buffer.concat([storedBlock(new Uint8Array(), true), trailer]);
    },
  };
}
