/** Serves requests of our own processes, without Node's HTTP server (loopback-message.ts). */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { type Message, MessageReader, messageBytes } from './loopback-message.ts';

export interface LoopbackAnswer {
  /** `200 OK`. */
  readonly status: string;
  readonly headers: Message['headers'];
  readonly body: Buffer | string;
}

export interface LoopbackServer {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * @param serve answers one request. When it rejects, the connection is closed without an answer. Requests of one
 * connection are served one after the other.
 */
export async function startLoopbackServer(
  bodyBytesMax: number,
  serve: (request: Message) => Promise<LoopbackAnswer>,
): Promise<LoopbackServer> {
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    // A client that disconnects affects no other client.
    socket.on('error', () => {});
    const reader = new MessageReader(bodyBytesMax);
    let previous = Promise.resolve();
    socket.on('data', (bytes: Buffer) => {
      try {
        for (const request of reader.read(bytes)) {
          previous = previous.then(() => answer(socket, serve(request))).catch(() => void socket.destroy());
        }
      } catch {
        socket.destroy();
      }
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

async function answer(socket: Socket, served: Promise<LoopbackAnswer>): Promise<void> {
  const { status, headers, body } = await served;
  if (!socket.destroyed) socket.write(messageBytes(`HTTP/1.1 ${status}`, headers, body));
}
