/**
 * Requests to the API with the credential of the kubeconfig. The API redirects a watch to a function that can stream
 * (docs/decisions/0002). Browsers would need CORS and a policy for its origin, so the console follows the redirect.
 */

import type { IncomingMessage } from 'node:http';
import { rootCertificates } from 'node:tls';
import { bytesOf } from '../../shared/host/http-body.ts';
import { exchange, QuietError } from '../../shared/host/http-exchange.ts';
import { type ConsoleAccess, ConsoleError, type RenewAccess } from './console-access.ts';

export interface UpstreamRequest {
  readonly method: 'GET' | 'POST' | 'PATCH';
  /** Path and query. */
  readonly target: string;
  readonly body?: unknown;
  /** The type of the body. @default application/json */
  readonly contentType?: string;
  /** Aborted when the browser leaves. */
  readonly signal: AbortSignal;
}

export interface UpstreamAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly retryAfter: string | undefined;
  /** When the API answered, by its clock. */
  readonly date: string | undefined;
  readonly text: string;
}

export interface Upstream {
  /** The whole response. @throws ConsoleError 502 or 504 without one, or for one that is too large */
  send(request: UpstreamRequest): Promise<UpstreamAnswer>;
  /** Opens a response that may last: for watches. */
  open(request: UpstreamRequest): Promise<IncomingMessage>;
  /** The credential in use. */
  readonly access: () => ConsoleAccess;
}

/** A list in one response of the API has at most 6 MB; 500 nodes have two. */
export const RESPONSE_BYTES_MAX = 12_000_000;
const TIMEOUT_MS = 30_000;
/** Between two attempts to renew the credential. */
const RENEWAL_MS_MIN = 10_000;
/** Watches send a bookmark per minute, and end after 15 minutes. */
const WATCH_QUIET_MS = 6 * 60_000;

export function createUpstream(
  first: ConsoleAccess,
  renewAccess: RenewAccess,
  nowMs: () => number,
  quietMs = TIMEOUT_MS,
): Upstream {
  let access = first;
  let renewedAtMs = Number.NEGATIVE_INFINITY;
  /** undefined: there is no other credential, or it was read a moment ago. Exec plugins run for a second or more. */
  function renewed(): ConsoleAccess | undefined {
    if (nowMs() - renewedAtMs < RENEWAL_MS_MIN) return undefined;
    renewedAtMs = nowMs();
    try {
      const next = renewAccess();
      return next.token === access.token ? undefined : next;
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new ConsoleError(502, `the credential was refused, and could not be renewed: ${why}`, { cause });
    }
  }
  /** A refused credential is read again once: that of an exec plugin lasts for minutes. */
  async function openSignedIn(request: UpstreamRequest, timeoutMs: number): Promise<IncomingMessage> {
    const send = (): Promise<IncomingMessage> => {
      const url = new URL(`${access.url.replace(/\/$/, '')}${request.target}`);
      return sendOnce(access, url, request, { token: access.token, timeoutMs });
    };
    const { token } = access;
    const answer = await send();
    if (answer.statusCode !== 401) return answer;
    // Another request may have renewed it meanwhile.
    const next = access.token === token ? renewed() : access;
    if (next === undefined) return answer;
    answer.destroy();
    access = next;
    return await send();
  }
  return {
    access: () => access,
    async send(request) {
      const incoming = await openSignedIn(request, quietMs);
      return {
        status: incoming.statusCode ?? 502,
        contentType: incoming.headers['content-type'] ?? 'text/plain',
        retryAfter: incoming.headers['retry-after'],
        date: incoming.headers.date,
        text: await boundedText(incoming, RESPONSE_BYTES_MAX),
      };
    },
    async open(request) {
      const answer = await openSignedIn(request, WATCH_QUIET_MS);
      const { location } = answer.headers;
      if (answer.statusCode !== 307 || location === undefined) return answer;
      answer.destroy();
      return await sendOnce(access, redirectTarget(location, access), request, { timeoutMs: WATCH_QUIET_MS });
    },
  };
}

/** One redirect is followed, and never to an address that is less protected. The ticket in it replaces the token. */
function redirectTarget(location: string, access: ConsoleAccess): URL {
  const url = URL.canParse(location, access.url) ? new URL(location, access.url) : undefined;
  const isProtected = url?.protocol === 'https:' || (url?.protocol === 'http:' && access.url.startsWith('http:'));
  if (url === undefined || !isProtected) throw new ConsoleError(502, 'the API redirected the watch to another scheme');
  return url;
}

async function sendOnce(
  { ca }: ConsoleAccess,
  url: URL,
  { method, body, contentType, signal }: UpstreamRequest,
  { token, timeoutMs }: { readonly token?: string; readonly timeoutMs: number },
): Promise<IncomingMessage> {
  // The function URL of an account has a public certificate, that of local mode one of its own authority.
  const authorities = ca === undefined ? undefined : token === undefined ? [...rootCertificates, ca] : ca;
  const headers = {
    accept: 'application/json, text/plain',
    'accept-encoding': 'identity',
    'user-agent': 'nodekeeper-console',
  };
  const answered = exchange(url, {
    method,
    token,
    headers,
    body,
    contentType,
    ca: authorities,
    quietMs: timeoutMs,
    signal,
  });
  return answered.catch((cause: Error) => {
    if (cause instanceof QuietError) throw quietApi(cause);
    throw new ConsoleError(502, `no response: ${cause.message}`, { cause });
  });
}

const quietApi = (cause: QuietError): ConsoleError =>
  new ConsoleError(504, `no response of the API: ${cause.message}`, { cause });

/** @throws ConsoleError 502 as soon as there are more bytes, 504 when no more arrive */
async function boundedText(incoming: IncomingMessage, bytesMax: number): Promise<string> {
  const bytes = await bytesOf(incoming, bytesMax).catch((cause: unknown) => {
    if (cause instanceof QuietError) throw quietApi(cause);
    throw new ConsoleError(502, 'the response of the API broke off', { cause });
  });
  if (bytes === undefined) throw new ConsoleError(502, `the response of the API has more than ${bytesMax} bytes`);
  return bytes.toString('utf8');
}
