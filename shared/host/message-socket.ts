/**
 * A WebSocket with back-pressure in both directions: it stops reading while received messages wait, and `send` waits
 * while the other side does not read.
 */
import { WebSocket } from 'ws';

/** Received bytes that wait before the socket stops reading. What was read until then may follow. */
const RECEIVED_BYTES_MAX = 128 * 1024;
/** Memory of a message besides its bytes. Without it, millions of empty ones could wait. */
export const MESSAGE_OVERHEAD_BYTES = 256;
/** Sent bytes that the other side has not read before `send` waits. */
const SENT_BYTES_MAX = 128 * 1024;

/** Milliseconds. */
const PING_EVERY_MS = 10_000;

export class MessageSocket implements AsyncIterable<Buffer> {
  readonly #socket: WebSocket;
  readonly #received: Buffer[] = [];
  #receivedBytes = 0;
  #wake: (() => void) | undefined;
  #isClosing = false;
  #isClosed = false;
  /** Resolves when the connection has closed, whoever closed it. */
  readonly closed: Promise<void>;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.on('message', (data: Buffer) => {
      if (this.#isClosing) return;
      this.#received.push(data);
      this.#receivedBytes += data.length + MESSAGE_OVERHEAD_BYTES;
      if (this.#receivedBytes >= RECEIVED_BYTES_MAX) socket.pause();
      this.#wake?.();
    });
    // 'close' follows.
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once('close', () => {
        this.#isClosed = true;
        this.#wake?.();
        resolve();
      });
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends one message. Resolves when the next one may be sent; false if the connection has closed. */
  async send(data: Uint8Array | string): Promise<boolean> {
    const socket = this.#socket;
    if (socket.readyState !== WebSocket.OPEN) return false;
    const mustWait = socket.bufferedAmount + data.length > SENT_BYTES_MAX;
    const sent = new Promise<boolean>((resolve) => {
      socket.send(data, (error) => resolve(error === undefined || error === null));
    });
    return mustWait ? sent : true;
  }

  ping(): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.ping();
  }

  /**
   * Pings until the connection closes. A socket that is not read learns only by what it sends that the other side has
   * left. It also keeps networks from forgetting a connection that rests.
   */
  keepAlive(): void {
    const timer = setInterval(() => this.ping(), PING_EVERY_MS);
    timer.unref();
    void this.closed.then(() => clearInterval(timer));
  }

  onPong(listener: () => void): void {
    this.#socket.on('pong', listener);
  }

  /**
   * Closes after what was sent. Nothing more is received. A side that does not answer is disconnected by the library.
   */
  close(code = 1_000, reason = ''): void {
    this.#isClosing = true;
    this.#received.length = 0;
    // Otherwise it would not read the answer.
    this.#socket.resume();
    this.#socket.close(code, reason);
  }

  /** Ends the connection at once. */
  destroy(): void {
    this.#socket.terminate();
  }

  /** The messages, in order, until the connection closes. For one reader. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (;;) {
      const message = this.#received.shift();
      if (message !== undefined) {
        this.#receivedBytes -= message.length + MESSAGE_OVERHEAD_BYTES;
        if (this.#receivedBytes < RECEIVED_BYTES_MAX && this.#socket.isPaused) this.#socket.resume();
        yield message;
        continue;
      }
      if (this.#isClosed) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = undefined;
    }
  }
}
