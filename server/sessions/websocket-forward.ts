/**
 * The older port-forward by WebSocket, which client libraries use: a connection is for one port, named in the query.
 * Source: k8s.io/kubelet pkg/cri/streaming/portforward/websocket.go.
 */
import type { MessageSocket } from '../../shared/host/message-socket.ts';
import { bytesOfMessage, CHANNELS, faultOf, messageOf, type SessionMessage } from '../../shared/sessions/channels.ts';
import type { SessionClient } from './session-client.ts';

const DATA = 0;
const FAULT = 1;

/** Each channel begins with the port, the lower byte first. */
export function webSocketForward(socket: MessageSocket, port: number): SessionClient {
  const write = (channel: number, data: Uint8Array) => socket.send(bytesOfMessage({ channel, data }));
  for (const channel of [DATA, FAULT]) void write(channel, Uint8Array.of(port % 256, Math.floor(port / 256)));
  return {
    messages: dataOf(socket),
    left: socket.closed,
    async write({ channel, data }) {
      if (channel !== CHANNELS.error) return write(DATA, data);
      const fault = faultOf(data);
      return fault === undefined || write(FAULT, Buffer.from(`error forwarding port ${port}: ${fault}`));
    },
    end: () => socket.close(),
  };
}

async function* dataOf(socket: MessageSocket): AsyncGenerator<SessionMessage> {
  for await (const bytes of socket) {
    const message = messageOf(bytes);
    if (message?.channel === DATA) yield { channel: CHANNELS.stdin, data: message.data };
  }
}
