/** One HTTP request on a new connection, with what a smoke test measures: certificate, time, Date header. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { TLSSocket } from 'node:tls';
import { defined } from '../../shared/defined.ts';
import { CommandError } from '../command.ts';

export interface ExchangeRequest {
  readonly method: 'GET' | 'POST' | 'PATCH';
  readonly url: string;
  /** PEM text. Absent: the certificate authorities of the system. */
  readonly ca?: string | undefined;
  readonly token?: string | undefined;
  readonly body?: unknown;
  readonly contentType?: string;
}

export interface Exchange {
  readonly status: number;
  /** The body as JSON. undefined: it is not JSON. */
  readonly object: unknown;
  /** The Date header, whole seconds. undefined: absent or malformed. Epoch milliseconds. */
  readonly dateMs: number | undefined;
  readonly durationMs: number;
  /** undefined: the connection is not encrypted. */
  readonly tls: { readonly version: string; readonly certificateValidToMs: number } | undefined;
}

const TIMEOUT_MS = 10_000;
const BODY_CHARACTERS_MAX = 8_000_000;
const DNS_CODES = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA', 'EAI_NONAME']);
const TLS_CODES = /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS_|ERR_SSL_|HOSTNAME_MISMATCH|EPROTO)/;

/** @throws CommandError with the phase that failed: DNS, connection, TLS or response */
export function exchange(request: ExchangeRequest): Promise<Exchange> {
  const url = new URL(request.url);
  const payload = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    const failed = (cause: Error): void => reject(faultOf(url, cause));
    const outgoing = (url.protocol === 'https:' ? httpsRequest : httpRequest)(url, {
      method: request.method,
      agent: false,
      ...defined({ ca: request.ca }),
      headers: headersOf(request, payload),
    });
    // The limit of the whole exchange. A `timeout` option would only limit the time without data.
    const timer = setTimeout(
      () => outgoing.destroy(new Error(`no response within ${TIMEOUT_MS / 1_000} s`)),
      TIMEOUT_MS,
    );
    outgoing.on('error', failed);
    outgoing.on('close', () => clearTimeout(timer));
    outgoing.on('response', (incoming) => {
      const tls = tlsOf(incoming);
      let text = '';
      incoming.setEncoding('utf8');
      incoming.on('data', (part: string) => {
        text += part;
        if (text.length > BODY_CHARACTERS_MAX) incoming.destroy(new Error('the response is too long'));
      });
      incoming.on('error', failed);
      incoming.on('end', () =>
        resolve({
          status: incoming.statusCode ?? 0,
          object: jsonOf(text),
          dateMs: dateOf(incoming.headers.date),
          durationMs: performance.now() - startedMs,
          tls,
        }),
      );
    });
    outgoing.end(payload);
  });
}

const headersOf = (request: ExchangeRequest, payload: Buffer | undefined): Record<string, string | number> => ({
  accept: 'application/json',
  'user-agent': 'nodekeeper-doctor',
  ...(request.token === undefined ? {} : { authorization: `Bearer ${request.token}` }),
  ...(payload && { 'content-type': request.contentType ?? 'application/json', 'content-length': payload.length }),
});

function tlsOf({ socket }: IncomingMessage): Exchange['tls'] {
  if (!(socket instanceof TLSSocket)) return undefined;
  return {
    version: socket.getProtocol() ?? '',
    certificateValidToMs: Date.parse(socket.getPeerCertificate().valid_to),
  };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function dateOf(header: string | undefined): number | undefined {
  const dateMs = Date.parse(header ?? '');
  return Number.isNaN(dateMs) ? undefined : dateMs;
}

function faultOf({ host, hostname }: URL, cause: Error): CommandError {
  const { code = '' } = cause as NodeJS.ErrnoException;
  if (DNS_CODES.has(code)) {
    return new CommandError(
      `DNS: no address for ${hostname} (${code})`,
      'check the name; with a custom domain, create its DNS record (output DomainTarget)',
      { cause },
    );
  }
  if (TLS_CODES.test(code)) {
    return new CommandError(
      `TLS: the certificate of ${host} is not trusted: ${cause.message}`,
      'check that the server is yours, that no proxy intercepts TLS, and certificate-authority-data of the kubeconfig',
      { cause },
    );
  }
  return new CommandError(
    `no response from ${host}: ${cause.message === '' ? code : cause.message}`,
    'check that the server runs and that no firewall blocks port 443',
    { cause },
  );
}
