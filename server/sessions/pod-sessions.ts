/** exec, attach and port-forward: joins clients with the agents of the nodes of their pods. */
import type { AcceptNodeSession } from '../../functions/api/connections/node-sessions.ts';
import type { OpenConnection, PodConnection } from '../../functions/api/connections/pod-connection.ts';
import type { KubePod } from '../../shared/kinds/types.ts';
import type { HttpRequest, HttpResponse } from '../../shared/kubernetes/http.ts';
import * as status from '../../shared/kubernetes/status.ts';
import { faultMessage } from '../../shared/sessions/channels.ts';
import { SESSION_PROTOCOL, type SessionPurpose } from '../../shared/sessions/session-request.ts';
import { execClientOf, forwardsOf } from './client-protocols.ts';
import { joinSession } from './join-session.ts';
import { NodeSessions, type NodeSessionsOptions } from './node-sessions.ts';
import { OpenSessions, type OpenSessionsOptions } from './open-sessions.ts';
import type { SessionClient } from './session-client.ts';
import { sessionSlots } from './session-limits.ts';
import { FORWARDS_MAX } from './spdy-clients.ts';
import { type AcceptUpgrade, acceptWebSocket, isWebSocket, protocolsOf, type Upgrade } from './upgrades.ts';

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

  /** The agent is connected first: what fails is then an answer. */
  async function openOne({ pod, nodeName }: PodConnection, purpose: SessionPurpose, request: HttpRequest) {
    const clientOf = execClientOf(request);
    const node = await nodes.open(nodeName, uidOf(pod), purpose);
    return async (upgrade: Upgrade): Promise<void> => {
      const session = open.add(pod);
      const client = await clientOf(upgrade);
      if (client === undefined) node.close();
      else await joinSession(client, node, { nodeName, ...session });
      session.close();
    };
  }

  /** Each connection to a port is a session of the agent. */
  async function openForwards({ pod, nodeName }: PodConnection, request: HttpRequest) {
    const forwards = forwardsOf(request);
    await nodes.requireLine(nodeName);
    return async (upgrade: Upgrade): Promise<void> => {
      const session = open.add(pod);
      let running = 0;
      const refuse = async (client: SessionClient, why: string): Promise<void> => {
        await client.write(faultMessage(why));
        client.end();
      };
      for await (const { port, client } of forwards(upgrade, session.ended)) {
        session.onActivity();
        // A client that resets its streams at once has none open, and the agent is asked all the same.
        if (running === FORWARDS_MAX) {
          void refuse(client, `${FORWARDS_MAX} connections are open, the most at once`);
          continue;
        }
        running += 1;
        void nodes
          .open(nodeName, uidOf(pod), { kind: 'forward', port })
          .then(
            (node) => joinSession(client, node, { nodeName, ...session }),
            (fault: Error) => refuse(client, fault.message),
          )
          .finally(() => {
            running -= 1;
          });
      }
      session.close();
    };
  }

  return {
    async openConnection(connection, { request, user }) {
      const slot = slots.acquire({ user: user.username, nodeName: connection.nodeName });
      try {
        const { purpose } = connection;
        const run = await (purpose.kind === 'portforward'
          ? openForwards(connection, request)
          : openOne(connection, purpose, request));
        return switching((upgrade) => void run(upgrade).finally(() => slot.release()));
      } catch (error) {
        slot.release();
        throw error;
      }
    },
    nodeSessions(nodeName, sessionId, { request, user }) {
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
        if (socket !== undefined) nodes.addLine(nodeName, user, socket);
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

const uidOf = ({ metadata }: KubePod): string => metadata.uid ?? '';
