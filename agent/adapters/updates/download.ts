/**
 * Downloads a file over http or https, through HTTPS_PROXY if it is set. The signature of the file is checked later, so
 * plain http and redirects between hosts are accepted.
 */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import { defined } from '../../../shared/defined.ts';
import { createDialler } from '../http/dial.ts';
import { type ProxyEnvironment, proxyFor } from '../http/proxy-choice.ts';

const REDIRECTS_MAX = 5;
const SILENCE_MS = 60_000;
const REDIRECTS = [301, 302, 303, 307, 308];

export interface DownloadOptions {
  readonly environment: ProxyEnvironment;
  /** PEM text of a private authority. The system's apply too if the server is not signed by it. */
  readonly certificateAuthority: string | undefined;
  /** Host of the API: only this host is signed by the private authority. */
  readonly apiHost: string;
  /** Time without a byte. Default: a minute. */
  readonly silenceMs?: number;
}

export interface DownloadLimits {
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

/** Rejects when the server does not answer 200, when there are more bytes, and when the signal is aborted. */
export async function* download(
  url: string,
  { bytesMax, signal }: DownloadLimits,
  options: DownloadOptions,
): AsyncIterable<Uint8Array> {
  let at = new URL(url);
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects += 1) {
    const response = await open(at, signal, options);
    const { statusCode = 0, headers } = response;
    if (REDIRECTS.includes(statusCode) && headers.location !== undefined) {
      response.destroy();
      at = new URL(headers.location, at);
      continue;
    }
    if (statusCode !== 200) {
      response.destroy();
      throw new Error(`${at.host} answered ${statusCode}`);
    }
    yield* bounded(response, bytesMax);
    return;
  }
  throw new Error(`more than ${REDIRECTS_MAX} redirects`);
}

async function* bounded(response: IncomingMessage, bytesMax: number): AsyncIterable<Uint8Array> {
  let bytes = 0;
  for await (const piece of response as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > bytesMax) throw new Error(`the file is larger than ${bytesMax} bytes`);
    yield piece;
  }
}

function open(url: URL, signal: AbortSignal, options: DownloadOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const { silenceMs = SILENCE_MS } = options;
    const outgoing = requestTo(url, signal, options);
    outgoing.setTimeout(silenceMs, () => outgoing.destroy(new Error(`no byte for ${silenceMs} ms`)));
    outgoing.once('response', resolve);
    outgoing.once('error', reject);
    outgoing.end();
  });
}

const HEADERS = { accept: '*/*', 'user-agent': 'nodekeeper-agent' };

function requestTo(url: URL, signal: AbortSignal, options: DownloadOptions): ClientRequest {
  if (url.protocol === 'http:') return httpRequest(url, { signal, headers: HEADERS, agent: false });
  if (url.protocol !== 'https:') throw new Error(`${url.protocol} is not supported`);
  const dialler = createDialler({
    server: url,
    proxy: proxyFor(url, options.environment),
    timeoutMs: SILENCE_MS,
    ...defined({ certificateAuthority: url.hostname === options.apiHost ? options.certificateAuthority : undefined }),
  });
  const createConnection = (_: unknown, callback: (error: Error | null, connection: Duplex) => void) =>
    dialler.dial((error, connection) => callback(error, connection as Duplex));
  return httpsRequest(url, { signal, headers: HEADERS, createConnection });
}
