/** The client of a session, whatever protocol it speaks. */
import type { MessageSocket } from '../../shared/host/message-socket.ts';
import {
  bytesOfMessage,
  CHANNELS,
  isEndOfInput,
  messageOf,
  type SessionMessage,
} from '../../shared/sessions/channels.ts';

export interface SessionClient {
  /** What the client sends, until it sends no more. */
  readonly messages: AsyncIterable<SessionMessage>;
  /** Resolves when the client may be sent more. False: it has left. */
  write(message: SessionMessage): Promise<boolean>;
  /** Resolves when the client has left. */
  readonly left: Promise<void>;
  /** After the last message. */
  end(): void;
}

const FROM_CLIENT: ReadonlySet<number> = new Set([CHANNELS.stdin, CHANNELS.resize]);

/** A client of exec or attach that speaks WebSocket. */
export const webSocketClient = (socket: MessageSocket): SessionClient => ({
  messages: messagesOf(socket),
  left: socket.closed,
  write: (message) => socket.send(bytesOfMessage(message)),
  end: () => socket.close(),
});

async function* messagesOf(socket: MessageSocket): AsyncGenerator<SessionMessage> {
  for await (const bytes of socket) {
    const message = messageOf(bytes);
    if (message !== undefined && (FROM_CLIENT.has(message.channel) || isEndOfInput(message))) yield message;
  }
}
