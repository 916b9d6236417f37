/**
 * HTTP client of a whole fleet for a Kubernetes API: a bounded number of persistent connections and a queue. Lease
 * renewals are sent before registrations, so registered machines stay Ready while thousands register.
 */
import { readFileSync } from 'node:fs';
import {
  type ClientRequest,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type RequestOptions,
} from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { retryAfter } from '../../agent/rules/retry-after.ts';
import { defined } from '../../shared/defined.ts';

export type ApiMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface ApiRequest {
  readonly method: ApiMethod;
  /** Path and query, beginning with a slash. */
  readonly path: string;
  readonly body?: unknown;
  /** Content type of the body; application/json by default. */
  readonly contentType?: string;
  /** Asks for an answer without what was sent (`Prefer: return=minimal`). */
  readonly prefersMinimal?: boolean;
  /** Sent before everything that is not urgent. */
  readonly urgent?: boolean;
}

/** A response of the server with any status, or the reason why there is none. */
export type ApiAnswer =
  | {
      readonly kind: 'answered';
      readonly status: number;
      readonly body: unknown;
      /** Wait before the next request, as the server asked. Milliseconds. */
      readonly retryAfterMs?: number;
    }
  | { readonly kind: 'failed'; readonly cause: unknown };

/** Sends one request and never rejects: a missing response is an expected outcome. */
export type SendRequest = (request: ApiRequest) => Promise<ApiAnswer>;

export interface ApiClient {
  readonly send: SendRequest;
  /** Number of running and waiting requests. */
  pending(): number;
  /** Fails the waiting requests, aborts the running ones and closes the connections. */
  close(): void;
}

export interface ApiClientOptions {
  /** Base URL; a path in it is kept as prefix. */
  readonly url: string;
  /** Certificate authority, PEM text or the path of a PEM file; the system's when absent. */
  readonly ca?: string;
  readonly token: string;
  /** Maximum number of connections, and so of concurrent requests. */
  readonly connectionsMax: number;
  /** Request timeout. Milliseconds. */
  readonly timeoutMs: number;
}

/** A request with a larger response fails. A machine only lists its own pods. Bytes. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

interface Job {
  readonly request: ApiRequest;
  readonly settle: (answer: ApiAnswer) => void;
}

export const createApiClient = (options: ApiClientOptions): ApiClient => new HttpApiClient(options);

class HttpApiClient implements ApiClient {
  readonly #options: ApiClientOptions;
  readonly #base: URL;
  readonly #agent: HttpAgent;
  readonly #urgent = createQueue<Job>();
  readonly #ordinary = createQueue<Job>();
  /** Functions that abort the running requests. */
  readonly #running = new Set<() => void>();
  #closed = false;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#base = new URL(options.url);
    const pool = { keepAlive: true, maxSockets: options.connectionsMax, scheduling: 'lifo' as const };
    const ca = options.ca === undefined || isPem(options.ca) ? options.ca : readFileSync(options.ca, 'utf8');
    this.#agent = this.#isSecure() ? new HttpsAgent({ ...pool, ...defined({ ca }) }) : new HttpAgent(pool);
  }

  readonly send: SendRequest = (request) =>
    new Promise((settle) => {
      if (this.#closed) return settle(stoppedAnswer());
      (request.urgent ? this.#urgent : this.#ordinary).put({ request, settle });
      this.#pump();
    });

  pending(): number {
    return this.#running.size + this.#urgent.size() + this.#ordinary.size();
  }

  close(): void {
    this.#closed = true;
    for (const queue of [this.#urgent, this.#ordinary]) {
      for (let job = queue.take(); job !== undefined; job = queue.take()) job.settle(stoppedAnswer());
    }
    for (const cut of [...this.#running]) cut();
    this.#agent.destroy();
  }

  #isSecure(): boolean {
    return this.#base.protocol === 'https:';
  }

  /** Starts as many waiting requests as there are free connections. */
  #pump(): void {
    while (!this.#closed && this.#running.size < this.#options.connectionsMax) {
      const job = this.#urgent.take() ?? this.#ordinary.take();
      if (job === undefined) return;
      this.#start(job);
    }
  }

  #start({ request, settle }: Job): void {
    const { timeoutMs } = this.#options;
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    let isSettled = false;
    const finish = (answer: ApiAnswer): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      this.#running.delete(cut);
      settle(answer);
      this.#pump();
    };
    const outgoing = (this.#isSecure() ? httpsRequest : httpRequest)(this.#requestOptions(request, body), (incoming) =>
      readAnswer(incoming, outgoing, finish),
    );
    const cut = (): void => {
      outgoing.destroy(stoppedError());
    };
    const timer = setTimeout(() => outgoing.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs);
    this.#running.add(cut);
    outgoing.on('error', (cause) => finish({ kind: 'failed', cause }));
    outgoing.end(body);
  }

  #requestOptions(request: ApiRequest, body: Buffer | undefined): RequestOptions {
    const contentType = request.contentType ?? 'application/json';
    return {
      agent: this.#agent,
      hostname: this.#base.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: this.#base.port || (this.#isSecure() ? 443 : 80),
      method: request.method,
      path: `${this.#base.pathname.replace(/\/$/, '')}${request.path}`,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${this.#options.token}`,
        'user-agent': 'nodekeeper-fleet',
        ...(request.prefersMinimal === true ? { prefer: 'return=minimal' } : {}),
        ...(body === undefined ? {} : { 'content-type': contentType, 'content-length': body.length }),
      },
    };
  }
}

const isPem = (text: string): boolean => text.includes('-----BEGIN');
const stoppedError = (): Error => new Error('the fleet was stopped');
const stoppedAnswer = (): ApiAnswer => ({ kind: 'failed', cause: stoppedError() });

function readAnswer(incoming: IncomingMessage, outgoing: ClientRequest, finish: (answer: ApiAnswer) => void): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) outgoing.destroy(new Error(`answer larger than ${ANSWER_BYTES_MAX} bytes`));
    else chunks.push(chunk);
  });
  incoming.on('error', (cause) => finish({ kind: 'failed', cause }));
  incoming.on('end', () => {
    const serverTimeMs = Date.parse(incoming.headers.date ?? '');
    const retryAfterMs = retryAfter(
      incoming.headers['retry-after'],
      Number.isNaN(serverTimeMs) ? undefined : serverTimeMs,
    );
    finish({
      kind: 'answered',
      status: incoming.statusCode ?? 0,
      body: parseJson(Buffer.concat(chunks).toString('utf8')),
      ...defined({ retryAfterMs }),
    });
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The error page of a gateway. The status is enough.
    return text;
  }
}

/** First in, first out, in constant time: 10,000 machines may wait at once. */
function createQueue<T>() {
  let items: T[] = [];
  let head = 0;
  return {
    put(item: T): void {
      items.push(item);
    },
    take(): T | undefined {
      const item = items[head];
      if (item === undefined) return undefined;
      head += 1;
      if (head > 1_024 && head * 2 > items.length) {
        items = items.slice(head);
        head = 0;
      }
      return item;
    },
    size: (): number => items.length - head,
  };
}
