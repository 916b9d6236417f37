/**
 * Messages of HTTP/1.1 between our own processes, as far as a DynamoDB endpoint uses them: a head, and a body with its
 * length or in chunks. Node's own HTTP uses a third of the CPU of a heartbeat when two servers and two clients of it
 * follow each other (docs/decisions/0044-cpu-of-the-write-path.md). Never used for connections from outside.
 *
 * Source: RFC 9112, sections 2 to 7.
 */

export interface Message {
  /** Request line or status line. */
  readonly startLine: string;
  /** Names and values as they were sent, without those of the framing and of the connection. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body: Buffer;
}

/** The other side sent something else than such a message. The connection cannot be used again. */
export class MessageError extends Error {
  override readonly name = 'MessageError';
}

const HEAD_BYTES_MAX = 65_536;
const HEAD_END = '\r\n\r\n';
const LINE_END = '\r\n';
/** They describe one connection and are written anew for the next one. */
const OF_CONNECTION = new Set(['connection', 'content-length', 'host', 'keep-alive', 'transfer-encoding']);

interface Framing {
  readonly startLine: string;
  readonly headers: Message['headers'];
  /** Undefined: in chunks. */
  readonly length: number | undefined;
}

/** Reads the messages of one connection. */
export class MessageReader {
  readonly #bodyBytesMax: number;
  readonly #parts: Buffer[] = [];
  #bytes = 0;
  /** With fewer bytes than these, the current message is not complete. */
  #bytesWanted = 1;
  /** Undefined until the head is complete. */
  #framing: Framing | undefined;
  #rest: Buffer = Buffer.alloc(0);

  constructor(bodyBytesMax: number) {
    this.#bodyBytesMax = bodyBytesMax;
  }

  /** @returns the messages that are complete with these bytes. @throws MessageError */
  read(bytes: Buffer): readonly Message[] {
    this.#parts.push(bytes);
    this.#bytes += bytes.length;
    if (this.#bytes < this.#bytesWanted) return [];
    this.#rest = this.#parts.length === 1 ? bytes : Buffer.concat(this.#parts);
    const messages: Message[] = [];
    for (let message = this.#next(); message !== undefined; message = this.#next()) messages.push(message);
    this.#parts.splice(0, this.#parts.length, ...(this.#rest.length === 0 ? [] : [this.#rest]));
    this.#bytes = this.#rest.length;
    return messages;
  }

  #next(): Message | undefined {
    this.#framing ??= this.#head();
    if (this.#framing === undefined) return undefined;
    const { length, startLine, headers } = this.#framing;
    const body = length === undefined ? this.#chunkedBody() : this.#sizedBody(length);
    if (body === undefined) return undefined;
    this.#framing = undefined;
    this.#bytesWanted = 1;
    return { startLine, headers, body };
  }

  #head(): Framing | undefined {
    const end = this.#rest.indexOf(HEAD_END);
    if (end === -1) {
      if (this.#rest.length > HEAD_BYTES_MAX) throw new MessageError(`a head of more than ${HEAD_BYTES_MAX} bytes`);
      return undefined;
    }
    const framing = framingOf(this.#rest.toString('latin1', 0, end));
    this.#rest = this.#rest.subarray(end + HEAD_END.length);
    return framing;
  }

  #sizedBody(length: number): Buffer | undefined {
    this.#refuseTooLarge(length);
    this.#bytesWanted = length;
    if (this.#rest.length < length) return undefined;
    const body = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return body;
  }

  /** Reads all chunks again with each part that arrives: our own engine sends none. */
  #chunkedBody(): Buffer | undefined {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for (let at = 0; ; ) {
      const lineEnd = this.#rest.indexOf(LINE_END, at);
      if (lineEnd === -1) return undefined;
      const size = hexadecimal(this.#rest.toString('latin1', at, lineEnd).split(';', 1)[0]!.trim());
      bytes += size;
      this.#refuseTooLarge(bytes);
      const begin = lineEnd + LINE_END.length;
      const end = begin + size + LINE_END.length;
      if (this.#rest.length < end) return undefined;
      if (size === 0) {
        this.#rest = this.#rest.subarray(end);
        return Buffer.concat(chunks);
      }
      chunks.push(this.#rest.subarray(begin, begin + size));
      at = end;
    }
  }

  #refuseTooLarge(bytes: number): void {
    if (bytes > this.#bodyBytesMax) throw new MessageError(`a body of more than ${this.#bodyBytesMax} bytes`);
  }
}

function framingOf(head: string): Framing {
  const [startLine = '', ...lines] = head.split(LINE_END);
  const headers: [string, string][] = [];
  let length: number | undefined = 0;
  for (const line of lines) {
    const colon = line.indexOf(':');
    if (colon <= 0) throw new MessageError(`a header without a name: ${line.slice(0, 100)}`);
    const name = line.slice(0, colon);
    const value = line.slice(colon + 1).trim();
    const lowercase = name.toLowerCase();
    if (!OF_CONNECTION.has(lowercase)) headers.push([name, value]);
    else if (lowercase === 'content-length') length = length === undefined ? undefined : decimal(value);
    else if (lowercase === 'transfer-encoding') length = undefined;
  }
  return { startLine, headers, length };
}

function decimal(text: string): number {
  if (!/^\d{1,12}$/.test(text)) throw new MessageError(`a content-length that is no number: ${text.slice(0, 100)}`);
  return Number(text);
}

function hexadecimal(text: string): number {
  if (!/^[0-9a-f]{1,8}$/i.test(text)) throw new MessageError(`a chunk size that is no number: ${text.slice(0, 100)}`);
  return Number.parseInt(text, 16);
}

/** The bytes of a message with a length. One write per message: two would be two packets, and two wake-ups. */
export function messageBytes(startLine: string, headers: Message['headers'], body: Buffer | string): Buffer {
  let head = `${startLine}\r\ncontent-length: ${typeof body === 'string' ? Buffer.byteLength(body) : body.length}\r\n`;
  for (const [name, value] of headers) head += `${name}: ${value}\r\n`;
  return typeof body === 'string'
    ? Buffer.from(`${head}\r\n${body}`)
    : Buffer.concat([Buffer.from(`${head}\r\n`, 'latin1'), body]);
}
