/**
 * Sends one review to a webhook over TLS, and reads its answer. Bounds: the time and the bytes of an answer. A redirect
 * is an answer that is not understood. An address of the link-local networks is not connected to: the metadata services
 * of clouds are there, and they answer this machine with credentials.
 */

import { lookup } from 'node:dns';
import type { IncomingMessage } from 'node:http';
import { Agent, type RequestOptions, request } from 'node:https';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { quote } from '../../shared/kubernetes/status.ts';

export interface WebhookServer {
  /** Shown in messages, and the request line. */
  readonly url: URL;
  /** IP address and port of an endpoint. Absent: those of `url`. */
  readonly endpoint?: { readonly address: string; readonly port: number };
  /** PEM. Absent: the authorities of the system. */
  readonly ca?: string;
}

/** The webhook was not asked, or did not answer. */
export class CallFault extends Error {
  override readonly name = 'CallFault';
}

export interface WebhookClient {
  /** The text of an answer 200. @throws CallFault */
  post(server: WebhookServer, body: string, signal: AbortSignal): Promise<string>;
  stop(): void;
}

/** A patch is shorter than the object. Bytes. */
export const ANSWER_BYTES_MAX = 1_048_576;
/** Of a refusal that is quoted. Characters. */
const QUOTED_MAX = 300;
/** A connection that is not used is closed. Milliseconds. */
const IDLE_MS = 30_000;
const IDLE_CONNECTIONS_MAX = 8;

const linkLocal = new BlockList();
linkLocal.addSubnet('169.254.0.0', 16, 'ipv4');
linkLocal.addSubnet('fe80::', 10, 'ipv6');
// EC2's metadata service.
linkLocal.addAddress('fd00:ec2::254', 'ipv6');

const LINK_LOCAL = 'is a link-local address, where the metadata services of clouds are';

/** undefined: it may be connected to. */
export function refusedAddress(address: string): string | undefined {
  const family = isIP(address);
  if (family === 0) return undefined;
  return linkLocal.check(address, family === 6 ? 'ipv6' : 'ipv4') ? `${address} ${LINK_LOCAL}` : undefined;
}

/** A name may have another address at each connection, so the address is checked when it is connected to. */
const checkedLookup: LookupFunction = (hostname, options, done) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return done(error, '');
    const refused = addresses.map(({ address }) => refusedAddress(address)).find((each) => each !== undefined);
    if (refused !== undefined) return done(new CallFault(refused), '');
    if (options.all === true) return done(null, addresses);
    const [first] = addresses;
    return done(null, first?.address ?? '', first?.family ?? 4);
  });
};

export function webhookClient(): WebhookClient {
  const agent = new Agent({ keepAlive: true, maxFreeSockets: IDLE_CONNECTIONS_MAX, timeout: IDLE_MS });

  function send(server: WebhookServer, body: string, signal: AbortSignal): Promise<IncomingMessage> {
    const { url, endpoint, ca } = server;
    const hostname = url.hostname.replace(/^\[(.*)\]$/, '$1');
    const address = endpoint?.address ?? hostname;
    const refused = refusedAddress(address);
    if (refused !== undefined) return Promise.reject(new CallFault(refused));
    const options: RequestOptions = {
      agent,
      host: address,
      port: endpoint?.port ?? (url.port === '' ? 443 : Number(url.port)),
      path: `${url.pathname}${url.search}`,
      method: 'POST',
      lookup: checkedLookup,
      // Node sends no server name that is an IP address.
      servername: isIP(hostname) === 0 ? hostname : '',
      headers: {
        host: url.host,
        'content-type': 'application/json',
        accept: 'application/json',
        'content-length': Buffer.byteLength(body),
      },
      signal,
      // As Go does: any certificate of the bundle is trusted, also that of the server itself.
      ...(ca !== undefined && { ca, allowPartialTrustChain: true }),
    };
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const sent = request(options, resolve);
    sent.once('error', (error: NodeJS.ErrnoException) => {
      // The server closed an idle connection when this request was sent on it. Webhooks have no side effects.
      if (sent.reusedSocket && error.code === 'ECONNRESET') resolve(send(server, body, signal));
      else reject(error);
    });
    sent.end(body);
    return promise;
  }

  return {
    async post(server, body, signal) {
      try {
        const answer = await send(server, body, signal);
        const { statusCode = 0 } = answer;
        const text = await textOf(answer);
        if (statusCode === 200) return text;
        throw new CallFault(refusalText(statusCode, text));
      } catch (error) {
        if (error instanceof CallFault) throw error;
        const why = signal.aborted ? 'context deadline exceeded' : (error as Error).message;
        throw new CallFault(`Post ${quote(server.url.href)}: ${why}`, { cause: error });
      }
    },
    stop: () => agent.destroy(),
  };
}

async function textOf(answer: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) {
      answer.destroy();
      throw new CallFault(`the answer is longer than ${ANSWER_BYTES_MAX} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function refusalText(status: number, text: string): string {
  if (status >= 300 && status < 400) return `the server answered ${status}: redirects are not followed`;
  if (status === 404) return 'the server could not find the requested resource';
  const shown = quote(text.trim().slice(0, QUOTED_MAX));
  return status >= 500
    ? `an error on the server (${shown}) has prevented the request from succeeding`
    : `the server answered ${status} (${shown})`;
}
