/** HTTP and TCP connections of probes. Source: upstream pkg/probe/http/http.go, pkg/probe/tcp/tcp.go. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect } from 'node:net';
import { KUBERNETES_MINOR } from '../../../shared/kinds/generated/version.ts';
import type { HttpResult, HttpTarget, ProbeClient } from '../../ports/probe-client.ts';

/** That of a kubelet of the version which the agent reports. */
const USER_AGENT = `kube-probe/1.${KUBERNETES_MINOR}`;
const BODY_BYTES_MAX = 10 * 1024;
const REDIRECTS_MAX = 10;

/** Texts of Go for errors of the kernel. */
const GO_ERRORS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connect: connection refused',
  EHOSTUNREACH: 'connect: no route to host',
  ENETUNREACH: 'connect: network is unreachable',
  ETIMEDOUT: 'connect: connection timed out',
};

export function probeClient(): ProbeClient {
  return {
    async httpGet(target, timeoutMs) {
      const url = urlOf(target);
      if (url === undefined) {
        const text = `${target.scheme}://${addressOf(target.host, target.port)}`;
        return { kind: 'failed', message: `parse "${text}": invalid character in host name` };
      }
      const over = AbortSignal.timeout(timeoutMs);
      const state = { url, redirects: 0 };
      for (;;) {
        const result = await getOnce(state.url, headersOf(target), over);
        if (result.kind !== 'moved') return result;
        if (result.url.hostname !== url.hostname) return { kind: 'redirected', body: result.body };
        state.url = result.url;
        state.redirects += 1;
        if (state.redirects >= REDIRECTS_MAX) {
          return { kind: 'failed', message: `Get "${state.url}": stopped after ${REDIRECTS_MAX} redirects` };
        }
      }
    },
    tcpConnect(host, port, timeoutMs) {
      const address = addressOf(host, port);
      return new Promise((resolve) => {
        const socket = connect({ host, port });
        const end = (message?: string): void => {
          clearTimeout(timer);
          socket.destroy();
          resolve(message);
        };
        const timer = setTimeout(() => end(`dial tcp ${address}: i/o timeout`), timeoutMs);
        socket.once('connect', () => end());
        socket.once('error', (cause: NodeJS.ErrnoException) => end(`dial tcp ${address}: ${goText(cause)}`));
      });
    },
  };
}

type Headers = Record<string, string | string[]>;
type OnceResult = HttpResult | { readonly kind: 'moved'; readonly url: URL; readonly body: string };

function getOnce(url: URL, headers: Headers, over: AbortSignal): Promise<OnceResult> {
  return new Promise((resolve) => {
    const fail = (cause: NodeJS.ErrnoException): void => {
      const why = over.aborted
        ? 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)'
        : GO_ERRORS[String(cause.code)] === undefined
          ? cause.message
          : `dial tcp ${addressOf(url.hostname, Number(url.port))}: ${goText(cause)}`;
      resolve({ kind: 'failed', message: `Get "${url.href}": ${why}` });
    };
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
    // No agent: a connection that is kept would hide that the container accepts no new ones.
    const options = { agent: false, signal: over, rejectUnauthorized: false, headers };
    // A container can redirect to any scheme, and a spec can name any header.
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      fail(new Error(`unsupported protocol scheme ${JSON.stringify(url.protocol.slice(0, -1))}`));
      return;
    }
    try {
      const request = send(url, options, (response) => {
        readBody(response).then((body) => resolve(outcomeOf(url, response, body)), fail);
      });
      request.once('error', fail);
      request.end();
    } catch (cause) {
      fail(cause as Error);
    }
  });
}

function outcomeOf(url: URL, { statusCode = 0, headers: { location } }: IncomingMessage, body: string): OnceResult {
  const isRedirect = statusCode >= 300 && statusCode < 400 && statusCode !== 304 && location !== undefined;
  if (isRedirect && URL.canParse(location, url.href)) return { kind: 'moved', url: new URL(location, url.href), body };
  return { kind: 'answered', status: statusCode, body };
}

/** The first 10 KiB. */
async function readBody(response: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    pieces.push(piece);
    length += piece.length;
    if (length >= BODY_BYTES_MAX) break;
  }
  return Buffer.concat(pieces).subarray(0, BODY_BYTES_MAX).toString('utf8');
}

/** Upstream's headers: a User-Agent of ours, and every type accepted, unless the probe sets these headers. */
function headersOf({ headers }: HttpTarget): Headers {
  const all = new Map<string, string[]>();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    all.set(key, [...(all.get(key) ?? []), value]);
  }
  if (!all.has('user-agent')) all.set('user-agent', [USER_AGENT]);
  if (!all.has('accept')) all.set('accept', ['*/*']);
  else if (all.get('accept')?.[0] === '') all.delete('accept');
  all.set('connection', ['close']);
  return Object.fromEntries([...all].map(([name, values]) => [name, values.length === 1 ? values.join() : values]));
}

/** Undefined for a host that no URL can have. */
const urlOf = ({ scheme, host, port, path }: HttpTarget): URL | undefined =>
  URL.parse(`${scheme}://${addressOf(host, port)}${path.startsWith('/') ? '' : '/'}${path}`) ?? undefined;

const addressOf = (host: string, port: number): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]:${port}` : `${host}:${port}`;

const goText = (cause: NodeJS.ErrnoException): string => GO_ERRORS[String(cause.code)] ?? cause.message;
