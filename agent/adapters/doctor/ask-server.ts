/** One GET without a token, for the doctor: how long the answer took, and which certificate the server has. */
import { request } from 'node:https';
import type { Duplex } from 'node:stream';
import { connect, type TLSSocket } from 'node:tls';
import { defined } from '../../../shared/defined.ts';
import { createDialler } from '../http/dial.ts';
import { bareHost, type ProxyEnvironment, proxyFor } from '../http/proxy-choice.ts';
import { systemTime } from '../system/time.ts';

export interface Question {
  /** https://HOST:PORT, with a prefix of the path or without. */
  readonly endpoint: string;
  readonly path: string;
  /** PEM text; the authorities of the system when absent. */
  readonly certificateAuthority?: string | undefined;
  /** Absent: a direct connection. */
  readonly environment?: ProxyEnvironment;
  /** Any certificate will do: for a server on this machine. */
  readonly trustsAny?: boolean;
}

export type ServerAnswer =
  | {
      readonly kind: 'answered';
      readonly tookMs: number;
      readonly status: number;
      /** Parsed JSON; undefined if it is none. */
      readonly body: unknown;
      /** The server's clock minus that of the machine. Milliseconds; undefined without a Date in the answer. */
      readonly clockAheadMs: number | undefined;
      /** End of the certificate. Milliseconds since the Unix epoch; undefined if unknown. */
      readonly certificateEndsMs: number | undefined;
      readonly certificateFingerprint: string | undefined;
    }
  /** `code` as Node names it. */
  | { readonly kind: 'failed'; readonly code: string; readonly message: string };

/** Time limit of a measurement. Milliseconds. */
export const NETWORK_MS = 10_000;
export const ANSWER_BYTES_MAX = 65_536;

/** Never rejects. */
export function askServer(question: Question): Promise<ServerAnswer> {
  const startMs = systemTime.monotonicMs();
  return new Promise((resolve) => {
    const fail = (error: NodeJS.ErrnoException): void => {
      // Several addresses were tried: the first error says why.
      const cause = error instanceof AggregateError ? (error.errors[0] as NodeJS.ErrnoException) : error;
      resolve({ kind: 'failed', code: cause.code ?? '', message: cause.message });
    };
    try {
      const server = new URL(question.endpoint);
      const path = `${server.pathname.replace(/\/$/, '')}${question.path}`;
      const createConnection = connectionTo(server, question);
      const outgoing = request({ host: server.hostname, path, createConnection }, (incoming) => {
        const { valid_to: ends, fingerprint256 } = (incoming.socket as TLSSocket).getPeerCertificate();
        let text = '';
        incoming.setEncoding('utf8').on('data', (piece: string) => {
          if (text.length < ANSWER_BYTES_MAX) text += piece;
        });
        incoming.once('error', fail).once('end', () => {
          resolve({
            kind: 'answered',
            tookMs: systemTime.monotonicMs() - startMs,
            status: incoming.statusCode ?? 0,
            body: parsed(text.slice(0, ANSWER_BYTES_MAX)),
            clockAheadMs: numberOr(Date.parse(String(incoming.headers.date)) - Date.now()),
            certificateEndsMs: numberOr(Date.parse(ends)),
            certificateFingerprint: fingerprint256,
          });
        });
      });
      const timeout = () => Object.assign(new Error(`no answer in ${NETWORK_MS} ms`), { code: 'ETIMEDOUT' });
      setTimeout(() => outgoing.destroy(timeout()), NETWORK_MS).unref();
      outgoing.once('error', fail).end();
    } catch (error) {
      fail(error as NodeJS.ErrnoException);
    }
  });
}

type Callback = (error: Error | null, connection: Duplex) => void;

function connectionTo(server: URL, { certificateAuthority, environment, trustsAny = false }: Question) {
  if (trustsAny) {
    const where = { host: bareHost(server.hostname), port: Number(server.port) };
    return () => connect({ ...where, rejectUnauthorized: false });
  }
  const proxy = proxyFor(server, environment ?? {});
  const dialler = createDialler({ server, proxy, timeoutMs: NETWORK_MS, ...defined({ certificateAuthority }) });
  return (_: unknown, callback: Callback) => dialler.dial((error, connection) => callback(error, connection as Duplex));
}

const numberOr = (value: number): number | undefined => (Number.isNaN(value) ? undefined : value);

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
