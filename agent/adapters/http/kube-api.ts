/**
 * The Kubernetes API over HTTPS with persistent connections. The agent has two clients: one for heartbeats and node
 * status, so no other request can delay a heartbeat, and one for all other requests.
 */

import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { Duplex } from 'node:stream';
import { defined } from '../../../shared/defined.ts';
import { bytesOf } from '../../../shared/host/http-body.ts';
import type { Credentials, TokenUse } from '../../ports/credentials.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../../ports/kube-api.ts';
import { COLLECT_HEADER } from '../../rules/relay.ts';
import { retryAfter } from '../../rules/retry-after.ts';
import { createDialler, type Dialler, type Traffic } from './dial.ts';
import { bareHost, type ProxyEnvironment, proxyFor } from './proxy-choice.ts';

export interface HttpKubeApiOptions {
  /** Base URL. https only, because requests carry tokens. A path in it is a prefix of all requests. */
  readonly endpoint: string;
  /** PEM text; the authorities of the system when absent. */
  readonly certificateAuthority?: string | undefined;
  readonly credentials: Credentials;
  /** Whether the server is a relay: each token is then bound to the body of its request. Default: no. */
  readonly isRelay?: boolean;
  /** Headers of every request. Default: none. */
  readonly headers?: Readonly<Record<string, string>>;
  /** HTTPS_PROXY and NO_PROXY are read from it. */
  readonly environment?: ProxyEnvironment;
  /** Concurrent requests; others wait. Default: 1. */
  readonly connectionsMax?: number;
  /** Time limit of a request that has none. Milliseconds. */
  readonly timeoutMs?: number;
  readonly answerBytesMax?: number;
}

export interface HttpKubeApi extends KubeApi {
  /** Bytes on the wire so far, TLS included. */
  traffic(): Traffic;
  close(): void;
}

const TIMEOUT_MS = 10_000;
/** Several times the size of a page of pods. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const USER_AGENT = 'nodekeeper-agent';

/** @throws TypeError when the endpoint or the proxy is not a usable URL */
export function createHttpKubeApi(options: HttpKubeApiOptions): HttpKubeApi {
  const { credentials } = options;
  const server = new URL(options.endpoint);
  if (server.protocol !== 'https:') throw new TypeError(`the endpoint must begin with https://: ${options.endpoint}`);
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const dialler = createDialler({
    server,
    proxy: proxyFor(server, options.environment ?? {}),
    certificateAuthority: options.certificateAuthority,
    timeoutMs,
  });
  const newAgent = () => new DiallingAgent(dialler, options.connectionsMax ?? 1);
  let agent = newAgent();

  async function exchange(request: KubeRequest): Promise<{ answer: KubeAnswer; mayRetry: boolean }> {
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    let token: string;
    try {
      token = await credentials.bearer(useOf(request, body, options.isRelay));
    } catch (cause) {
      return { answer: { kind: 'failed', cause }, mayRetry: false };
    }
    const received = await sendRequest(
      { timeoutMs, ...request, token, bytes: body },
      {
        server,
        agent,
        headers: options.headers ?? {},
        answerBytesMax: options.answerBytesMax ?? ANSWER_BYTES_MAX,
      },
    );
    if (received.kind === 'failed') return { answer: received, mayRetry: false };
    const { serverTimeMs, answer } = received;
    return { answer, mayRetry: credentials.answered({ status: answer.status, token, ...defined({ serverTimeMs }) }) };
  }

  return {
    async send(request) {
      const { answer, mayRetry } = await exchange(request);
      return mayRetry ? (await exchange(request)).answer : answer;
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

type Failed = Extract<KubeAnswer, { kind: 'failed' }>;

interface Connection {
  readonly server: URL;
  readonly agent: Agent;
  readonly headers: Readonly<Record<string, string>>;
  readonly answerBytesMax: number;
}

/** A relay receives bound tokens only, whatever is sent to it: any other token could be used again. */
function useOf({ heartbeat }: KubeRequest, body = Buffer.alloc(0), isRelay = false): TokenUse {
  if (isRelay) return { kind: 'boundBeat', body };
  return { kind: heartbeat === undefined ? 'all' : 'beat' };
}

interface PreparedRequest extends KubeRequest {
  readonly timeoutMs: number;
  readonly token: string;
  /** The body. */
  readonly bytes: Buffer | undefined;
}

/** One request and its answer, within the time limit of the request. Never rejects. */
function sendRequest(request: PreparedRequest, connection: Connection): Promise<Received | Failed> {
  const { timeoutMs, signal } = request;
  return new Promise((resolve) => {
    const outgoing = httpsRequest(requestOptions(request, connection), (incoming) => {
      readAnswer(incoming, connection.answerBytesMax).then(finish, (cause: unknown) => {
        outgoing.destroy();
        finish({ kind: 'failed', cause });
      });
    });
    const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
    const abort = (): void => {
      outgoing.destroy(new Error('stopped'));
    };
    const finish = (received: Received | Failed): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      resolve(received);
    };
    outgoing.on('error', (cause) => finish({ kind: 'failed', cause }));
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort);
    outgoing.end(request.bytes);
  });
}

function requestOptions(
  { method, path, contentType = 'application/json', prefersMinimal = false, collectMs, token, bytes }: PreparedRequest,
  { server, agent, headers }: Connection,
): RequestOptions {
  return {
    agent,
    host: bareHost(server.hostname),
    port: server.port || 443,
    method,
    path: `${server.pathname.replace(/\/$/, '')}${path}`,
    headers: {
      ...headers,
      accept: 'application/json',
      authorization: `Bearer ${token}`,
      'user-agent': USER_AGENT,
      ...(prefersMinimal ? { prefer: 'return=minimal' } : {}),
      ...(collectMs === undefined ? {} : { [COLLECT_HEADER]: String(collectMs) }),
      ...(bytes === undefined ? {} : { 'content-type': contentType, 'content-length': bytes.length }),
    },
  };
}

/** Connects by the dialler. */
export class DiallingAgent extends Agent {
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
  const body = await bytesOf(incoming, bytesMax);
  if (body === undefined) throw new Error(`the answer is longer than ${bytesMax} bytes`);
  const date = Date.parse(String(incoming.headers.date));
  const serverTimeMs = Number.isNaN(date) ? undefined : date;
  const retryAfterMs = retryAfter(incoming.headers['retry-after'], serverTimeMs);
  return {
    kind: 'received',
    answer: {
      kind: 'answered',
      status: incoming.statusCode ?? 0,
      body: parsed(body.toString('utf8')),
      ...defined({ retryAfterMs }),
    },
    ...defined({ serverTimeMs }),
  };
}

function parsed(text: string): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch {
    // An error page of a gateway.
    return text;
  }
}
