/**
 * Passes requests to the cluster, with the credentials of their clients, and its answers to the clients as they are.
 *
 * A request that the cluster did not receive is answered 503: it can be repeated. One that it may have received is
 * answered 504 without Retry-After if it may change something: a client that repeats a creation could make two objects.
 */
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import { bytesOf } from '../../shared/host/http-body.ts';
import { type HttpRequest, type HttpResponse, statusResponse } from '../../shared/kubernetes/http.ts';
import * as status from '../../shared/kubernetes/status.ts';
import type { Answer } from '../listener.ts';
import { quarterShares } from '../quarter-shares.ts';
import { type AcceptUpgrade, upgradeOf } from '../sessions/upgrades.ts';
import { type ClientRequest, type ClusterConnection, ForwardFault, headersOf } from './cluster-connection.ts';

/** Passed requests at once, streams and sessions included. One address has a quarter of them. */
export const PASSED_MAX = 2_000;
/** A longer answer, or one of unknown length, is passed in parts. Bytes. */
const WHOLE_ANSWER_BYTES_MAX = 262_144;
/** After a failed connection, and without a link, requests are answered without another attempt. Milliseconds. */
const HOLD_OFF_MS = 2_000;
/** Client libraries repeat a request ten times with this pause. */
const RETRY_AFTER_SECONDS = 1;

/** Of one connection, or set anew for the next one. */
const NOT_PASSED = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'te', 'trailer', 'transfer-encoding'],
  ...['upgrade', 'host', 'content-length', 'expect', 'http2-settings'],
]);

export interface PassedAnswer extends Answer {
  readonly upgrade?: AcceptUpgrade;
}

export interface Passing {
  /** `gone`: aborted when the client has left. @throws when the client has left */
  pass(request: HttpRequest, gone: AbortSignal): Promise<PassedAnswer>;
  /** Number of answers by their code. */
  readonly codes: ReadonlyMap<number, number>;
  held(): number;
}

export interface PassingOptions {
  readonly connection: Pick<ClusterConnection, 'forward'>;
  /** The cluster is known to be out of reach. */
  readonly isDown: () => boolean;
  readonly nowMs: () => number;
}

export function passing({ connection, isDown, nowMs }: PassingOptions): Passing {
  const shares = quarterShares(PASSED_MAX);
  const codes = new Map<number, number>();
  let failed: { readonly fault: ForwardFault; readonly atMs: number } | undefined;

  async function forwarded(request: HttpRequest, gone: AbortSignal, release: () => void): Promise<PassedAnswer> {
    if (failed !== undefined && isDown() && Math.abs(nowMs() - failed.atMs) < HOLD_OFF_MS) throw failed.fault;
    try {
      const { head, upgraded } = await connection.forward(asSent(request), gone);
      failed = undefined;
      const answer = { status: head.statusCode ?? 502, headers: passedHeaders(headersOf(head)), body: '' };
      const open = upgraded?.socket ?? head;
      open.once('close', release);
      if (upgraded !== undefined) return { head: answer, upgrade: joined(head, upgraded) };
      return await withBody(request, answer, head);
    } catch (error) {
      release();
      if (error instanceof ForwardFault && !error.wasSent && !gone.aborted) failed = { fault: error, atMs: nowMs() };
      throw error;
    }
  }

  async function answered(request: HttpRequest, gone: AbortSignal): Promise<PassedAnswer> {
    const { sourceIp } = request;
    const share = shares.use(sourceIp, 1);
    if (share !== 'used') return { head: tooMany(share) };
    let isHeld = true;
    const release = (): void => {
      if (isHeld) shares.free(sourceIp, 1);
      isHeld = false;
    };
    try {
      return await forwarded(request, gone, release);
    } catch (error) {
      if (!(error instanceof ForwardFault) || gone.aborted) throw error;
      return { head: unanswered(request, error) };
    }
  }

  return {
    async pass(request, gone) {
      const answer = await answered(request, gone);
      codes.set(answer.head.status, (codes.get(answer.head.status) ?? 0) + 1);
      return answer;
    },
    codes,
    held: () => shares.used(),
  };
}

/** The path was decoded when it was received. */
function asSent({ method, path, query, headers, body, ...request }: HttpRequest): ClientRequest {
  const encoded = path.split('/').map(encodeURIComponent).join('/');
  const search = query.toString();
  const protocol = upgradeOf({ headers });
  return {
    method,
    path: search === '' ? encoded : `${encoded}?${search}`,
    headers: { ...passedHeaders(headers), ...(protocol !== '' && { connection: 'Upgrade', upgrade: protocol }) },
    body,
    ...request,
  };
}

const passedHeaders = (headers: Readonly<Record<string, string>>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !NOT_PASSED.has(name) && !name.startsWith(':')));

async function withBody({ method }: HttpRequest, head: HttpResponse, body: IncomingMessage): Promise<PassedAnswer> {
  const length = Number(body.headers['content-length'] ?? Number.NaN);
  const hasNone = method === 'HEAD' || head.status === 204 || head.status === 304;
  if (!hasNone && !(length <= WHOLE_ANSWER_BYTES_MAX)) return { head, output: body };
  try {
    // Not more than its length arrives.
    return { head: { ...head, body: (await bytesOf(body, WHOLE_ANSWER_BYTES_MAX)) ?? '' } };
  } catch (cause) {
    throw new ForwardFault('the answer was cut off', { cause, wasSent: true });
  }
}

/** The two connections are one from now on. */
const joined =
  (
    head: IncomingMessage,
    { socket: cluster, first }: { readonly socket: Duplex; readonly first: Buffer },
  ): AcceptUpgrade =>
  ({ socket: client, head: sent }) => {
    const lines = [`HTTP/1.1 ${head.statusCode} ${head.statusMessage}`];
    for (let index = 0; index + 1 < head.rawHeaders.length; index += 2) {
      lines.push(`${head.rawHeaders[index]}: ${head.rawHeaders[index + 1]}`);
    }
    const end = (): void => {
      client.destroy();
      cluster.destroy();
    };
    for (const side of [client, cluster]) side.once('close', end).on('error', end);
    if (client.destroyed) return end();
    client.write(`${lines.join('\r\n')}\r\n\r\n`);
    client.write(first);
    cluster.write(sent);
    client.pipe(cluster);
    cluster.pipe(client);
  };

function tooMany(share: 'ownerAtLimit' | 'allAtLimit'): HttpResponse {
  const retry = { retryAfterSeconds: RETRY_AFTER_SECONDS };
  const senders = share === 'ownerAtLimit' ? 'one address' : 'all clients';
  return statusResponse(
    status.tooManyRequests(`this hub passes no more requests of ${senders} to the cluster at once`, retry).status,
  );
}

function unanswered({ method }: HttpRequest, { message, wasSent }: ForwardFault): HttpResponse {
  const isRead = method === 'GET' || method === 'HEAD';
  const fault =
    wasSent && !isRead
      ? status.gatewayTimeout(`the cluster received the request and did not answer: it may have done it (${message})`)
      : status.serviceUnavailable(`the cluster cannot be reached (${message}); this hub answers reads from its copy`, {
          retryAfterSeconds: RETRY_AFTER_SECONDS,
        });
  return statusResponse(fault.status);
}
