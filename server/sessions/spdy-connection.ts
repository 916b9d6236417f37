/**
 * The server's side of a connection of SPDY/3.1: the client opens streams, both sides send data on them. While the data
 * of one stream waits, nothing more of the connection is read, as upstream.
 */
import { createInflate } from 'node:zlib';
import { MESSAGE_OVERHEAD_BYTES } from '../../shared/host/message-socket.ts';
import type { ByteTransport } from './byte-transport.ts';
import {
  dataFrame,
  FrameReader,
  goAwayFrame,
  headersOf,
  pingFrame,
  type RstReason,
  rstStreamFrame,
  SPDY_DICTIONARY,
  SpdyFault,
  type SpdyFrame,
  type SpdyHeaders,
  synReplyFrame,
} from './spdy-frames.ts';

/** Bytes of one block of headers, decompressed. kubectl sends some 50. */
const HEADERS_BYTES_MAX = 8 * 1024;
/** Received data of one stream that wait before the connection is read no further. */
const STREAM_BYTES_MAX = 128 * 1024;
/**
 * Between two pings: a connection that is not read learns only by what it sends that the client has left. Milliseconds.
 */
const PING_EVERY_MS = 10_000;
/** Bytes of one data frame. */
const DATA_BYTES_MAX = 32 * 1024;

export class SpdyStream {
  readonly id: number;
  readonly headers: SpdyHeaders;
  readonly #connection: SpdyConnection;
  readonly #received: Buffer[] = [];
  #receivedBytes = 0;
  #isComplete = false;
  #isReset = false;
  #hasEnded = false;
  #onData: (() => void) | undefined;
  #onRoom: (() => void) | undefined;
  readonly #gone = Promise.withResolvers<void>();

  constructor(connection: SpdyConnection, id: number, headers: SpdyHeaders) {
    this.#connection = connection;
    this.id = id;
    this.headers = headers;
  }

  /** The client has reset the stream, or has left. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  /** What the client sends, until it sends no more. For one reader. */
  async *data(): AsyncGenerator<Buffer> {
    for (;;) {
      const next = this.#received.shift();
      if (next !== undefined) {
        this.#receivedBytes -= next.length + MESSAGE_OVERHEAD_BYTES;
        if (this.#receivedBytes < STREAM_BYTES_MAX) this.#onRoom?.();
        yield next;
        continue;
      }
      if (this.#isComplete) return;
      await new Promise<void>((resolve) => {
        this.#onData = resolve;
      });
    }
  }

  /** Resolves when more may be written; false: the client reads no more of it. */
  async write(data: Uint8Array): Promise<boolean> {
    for (let at = 0; at < data.length; at += DATA_BYTES_MAX) {
      if (this.#isReset || this.#hasEnded) return false;
      if (!(await this.#connection.send(dataFrame(this.id, data.subarray(at, at + DATA_BYTES_MAX))))) return false;
    }
    return !this.#isReset;
  }

  /** Nothing more is written. */
  end(): void {
    if (this.#isReset || this.#hasEnded) return;
    this.#hasEnded = true;
    void this.#connection.send(dataFrame(this.id, new Uint8Array(), true));
    this.#connection.forgetIfOver(this);
  }

  /** What the client still sends is dropped. */
  stopReading(): void {
    this.#isComplete = true;
    this.#received.length = 0;
    this.#onData?.();
    this.#onRoom?.();
    this.#connection.forgetIfOver(this);
  }

  reset(reason: RstReason): void {
    if (!this.#isReset) void this.#connection.send(rstStreamFrame(this.id, reason));
    this.leave();
  }

  get isOver(): boolean {
    return this.#isReset || (this.#hasEnded && this.#isComplete && this.#received.length === 0);
  }

  /** For the connection: data arrived. Resolves when more may arrive. */
  async receive(data: Buffer, isLast: boolean): Promise<void> {
    if (this.#isComplete) return;
    if (data.length > 0) {
      this.#received.push(data);
      this.#receivedBytes += data.length + MESSAGE_OVERHEAD_BYTES;
    }
    if (isLast) this.#isComplete = true;
    this.#onData?.();
    if (isLast) this.#connection.forgetIfOver(this);
    if (this.#receivedBytes < STREAM_BYTES_MAX) return;
    await new Promise<void>((resolve) => {
      this.#onRoom = resolve;
    });
  }

  /** For the connection: nothing more is received or sent. */
  leave(): void {
    this.#isReset = true;
    this.stopReading();
    this.#gone.resolve();
  }
}

export class SpdyConnection {
  readonly #transport: ByteTransport;
  readonly #streamsMax: number;
  readonly #open = new Map<number, SpdyStream>();
  readonly #opened: SpdyStream[] = [];
  readonly #headers = new HeaderBlocks();
  #lastStreamId = 0;
  #hasReplied = false;
  #isClosed = false;
  #onOpened: (() => void) | undefined;
  readonly #closed = Promise.withResolvers<void>();

  /** @param streamsMax streams at once; the client's others are refused */
  constructor(transport: ByteTransport, streamsMax: number) {
    this.#transport = transport;
    this.#streamsMax = streamsMax;
    let pingId = 0;
    const timer = setInterval(() => {
      // Those of a server are even.
      pingId += 2;
      void this.send(pingFrame(pingId));
    }, PING_EVERY_MS);
    timer.unref();
    void this.closed.then(() => clearInterval(timer));
    void transport.closed.then(() => this.#leave());
    void this.#read();
  }

  /** The client has left, or has sent what is no SPDY. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** The streams that the client opens, until it has left. For one reader. */
  async *streams(): AsyncGenerator<SpdyStream> {
    for (;;) {
      const next = this.#opened.shift();
      if (next !== undefined) {
        yield next;
        continue;
      }
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => {
        this.#onOpened = resolve;
      });
    }
  }

  end(): void {
    void this.send(goAwayFrame(this.#lastStreamId));
    this.#transport.end();
  }

  /** For a stream. */
  send(frame: Buffer): Promise<boolean> {
    return this.#isClosed ? Promise.resolve(false) : this.#transport.write(frame);
  }

  /** For a stream. */
  forgetIfOver(stream: SpdyStream): void {
    if (!stream.isOver) return;
    this.#open.delete(stream.id);
    // A session of exec reads no more streams once it has its own. A client may open and reset others without end.
    const unread = this.#opened.indexOf(stream);
    if (unread !== -1) this.#opened.splice(unread, 1);
  }

  async #read(): Promise<void> {
    const reader = new FrameReader();
    try {
      for await (const bytes of this.#transport.received) {
        for (const frame of reader.read(bytes)) await this.#handle(frame);
      }
    } catch (fault) {
      if (!(fault instanceof SpdyFault)) throw fault;
      this.#transport.end();
    } finally {
      this.#leave();
    }
  }

  #leave(): void {
    this.#isClosed = true;
    this.#headers.close();
    for (const stream of [...this.#open.values()]) stream.leave();
    this.#onOpened?.();
    this.#closed.resolve();
  }

  async #handle(frame: SpdyFrame): Promise<void> {
    switch (frame.kind) {
      case 'data': {
        const stream = this.#open.get(frame.streamId);
        // One that was reset a moment ago.
        if (stream !== undefined) await stream.receive(frame.data, frame.isLast);
        return;
      }
      case 'synStream':
        return this.#accept(frame.streamId, await this.#headers.decompress(frame.block), frame.isLast);
      case 'headers':
        await this.#headers.decompress(frame.block);
        if (frame.isLast) await this.#open.get(frame.streamId)?.receive(Buffer.alloc(0), true);
        return;
      case 'rstStream':
        this.#open.get(frame.streamId)?.leave();
        return;
      case 'ping':
        // The others are answers to ours.
        if (frame.id % 2 === 1) await this.send(pingFrame(frame.id));
        return;
      case 'goAway':
      case 'ignored':
        return;
    }
  }

  async #accept(streamId: number, headers: SpdyHeaders, isLast: boolean): Promise<void> {
    if (streamId % 2 === 0 || streamId <= this.#lastStreamId) throw new SpdyFault(`a stream cannot be ${streamId}`);
    this.#lastStreamId = streamId;
    if (this.#open.size >= this.#streamsMax) {
      await this.send(rstStreamFrame(streamId, 'refusedStream'));
      return;
    }
    const stream = new SpdyStream(this, streamId, headers);
    this.#open.set(streamId, stream);
    await this.send(synReplyFrame(streamId, !this.#hasReplied));
    this.#hasReplied = true;
    if (isLast) await stream.receive(Buffer.alloc(0), true);
    this.#opened.push(stream);
    this.#onOpened?.();
  }
}

/** The compressed headers of one connection: each block continues the one before. */
class HeaderBlocks {
  readonly #inflate = createInflate({ dictionary: SPDY_DICTIONARY });
  #parts: Buffer[] = [];
  #bytes = 0;
  #fault: Error | undefined;

  constructor() {
    this.#inflate.on('data', (part: Buffer) => {
      this.#bytes += part.length;
      this.#parts.push(part);
      if (this.#bytes > HEADERS_BYTES_MAX) {
        this.#inflate.destroy(new SpdyFault(`headers may have ${HEADERS_BYTES_MAX} bytes`));
      }
    });
    this.#inflate.on('error', (cause) => {
      this.#fault = cause;
    });
  }

  /** @throws SpdyFault */
  async decompress(block: Buffer): Promise<SpdyHeaders> {
    this.#parts = [];
    this.#bytes = 0;
    await new Promise<void>((resolve) => {
      this.#inflate.once('close', resolve);
      this.#inflate.write(block, () => {
        this.#inflate.off('close', resolve);
        resolve();
      });
    });
    if (this.#fault !== undefined || this.#inflate.destroyed) {
      throw new SpdyFault('a block of headers cannot be decompressed', { cause: this.#fault });
    }
    return headersOf(Buffer.concat(this.#parts));
  }

  close(): void {
    this.#inflate.destroy();
  }
}
