/**
 * One signed POST to an AWS service with JSON protocol: the call, its connections, its signature. Without the SDK's
 * client, which adds 200 KB to a bundle, and without fetch: its first call needs 10 to 20 ms of CPU in each new
 * execution environment.
 */

import { createHmac, createSecretKey, hash, type KeyObject } from 'node:crypto';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { type AwsConnection, type AwsCredentials, endpointOf } from './connection.ts';

/** Rejects if there is no response in time. */
export type SignedPost = (body: string, nowMs: number) => Promise<PostAnswer>;

/** Maximum number of connections of one caller. */
const SOCKETS_MAX = 8;
/**
 * Shorter than servers keep an idle connection: those of Node.js, in local mode, for 5 s. Each call is tried twice
 * only.
 */
const CALL_IDLE_MS_MAX = 4_000;

export function signedPost(
  connection: AwsConnection,
  call: {
    /** The name in the host name: logs, events. */
    readonly service: string;
    /** X-Amz-Target. */
    readonly target: string;
    readonly timeoutMs: number;
    /** The version of the JSON protocol. @default '1.1' */
    readonly version?: '1.0' | '1.1';
  },
  /** For the age of connections. The time of a call may be that of its tick. */
  clockMs: () => number = Date.now,
): SignedPost {
  const { service, target, timeoutMs, version = '1.1' } = call;
  const endpoint = endpointOf(connection, service);
  const client = postClient({
    endpoint,
    socketsMax: SOCKETS_MAX,
    timeoutMs,
    nowMs: clockMs,
    idleMsMax: CALL_IDLE_MS_MAX,
  });
  const sign = requestSigner({
    ...connection,
    host: endpoint.host,
    service,
    contentType: `application/x-amz-json-${version}`,
  });
  return (body, nowMs) => client.post(sign({ target, body, nowMs }), body);
}

export interface PostAnswer {
  readonly status: number;
  readonly body: string;
}

/** POST / to one endpoint over persistent connections, with Node's HTTP client. */
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
   * Connections are not used again after this time without a request, because the other side may have closed them, and
   * a frozen execution environment does not notice that. Compared before each request: the timers of an environment
   * stop with it, and after a thaw the next event can run before them. Milliseconds.
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

export interface SignerOptions {
  readonly region: string;
  readonly service: string;
  /** The value of the Host header: with the port unless it is the scheme's default. */
  readonly host: string;
  readonly credentials: AwsCredentials;
  readonly contentType: string;
}

export interface RequestToSign {
  /** x-amz-target: the operation, if it is not in the body. */
  readonly target?: string;
  readonly body: string;
  readonly nowMs: number;
}

const sha256 = (text: string): string => hash('sha256', text);
const hmac = (key: string | Buffer | KeyObject, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest();

/**
 * AWS Signature Version 4 for the one kind of request that we send without the SDK: POST / with a text body. The
 * signing key is derived once per day; each request needs two hashes and one HMAC. Source: IAM User Guide, "Create a
 * signed AWS API request".
 *
 * @returns the headers of a request
 */
export function requestSigner(options: SignerOptions): (request: RequestToSign) => Record<string, string> {
  const { region, service, host, credentials, contentType } = options;
  const { accessKeyId, secretAccessKey, sessionToken } = credentials;
  let keyDay = '';
  // A key object: from bytes Node creates one for each HMAC, with an internal exception, a tenth of a beat's CPU.
  let key = createSecretKey(Buffer.alloc(0));
  return ({ target, body, nowMs }) => {
    const at = new Date(nowMs).toISOString().replace(/[-:]|\.\d{3}/g, '');
    const day = at.slice(0, 8);
    if (day !== keyDay) {
      const dayKey = hmac(`AWS4${secretAccessKey}`, day);
      key = createSecretKey(hmac(hmac(hmac(dayKey, region), service), 'aws4_request'));
      keyDay = day;
    }
    // In the order of their names, as the canonical request requires.
    const headers: Record<string, string> = {
      'content-type': contentType,
      host,
      'x-amz-date': at,
      ...(sessionToken === undefined ? {} : { 'x-amz-security-token': sessionToken }),
      ...(target === undefined ? {} : { 'x-amz-target': target }),
    };
    const signed = Object.keys(headers).join(';');
    const lines = Object.entries(headers).map(([name, value]) => `${name}:${value}\n`);
    const canonical = `POST\n/\n\n${lines.join('')}\n${signed}\n${sha256(body)}`;
    const scope = `${day}/${region}/${service}/aws4_request`;
    const signature = hmac(key, `AWS4-HMAC-SHA256\n${at}\n${scope}\n${sha256(canonical)}`).toString('hex');
    headers['authorization'] =
      `AWS4-HMAC-SHA256 Credential=${accessKeyId}/${scope}, SignedHeaders=${signed}, Signature=${signature}`;
    return headers;
  };
}
