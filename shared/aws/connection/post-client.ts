/**
 * POST / to one endpoint over persistent connections, with Node's HTTP client. For requests without the SDK
 * (lean-updater.ts).
 */
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';

export interface PostAnswer {
  readonly status: number;
  readonly body: string;
}

export interface PostClient {
  /**
   * @param headers all of them except content-length
   * @param timeoutMs for this request. @default that of the client
   * @throws RequestError `TimeoutError` or `AnswerTooLong`; Node's errors of connections and of the HTTP parser, with
   * their codes
   */
  post(headers: Readonly<Record<string, string>>, body: string, timeoutMs?: number): Promise<PostAnswer>;
  close(): void;
}

export interface PostClientOptions {
  readonly endpoint: URL;
  /** Maximum number of connections; further requests wait for one. */
  readonly socketsMax: number;
  /** From the call to the end of the response, including the wait for a connection. Milliseconds. */
  readonly timeoutMs: number;
  readonly nowMs: () => number;
  /**
   * Connections are not used again after this time without a request, because the other side may have closed them, and a
   * frozen execution environment does not notice that. Compared before each request: the timers of an environment stop
   * with it, and after a thaw the next event can run before them. Milliseconds.
   * @default 20_000: a NAT gateway drops an idle connection after 350 s
   */
  readonly idleMsMax?: number;
}

/** An error with the name that DynamoDB or its SDK uses. */
export class RequestError extends Error {
  override readonly name: string;
  readonly Item?: unknown;
  constructor(name: string, item?: unknown) {
    super(name);
    this.name = name;
    if (item !== undefined) this.Item = item;
  }
}

/** A response has one item. DynamoDB's limit of an item is far below this. */
const ANSWER_BYTES_MAX = 1_000_000;
const KEEP_ALIVE_DELAY_MS = 1_000;
const IDLE_MS_MAX = 20_000;

export function postClient(options: PostClientOptions): PostClient {
  const { endpoint, socketsMax, timeoutMs: timeoutDefaultMs, nowMs, idleMsMax = IDLE_MS_MAX } = options;
  const isSecure = endpoint.protocol === 'https:';
  const request = isSecure ? httpsRequest : httpRequest;
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({
    keepAlive: true,
    keepAliveMsecs: KEEP_ALIVE_DELAY_MS,
    maxSockets: socketsMax,
  });
  const target = {
    host: endpoint.hostname,
    port: endpoint.port === '' ? (isSecure ? 443 : 80) : Number(endpoint.port),
    method: 'POST',
    path: '/',
    agent,
  };
  let requestedAtMs = nowMs();
  /** No request is as old as that: each has a time limit that is shorter. */
  const closeIdle = (): void => {
    const previousMs = requestedAtMs;
    requestedAtMs = nowMs();
    if (requestedAtMs - previousMs > idleMsMax) agent.destroy();
  };
  return {
    post: (headers, body, timeoutMs = timeoutDefaultMs) =>
      new Promise((resolve, reject) => {
        closeIdle();
        const outgoing = request({ ...target, headers: { ...headers, 'content-length': Buffer.byteLength(body) } });
        const timer = setTimeout(() => outgoing.destroy(new RequestError('TimeoutError')), timeoutMs);
        const fail = (error: Error): void => {
          clearTimeout(timer);
          reject(error);
        };
        outgoing.on('error', fail);
        outgoing.on('response', (incoming) => {
          readBody(incoming, fail, (text) => {
            clearTimeout(timer);
            resolve({ status: incoming.statusCode ?? 0, body: text });
          });
        });
        outgoing.end(body);
      }),
    close: () => agent.destroy(),
  };
}

function readBody(incoming: IncomingMessage, fail: (error: Error) => void, done: (text: string) => void): void {
  const parts: Buffer[] = [];
  let bytes = 0;
  incoming.on('data', (part: Buffer) => {
    parts.push(part);
    bytes += part.length;
    if (bytes > ANSWER_BYTES_MAX) incoming.destroy(new RequestError('AnswerTooLong'));
  });
  incoming.on('error', fail);
  incoming.on('end', () => done(Buffer.concat(parts).toString('utf8')));
}
