import { randomUUID } from 'node:crypto';
import { createSecureServer, type Http2ServerRequest, type Http2ServerResponse } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { readBody } from '../../shared/host/http-body.ts';
import { asHttp1, breakOff, lastPart, leaveRequest } from '../../shared/host/http-response.ts';
import { StartError } from '../../shared/host/start-error.ts';
import type { ApiPlan } from '../assembly/plan.ts';
import type { LocalFunction } from '../functions/local-function.ts';
import type { StreamHead } from '../functions/protocol.ts';
import { type GatewayRequest, gatewayEvent, splitTarget } from './gateway-event.ts';
import { type GatewayResponse, gatewayMessage, gatewayResponse } from './gateway-response.ts';
import { type ChunkHold, HeldChunks } from './held-chunks.ts';
import { compileRoutes } from './routes.ts';
import { requestThrottle } from './throttle.ts';

interface GatewayTarget {
  readonly fn: LocalFunction;
  readonly timeoutMs: number;
  readonly setHeaders: Readonly<Record<string, string>>;
}

export interface FunctionUrlOptions {
  readonly accountId: string;
  readonly fn: LocalFunction;
  readonly chunkHold: ChunkHold;
  nowMs(): number;
}

export interface GatewayOptions {
  readonly api: ApiPlan;
  readonly accountId: string;
  /** Whether the request limits of the template and the account apply. */
  readonly throttles: boolean;
  functionOf(functionId: string): LocalFunction;
  nowMs(): number;
}

export interface HttpCounters {
  requests: number;
  /** Bodies and headers of answers, uncompressed as on HTTP/1.1; streams not counted. */
  answeredBytes: number;
  /** Answers of 500 and above, ours and the functions'. */
  serverErrors: number;
  /** Requests above a rate limit, answered 429 without an invocation. */
  throttled: number;
}

export interface HttpFront {
  readonly port: number;
  readonly counters: HttpCounters;
  /** Serves an HTTP API. Requests wait until this or the next has been called. */
  serve(options: GatewayOptions): void;
  /** Serves one function under its own URL, responses streamed if it streams. */
  serveFunction(options: FunctionUrlOptions): void;
  /** Ends idle connections at once, others after a grace. */
  stop(): Promise<void>;
  /** Cuts every connection. */
  kill(): void;
}

/** Limits of HTTP APIs and of Lambda's synchronous invocations. */
const BODY_BYTES_MAX = 10_000_000;
const PAYLOAD_BYTES_MAX = 6 * 1024 * 1024;
/** Of one UTF-16 unit in UTF-8. */
const UNIT_BYTES_MAX = 3;
const HEADER_BYTES_MAX = 10_240;
const STOP_GRACE_MS = 1_000;
/** A connection that rests longer is closed. Node's own 5 s lie below a beat, and clients met closing ones. */
const IDLE_MS = 60_000;

/** Longest time of a client for a body; the service ends a request after 30 s. */
const BODY_MS = 30_000;

/** Answers with what to send, or undefined when it has been sent. */
type Handle = (
  request: Http2ServerRequest,
  body: Buffer,
  response: Http2ServerResponse,
) => Promise<GatewayResponse | undefined>;

/**
 * The listener: TLS on loopback, HTTP/2 or HTTP/1.1 as the client likes, bound before anything else is started: a
 * busy port is known at once.
 *
 * @throws StartError when the port is taken
 */
export async function openHttpFront(options: {
  readonly port: number;
  readonly certificatePem: string;
  readonly privateKeyPem: string;
  /** Longest that a body may take to come. Milliseconds. */
  readonly bodyMs?: number;
}): Promise<HttpFront> {
  const counters: HttpCounters = { requests: 0, answeredBytes: 0, serverErrors: 0, throttled: 0 };
  const sockets = new Set<Socket>();
  let open: (handle: Handle) => void = () => {};
  const served = new Promise<Handle>((resolve) => {
    open = resolve;
  });

  const server = createSecureServer({
    cert: options.certificatePem,
    key: options.privateKeyPem,
    allowHTTP1: true,
    http1Options: { keepAliveTimeout: IDLE_MS },
  });
  server.on('connection', (socket: Socket) => {
    socket.setNoDelay(true);
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  // A client that disconnects or uses no TLS affects no other client.
  server.on('sessionError', () => {});
  server.on('tlsClientError', () => {});
  server.on('request', (request, response) => {
    void answer(request, response);
  });

  async function answer(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    counters.requests += 1;
    let answered: GatewayResponse | undefined;
    let isWhole = false;
    try {
      const body = await readBody(request, { bytesMax: BODY_BYTES_MAX, timeoutMs: options.bodyMs ?? BODY_MS });
      const handle = await served;
      isWhole = typeof body !== 'string';
      answered = typeof body === 'string' ? REFUSED_BODY[body] : await handle(request, body, response);
    } catch (error) {
      if (request.destroyed || response.writableEnded) return;
      console.error('local gateway:', error);
      answered = gatewayMessage(500, 'Internal Server Error');
    }
    if (answered === undefined) return;
    if (answered.statusCode >= 500) counters.serverErrors += 1;
    if (response.destroyed) return;
    response.statusCode = answered.statusCode;
    for (const [name, value] of Object.entries(answered.headers)) {
      response.setHeader(name, typeof value === 'string' ? value : [...value]);
    }
    const bodyBytes = Buffer.byteLength(answered.body);
    response.setHeader('content-length', bodyBytes);
    const headers = Object.entries(answered.headers).map(([name, value]) => `${name}: ${String(value)}\r\n`);
    counters.answeredBytes += Buffer.byteLength(headers.join('')) + bodyBytes;
    // What is left of a body that was refused is not waited for: the connection ends with the answer.
    const after = isWhole ? () => {} : () => leaveRequest(request, response);
    response.end(request.method === 'HEAD' ? '' : await lastPart(response, answered.body), after);
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      const busy = cause.code === 'EADDRINUSE';
      const what = busy
        ? `port ${options.port} is in use: choose another with --port`
        : `cannot listen: ${cause.message}`;
      reject(new StartError(what, { cause }));
    });
    server.listen(options.port, '127.0.0.1', resolve);
  });

  const { port } = server.address() as AddressInfo;
  const closeAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port,
    counters,
    serve: (gateway) => open(gatewayHandler(gateway, `127.0.0.1:${port}`, counters)),
    serveFunction: (target) => open(functionUrlHandler(target, `127.0.0.1:${port}`)),
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      const timer = setTimeout(closeAll, sockets.size === 0 ? 0 : STOP_GRACE_MS);
      await closed;
      clearTimeout(timer);
    },
    kill() {
      server.close();
      closeAll();
    },
  };
}

const isTooLarge = (payload: string): boolean =>
  payload.length * UNIT_BYTES_MAX > PAYLOAD_BYTES_MAX && Buffer.byteLength(payload) > PAYLOAD_BYTES_MAX;

const REFUSED_BODY: Readonly<Record<'tooLarge' | 'late', GatewayResponse>> = {
  tooLarge: gatewayMessage(413, 'Request Entity Too Large'),
  late: gatewayMessage(408, 'Request Timeout'),
};

function gatewayHandler(options: GatewayOptions, domainName: string, counters: HttpCounters): Handle {
  const accepts = options.throttles ? requestThrottle(options.api.throttling, options.nowMs()) : () => true;
  const find = compileRoutes(
    options.api.routes.map(({ routeKey, functionId, timeoutMs, setHeaders }) => ({
      routeKey,
      target: { fn: options.functionOf(functionId), timeoutMs, setHeaders } satisfies GatewayTarget,
    })),
  );

  return async (request, body) => {
    const { method, url: target, rawHeaders } = request;
    const headerBytes = rawHeaders.reduce((sum, part) => sum + part.length + 2, method.length + target.length);
    if (headerBytes > HEADER_BYTES_MAX) return gatewayMessage(431, 'Request Header Fields Too Large');
    const match = find(method, splitTarget(target).path);
    if (match === undefined) return gatewayMessage(404, 'Not Found');
    if (!accepts(match.route.routeKey, options.nowMs())) {
      counters.throttled += 1;
      return gatewayMessage(429, 'Too Many Requests');
    }
    const requestId = randomUUID();
    const event = gatewayEvent(requestOf(request, body), {
      routeKey: match.route.routeKey,
      ...(match.pathParameters === undefined ? {} : { pathParameters: match.pathParameters }),
      setHeaders: match.route.target.setHeaders,
      requestId,
      accountId: options.accountId,
      apiId: options.api.apiId,
      domainName,
      nowMs: options.nowMs(),
    });
    if (isTooLarge(event.body ?? '')) return gatewayMessage(413, 'Request Entity Too Large');
    const response = await integrate(match.route.target, event);
    return { ...response, headers: { ...response.headers, 'apigw-requestid': requestId } };
  };
}

const requestOf = (request: Http2ServerRequest, body: Buffer): GatewayRequest => ({
  method: request.method,
  target: request.url,
  rawHeaders: request.rawHeaders,
  body,
  sourceIp: request.socket.remoteAddress ?? '127.0.0.1',
  protocol: `HTTP/${request.httpVersion}`,
});

/** A function URL: every path, the same event format, 502 when the function fails before it has begun to answer. */
function functionUrlHandler(options: FunctionUrlOptions, domainName: string): Handle {
  return async (request, body, response) => {
    const event = gatewayEvent(requestOf(request, body), {
      routeKey: '$default',
      requestId: randomUUID(),
      accountId: options.accountId,
      apiId: options.fn.plan.functionName,
      domainName,
      nowMs: options.nowMs(),
      pathEncoded: true,
    });
    const gone = new AbortController();
    response.once('close', () => gone.abort());
    const held = new HeldChunks(options.chunkHold);
    let started: StreamHead | undefined;
    const deliver = async (chunks: readonly Uint8Array[]): Promise<void> => {
      if (chunks.length === 0 || response.destroyed) return;
      if (!response.headersSent && started !== undefined) writeHead(response, started);
      for (const chunk of chunks) await written(response, chunk, gone.signal);
    };
    const outcome = await options.fn.invoke(event, {
      gone: gone.signal,
      head: (head) => {
        started = head;
      },
      chunk: (chunk) => (chunk.length === 0 ? Promise.resolve() : deliver(held.add(chunk))),
    });
    if (started !== undefined) {
      if (outcome.kind !== 'returned') {
        breakOff(response);
        return undefined;
      }
      await deliver(held.rest());
      if (!response.headersSent && !response.destroyed) writeHead(response, started);
      response.end();
      return undefined;
    }
    switch (outcome.kind) {
      case 'returned':
        return gatewayResponse(outcome.payload);
      case 'throttled':
        return gatewayMessage(429, 'Too Many Requests');
      case 'abandoned':
        return undefined;
      default:
        return gatewayMessage(502, 'Internal Server Error');
    }
  };
}

const writeHead = (response: Http2ServerResponse, { statusCode = 200, headers, cookies }: StreamHead): void => {
  response.writeHead(statusCode, { ...headers, ...(cookies === undefined ? {} : { 'set-cookie': [...cookies] }) });
};

/** Settles when the connection accepts more, or is closed. */
function written(response: Http2ServerResponse, chunk: string | Uint8Array, gone: AbortSignal): Promise<void> {
  if (chunk.length === 0) {
    // HTTP/2 sends the head as soon as it is written.
    asHttp1(response)?.flushHeaders();
    return Promise.resolve();
  }
  // An HTTP/2 response that was closed never drains.
  if (gone.aborted || response.destroyed || response.write(chunk)) return Promise.resolve();
  return new Promise((resolve) => {
    const settle = () => {
      response.off('drain', settle);
      gone.removeEventListener('abort', settle);
      resolve();
    };
    response.once('drain', settle);
    gone.addEventListener('abort', settle);
  });
}

async function integrate({ fn, timeoutMs }: GatewayTarget, event: unknown): Promise<GatewayResponse> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), timeoutMs);
  });
  const outcome = await Promise.race([fn.invoke(event), late]);
  clearTimeout(timer);
  if (outcome === 'late' || outcome.kind === 'throttled') return gatewayMessage(503, 'Service Unavailable');
  if (outcome.kind !== 'returned') return gatewayMessage(500, 'Internal Server Error');
  if (isTooLarge(outcome.payload)) return gatewayMessage(500, 'Internal Server Error');
  return gatewayResponse(outcome.payload);
}
