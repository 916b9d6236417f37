/** WebSockets to the Kubernetes API, with the credentials, proxy and authorities of its other requests. */
import { WebSocket } from 'ws';
import { MessageSocket } from '../../../shared/host/message-socket.ts';
import { MESSAGE_BYTES_MAX } from '../../../shared/sessions/channels.ts';
import { SESSION_PROTOCOL } from '../../../shared/sessions/session-request.ts';
import type { Credentials } from '../../ports/credentials.ts';
import type { SessionApi, SessionOpening } from '../../ports/session-api.ts';
import { createDialler } from './dial.ts';
import { DiallingAgent } from './kube-api.ts';
import { type ProxyEnvironment, proxyFor } from './proxy-choice.ts';

export interface SessionClientOptions {
  /** Base URL, https. */
  readonly endpoint: string;
  /** PEM text; the authorities of the system when absent. */
  readonly certificateAuthority?: string | undefined;
  readonly credentials: Credentials;
  readonly environment: ProxyEnvironment;
}

const TIMEOUT_MS = 10_000;

export function createSessionClient(options: SessionClientOptions): SessionApi {
  const server = new URL(options.endpoint);
  const dialler = createDialler({
    server,
    proxy: proxyFor(server, options.environment),
    certificateAuthority: options.certificateAuthority,
    timeoutMs: TIMEOUT_MS,
  });
  const base = `wss://${server.host}${server.pathname.replace(/\/$/, '')}`;
  return {
    async open(path) {
      let token: string;
      try {
        token = await options.credentials.bearer({ kind: 'all' });
      } catch (cause) {
        return { kind: 'failed', cause };
      }
      // Each connection has an agent of its own: none is shared or kept.
      const agent = new DiallingAgent(dialler, 1);
      const opening = await handshake(`${base}${path}`, token, agent);
      if (opening.kind === 'refused') options.credentials.answered({ status: opening.status, token });
      return opening;
    },
  };
}

function handshake(url: string, token: string, agent: DiallingAgent): Promise<SessionOpening> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, SESSION_PROTOCOL, {
      agent,
      headers: { authorization: `Bearer ${token}` },
      handshakeTimeout: TIMEOUT_MS,
      maxPayload: MESSAGE_BYTES_MAX,
      perMessageDeflate: false,
    });
    socket.once('open', () => resolve({ kind: 'opened', connection: new MessageSocket(socket) }));
    socket.once('unexpected-response', (request, response) => {
      resolve({ kind: 'refused', status: response.statusCode ?? 0 });
      request.destroy();
    });
    socket.once('error', (cause) => resolve({ kind: 'failed', cause }));
  });
}
