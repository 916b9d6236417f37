/** Which protocol a client of exec, attach or port-forward speaks, and how its connection is upgraded. */
import type { HttpRequest } from '../../shared/kubernetes/http.ts';
import { isAskedFor } from '../../shared/kubernetes/request.ts';
import * as status from '../../shared/kubernetes/status.ts';
import { isPort } from '../../shared/sessions/session-request.ts';
import { type ByteTransport, socketTransport, tunnelTransport } from './byte-transport.ts';
import { type SessionClient, webSocketClient } from './session-client.ts';
import { type ExecStream, type Forward, spdyExecClient, spdyForwards } from './spdy-clients.ts';
import { acceptWebSocket, isWebSocket, protocolsOf, type Upgrade, upgradeOf } from './upgrades.ts';
import { webSocketForward } from './websocket-forward.ts';

/** Newest first. Source: k8s.io/apimachinery pkg/util/remotecommand/constants.go. */
const EXEC_PROTOCOLS = ['v5.channel.k8s.io', 'v4.channel.k8s.io'];
/** The streams are the same; the last one has an end of input in messages, which SPDY has by itself. */
const SPDY_EXEC_PROTOCOLS = ['v4.channel.k8s.io'];
const FORWARD_PROTOCOLS = ['portforward.k8s.io'];
/** SPDY in the messages of a WebSocket. Source: k8s.io/apimachinery pkg/util/portforward/constants.go. */
const TUNNELLED = 'SPDY/3.1+portforward.k8s.io';
/** That of client libraries. */
const ONE_PORT = 'v4.channel.k8s.io';
const SPDY = 'spdy/3.1';
const SPDY_PROTOCOLS_HEADER = 'x-stream-protocol-version';

/**
 * Completes the upgrade. undefined: the client has left.
 * Unlike upstream no empty message begins the session of a WebSocket: kubectl before 1.33 reads
 * before it has its streams, and prints "Unknown stream id 1" for a message that comes with the upgrade.
 */
export type ExecClientOf = (upgrade: Upgrade) => Promise<SessionClient | undefined>;

/** @throws StatusError 400 for a client that asks for no upgrade, or speaks no protocol that is known */
export function execClientOf(request: HttpRequest): ExecClientOf {
  if (isWebSocket(request)) {
    const protocol = chosen(protocolsOf(request), EXEC_PROTOCOLS);
    return async (upgrade) => {
      const socket = acceptWebSocket(upgrade, protocol);
      if (socket === undefined) return undefined;
      socket.keepAlive();
      return webSocketClient(socket);
    };
  }
  const accept = spdyTransportOf(request, SPDY_EXEC_PROTOCOLS);
  const expected = execStreams(request.query);
  return (upgrade) => spdyExecClient(accept(upgrade), expected);
}

/** Completes the upgrade, and yields the connections of a client of port-forward until it has left. */
export type ForwardsOf = (upgrade: Upgrade, ended: AbortSignal) => AsyncIterable<Forward>;

/** @throws StatusError 400 */
export function forwardsOf(request: HttpRequest): ForwardsOf {
  if (isWebSocket(request)) {
    const protocol = chosen(protocolsOf(request), [TUNNELLED, ONE_PORT]);
    const port = protocol === ONE_PORT ? onePort(request.query) : undefined;
    return async function* (upgrade, ended) {
      const socket = acceptWebSocket(upgrade, protocol);
      if (socket === undefined) return;
      if (port === undefined) {
        yield* spdyForwards(tunnelTransport(socket), ended);
        return;
      }
      socket.keepAlive();
      yield { port, client: webSocketForward(socket, port) };
      // The session of the client is open until it has left, as with other protocols.
      await socket.closed;
    };
  }
  const accept = spdyTransportOf(request, FORWARD_PROTOCOLS);
  return (upgrade, ended) => spdyForwards(accept(upgrade), ended);
}

/** @throws StatusError 400 */
function onePort(query: URLSearchParams): number {
  const ports = query.getAll('ports').map(Number);
  const [port] = ports;
  if (ports.length === 1 && isPort(port)) return port;
  throw status.badRequest(`with ${ONE_PORT}, "ports" must be one port`);
}

/** Source: k8s.io/kubelet pkg/cri/streaming/remotecommand/httpstream.go (createHTTPStreamStreams). */
function execStreams(query: URLSearchParams): ReadonlySet<ExecStream> {
  const streams = (['stdin', 'stdout', 'stderr'] as const).filter((name) => isAskedFor(query, name));
  return new Set<ExecStream>(['error', ...streams, ...(isAskedFor(query, 'tty') ? (['resize'] as const) : [])]);
}

function spdyTransportOf(request: HttpRequest, known: readonly string[]): (upgrade: Upgrade) => ByteTransport {
  if (upgradeOf(request) !== SPDY) throw status.badRequest('Upgrade request required');
  const offered = (request.headers[SPDY_PROTOCOLS_HEADER] ?? '').split(',').map((each) => each.trim());
  const protocol = chosen(offered, known);
  return ({ socket, head }) => {
    const lines = ['connection: Upgrade', 'upgrade: SPDY/3.1', `${SPDY_PROTOCOLS_HEADER}: ${protocol}`];
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
    return socketTransport(socket, head);
  };
}

function chosen(offered: readonly string[], known: readonly string[]): string {
  const protocol = known.find((each) => offered.includes(each));
  if (protocol === undefined) throw status.badRequest(`the client must speak one of ${known.join(', ')}`);
  return protocol;
}
