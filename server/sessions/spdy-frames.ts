/**
 * Frames of SPDY/3.1 as kubectl uses them, without I/O: a reader of what arrives, and the bytes of what is sent. There
 * is no flow control of streams: kubectl has none, and the connection has its own.
 *
 * Source: SPDY Protocol - Draft 3.1, 2.2 (Framing), 2.6 (Control frames); github.com/moby/spdystream.
 */

/** Bytes of one frame. kubectl sends 32 KB of data. */
export const FRAME_BYTES_MAX = 256 * 1024;

const SYN_STREAM = 1;
const SYN_REPLY = 2;
const RST_STREAM = 3;
const PING = 6;
const GOAWAY = 7;
const HEADERS = 8;

const VERSION = 3;
const FLAG_FIN = 1;
const HEAD_BYTES = 8;
const CONTROL_BIT = 0x80_00_00_00;

export type RstReason = keyof typeof RST_REASONS;
/** Source: draft 3.1, 2.6.3. */
const RST_REASONS = { protocolError: 1, invalidStream: 2, refusedStream: 3, cancel: 5 } as const;

export type SpdyFrame =
  | { readonly kind: 'data'; readonly streamId: number; readonly isLast: boolean; readonly data: Buffer }
  /** @property block compressed headers */
  | { readonly kind: 'synStream'; readonly streamId: number; readonly isLast: boolean; readonly block: Buffer }
  /** Its block must be decompressed as well: the blocks of a connection are one stream of zlib. */
  | { readonly kind: 'headers'; readonly streamId: number; readonly isLast: boolean; readonly block: Buffer }
  | { readonly kind: 'rstStream'; readonly streamId: number }
  | { readonly kind: 'ping'; readonly id: number }
  | { readonly kind: 'goAway' }
  /** SETTINGS, WINDOW_UPDATE, SYN_REPLY to what was never opened, and frames of other kinds: without effect here. */
  | { readonly kind: 'ignored' };

/** What arrives is no SPDY, or exceeds a limit. The connection cannot continue. */
export class SpdyFault extends Error {
  override readonly name = 'SpdyFault';
}

/**
 * Divides bytes into frames. It keeps one frame at most, in one buffer of the length that its head states. So its time
 * and its memory are those of its bytes, however small the pieces are in which they arrive.
 */
export class FrameReader {
  #frame = Buffer.allocUnsafe(HEAD_BYTES);
  #filled = 0;

  /** @throws SpdyFault */
  *read(bytes: Buffer): Generator<SpdyFrame> {
    let rest = bytes;
    while (rest.length > 0) {
      const copied = rest.copy(this.#frame, this.#filled);
      this.#filled += copied;
      rest = rest.subarray(copied);
      if (this.#filled < this.#frame.length) return;
      const length = this.#frame.readUIntBE(5, 3);
      if (length > FRAME_BYTES_MAX) throw new SpdyFault(`a frame has ${length} bytes, and may have ${FRAME_BYTES_MAX}`);
      if (this.#filled < HEAD_BYTES + length) {
        const head = this.#frame;
        this.#frame = Buffer.allocUnsafe(HEAD_BYTES + length);
        head.copy(this.#frame);
        continue;
      }
      const frame = this.#frame;
      this.#frame = Buffer.allocUnsafe(HEAD_BYTES);
      this.#filled = 0;
      yield frameOf(frame.readUInt32BE(0), frame.readUInt8(4), frame.subarray(HEAD_BYTES));
    }
  }
}

function frameOf(word: number, flags: number, body: Buffer): SpdyFrame {
  const isLast = (flags & FLAG_FIN) !== 0;
  if ((word & CONTROL_BIT) === 0) return { kind: 'data', streamId: word, isLast, data: body };
  const version = (word >>> 16) & 0x7f_ff;
  if (version !== VERSION) throw new SpdyFault(`frames of version ${version} are not known`);
  switch (word & 0xff_ff) {
    case SYN_STREAM:
      return { kind: 'synStream', streamId: streamIdOf(body, 10), isLast, block: body.subarray(10) };
    case HEADERS:
      return { kind: 'headers', streamId: streamIdOf(body, 4), isLast, block: body.subarray(4) };
    case RST_STREAM:
      return { kind: 'rstStream', streamId: streamIdOf(body, 8) };
    case PING:
      return { kind: 'ping', id: wordOf(body, 4) };
    case GOAWAY:
      return { kind: 'goAway' };
    default:
      return { kind: 'ignored' };
  }
}

const streamIdOf = (body: Buffer, leastBytes: number): number => wordOf(body, leastBytes) & 0x7f_ff_ff_ff;

function wordOf(body: Buffer, leastBytes: number): number {
  if (body.length < leastBytes) throw new SpdyFault('a frame is too short for its kind');
  return body.readUInt32BE(0);
}

export const dataFrame = (streamId: number, data: Uint8Array, isLast = false): Buffer =>
  Buffer.concat([headOf(streamId, isLast ? FLAG_FIN : 0, data.length), data]);

const headOf = (word: number, flags: number, length: number): Buffer => {
  const head = Buffer.alloc(HEAD_BYTES);
  head.writeUInt32BE(word >>> 0, 0);
  head.writeUInt8(flags, 4);
  head.writeUIntBE(length, 5, 3);
  return head;
};

const controlFrame = (type: number, body: Buffer): Buffer =>
  Buffer.concat([headOf(CONTROL_BIT | (VERSION << 16) | type, 0, body.length), body]);

const words = (...values: readonly number[]): Buffer => {
  const body = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) body.writeUInt32BE(value >>> 0, 4 * index);
  return body;
};

/** The start of a stream of zlib (RFC 1950) with the dictionary of SPDY, before its first block. */
const ZLIB_START = Buffer.from('78bbe3c6a7c2', 'hex');
/**
 * A stored block of deflate (RFC 1951, 3.2.4) with four bytes, no headers, and an empty one: Go's reader returns the
 * first only when it has read the second. They need no compressor.
 */
const NO_HEADERS = Buffer.from('000400fbff00000000' + '000000ffff', 'hex');

/** @param isFirst whether it is the first one of this connection */
export const synReplyFrame = (streamId: number, isFirst: boolean): Buffer =>
  controlFrame(SYN_REPLY, Buffer.concat([words(streamId), ...(isFirst ? [ZLIB_START] : []), NO_HEADERS]));

export const rstStreamFrame = (streamId: number, reason: RstReason): Buffer =>
  controlFrame(RST_STREAM, words(streamId, RST_REASONS[reason]));

export const pingFrame = (id: number): Buffer => controlFrame(PING, words(id));

/** No stream is accepted any more. */
export const goAwayFrame = (lastStreamId: number): Buffer => controlFrame(GOAWAY, words(lastStreamId, 0));

/** Values of one header are separated by zeros. Only the first counts. Names are in lower case. */
export type SpdyHeaders = ReadonlyMap<string, string>;

/** The headers of a decompressed block. @throws SpdyFault */
export function headersOf(block: Buffer): SpdyHeaders {
  const headers = new Map<string, string>();
  let at = 0;
  const next = (): number => {
    if (block.length < at + 4) throw new SpdyFault('a block of headers is too short');
    at += 4;
    return block.readUInt32BE(at - 4);
  };
  const text = (): string => {
    const length = next();
    if (block.length < at + length) throw new SpdyFault('a block of headers is too short');
    at += length;
    return block.toString('utf8', at - length, at);
  };
  const count = next();
  // Each needs eight bytes, so the block bounds them.
  for (let index = 0; index < count; index += 1) {
    const name = text().toLowerCase();
    headers.set(name, text().split('\0', 1)[0] ?? '');
  }
  return headers;
}

/** Words of the dictionary that come with their lengths, and the text after them. Source: draft 3.1, 2.6.10.1. */
const DICTIONARY_WORDS =
  'options|head|post|put|delete|trace|accept|accept-charset|accept-encoding|accept-language|accept-ranges|age|allow|' +
  'authorization|cache-control|connection|content-base|content-encoding|content-language|content-length|' +
  'content-location|content-md5|content-range|content-type|date|etag|expect|expires|from|host|if-match|' +
  'if-modified-since|if-none-match|if-range|if-unmodified-since|last-modified|location|max-forwards|pragma|' +
  'proxy-authenticate|proxy-authorization|range|referer|retry-after|server|te|trailer|transfer-encoding|upgrade|' +
  'user-agent|vary|via|warning|www-authenticate|method|get|status|200 OK|version|HTTP/1.1|url|public|set-cookie|' +
  'keep-alive|origin';
const DICTIONARY_TEXT =
  '100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative ' +
  'Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal ' +
  'Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 ' +
  'Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,' +
  'application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8' +
  'charset=iso-8859-1,utf-,*,enq=0.';

/** The dictionary that headers are compressed with. */
export const SPDY_DICTIONARY: Buffer = Buffer.concat([
  ...DICTIONARY_WORDS.split('|').flatMap((word) => [words(word.length), Buffer.from(word)]),
  Buffer.from(DICTIONARY_TEXT),
]);
