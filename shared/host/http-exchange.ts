/** One request over HTTP/1.1, of programs on machines. Its body is JSON. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { defined } from '../defined.ts';

export interface HttpExchange {
  readonly method: string;
  readonly token?: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** Absent: no body. */
  readonly body?: unknown;
  /** @default application/json */
  readonly contentType?: string | undefined;
  /** PEM texts. Absent: the certificate authorities of the system. */
  readonly ca?: string | string[] | undefined;
  /** Longest time without data, in both directions. Milliseconds. */
  readonly quietMs: number;
  /** Ends the request, and its answer. */
  readonly signal?: AbortSignal | undefined;
  /** A connection of its own, for callers that measure it. @default false */
  readonly usesNewConnection?: boolean;
}

/** The other side sent nothing for too long. */
export class QuietError extends Error {
  override readonly name = 'QuietError';
  constructor(quietMs: number) {
    super(`no data for ${quietMs / 1_000} s`);
  }
}

/**
 * The head of the answer. Its body follows: http-body.ts has readers. Rejects with Node's error, or QuietError. The
 * body fails with the same errors.
 */
export function exchange(url: URL, options: HttpExchange): Promise<IncomingMessage> {
  const { method, token, headers, body, contentType = 'application/json', ca, quietMs, signal } = options;
  const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  return new Promise((resolve, reject) => {
    const outgoing = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      method,
      timeout: quietMs,
      ...defined({ ca, signal, agent: options.usesNewConnection === true ? (false as const) : undefined }),
      headers: {
        ...headers,
        ...defined({ authorization: token === undefined ? undefined : `Bearer ${token}` }),
        ...(payload && { 'content-type': contentType, 'content-length': payload.length }),
      },
    });
    let incoming: IncomingMessage | undefined;
    // An error of the request alone would reach readers of the body as ECONNRESET.
    outgoing.on('timeout', () => (incoming ?? outgoing).destroy(new QuietError(quietMs)));
    outgoing.on('error', reject);
    outgoing.on('response', (answer) => {
      incoming = answer;
      resolve(answer);
    });
    outgoing.end(payload);
  });
}
