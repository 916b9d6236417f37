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
/**
 * An idle connection is closed after this time. A NAT gateway drops it after 350 s, and a frozen execution environment
 * would not notice that. Milliseconds.
 */
const IDLE_MS_MAX = 20_000;

export function postClient({ endpoint, socketsMax, timeoutMs: timeoutDefaultMs }: PostClientOptions): PostClient {
  const isSecure = endpoint.protocol === 'https:';
  const request = isSecure ? httpsRequest : httpRequest;
  const agent = new (isSecure ? HttpsAgent : HttpAgent)({
    keepAlive: true,
    keepAliveMsecs: KEEP_ALIVE_DELAY_MS,
    maxSockets: socketsMax,
    timeout: IDLE_MS_MAX,
  });
  const target = {
    host: endpoint.hostname,
    port: endpoint.port === '' ? (isSecure ? 443 : 80) : Number(endpoint.port),
    method: 'POST',
    path: '/',
    agent,
  };
  return {
    post: (headers, body, timeoutMs = timeoutDefaultMs) =>
      new Promise((resolve, reject) => {
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
