/**
 * The Kubernetes API over HTTPS with kept connections. The agent has two of these: one for heartbeats alone, so that
 * nothing else can stand before a beat, and one for the rest.
 */

import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { defined } from '../../../shared/domain/defined.ts';
import type { Credentials } from '../../ports/credentials.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../../ports/kube-api.ts';
import { createDialler, type Dialler, type Traffic } from './dial.ts';
import { bareHost, type ProxyEnvironment, proxyFor } from './proxy-choice.ts';

export interface HttpKubeApiOptions {
  /** Base URL, https only: tokens do not go over anything else. A path in it is kept as prefix. */
  readonly endpoint: string;
  /** PEM text; the system's authorities when absent. */
  readonly certificateAuthority?: string | undefined;
  readonly credentials: Credentials;
  /** HTTPS_PROXY and NO_PROXY are read from it. */
  readonly environment?: ProxyEnvironment;
  /** Requests under way at once; others wait. 1 unless said. */
  readonly connectionsMax?: number;
  /** Of a request that names none. Milliseconds. */
  readonly timeoutMs?: number;
  readonly answerBytesMax?: number;
}

export interface HttpKubeApi extends KubeApi {
  /** Bytes on the wire so far, TLS included. */
  traffic(): Traffic;
  close(): void;
}

const TIMEOUT_MS = 10_000;
/** A list of all pods that one node can have fits many times. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const USER_AGENT = 'nodekeeper-agent';

/** Throws a TypeError when the endpoint or the proxy is no URL that will do. */
export function createHttpKubeApi(options: HttpKubeApiOptions): HttpKubeApi {
  const server = new URL(options.endpoint);
  if (server.protocol !== 'https:') throw new TypeError(`the endpoint must begin with https://: ${options.endpoint}`);
  const prefix = server.pathname.replace(/\/$/, '');
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const dialler = createDialler({
    server,
    proxy: proxyFor(server, options.environment ?? {}),
    certificateAuthority: options.certificateAuthority,
    timeoutMs,
  });
  const newAgent = () => new DiallingAgent(dialler, options.connectionsMax ?? 1);
  let agent = newAgent();

  async function exchange(request: KubeRequest): Promise<{ answer: KubeAnswer; again: boolean }> {
    let token: string;
    try {
      token = await options.credentials.bearer();
    } catch (cause) {
      return { answer: { kind: 'failed', cause }, again: false };
    }
    const received = await once(request, token);
    if (received.kind === 'failed') return { answer: received, again: false };
    const { serverTimeMs, answer } = received;
    const again = options.credentials.answered({
      status: answer.status,
      token,
      ...defined({ serverTimeMs }),
    });
    return { answer, again };
  }

  function once(
    request: KubeRequest,
    token: string,
  ): Promise<Received | { readonly kind: 'failed'; readonly cause: unknown }> {
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    return new Promise((resolve) => {
      const outgoing = httpsRequest(
        {
          agent,
          host: bareHost(server.hostname),
          port: server.port === '' ? 443 : Number(server.port),
          method: request.method,
          path: `${prefix}${request.path}`,
          headers: {
            accept: 'application/json',
            authorization: `Bearer ${token}`,
            'user-agent': USER_AGENT,
            ...(body === undefined
              ? {}
              : { 'content-type': request.contentType ?? 'application/json', 'content-length': body.length }),
          },
        },
        (incoming) => {
          readAnswer(incoming, options.answerBytesMax ?? ANSWER_BYTES_MAX).then(finish, (cause: unknown) => {
            outgoing.destroy();
            finish({ kind: 'failed', cause });
          });
        },
      );
      const limitMs = request.timeoutMs ?? timeoutMs;
      const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${limitMs} ms`)), limitMs);
      const abort = (): void => {
        outgoing.destroy(new Error('stopped'));
      };
      const finish = (received: Received | { readonly kind: 'failed'; readonly cause: unknown }): void => {
        clearTimeout(timer);
        request.signal?.removeEventListener('abort', abort);
        resolve(received);
      };
      outgoing.on('error', (cause) => finish({ kind: 'failed', cause }));
      if (request.signal?.aborted) abort();
      else request.signal?.addEventListener('abort', abort, { once: true });
      outgoing.end(body);
    });
  }

  return {
    async send(request) {
      const first = await exchange(request);
      return first.again ? (await exchange(request)).answer : first.answer;
    },
    reconnect() {
      agent.destroy();
      agent = newAgent();
    },
    traffic: () => dialler.traffic(),
    close: () => agent.destroy(),
  };
}

interface Received {
  readonly kind: 'received';
  readonly answer: Extract<KubeAnswer, { kind: 'answered' }>;
  readonly serverTimeMs?: number;
}

class DiallingAgent extends Agent {
  readonly #dialler: Dialler;

  constructor(dialler: Dialler, connectionsMax: number) {
    super({ keepAlive: true, maxSockets: connectionsMax, maxFreeSockets: connectionsMax, scheduling: 'lifo' });
    this.#dialler = dialler;
  }

  override createConnection(
    _options: RequestOptions,
    callback?: (error: Error | null, connection: Duplex) => void,
  ): Duplex | undefined {
    return this.#dialler.dial((error, connection) => callback?.(error, connection as Duplex));
  }
}

async function readAnswer(incoming: IncomingMessage, bytesMax: number): Promise<Received> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw new Error(`an answer of more than ${bytesMax} bytes`);
    chunks.push(chunk);
  }
  const date = Date.parse(incoming.headers.date ?? '');
  const serverTimeMs = Number.isNaN(date) ? undefined : date;
  const retryAfterMs = retryAfter(incoming.headers['retry-after'], serverTimeMs);
  return {
    kind: 'received',
    answer: {
      kind: 'answered',
      status: incoming.statusCode ?? 0,
      body: parsed(Buffer.concat(chunks).toString('utf8')),
      ...defined({ retryAfterMs }),
    },
    ...defined({ serverTimeMs }),
  };
}

/** Seconds, or a date by the server's own clock (RFC 9110, 10.2.3). Milliseconds. */
export function retryAfter(text: string | undefined, serverTimeMs: number | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\s*\d{1,9}\s*$/.test(text)) return Number(text) * 1_000;
  const untilMs = /\d:\d\d GMT\s*$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(untilMs) || serverTimeMs === undefined) return undefined;
  return Math.max(0, untilMs - serverTimeMs);
}

function parsed(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // A gateway's own page; the status says enough.
    return text;
  }
}
