/**
 * The HTTPS server of a relay, for the machines of its site. It serves heartbeats and the connection for the site, and
 * nothing else. Machines keep their connections. Connections, sizes, times and waiting requests are bounded: beyond a
 * bound a machine is refused, and sends its heartbeat directly.
 */

import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Server as NetServer } from 'node:net';
import type { Duplex } from 'node:stream';
import { createSecureContext } from 'node:tls';
import type { LeaseBatchAnswerItem, LeaseBatchItem } from '../../../shared/fleet/nodes/lease-batch.ts';
import { bytesOf } from '../../../shared/host/http-body.ts';
import type { AcceptSiteLine } from '../../ports/site.ts';
import { COLLECT_HEADER, notRelayed, RELAYED_BODY_BYTES_MAX, relayedRequest, statusAnswer } from '../../rules/relay.ts';
import { SITE_PATH, SITE_PROTOCOL } from '../../rules/site-message.ts';
import { openSiteLine } from '../site/site-line.ts';
import type { CertifiedKey } from './certificates.ts';

export interface RelayServerOptions {
  /** '': all addresses of the machine. */
  readonly address: string;
  /** 0: any free port. */
  readonly port: number;
  readonly certificate: CertifiedKey;
  /** Heartbeats that wait for their answers; others are refused at once. Default: 1,000. */
  readonly waitingMax?: number;
  /** Never rejects. */
  readonly relay: (item: LeaseBatchItem, collectMs: number) => Promise<LeaseBatchAnswerItem>;
  /** Machines that keep a connection for the site (docs/witnesses.md). */
  readonly site: AcceptSiteLine;
}

export interface RelayServer {
  readonly port: number;
  /** New connections use it. @throws Error for a certificate that does not fit its key */
  useCertificate(certificate: CertifiedKey): void;
  close(): Promise<void>;
}

/** Two for each of 1,000 machines: one for heartbeats, one for the site. */
const CONNECTIONS_MAX = 2_000;
const WAITING_MAX = 1_000;
/** Time limit of the head and the body of a request. Milliseconds. */
const REQUEST_TIMEOUT_MS = 5_000;
/** Longer than the longest usual interval of heartbeats, so a machine keeps its connection. Milliseconds. */
const IDLE_TIMEOUT_MS = 150_000;
/** A head has the token, some 500 bytes. */
const HEADER_BYTES_MAX = 8_192;

const contextOf = ({ certificatePem, privateKeyPem }: CertifiedKey) =>
  ({ cert: certificatePem, key: privateKeyPem, minVersion: 'TLSv1.2' }) as const;

/** @throws Error for an unusable certificate or key, as serveRelay */
export function checkFit(certificate: CertifiedKey): void {
  createSecureContext(contextOf(certificate));
}

/** Rejects if the server cannot listen. `address` '': all addresses of the machine. */
export async function listenOn(
  server: NetServer,
  { address, port }: Pick<RelayServerOptions, 'address' | 'port'>,
): Promise<void> {
  await once(server.listen({ port, ...(address === '' ? {} : { host: address }) }), 'listening');
}

/** Rejects if the server cannot listen. @throws Error for an unusable certificate or key */
export async function serveRelay(options: RelayServerOptions): Promise<RelayServer> {
  const server = createServer({
    ...contextOf(options.certificate),
    handshakeTimeout: REQUEST_TIMEOUT_MS,
    headersTimeout: REQUEST_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: IDLE_TIMEOUT_MS,
    maxHeaderSize: HEADER_BYTES_MAX,
  });
  server.maxConnections = CONNECTIONS_MAX;
  let waiting = 0;
  server.on('request', async (request: IncomingMessage, response: ServerResponse) => {
    if (waiting >= (options.waitingMax ?? WAITING_MAX)) return send(response, notRelayed('too many heartbeats wait'));
    waiting += 1;
    const answer = await answerTo(request, options).catch(() => undefined);
    waiting -= 1;
    if (answer !== undefined) send(response, answer);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (request.url !== SITE_PATH || request.headers.upgrade !== SITE_PROTOCOL) {
      // An error has destroyed the socket.
      socket.on('error', () => undefined);
      socket.end('HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n');
      return;
    }
    request.socket.setTimeout(0);
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: ${SITE_PROTOCOL}\r\n\r\n`);
    openSiteLine(socket, head, addressOf(request), options.site);
  });
  await listenOn(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    useCertificate: (certificate) => server.setSecureContext(contextOf(certificate)),
    close: () => close(server),
  };
}

/** IPv4 as such, also on a socket of IPv6. */
const addressOf = ({ socket }: IncomingMessage): string => socket.remoteAddress?.replace(/^::ffff:/i, '') ?? '';

async function answerTo(request: IncomingMessage, { relay }: RelayServerOptions): Promise<LeaseBatchAnswerItem> {
  const body = await bytesOf(request, RELAYED_BODY_BYTES_MAX);
  if (body === undefined) {
    return statusAnswer(413, 'RequestEntityTooLarge', `a heartbeat has at most ${RELAYED_BODY_BYTES_MAX} bytes`);
  }
  const received = relayedRequest({
    method: String(request.method),
    target: String(request.url),
    authorization: request.headers.authorization,
    collect: request.headers[COLLECT_HEADER]?.toString(),
    body: body.toString('utf8'),
  });
  return received.kind === 'refused' ? received.answer : relay(received.item, received.collectMs);
}

function send(response: ServerResponse, { status, retryAfterSeconds, body }: LeaseBatchAnswerItem): void {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...(retryAfterSeconds === undefined ? {} : { 'retry-after': String(retryAfterSeconds) }),
    // The rest of a body that is too long is not read.
    ...(status === 413 ? { connection: 'close' } : {}),
  });
  response.end(text);
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
