/** One HTTP request on a new connection, with what a smoke test measures: certificate, time, Date header. */
import type { IncomingMessage } from 'node:http';
import { TLSSocket } from 'node:tls';
import { bytesOf } from '../../shared/host/http-body.ts';
import { exchange } from '../../shared/host/http-exchange.ts';
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
  readonly text: string;
  /** The body as JSON. undefined: it is not JSON. */
  readonly object: unknown;
  /** The Warning header. */
  readonly warning: string | undefined;
  /** The Date header, whole seconds. undefined: absent or malformed. Epoch milliseconds. */
  readonly dateMs: number | undefined;
  readonly durationMs: number;
  /** undefined: the connection is not encrypted. */
  readonly tls: { readonly version: string; readonly certificateValidToMs: number } | undefined;
}

const TIMEOUT_MS = 10_000;
const BODY_BYTES_MAX = 8_000_000;
const DNS_CODES = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA', 'EAI_NONAME']);
const TLS_CODES = /^(CERT_|DEPTH_ZERO|SELF_SIGNED|UNABLE_TO_|ERR_TLS_|ERR_SSL_|HOSTNAME_MISMATCH|EPROTO)/;

/** @throws CommandError with the phase that failed: DNS, connection, TLS or response */
export async function measuredExchange(request: ExchangeRequest): Promise<Exchange> {
  const url = new URL(request.url);
  const startedMs = performance.now();
  // The limit of the whole exchange.
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const headers = { accept: 'application/json', 'user-agent': 'nodekeeper-doctor' };
  try {
    const options = { ...request, headers, quietMs: 2 * TIMEOUT_MS, signal, usesNewConnection: true };
    const answer = await exchange(url, options);
    const tls = tlsOf(answer);
    const bytes = await bytesOf(answer, BODY_BYTES_MAX);
    if (bytes === undefined) throw new Error('the response is too long');
    const text = bytes.toString('utf8');
    return {
      status: answer.statusCode ?? 0,
      text,
      object: jsonOf(text),
      warning: answer.headers.warning,
      dateMs: dateOf(answer.headers.date),
      durationMs: performance.now() - startedMs,
      tls,
    };
  } catch (cause) {
    const late = new Error(`no response within ${TIMEOUT_MS / 1_000} s`, { cause });
    throw faultOf(url, signal.aborted ? late : (cause as Error));
  }
}

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
