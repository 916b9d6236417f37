/**
 * The listener of the process: TLS, HTTP/2 or HTTP/1.1 as the client prefers. It bounds what a connection may use
 * before anybody has signed in: headers, bodies, their time, streams of a connection, connections, and bytes of all
 * bodies together. What is answered has bounds in unsent-answers.ts.
 */
import type { IncomingMessage, ServerOptions } from 'node:http';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { readBody } from '../shared/host/http-body.ts';
import { breakOff, drained, lastPart, leaveRequest } from '../shared/host/http-response.ts';
import { StartError } from '../shared/host/start-error.ts';
import { type HttpRequest, type HttpResponse, statusResponse } from '../shared/kubernetes/http.ts';
import * as status from '../shared/kubernetes/status.ts';
import type { Log } from '../shared/observability/log.ts';
import { type ClientAuthority, certificateHeader, withCertificate } from './client-certificate.ts';
import { quarterShares } from './quarter-shares.ts';
import { type AcceptUpgrade, refuseUpgrade, type Upgrade, upgradeRequest } from './sessions/upgrades.ts';
import { unsentAnswers } from './unsent-answers.ts';

/** Upstream's limit of a request. Source: k8s.io/apiserver pkg/server/config.go (MaxRequestBodyBytes). */
const BODY_BYTES_MAX = 3 * 1024 * 1024;
/** Bodies that are being read, together. More are answered 503 at once. One address has a quarter of it. */
const ALL_BODIES_BYTES_MAX = 128 * 1024 * 1024;
/** Longest time of a client for a body, and for its headers. Milliseconds. */
const BODY_MS = 30_000;
const HEADERS_MS = 10_000;
const HANDSHAKE_MS = 10_000;
/**
 * Between two looks at connections that are late with their headers. Node's own 30 s would allow them four times as
 * much.
 */
const CHECK_MS = 2_000;
/** API Gateway allows 10 KB; impersonation with many groups needs more than 8. Bytes. */
const HEADER_BYTES_MAX = 16 * 1024;
/** One address has a quarter of them. */
const CONNECTIONS_MAX = 20_000;
/** Upstream's own since CVE-2023-44487. Source: k8s.io/apiserver pkg/server/options (HTTP2MaxStreamsPerConnection). */
const STREAMS_MAX = 100;
/** A connection that rests longer is closed. */
const IDLE_MS = 120_000;
const STOP_GRACE_MS = 1_000;

/**
 * The types know the first of these; all of them are used. Source: Node.js, lib/internal/http2/core.js
 * (Http2SecureServer).
 */
const HTTP1_OPTIONS: ServerOptions = {
  keepAliveTimeout: IDLE_MS,
  headersTimeout: HEADERS_MS,
  requestTimeout: BODY_MS,
  maxHeaderSize: HEADER_BYTES_MAX,
  connectionsCheckingInterval: CHECK_MS,
};

/** Why a signal is aborted. Without a reason, each abort would make an exception with a stack. */
const LEFT = 'the client has left';
const STOPPED = 'the listener stops';

/** An answer. Its body may follow in parts. */
export interface Answer {
  readonly head: HttpResponse;
  readonly lines?: AsyncIterable<string>;
  readonly output?: AsyncIterable<Uint8Array>;
  /** Owns the connection, for a request that asked for an upgrade. */
  readonly upgrade?: AcceptUpgrade;
}

export interface ListenerOptions {
  readonly host: string;
  /** 0: any free one. */
  readonly port: number;
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  /** Client certificates that these signed name their users. Absent: none is asked for. */
  readonly clientAuthorities?: readonly ClientAuthority[];
  readonly log: Log;
  /** `gone` is aborted when the client has disconnected. Never rejects for a fault of the request. */
  serve(request: HttpRequest, gone: AbortSignal): Promise<Answer>;
}

export interface ListenerCounters {
  requests: number;
  serverErrors: number;
  refusedBodies: number;
  /** Answers that were not sent as a whole, because their clients read too slowly. */
  cutAnswers: number;
}

export interface Listener {
  readonly port: number;
  readonly counters: Readonly<ListenerCounters>;
  connections(): number;
  /** Uses this certificate for new connections. @throws Error when the two do not belong together */
  setCertificate(certificate: { readonly certificatePem: string; readonly privateKeyPem: string }): void;
  /** Accepts no more connections, lets requests end within a grace, and ends streams. */
  stop(): Promise<void>;
}

/** @throws StartError when the port is in use, or the address is not of this machine */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const counters: ListenerCounters = { requests: 0, serverErrors: 0, refusedBodies: 0, cutAnswers: 0 };
  const sockets = new Set<Socket>();
  /** What ends the open streams: one each, because a signal of several signals costs more than a line. */
  const streams = new Set<AbortController>();
  let isStopping = false;
  const bodies = quarterShares(ALL_BODIES_BYTES_MAX);
  const connections = quarterShares(CONNECTIONS_MAX);
  const unsent = unsentAnswers(() => {
    counters.cutAnswers += 1;
  });

  const server = createSecureServer({
    cert: options.certificatePem,
    key: options.privateKeyPem,
    allowHTTP1: true,
    handshakeTimeout: HANDSHAKE_MS,
    ...clientVerification(options),
    http1Options: HTTP1_OPTIONS,
    settings: { maxConcurrentStreams: STREAMS_MAX, maxHeaderListSize: HEADER_BYTES_MAX },
  });
  server.on('connection', (socket: Socket) => {
    const { remoteAddress = '' } = socket;
    if (connections.use(remoteAddress, 1) !== 'used') {
      socket.destroy();
      return;
    }
    socket.setNoDelay(true);
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      connections.free(remoteAddress, 1);
    });
  });
  server.on('session', (session) => {
    session.setTimeout(IDLE_MS, () => session.close());
  });
  // A client that disconnects or uses no TLS affects no other client.
  server.on('sessionError', () => {});
  server.on('tlsClientError', () => {});
  server.on('request', (request, response) => {
    void answer(request, response);
  });

  server.on('upgrade', (request: IncomingMessage, socket: TLSSocket, head: Buffer) => {
    void answerUpgrade({ request, socket, head });
  });

  async function answerUpgrade(upgrade: Upgrade & { readonly socket: TLSSocket }): Promise<void> {
    counters.requests += 1;
    const { request, socket } = upgrade;
    const gone = new AbortController();
    socket.once('close', () => gone.abort(LEFT));
    socket.on('error', () => gone.abort(LEFT));
    try {
      const { method = '', url = '', rawHeaders } = request;
      const plain = requestOf({ method, url, rawHeaders, socket }, new Uint8Array());
      const received = upgradeRequest(plain, request.headers.upgrade ?? '');
      const { clientAuthorities: authorities } = options;
      const signed = authorities === undefined ? received : withClient({ socket }, received, authorities);
      const answered = await options.serve(signed, gone.signal);
      if (answered.head.status >= 500) counters.serverErrors += 1;
      if (answered.upgrade !== undefined) answered.upgrade(upgrade);
      else refuseUpgrade(upgrade, answered.head);
    } catch (error) {
      if (!gone.signal.aborted) options.log.error('a request could not be answered', { error });
      socket.destroy();
    }
  }

  async function answer(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    counters.requests += 1;
    const gone = new AbortController();
    response.once('close', () => gone.abort(LEFT));
    // A stream that breaks while it is written to has ended; that is no fault of ours.
    response.on('error', () => gone.abort(LEFT));
    try {
      const answered = await answerOf(request, gone.signal);
      if (answered !== undefined) await write(request, response, answered, gone);
    } catch (error) {
      if (gone.signal.aborted) return;
      options.log.error('a request could not be answered', { error });
      breakOff(response);
    }
  }

  async function answerOf(
    request: Http2ServerRequest,
    gone: AbortSignal,
  ): Promise<(Answer & { isCut?: true }) | undefined> {
    const refuse = (refusal: keyof typeof REFUSED_BODY) => {
      counters.refusedBodies += 1;
      return { head: REFUSED_BODY[refusal](), isCut: true } as const;
    };
    if (Number(request.headers['content-length'] ?? 0) > BODY_BYTES_MAX) return refuse('tooLarge');
    // What has arrived is counted, not what is declared: a declaration costs its client nothing, and chunks have none.
    const { remoteAddress = '' } = request.socket;
    let ownBytes = 0;
    const admit = (bytes: number) => {
      if (bodies.use(remoteAddress, bytes) !== 'used') return 'crowded' as const;
      ownBytes += bytes;
      return undefined;
    };
    try {
      const limits = { bytesMax: BODY_BYTES_MAX, timeoutMs: BODY_MS, admit };
      // undefined: the client left before its body was whole.
      const body = await readBody(request, limits).catch(() => undefined);
      if (body === undefined) return undefined;
      if (typeof body === 'string') return refuse(body);
      const received = requestOf(request, body);
      const { clientAuthorities } = options;
      return await options.serve(
        clientAuthorities === undefined ? received : withClient(request, received, clientAuthorities),
        gone,
      );
    } finally {
      bodies.free(remoteAddress, ownBytes);
    }
  }

  /** The answer, or a refusal in its place. undefined: a write was made, so a refusal would not be true. */
  function held(
    { method, socket }: Http2ServerRequest,
    response: Http2ServerResponse,
    head: HttpResponse,
  ): HttpResponse | undefined {
    const bytes = method === 'HEAD' ? 0 : Buffer.byteLength(head.body);
    if (unsent.hold(response, socket.remoteAddress ?? '', bytes)) return head;
    counters.cutAnswers += 1;
    return method === 'GET' ? tooManyUnsent() : undefined;
  }

  async function write(
    request: Http2ServerRequest,
    response: Http2ServerResponse,
    answered: Answer & { readonly isCut?: boolean },
    leaving: AbortController,
  ): Promise<void> {
    const { lines, output, isCut = false } = answered;
    const gone = leaving.signal;
    const parts = lines ?? output;
    const head = parts === undefined && !gone.aborted ? held(request, response, answered.head) : answered.head;
    if (head === undefined) return breakOff(response);
    if (head.status >= 500) counters.serverErrors += 1;
    if (gone.aborted) {
      // A generator releases what it holds only once it has begun.
      if (parts !== undefined) await stream(response, parts, gone);
      return;
    }
    response.statusCode = head.status;
    for (const [name, value] of Object.entries(head.headers)) {
      if (name !== 'content-length') response.setHeader(name, value);
    }
    if (parts !== undefined) {
      streams.add(leaving);
      if (isStopping) leaving.abort(STOPPED);
      try {
        await stream(response, parts, gone);
      } finally {
        streams.delete(leaving);
      }
      return;
    }
    const body = typeof head.body === 'string' ? head.body : Buffer.from(head.body);
    if (head.status !== 204 && head.status !== 304) response.setHeader('content-length', Buffer.byteLength(body));
    // What is left of a body that was refused is not waited for: the connection ends with the answer.
    const after = isCut ? () => leaveRequest(request, response) : () => {};
    response.end(request.method === 'HEAD' ? '' : await lastPart(response, body), after);
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => reject(listenError(options, cause)));
    server.listen(options.port, options.host, resolve);
  });
  server.on('error', (error) => options.log.error('the listener failed', { error }));

  return {
    port: (server.address() as AddressInfo).port,
    counters,
    connections: () => sockets.size,
    setCertificate: ({ certificatePem, privateKeyPem }) =>
      server.setSecureContext({ cert: certificatePem, key: privateKeyPem, ...clientVerification(options) }),
    async stop() {
      isStopping = true;
      unsent.stop();
      for (const leaving of streams) leaving.abort(STOPPED);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const timer = setTimeout(
        () => {
          for (const socket of sockets) socket.destroy();
        },
        sockets.size === 0 ? 0 : STOP_GRACE_MS,
      );
      await closed;
      clearTimeout(timer);
    },
  };
}

/**
 * A client without a certificate, or with one of another authority, connects all the same: it may have a token. TLS
 * proves that the client has the key. The signature is verified in client-certificate.ts, and TLS gets no authority to
 * try: a forged signature would leave an error in the queue of OpenSSL, which then ends the next connection that is
 * read.
 */
const clientVerification = ({ clientAuthorities }: Pick<ListenerOptions, 'clientAuthorities'>) =>
  clientAuthorities === undefined ? {} : { ca: [], requestCert: true, rejectUnauthorized: false };

/** By connection: to verify a certificate costs more than a heartbeat. Undefined: it names no user. */
const clients = new WeakMap<object, string | undefined>();

function withClient(
  request: Pick<Http2ServerRequest, 'socket'> & Partial<Pick<Http2ServerRequest, 'stream'>>,
  received: HttpRequest,
  authorities: readonly ClientAuthority[],
): HttpRequest {
  const session = request.stream?.session;
  const connection = session ?? request.socket;
  if (!clients.has(connection)) {
    const socket = (session?.socket ?? request.socket) as TLSSocket;
    const certificate = socket.getPeerX509Certificate();
    clients.set(connection, certificate && certificateHeader(certificate, authorities));
  }
  return { ...received, headers: withCertificate(received.headers, clients.get(connection)) };
}

/** Writes the parts until they end, or the client has left, or accepts nothing any more. */
async function stream(
  response: Http2ServerResponse,
  parts: AsyncIterable<string | Uint8Array>,
  gone: AbortSignal,
): Promise<void> {
  const iterator = parts[Symbol.asyncIterator]();
  // Not Promise.race: what it waits for would keep every part until the client has left.
  let leave = (): void => {};
  const onGone = (): void => leave();
  gone.addEventListener('abort', onGone, { once: true });
  const next = (): Promise<IteratorResult<string | Uint8Array> | undefined> =>
    new Promise((resolve, reject) => {
      leave = () => resolve(undefined);
      iterator.next().then(resolve, reject);
      if (gone.aborted) leave();
    });
  try {
    for (let part = await next(); part !== undefined && part.done !== true; part = await next()) {
      if (part.value.length === 0 || response.write(part.value) || gone.aborted) continue;
      if (!(await drained(response, gone))) {
        breakOff(response);
        break;
      }
    }
  } finally {
    gone.removeEventListener('abort', onGone);
    // Ends what the parts hold, also while they wait for a change.
    void iterator.return?.();
  }
  if (!response.destroyed) response.end();
}

const REFUSED_BODY = {
  crowded: () =>
    statusResponse(status.serviceUnavailable('too many bodies are being read', { retryAfterSeconds: 1 }).status),
  tooLarge: () =>
    statusResponse(status.requestEntityTooLarge(`a request may have ${BODY_BYTES_MAX} bytes at most`).status),
  late: () =>
    statusResponse({
      ...status.gatewayTimeout(`the body did not arrive within ${BODY_MS / 1_000} s`).status,
      code: 408,
    }),
} as const;

const tooManyUnsent = (): HttpResponse =>
  statusResponse(
    status.serviceUnavailable('too many answers are waiting for their clients to read', { retryAfterSeconds: 1 })
      .status,
  );

/** Headers of one connection. */
const HOP_BY_HOP = new Set(['connection', 'keep-alive', 'proxy-connection', 'te', 'transfer-encoding', 'upgrade']);

/** The path is decoded, as an HTTP API passes it to a function. A malformed escape stays as it is. */
export function requestOf(
  request: Pick<Http2ServerRequest, 'method' | 'url' | 'rawHeaders'> & {
    readonly socket?: Pick<Socket, 'remoteAddress'>;
  },
  body: Uint8Array,
): HttpRequest {
  const mark = request.url.indexOf('?');
  const encoded = mark === -1 ? request.url : request.url.slice(0, mark);
  return {
    method: request.method,
    path: decodedPath(encoded),
    query: new URLSearchParams(mark === -1 ? '' : request.url.slice(mark + 1)),
    headers: headersOf(request.rawHeaders),
    body,
    sourceIp: request.socket?.remoteAddress ?? '',
  };
}

function decodedPath(encoded: string): string {
  if (!encoded.includes('%')) return encoded;
  try {
    return decodeURIComponent(encoded).split('?', 1)[0] ?? '';
  } catch {
    return encoded;
  }
}

/** Values of a repeated name are joined with commas. */
function headersOf(rawHeaders: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]!.toLowerCase();
    const value = rawHeaders[index + 1]!;
    if (name === ':authority') headers['host'] = value;
    else if (name.startsWith(':') || HOP_BY_HOP.has(name)) continue;
    else headers[name] = Object.hasOwn(headers, name) ? `${headers[name]},${value}` : value;
  }
  return headers;
}

function listenError({ host, port }: ListenerOptions, cause: NodeJS.ErrnoException): StartError {
  const what =
    cause.code === 'EADDRINUSE'
      ? `port ${port} is in use: choose another with --port`
      : cause.code === 'EADDRNOTAVAIL'
        ? `${host} is not an address of this machine: choose another with --listen`
        : cause.code === 'EACCES'
          ? `port ${port} needs rights that this user does not have: choose one from 1024 on with --port`
          : `cannot listen at ${host}:${port}: ${cause.message}`;
  return new StartError(what, { cause });
}
