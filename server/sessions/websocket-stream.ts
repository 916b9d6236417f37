/**
 * A watch or a log as messages of a WebSocket: an event is a text, output is bytes. What the client sends is ignored.
 * Source: k8s.io/apiserver pkg/endpoints/handlers/watch.go (HandleWS), pkg/util/wsstream/stream.go.
 */
import type { MessageSocket } from '../../shared/host/message-socket.ts';
import type { HttpRequest } from '../../shared/kubernetes/http.ts';
import { type AcceptUpgrade, acceptWebSocket, protocolsOf } from './upgrades.ts';

/** A client that accepts nothing for this long is disconnected, as without a WebSocket. Milliseconds. */
const STALLED_MS = 30_000;
const NORMAL_END = 1_000;

export const webSocketStream =
  (request: HttpRequest, parts: AsyncIterable<string | Uint8Array>): AcceptUpgrade =>
  (upgrade) => {
    const iterator = parts[Symbol.asyncIterator]();
    // Clients name one that they like, such as base64.binary.k8s.io. It does not change what is sent.
    const socket = acceptWebSocket(upgrade, protocolsOf(request)[0]);
    if (socket === undefined) {
      // A generator releases what it holds only once it has begun.
      void iterator.next().catch(() => undefined);
      void iterator.return?.();
      return;
    }
    void discard(socket);
    void socket.closed.then(() => iterator.return?.());
    void sendAll(socket, iterator).finally(() => socket.close(NORMAL_END));
  };

async function discard(socket: MessageSocket): Promise<void> {
  for await (const _message of socket);
}

/** Until the parts end, fail, or the client has left. */
async function sendAll(socket: MessageSocket, iterator: AsyncIterator<string | Uint8Array>): Promise<void> {
  try {
    for (let part = await iterator.next(); part.done !== true; part = await iterator.next()) {
      for (const message of messagesOf(part.value)) if (!(await sentInTime(socket, message))) return;
    }
  } catch {
    // The client has left: nothing waits for it.
  }
}

/** A part of a watch has lines; blank ones keep a connection alive that is no WebSocket. */
const messagesOf = (part: string | Uint8Array): readonly (string | Uint8Array)[] =>
  typeof part === 'string' ? part.split('\n').filter((line) => line.trim() !== '') : [part];

async function sentInTime(socket: MessageSocket, message: string | Uint8Array): Promise<boolean> {
  const timer = setTimeout(() => socket.destroy(), STALLED_MS);
  const isSent = await socket.send(message);
  clearTimeout(timer);
  return isSent;
}
