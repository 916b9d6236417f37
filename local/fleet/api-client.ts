/**
 * HTTP to a Kubernetes API for a whole fleet: kept-alive connections, a bound on them, and a queue in which lease
 * renewals overtake registrations, so that machines that are up stay up while thousands register.
 */
import { readFileSync } from 'node:fs';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

export type ApiMethod = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface ApiRequest {
  readonly method: ApiMethod;
  /** Path and query, beginning with a slash. */
  readonly path: string;
  readonly body?: unknown;
  /** Content type of the body; application/json unless said. */
  readonly contentType?: string;
  /** Goes before everything that is not urgent. */
  readonly urgent?: boolean;
}

/** An answer of the server, whatever it says, or the fact that none came. */
export type ApiAnswer =
  | { readonly kind: 'answered'; readonly status: number; readonly body: unknown }
  | { readonly kind: 'failed'; readonly cause: unknown };

/** Sends one request and never rejects: no answer is an outcome a machine plans for. */
export type SendRequest = (request: ApiRequest) => Promise<ApiAnswer>;

export interface ApiClient {
  readonly send: SendRequest;
  /** Requests under way or waiting. */
  pending(): number;
  /** Refuses what waits, cuts what runs, closes the connections. */
  close(): void;
}

export interface ApiClientOptions {
  /** Base URL; a path in it is kept as prefix. */
  readonly url: string;
  /** Certificate authority, PEM text or the path of a PEM file; the system's when absent. */
  readonly ca?: string;
  readonly token: string;
  /** Connections, and with them requests under way, at most. */
  readonly connectionsMax: number;
  /** An answer later than this counts as none. Milliseconds. */
  readonly timeoutMs: number;
}

/** An answer larger than this is cut off: no machine reads lists. Bytes. */
const ANSWER_BYTES_MAX = 4 * 1024 * 1024;

export function createApiClient(options: ApiClientOptions): ApiClient {
  const base = new URL(options.url);
  const secure = base.protocol === 'https:';
  const prefix = base.pathname.replace(/\/$/, '');
  const pool = { keepAlive: true, maxSockets: options.connectionsMax, scheduling: 'lifo' as const };
  const ca =
    options.ca === undefined || options.ca.includes('-----BEGIN') ? options.ca : readFileSync(options.ca, 'utf8');
  const agent = secure ? new HttpsAgent({ ...pool, ...(ca === undefined ? {} : { ca }) }) : new HttpAgent(pool);
  const makeRequest = secure ? httpsRequest : httpRequest;
  const authorization = `Bearer ${options.token}`;

  type Job = { readonly request: ApiRequest; readonly settle: (answer: ApiAnswer) => void };
  const urgent = createQueue<Job>();
  const ordinary = createQueue<Job>();
  const running = new Set<() => void>();
  let closed = false;

  function pump(): void {
    while (!closed && running.size < options.connectionsMax) {
      const job = urgent.take() ?? ordinary.take();
      if (job === undefined) return;
      start(job);
    }
  }

  function start({ request, settle }: Job): void {
    const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
    let over = false;
    const finish = (answer: ApiAnswer): void => {
      if (over) return;
      over = true;
      clearTimeout(timer);
      running.delete(cut);
      settle(answer);
      pump();
    };
    const outgoing = makeRequest(
      {
        agent,
        hostname: base.hostname.replace(/^\[(.*)\]$/, '$1'),
        port: base.port || (secure ? 443 : 80),
        method: request.method,
        path: `${prefix}${request.path}`,
        headers: {
          accept: 'application/json',
          authorization,
          'user-agent': 'nodekeeper-fleet',
          ...(body === undefined
            ? {}
            : { 'content-type': request.contentType ?? 'application/json', 'content-length': body.length }),
        },
      },
      (incoming) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        incoming.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > ANSWER_BYTES_MAX) outgoing.destroy(new Error(`answer larger than ${ANSWER_BYTES_MAX} bytes`));
          else chunks.push(chunk);
        });
        incoming.on('error', (cause) => finish({ kind: 'failed', cause }));
        incoming.on('end', () =>
          finish({
            kind: 'answered',
            status: incoming.statusCode ?? 0,
            body: parseJson(Buffer.concat(chunks).toString('utf8')),
          }),
        );
      },
    );
    const cut = (): void => {
      outgoing.destroy(new Error('the fleet was stopped'));
    };
    const timer = setTimeout(
      () => outgoing.destroy(new Error(`no answer in ${options.timeoutMs} ms`)),
      options.timeoutMs,
    );
    running.add(cut);
    outgoing.on('error', (cause) => finish({ kind: 'failed', cause }));
    outgoing.end(body);
  }

  return {
    send: (request) =>
      new Promise((settle) => {
        if (closed) return settle({ kind: 'failed', cause: new Error('the fleet was stopped') });
        (request.urgent ? urgent : ordinary).put({ request, settle });
        pump();
      }),
    pending: () => running.size + urgent.size() + ordinary.size(),
    close() {
      closed = true;
      for (const queue of [urgent, ordinary]) {
        for (let job = queue.take(); job !== undefined; job = queue.take()) {
          job.settle({ kind: 'failed', cause: new Error('the fleet was stopped') });
        }
      }
      for (const cut of [...running]) cut();
      agent.destroy();
    },
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A gateway's own error page; the status says enough.
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
