/**
 * Requests that ask for another protocol on their connection. They pass the API as all others do; what it accepts then
 * owns the connection, and what it refuses is answered as HTTP/1.1.
 */
import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { type WebSocket, WebSocketServer } from 'ws';
import { MessageSocket } from '../../shared/host/message-socket.ts';
import type { HttpRequest, HttpResponse } from '../../shared/kubernetes/http.ts';
import { MESSAGE_BYTES_MAX } from '../../shared/sessions/channels.ts';

/** A connection that its client asked to upgrade. */
export interface Upgrade {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  /** What the client sent after its request. */
  readonly head: Buffer;
}

/** Owns the connection from now on, also when its client has left meanwhile. */
export type AcceptUpgrade = (upgrade: Upgrade) => void;

/** A browser cannot set other headers. Source: k8s.io/apiserver pkg/authentication/request/websocket/protocol.go. */
const TOKEN_PROTOCOL = 'base64url.bearer.authorization.k8s.io.';

const PROTOCOLS = 'sec-websocket-protocol';

/** The subprotocols that a client of a WebSocket speaks, without its token. */
export const protocolsOf = ({ headers }: Pick<HttpRequest, 'headers'>): readonly string[] =>
  listOf(headers[PROTOCOLS]).filter((name) => !name.startsWith(TOKEN_PROTOCOL));

const listOf = (value = ''): readonly string[] =>
  value
    .split(',')
    .map((each) => each.trim())
    .filter((each) => each !== '');

/** The name of the protocol that is asked for, in lower case; '': none. */
export const upgradeOf = ({ headers }: Pick<HttpRequest, 'headers'>): string => headers['upgrade'] ?? '';

export const isWebSocket = (request: Pick<HttpRequest, 'headers'>): boolean => upgradeOf(request) === 'websocket';

/**
 * The request for the API: with the name of the protocol, and with the token that a browser sends as a subprotocol. As
 * upstream, there must be one and another subprotocol: otherwise it names no user.
 */
export function upgradeRequest(request: HttpRequest, protocol: string): HttpRequest {
  const headers: Record<string, string> = { ...request.headers, upgrade: protocol.toLowerCase() };
  const [token, ...others] = listOf(headers[PROTOCOLS]).filter((name) => name.startsWith(TOKEN_PROTOCOL));
  const isUsable = token !== undefined && others.length === 0 && protocolsOf(request).length > 0;
  if (!isUsable || request.headers['authorization'] !== undefined) return { ...request, headers };
  const decoded = Buffer.from(token.slice(TOKEN_PROTOCOL.length), 'base64url').toString('utf8');
  return { ...request, headers: { ...headers, authorization: `Bearer ${decoded}` } };
}

const sockets = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: MESSAGE_BYTES_MAX,
});
/** The subprotocol of a request. The library refuses names with a slash, which Kubernetes uses. */
const chosen = new WeakMap<IncomingMessage, string>();
sockets.on('headers', (lines, request) => {
  const protocol = chosen.get(request);
  if (protocol !== undefined) lines.push(`Sec-WebSocket-Protocol: ${protocol}`);
});

/** Completes the handshake. undefined: the client has left, or its handshake is malformed and was refused. */
export function acceptWebSocket(
  { request, socket, head }: Upgrade,
  protocol: string | undefined,
): MessageSocket | undefined {
  let opened: WebSocket | undefined;
  if (protocol !== undefined) chosen.set(request, protocol);
  delete request.headers[PROTOCOLS];
  sockets.handleUpgrade(request, socket, head, (webSocket) => {
    opened = webSocket;
  });
  return opened === undefined ? undefined : new MessageSocket(opened);
}

/** Answers without an upgrade. The connection ends. */
export function refuseUpgrade({ socket, request }: Upgrade, { status, headers, body }: HttpResponse): void {
  const bytes = typeof body === 'string' ? Buffer.from(body) : Buffer.from(body);
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    ...Object.entries({ ...headers, connection: 'close', 'content-length': String(bytes.length) }).map(
      ([name, value]) => `${name}: ${value}`,
    ),
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  socket.end(request.method === 'HEAD' ? undefined : bytes, () => socket.destroy());
}
