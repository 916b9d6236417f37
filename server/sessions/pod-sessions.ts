/** exec, attach and port-forward: joins clients with the agents of the nodes of their pods. */
import type { AcceptNodeSession } from '../../functions/api/connections/node-sessions.ts';
import type { OpenConnection, PodConnection } from '../../functions/api/connections/pod-connection.ts';
import type { HttpRequest, HttpResponse } from '../../shared/kubernetes/request/http.ts';
import * as status from '../../shared/kubernetes/status.ts';
import { SESSION_PROTOCOL } from '../../shared/sessions/session-request.ts';
import { joinSession } from './join-session.ts';
import { NodeSessions, type NodeSessionsOptions } from './node-sessions.ts';
import { OpenSessions, type OpenSessionsOptions } from './open-sessions.ts';
import { execClientOf } from './session-client.ts';
import { sessionSlots } from './session-limits.ts';
import { type AcceptUpgrade, acceptWebSocket, isWebSocket, protocolsOf } from './upgrades.ts';

/** Names what is to be done with the connection of a response. It never leaves the process. */
const UPGRADE_HEADER = 'nodekeeper-upgrade';

export interface PodSessions {
  readonly openConnection: OpenConnection;
  readonly nodeSessions: AcceptNodeSession;
  /** What is to be done with the connection of this response; undefined: it is answered as it is. */
  take(response: HttpResponse): AcceptUpgrade | undefined;
  held(): number;
  stop(): void;
}

export function podSessions(options: NodeSessionsOptions & OpenSessionsOptions): PodSessions {
  const nodes = new NodeSessions(options);
  const open = new OpenSessions(options);
  const slots = sessionSlots();
  const accepting = new Map<string, AcceptUpgrade>();

  function switching(accept: AcceptUpgrade): HttpResponse {
    const id = options.uuid();
    accepting.set(id, accept);
    return { status: 101, headers: { [UPGRADE_HEADER]: id }, body: '' };
  }

  /** Connects the client with the agent first: what fails is then an answer. */
  async function exec({ pod, nodeName, purpose }: PodConnection, request: HttpRequest): Promise<RunSession> {
    if (purpose.kind === 'portforward') throw status.notServed('pods/portforward is not served');
    const clientOf = execClientOf(request);
    const node = await nodes.open(nodeName, pod.metadata.uid ?? '', purpose);
    return async (upgrade) => {
      const client = await clientOf(upgrade);
      if (client === undefined) {
        node.close();
        return;
      }
      const session = open.add(pod);
      await joinSession(client, node, { nodeName, ...session });
      session.close();
    };
  }

  return {
    async openConnection(connection, { request, user }) {
      const slot = slots.acquire({ user: user.username, nodeName: connection.nodeName });
      try {
        const run = await exec(connection, request);
        return switching((upgrade) => void run(upgrade).finally(() => slot.release()));
      } catch (error) {
        slot.release();
        throw error;
      }
    },
    nodeSessions(nodeName, sessionId, { request }) {
      if (!isWebSocket(request) || !protocolsOf(request).includes(SESSION_PROTOCOL)) {
        throw status.badRequest(`this path is for a WebSocket of ${SESSION_PROTOCOL}`);
      }
      if (sessionId !== '') {
        const connect = nodes.takeSession(nodeName, sessionId);
        return switching((upgrade) => connect(acceptWebSocket(upgrade, SESSION_PROTOCOL)));
      }
      nodes.admitLine(nodeName);
      return switching((upgrade) => {
        const socket = acceptWebSocket(upgrade, SESSION_PROTOCOL);
        if (socket !== undefined) nodes.addLine(nodeName, socket);
      });
    },
    take({ headers }) {
      const id = headers[UPGRADE_HEADER] ?? '';
      const accept = accepting.get(id);
      accepting.delete(id);
      return accept;
    },
    held: () => slots.held(),
    stop() {
      open.stop();
      nodes.stop();
    },
  };
}

type RunSession = (...upgrade: Parameters<AcceptUpgrade>) => Promise<void>;
