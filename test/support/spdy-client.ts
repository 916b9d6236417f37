/** What a client of SPDY sends: frames with compressed headers, as kubectl's library makes them. */
import { constants, createDeflate } from 'node:zlib';
import { SPDY_DICTIONARY } from '../../server/sessions/spdy-frames.ts';

export interface SpdyHeadersEncoder {
  /** A SYN_STREAM with these headers. */
  synStream(streamId: number, headers: Readonly<Record<string, string>>): Promise<Buffer>;
}

export function spdyHeaders(): SpdyHeadersEncoder {
  const deflate = createDeflate({ dictionary: SPDY_DICTIONARY });
  let parts: Buffer[] = [];
  deflate.on('data', (part: Buffer) => parts.push(part));
  return {
    async synStream(streamId, headers) {
      parts = [];
      deflate.write(blockOf(headers));
      await new Promise<void>((resolve) => deflate.flush(constants.Z_SYNC_FLUSH, resolve));
      const ids = Buffer.alloc(10);
      ids.writeUInt32BE(streamId, 0);
      return frame(0x80_03_00_01, Buffer.concat([ids, ...parts]));
    },
  };
}

const sized = (text: string): Buffer => {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(text.length, 0);
  return Buffer.concat([length, Buffer.from(text)]);
};

function blockOf(headers: Readonly<Record<string, string>>): Buffer {
  const count = Buffer.alloc(4);
  count.writeUInt32BE(Object.keys(headers).length, 0);
  return Buffer.concat([count, ...Object.entries(headers).flatMap(([name, value]) => [sized(name), sized(value)])]);
}

/** @param word the first four bytes: a stream, or version and kind of a control frame */
export function frame(word: number, body: Uint8Array, flags = 0): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt32BE(word, 0);
  head.writeUInt32BE(body.length, 4);
  head.writeUInt8(flags, 4);
  return Buffer.concat([head, body]);
}
