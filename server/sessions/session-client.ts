/** The client of a session, whatever protocol it speaks. */
import type { MessageSocket } from '../../shared/host/message-socket.ts';
import type { HttpRequest } from '../../shared/kubernetes/request/http.ts';
import * as status from '../../shared/kubernetes/status.ts';
import {
  bytesOfMessage,
  CHANNELS,
  isEndOfInput,
  messageOf,
  type SessionMessage,
} from '../../shared/sessions/channels.ts';
import { acceptWebSocket, isWebSocket, protocolsOf, type Upgrade } from './upgrades.ts';

export interface SessionClient {
  /** What the client sends, until it has left. */
  readonly messages: AsyncIterable<SessionMessage>;
  /** Resolves when the client may be sent more. False: it has left. */
  write(message: SessionMessage): Promise<boolean>;
  /** After the last message. */
  end(): void;
}

/** Newest first. Source: k8s.io/apimachinery pkg/util/remotecommand/constants.go. */
const WEBSOCKET_PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'] as const;

const FROM_CLIENT: ReadonlySet<number> = new Set([CHANNELS.stdin, CHANNELS.resize]);

/** Completes the upgrade. undefined: the client has left. */
export type ClientOf = (upgrade: Upgrade) => Promise<SessionClient | undefined>;

/** How this client of exec or attach is connected. @throws StatusError 400 */
export function execClientOf(request: HttpRequest): ClientOf {
  if (!isWebSocket(request)) throw status.badRequest('Upgrade request required');
  const offered = protocolsOf(request);
  const protocol = WEBSOCKET_PROTOCOLS.find((each) => offered.includes(each));
  if (protocol === undefined) throw status.badRequest(`the protocol must be one of ${WEBSOCKET_PROTOCOLS.join(', ')}`);
  return async (upgrade) => {
    const socket = acceptWebSocket(upgrade, protocol);
    if (socket === undefined) return undefined;
    const client = webSocketClient(socket);
    // As upstream: the client learns that its session has begun.
    await client.write({ channel: CHANNELS.stdout, data: new Uint8Array() });
    return client;
  };
}

const webSocketClient = (socket: MessageSocket): SessionClient => ({
  messages: messagesOf(socket),
  write: (message) => socket.send(bytesOfMessage(message)),
  end: () => socket.close(),
});

async function* messagesOf(socket: MessageSocket): AsyncGenerator<SessionMessage> {
  for await (const bytes of socket) {
    const message = messageOf(bytes);
    if (message !== undefined && (FROM_CLIENT.has(message.channel) || isEndOfInput(message))) yield message;
  }
}
