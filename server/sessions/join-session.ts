/** Joins the client of a session with the agent of the pod's node, until one of them ends it. */
import type { MessageSocket } from '../../shared/host/message-socket.ts';
import { bytesOfMessage, CHANNELS, faultMessage, messageOf } from '../../shared/sessions/channels.ts';
import type { SessionClient } from './session-client.ts';

const FROM_NODE: ReadonlySet<number> = new Set([CHANNELS.stdout, CHANNELS.stderr, CHANNELS.error]);

export interface Joining {
  readonly nodeName: string;
  /** Aborted with a sentence for the client. */
  readonly ended: AbortSignal;
  /** Called for each message. */
  readonly onActivity: () => void;
}

export async function joinSession(client: SessionClient, node: MessageSocket, joining: Joining): Promise<void> {
  const { ended } = joining;
  const end = Promise.withResolvers<void>();
  const onEnded = (): void => end.resolve();
  ended.addEventListener('abort', onEnded, { once: true });
  if (ended.aborted) onEnded();
  try {
    void toNode(client, node, joining);
    await Promise.race([toClient(client, node, joining), client.left, end.promise]);
    // The client may have left; then this is without effect.
    if (ended.aborted) void client.write(faultMessage(String(ended.reason)));
  } finally {
    ended.removeEventListener('abort', onEnded);
    client.end();
    node.destroy();
  }
}

async function toNode(client: SessionClient, node: MessageSocket, { onActivity }: Joining): Promise<void> {
  for await (const message of client.messages) {
    onActivity();
    if (!(await node.send(bytesOfMessage(message)))) return;
  }
}

async function toClient(client: SessionClient, node: MessageSocket, { nodeName, onActivity }: Joining): Promise<void> {
  for await (const bytes of node) {
    onActivity();
    const message = messageOf(bytes);
    if (message === undefined || !FROM_NODE.has(message.channel)) continue;
    if (!(await client.write(message))) return;
    if (message.channel === CHANNELS.error) return;
  }
  await client.write(faultMessage(`node ${nodeName} closed the session`));
}
