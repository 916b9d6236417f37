/** A connection as a sequence of bytes, with back-pressure: an upgraded socket, or the messages of a WebSocket. */
import type { Duplex } from 'node:stream';
import type { MessageSocket } from '../../shared/host/message-socket.ts';
import { written } from '../../shared/host/written.ts';

export interface ByteTransport {
  /** What the other side sends, until it has left. Never throws. */
  readonly received: AsyncIterable<Buffer>;
  /** Resolves when more may be written; false: the other side has left. */
  write(bytes: Uint8Array): Promise<boolean>;
  /** Resolves when the other side has left, also while nothing is read. */
  readonly closed: Promise<void>;
  /** Closes after what was written. */
  end(): void;
}

/** Longest wait for the other side to read what is left. Milliseconds. */
const END_MS = 30_000;

/** @param head what was received with the request */
export function socketTransport(socket: Duplex, head: Buffer): ByteTransport {
  // 'close' follows.
  socket.on('error', () => undefined);
  return {
    received: receivedFrom(socket, head),
    closed: new Promise((resolve) => {
      socket.once('close', () => resolve());
    }),
    async write(bytes) {
      await written(socket, bytes);
      return socket.writable;
    },
    end() {
      socket.end();
      setTimeout(() => socket.destroy(), END_MS).unref();
    },
  };
}

async function* receivedFrom(socket: Duplex, head: Buffer): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head;
  try {
    for await (const bytes of socket) yield bytes as Buffer;
  } catch {
    // The other side has left.
  }
}

export const tunnelTransport = (socket: MessageSocket): ByteTransport => ({
  received: socket,
  closed: socket.closed,
  write: (bytes) => socket.send(bytes),
  end: () => socket.close(),
});
