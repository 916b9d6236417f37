/**
 * An answer of HTTP/1.1, read from the bytes that have come so far. Source: RFC 9112, 6.3 "Message Body Length". Trailers
 * and answers without a body are left out: nobody sends them to a POST of JSON, and they read as malformed.
 */
export type HttpAnswer =
  /** More must come. */
  | { readonly kind: 'partial' }
  | { readonly kind: 'malformed' }
  | {
      readonly kind: 'whole';
      readonly status: number;
      readonly body: string;
      /** Another request may follow on the connection. */
      readonly isKept: boolean;
    };

const HEAD_BYTES_MAX = 16_384;
const STATUS_LINE = /^HTTP\/1\.([01]) ([2-5]\d\d)[ \r]/;
const LENGTH = /\r\ncontent-length:[ \t]*(\d{1,9})[ \t]*\r\n/i;
const CODING = /\r\ntransfer-encoding:[ \t]*([^\r]*?)[ \t]*\r\n/i;
const CLOSE = /\r\nconnection:[ \t]*close[ \t]*\r\n/i;
const CHUNK_SIZE = /^[0-9a-f]{1,7}(?=;|$)/i;

/** @param isEnded the other side sends no more */
export function readHttpAnswer(bytes: Buffer, isEnded: boolean): HttpAnswer {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return { kind: bytes.length > HEAD_BYTES_MAX ? 'malformed' : 'partial' };
  const head = bytes.toString('latin1', 0, headEnd + 2);
  const [, minor, status] = STATUS_LINE.exec(head) ?? [];
  if (status === undefined) return { kind: 'malformed' };
  const bodyStart = headEnd + 4;
  const coding = CODING.exec(head)?.[1];
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') return { kind: 'malformed' };
  const body = coding === undefined ? plainBody(head, bytes, bodyStart, isEnded) : chunkedBody(bytes, bodyStart);
  if (typeof body === 'string') return { kind: body };
  // Bytes behind the answer belong to nothing that was asked.
  const isKept = minor === '1' && !isEnded && body.end === bytes.length && !CLOSE.test(head);
  return { kind: 'whole', status: Number(status), body: body.text, isKept };
}

type Body = { readonly text: string; readonly end: number } | 'partial' | 'malformed';

function plainBody(head: string, bytes: Buffer, start: number, isEnded: boolean): Body {
  const length = LENGTH.exec(head)?.[1];
  if (length === undefined) {
    // Its end is the connection's: nothing may follow.
    return isEnded ? { text: bytes.toString('utf8', start), end: bytes.length } : 'partial';
  }
  const end = start + Number(length);
  return bytes.length < end ? 'partial' : { text: bytes.toString('utf8', start, end), end };
}

function chunkedBody(bytes: Buffer, start: number): Body {
  const parts: Buffer[] = [];
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf('\r\n', at);
    if (lineEnd < 0) return 'partial';
    const size = CHUNK_SIZE.exec(bytes.toString('latin1', at, lineEnd))?.[0];
    if (size === undefined) return 'malformed';
    const dataStart = lineEnd + 2;
    const dataEnd = dataStart + Number.parseInt(size, 16);
    if (bytes.length < dataEnd + 2) return 'partial';
    if (bytes.toString('latin1', dataEnd, dataEnd + 2) !== '\r\n') return 'malformed';
    if (dataEnd === dataStart) return { text: Buffer.concat(parts).toString('utf8'), end: dataEnd + 2 };
    parts.push(bytes.subarray(dataStart, dataEnd));
    at = dataEnd + 2;
  }
}
