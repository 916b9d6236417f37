/**
 * The public endpoint: every request of machines, operators and probes goes through it, to the heartbeat or the API as
 * the HTTP API's routes say, or is lost with 503 while `ingest` fails.
 */

import { isRenewal } from '../server/routes.ts';
import type { Clock } from '../shared/clock.ts';
import { defined } from '../shared/defined.ts';
import { HEARTBEAT_URL_HEADER } from '../shared/fleet/nodes/heartbeat-url.ts';
import type { HttpRequest, HttpResponse } from '../shared/kubernetes/http.ts';
import { headersOf } from './access.ts';
import { hashOf, seededFraction } from './seeded-random.ts';

export interface EndpointRequest {
  readonly who: string;
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly contentType?: string;
  /** The way of a heartbeat: through the URL of function heartbeat. Absent: through the HTTP API. */
  readonly door?: 'url';
}

export interface EndpointAnswer {
  readonly status: number;
  readonly body: unknown;
  /** The sender sent the same request before, and it may have been stored. */
  readonly isRepeated?: boolean;
  /** A relay answered. */
  readonly isRelayed?: boolean;
}

export interface Endpoint {
  send(request: EndpointRequest): Promise<EndpointAnswer>;
  /** Share of requests that are answered 503 and do nothing. */
  failShare: number;
}

const EMPTY = new Uint8Array();
const decoder = new TextDecoder();

export function createEndpoint(options: {
  readonly api: (request: HttpRequest) => Promise<HttpResponse>;
  readonly heartbeat: (request: HttpRequest) => Promise<HttpResponse>;
  readonly clock: Clock;
  /** Decides which requests are lost. */
  readonly seed: number;
  /** The URL of function heartbeat, which the HTTP API passes to it. */
  readonly heartbeatUrl?: string | undefined;
}): Endpoint {
  /**
   * Which request is lost hangs on the seed, the moment, who asks for what and how often in that moment; not on the
   * order in which machines of one moment are served.
   */
  const asked = new Map<string, number>();
  let askedAtMs = Number.NaN;
  const fractionOf = (who: string, method: string, path: string): number => {
    const nowMs = options.clock.nowMs();
    if (nowMs !== askedAtMs) asked.clear();
    askedAtMs = nowMs;
    const request = `${who} ${method} ${path}`;
    const before = asked.get(request) ?? 0;
    asked.set(request, before + 1);
    return seededFraction(hashOf(`${options.seed} ${nowMs} ${request} ${before}`))();
  };

  return {
    failShare: 0,
    async send(sent) {
      const { who, method, path, query, body, contentType, door } = sent;
      if (this.failShare > 0 && fractionOf(who, method, path) < this.failShare) {
        return { status: 503, body: { kind: 'Status', message: 'the endpoint did not answer' } };
      }
      const request: HttpRequest = {
        method,
        path,
        query: new URLSearchParams(query),
        headers: {
          ...headersOf(who),
          'content-type': contentType ?? 'application/json',
          ...(door === undefined && defined({ [HEARTBEAT_URL_HEADER]: options.heartbeatUrl })),
        },
        body: body === undefined ? EMPTY : Buffer.from(JSON.stringify(body)),
        sourceIp: '192.0.2.1',
      };
      const answer = await (isRenewal(sent) ? options.heartbeat : options.api)(request);
      const text = typeof answer.body === 'string' ? answer.body : decoder.decode(answer.body);
      return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
    },
  };
}

/** What an answer says, for people. */
export function messageOf({ status, body }: EndpointAnswer): string {
  const message = (body as { readonly message?: unknown } | undefined)?.message;
  return typeof message === 'string' ? `${status} ${message}` : String(status);
}
