/**
 * The web server of the console. It listens on loopback, serves one page and forwards the requests of the page to the
 * API (docs/console.md). Nothing is deployed, and nothing is stored.
 *
 *   GET  /, /console.js, /console.css     the page, without data
 *   POST /session                         the token of the address, for a cookie
 *   GET  /cluster                         what the console is connected to, and what its user may do
 *   GET  /forward/<path of the API>       the paths of allowed-paths.ts
 *   GET  /explain/node/NAME, /explain/KIND/NAMESPACE/NAME
 *   GET  /advice                          what `nodekeeper advise --json` prints
 *   POST /actions                         the writes of node-actions.ts
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { WORKLOAD_KINDS } from '../../shared/decisions/decision-record.ts';
import { defined } from '../../shared/defined.ts';
import type { AdviceReport } from '../../shared/fleet/silences/advise-grace.ts';
import { bytesOf } from '../../shared/host/http-body.ts';
import { listenOnLoopback } from '../../shared/host/loopback.ts';
import { recordOf, textOf } from '../../shared/kubernetes/normal-form.ts';
import { allowedRequest, isObjectName } from './allowed-paths.ts';
import { type ConsoleAccess, ConsoleError, type RenewAccess } from './console-access.ts';
import { createGuard, type Guard } from './guard.ts';
import { runNodeAction } from './node-actions.ts';
import { buildPageFiles, PAGE_PATHS, type PageFiles } from './page-files.ts';
import { createUpstream, type Upstream, type UpstreamAnswer } from './upstream.ts';

export interface ConsoleOptions {
  readonly access: ConsoleAccess;
  readonly renewAccess: RenewAccess;
  /** 0: any free one. */
  readonly port: number;
  /** Name in the title of the page. */
  readonly cluster: string;
  /** The lines of `nodekeeper explain` for these arguments, read with the credential in use. */
  readonly explain: (args: readonly string[], access: ConsoleAccess) => Promise<readonly string[]>;
  /** Counted on this machine: a month of silences of many zones is too large for a page. */
  readonly advise: (access: ConsoleAccess) => Promise<AdviceReport>;
}

export interface Console {
  /** With the token in its fragment. */
  readonly address: string;
  stop(): Promise<void>;
}

const BODY_BYTES_MAX = 4_096;
const URL_CHARACTERS_MAX = 8_192;
const REQUESTS_MAX = 32;
/** The limit is for all pages together. Each is a watch of the API, which allows 40 by default. */
const WATCHES_MAX = 12;
const WATCH_MS_MAX = 16 * 60_000;
const HEADERS_MS_MAX = 10_000;
/** Counts change once per hour. Reading those of many zones takes longer than a page waits. */
const ADVICE_MS = 600_000;

const SAFE_HEADERS: Readonly<Record<string, string>> = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** @throws Error with code EADDRINUSE when the port is in use */
export async function serveConsole(options: ConsoleOptions): Promise<Console> {
  const upstream = createUpstream(options.access, options.renewAccess, Date.now);
  const server = createServer({ headersTimeout: HEADERS_MS_MAX, requestTimeout: HEADERS_MS_MAX });
  const port = await listenOnLoopback(server, options.port);
  const guard = createGuard(port);
  const readAdvice = recent(() => options.advise(upstream.access()), ADVICE_MS);
  const answer = consoleHandler({ options, readFiles: once(buildPageFiles), readAdvice, upstream, guard });
  server.on('request', (request, response) => void answer(request, response));
  return {
    address: `http://127.0.0.1:${port}/#token=${guard.token}`,
    async stop() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A failed call is repeated at the next one. */
function once<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => {
    running ??= run().catch((error: unknown) => {
      running = undefined;
      throw error;
    });
    return running;
  };
}

/** A result is used again for some time, a failure is not. */
function recent<T>(run: () => Promise<T>, forMs: number): () => Promise<T> {
  let endsAtMs = 0;
  let read = once(run);
  return () => {
    const nowMs = performance.now();
    if (nowMs >= endsAtMs) {
      endsAtMs = nowMs + forMs;
      read = once(run);
    }
    return read();
  };
}

interface Parts {
  readonly options: ConsoleOptions;
  /** Builds the page at its first use. */
  readonly readFiles: () => Promise<PageFiles>;
  readonly readAdvice: () => Promise<AdviceReport>;
  readonly upstream: Upstream;
  readonly guard: Guard;
}

type Counted = { requests: number; watches: number };

function consoleHandler(parts: Parts) {
  const running: Counted = { requests: 0, watches: 0 };
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    running.requests += 1;
    const left = new AbortController();
    response.once('close', () => left.abort());
    for (const [name, value] of Object.entries(SAFE_HEADERS)) response.setHeader(name, value);
    try {
      // A watch is counted apart, once it is known to be one.
      if (running.requests - running.watches > REQUESTS_MAX) throw new ConsoleError(429, 'too many requests at once');
      await answerRequest(parts, running, request, response, left.signal);
    } catch (error) {
      if (!left.signal.aborted) refuse(response, error);
    } finally {
      running.requests -= 1;
    }
  };
}

function refuse(response: ServerResponse, error: unknown): void {
  // A watch broke off or ran for its longest time. The page resumes it.
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const isExpected = error instanceof ConsoleError;
  if (!isExpected) console.error('console:', error);
  // The connection of a refused body is not used again: the rest of the body is never read.
  response.setHeader('connection', 'close');
  sendText(response, isExpected ? error.status : 500, isExpected ? error.message : 'the console failed');
}

async function answerRequest(
  { options, readFiles, readAdvice, upstream, guard }: Parts,
  running: Counted,
  request: IncomingMessage,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const { method = '', url = '', headers } = request;
  if (url.length > URL_CHARACTERS_MAX) throw new ConsoleError(414, 'the address is too long');
  // A program before this one may have read the other Host header.
  if ((request.headersDistinct['host']?.length ?? 0) > 1) throw new ConsoleError(400, 'more than one Host header');
  const isPage = PAGE_PATHS.has(url);
  const refusal = guard.refusalOf({ method, headers, isPage });
  if (refusal !== undefined) throw new ConsoleError(403, refusal);
  if (isPage && method === 'GET') {
    const file = (await readFiles()).get(url)!;
    response.setHeader('content-encoding', 'gzip');
    response.setHeader('content-type', file.contentType);
    response.end(file.bytes);
    return;
  }
  if (method === 'POST' && url === '/session') {
    const cookie = guard.cookieFor(textOf(recordOf(await readBody(request))['token']));
    if (cookie === undefined) throw new ConsoleError(401, 'the token is not that of this console');
    response.writeHead(204, { 'set-cookie': cookie }).end();
    return;
  }
  if (!guard.isSignedIn(headers)) throw new ConsoleError(401, 'open the address that the command printed');
  if (method === 'POST' && url === '/actions') {
    sendAnswer(response, await runNodeAction(upstream, await readBody(request), Date.now(), signal));
  } else if (method === 'GET' && url === '/cluster') {
    sendJson(response, {
      cluster: options.cluster,
      endpoint: upstream.access().url,
      rules: await rulesOf(upstream, signal),
    });
  } else if (method === 'GET' && url.startsWith('/explain/')) {
    sendText(response, 200, (await options.explain(explainArguments(url), upstream.access())).join('\n'));
  } else if (method === 'GET' && url === '/advice') {
    sendJson(response, await readAdvice());
  } else if (method === 'GET' && url.startsWith('/forward/')) {
    await forward(upstream, running, url.slice('/forward'.length), response, signal);
  } else {
    throw new ConsoleError(404, 'no such path');
  }
}

async function forward(
  upstream: Upstream,
  running: Counted,
  target: string,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  const allowed = allowedRequest(target);
  if (allowed === undefined) throw new ConsoleError(403, 'the console does not forward this request');
  if (!allowed.isHeld) {
    sendAnswer(response, await upstream.send({ method: 'GET', target: allowed.target, signal }));
    return;
  }
  if (running.watches >= WATCHES_MAX)
    throw new ConsoleError(429, `${WATCHES_MAX} watches and logs are open: close other pages`);
  running.watches += 1;
  try {
    const ending = AbortSignal.any([signal, AbortSignal.timeout(WATCH_MS_MAX)]);
    const incoming = await upstream.open({ method: 'GET', target: allowed.target, signal: ending });
    response.writeHead(incoming.statusCode ?? 502, {
      'content-type': incoming.headers['content-type'] ?? 'application/json',
      ...defined({ 'retry-after': incoming.headers['retry-after'] }),
    });
    response.flushHeaders();
    await pipeline(incoming, response, { signal: ending });
  } finally {
    running.watches -= 1;
  }
}

/** Namespaced kinds about which decisions are recorded. */
const EXPLAINED: ReadonlySet<string> = new Set(['Pod', ...WORKLOAD_KINDS].map((kind) => kind.toLowerCase()));

/** `/explain/node/NAME`, or `/explain/KIND/NAMESPACE/NAME` for a pod or a workload. */
function explainArguments(url: string): readonly string[] {
  const [, , kind, ...names] = url.split('/');
  const isKnown = (kind === 'node' && names.length === 1) || (EXPLAINED.has(kind ?? '') && names.length === 2);
  if (kind === undefined || !isKnown || !names.every(isObjectName)) throw new ConsoleError(404, 'no such path');
  return [kind, names.join('/')];
}

/** What the user of the credential may do: `status.resourceRules` of a SelfSubjectRulesReview. */
async function rulesOf(upstream: Upstream, signal: AbortSignal): Promise<unknown> {
  const { status, text } = await upstream.send({
    method: 'POST',
    target: '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace: 'default' },
    },
    signal,
  });
  if (status !== 201) throw new ConsoleError(502, `the API answered ${status} to the question what its user may do`);
  return recordOf(recordOf(JSON.parse(text))['status'])['resourceRules'] ?? [];
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const body = await bytesOf(request, BODY_BYTES_MAX);
  if (body === undefined) throw new ConsoleError(413, `a body has at most ${BODY_BYTES_MAX} bytes`);
  try {
    return JSON.parse(body.toString('utf8'));
  } catch (cause) {
    throw new ConsoleError(400, 'the body is not JSON', { cause });
  }
}

/** `date` is that of the API: the page compares the clocks. */
function sendAnswer(response: ServerResponse, { status, contentType, retryAfter, date, text }: UpstreamAnswer): void {
  response
    .writeHead(status, { 'content-type': contentType, ...defined({ 'retry-after': retryAfter, date }) })
    .end(text);
}

const sendJson = (response: ServerResponse, body: unknown): void => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
};

const sendText = (response: ServerResponse, status: number, text: string): void => {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' }).end(text);
};
