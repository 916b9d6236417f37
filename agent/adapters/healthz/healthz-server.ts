/** /healthz and /metrics over HTTP on loopback, as a kubelet serves them there. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { HealthCheck } from '../../ports/health-check.ts';

export interface HealthzOptions {
  /** 0: any free port. */
  readonly port: number;
  readonly checks: readonly HealthCheck[];
  /** Text of all metrics. */
  readonly metrics: () => string;
  /** Time for a request to arrive. Default: 5 s. */
  readonly requestTimeoutMs?: number;
}

export interface HealthzServer {
  readonly port: number;
  close(): Promise<void>;
}

const LOOPBACK = '127.0.0.1';
/** Answers are short and immediate. */
const REQUEST_TIMEOUT_MS = 5_000;

/** Rejects if the server cannot listen on the port. */
export async function serveHealthz(options: HealthzOptions): Promise<HealthzServer> {
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const server = createServer({ requestTimeout, connectionsCheckingInterval: requestTimeout });
  server.on('request', (request, response) => send(response, answerTo(options, request)));
  await once(server.listen(options.port, LOOPBACK), 'listening');
  return { port: (server.address() as AddressInfo).port, close: () => close(server) };
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly type?: string;
}

function answerTo({ checks, metrics }: HealthzOptions, request: IncomingMessage): Answer {
  if (request.method !== 'GET' && request.method !== 'HEAD') return { status: 405, text: 'method not allowed\n' };
  const path = request.url?.split('?', 1)[0];
  if (path === '/metrics') return { status: 200, text: metrics(), type: 'text/plain; version=0.0.4; charset=utf-8' };
  if (path !== '/healthz') return { status: 404, text: 'not found\n' };
  const results = checks.map(({ name, complaint }) => ({ name, complaint: complaint() }));
  if (results.every(({ complaint }) => complaint === undefined)) return { status: 200, text: 'ok' };
  const lines = results.map(({ name, complaint }) =>
    complaint === undefined ? `[+]${name} ok` : `[-]${name} failed: ${complaint}`,
  );
  return { status: 500, text: `${lines.join('\n')}\nhealthz check failed\n` };
}

function send(response: ServerResponse, { status, text, type = 'text/plain; charset=utf-8' }: Answer): void {
  response.writeHead(status, {
    'content-type': type,
    'content-length': Buffer.byteLength(text),
    'x-content-type-options': 'nosniff',
  });
  response.end(text);
}
