/**
 * Connections to the cluster of a hub, HTTP/1.1 over TLS, kept open.
 *
 * Two kinds of requests use two sets of connections. The hub's own requests have its credentials. A client's request
 * has those of the client alone: its connections never present the certificate of the hub, because for a cluster
 * the user of a certificate comes before that of a token.
 *
 * A link that is cut closes no connection: a request on an open one waits for its limit. The hub asks all the time, so
 * its own requests notice first. Requests of clients that wait then are given up, and connections that rest are closed.
 */
import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { defined } from '../../shared/defined.ts';
import { bytesOf } from '../../shared/host/http-body.ts';
import { StartError } from '../../shared/host/start-error.ts';
import { type CertificateFiles, fileText, readCertificate } from '../certificate.ts';
import { type Upstream, UpstreamUnreachable } from './upstream.ts';

/** Until a connection is ready for a request: name, TCP and TLS. Milliseconds. */
const CONNECT_MS = 5_000;
/** Until the head of an answer to a client: upstream's limit of a request, and a margin. Milliseconds. */
const HEAD_MS = 65_000;
/** Until the head of an answer to the hub itself. A cluster that is later is out of reach. Milliseconds. */
const OWN_HEAD_MS = 15_000;
/** Before the kernel asks whether the other side of a silent connection is still there, each second. Milliseconds. */
const PROBED_AFTER_MS = 10_000;
/** A connection that rests longer is closed, before the cluster or a balancer in between does it. Milliseconds. */
const REST_MS = 30_000;
const OWN_SOCKETS_MAX = 16;
/** A page of a list, or of changes. Bytes. */
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

export interface ConnectionOptions {
  /** https. A path is the prefix of all paths. */
  readonly url: URL;
  /** Read again for each request: whoever renews the token replaces the file. */
  readonly tokenFile: string | undefined;
  readonly certificate: CertificateFiles | undefined;
  /** Undefined: the authorities of Node. */
  readonly caFile: string | undefined;
  /** Connections for requests of clients. */
  readonly socketsMax: number;
}

export interface ClientRequest {
  readonly method: string;
  /** With the query, as it is sent. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** The head of an answer. Its body follows, or the connection is one of another protocol from now on. */
export interface ForwardedAnswer {
  readonly head: IncomingMessage;
  readonly upgraded?: { readonly socket: Duplex; readonly first: Buffer };
}

/** A request of a client was not answered. */
export class ForwardFault extends UpstreamUnreachable {
  /** False: the cluster has received nothing of it. True: it may have done what was asked. */
  readonly wasSent: boolean;
  constructor(message: string, options: { readonly cause: unknown; readonly wasSent: boolean }) {
    super(message, { cause: options.cause });
    this.wasSent = options.wasSent;
  }
}

export interface ClusterConnection extends Upstream {
  /** `left`: aborted when the client has left. @throws ForwardFault */
  forward(request: ClientRequest, left: AbortSignal): Promise<ForwardedAnswer>;
  stop(): void;
}

/** @throws StartError for a file that cannot be used */
export function clusterConnection(options: ConnectionOptions): ClusterConnection {
  const { url, tokenFile, certificate, caFile } = options;
  const ca = caFile === undefined ? undefined : authoritiesIn(caFile);
  const common = { keepAlive: true, timeout: REST_MS, ...defined({ ca }) };
  const key = certificate && readCertificate(certificate, ['--upstream-cert', '--upstream-key']);
  const own = new Agent({
    ...common,
    maxSockets: OWN_SOCKETS_MAX,
    ...(key && { cert: key.certificatePem, key: key.privateKeyPem }),
  });
  const ofClients = new Agent({ ...common, maxSockets: options.socketsMax });
  /** Gives up a request of a client that has no answer yet. */
  const waiting = new Set<(cause: Error) => void>();
  const giveUp = (cause: Error): void => {
    for (const end of waiting) end(cause);
    for (const agent of [own, ofClients]) {
      for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
    }
  };
  const prefix = url.pathname.replace(/\/$/, '');
  let token = tokenFile === undefined ? undefined : tokenIn(tokenFile);
  const readToken = (): string | undefined => {
    try {
      if (tokenFile !== undefined) token = tokenIn(tokenFile);
    } catch {
      // It is being replaced. The cluster says whether the one before is still valid.
    }
    return token;
  };

  function begin(
    { method, path, headers, body }: ClientRequest,
    { agent, headMs, left }: { readonly agent: Agent; readonly headMs: number; readonly left?: AbortSignal },
  ): Promise<ForwardedAnswer> {
    return new Promise((resolve, reject) => {
      let wasSent = false;
      const asked = httpsRequest({
        agent,
        host: url.hostname.replace(/^\[|\]$/g, ''),
        port: url.port === '' ? 443 : url.port,
        method,
        path: `${prefix}${path}`,
        headers: { ...headers, ...(hasBody(method, body) && { 'content-length': body.byteLength }) },
        ...defined({ signal: left }),
      });
      const isOwn = agent === own;
      const end = (cause: Error): void => void asked.destroy(cause);
      if (!isOwn) waiting.add(end);
      const late = setTimeout(() => {
        const cause = new Error(`no answer for ${headMs / 1_000} s`);
        end(cause);
        if (isOwn) giveUp(cause);
      }, headMs);
      const settle = (): void => {
        clearTimeout(late);
        waiting.delete(end);
      };
      asked.once('socket', (socket) => {
        socket.setKeepAlive(true, PROBED_AFTER_MS);
        if (asked.reusedSocket) {
          wasSent = true;
          return;
        }
        const slow = setTimeout(() => end(new Error(`no connection for ${CONNECT_MS / 1_000} s`)), CONNECT_MS);
        socket.once('close', () => clearTimeout(slow));
        (socket as TLSSocket).once('secureConnect', () => {
          wasSent = true;
          clearTimeout(slow);
        });
      });
      asked.once('response', (head) => {
        settle();
        resolve({ head });
      });
      asked.once('upgrade', (head, socket, first) => {
        settle();
        resolve({ head, upgraded: { socket, first } });
      });
      asked.once('error', (cause) => {
        settle();
        reject(new ForwardFault(reasonOf(cause), { cause, wasSent }));
      });
      asked.end(hasBody(method, body) ? body : undefined);
    });
  }

  /** A connection that rested may be closed by the other side at the moment of its use. To read twice does no harm. */
  async function beginAgain(...asked: Parameters<typeof begin>): Promise<ForwardedAnswer> {
    try {
      return await begin(...asked);
    } catch (error) {
      const isReset = error instanceof ForwardFault && (error.cause as NodeJS.ErrnoException).code === 'ECONNRESET';
      if (!isReset || !isRead(asked[0].method) || asked[1].left?.aborted === true) throw error;
      return begin(...asked);
    }
  }

  return {
    async send({ method, path, headers = {}, body = Buffer.alloc(0) }, { timeoutMs }) {
      const bearer = readToken();
      const asked = { ...headers, ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }) };
      const deadline = AbortSignal.timeout(timeoutMs);
      try {
        const begun = { agent: own, headMs: Math.min(timeoutMs, OWN_HEAD_MS), left: deadline };
        const { head, upgraded } = await beginAgain({ method, path, headers: asked, body }, begun);
        upgraded?.socket.destroy();
        const answer = await bytesOf(head, ANSWER_BYTES_MAX);
        if (answer === undefined) throw new Error(`the answer has more than ${ANSWER_BYTES_MAX} bytes`);
        return { status: head.statusCode ?? 0, headers: headersOf(head), body: answer };
      } catch (cause) {
        if (deadline.aborted) throw new UpstreamUnreachable(`no answer for ${timeoutMs / 1_000} s`, { cause });
        throw cause instanceof UpstreamUnreachable ? cause : new UpstreamUnreachable(reasonOf(cause), { cause });
      }
    },
    forward: (request, left) => beginAgain(request, { agent: ofClients, headMs: HEAD_MS, left }),
    stop() {
      own.destroy();
      ofClients.destroy();
    },
  };
}

const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD';
const hasBody = (method: string, body: Uint8Array): boolean => body.byteLength > 0 || !isRead(method);

/** Values of a repeated name are joined with commas. */
export function headersOf({ headersDistinct }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(Object.entries(headersDistinct).map(([name, values = []]) => [name, values.join(', ')]));
}

/** Why no answer came, for people. */
function reasonOf(fault: unknown): string {
  const { code, message } = fault as NodeJS.ErrnoException;
  // Several addresses were tried.
  if (message === '' && fault instanceof AggregateError) return reasonOf(fault.errors.at(-1));
  return isTrustFault(code) ? `its certificate is not trusted: ${message}` : message;
}

/** Codes of OpenSSL's verification, and of Node's check of the name. Source: nodejs.org, "TLS", X509 errors. */
const isTrustFault = (code = ''): boolean => /CERT|SIGNATURE/.test(code) && !code.startsWith('ERR_SSL');

function authoritiesIn(file: string): string {
  const text = fileText('--upstream-ca', file);
  try {
    new X509Certificate(text);
  } catch (cause) {
    throw new StartError(`--upstream-ca: ${file} has no certificate in PEM`, { cause });
  }
  return text;
}

/** A header cannot have other characters. */
const TOKEN = /^[\x21-\x7e]+$/;

function tokenIn(file: string): string {
  const token = fileText('--upstream-token', file).trim();
  if (!TOKEN.test(token)) throw new StartError(`--upstream-token: ${file} has no token in one line`);
  return token;
}
