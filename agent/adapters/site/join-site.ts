/** Connects to the relay of the site: an HTTP/1.1 upgrade over TLS, with the authorities of heartbeats, no proxy. */
import { request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import type { JoinSite, SiteLineEvents } from '../../ports/site.ts';
import { SITE_PATH, SITE_PROTOCOL } from '../../rules/site-message.ts';
import { createDialler } from '../http/dial.ts';
import { DiallingAgent } from '../http/kube-api.ts';
import { bareHost } from '../http/proxy-choice.ts';
import { openSiteLine } from './site-line.ts';

const JOIN_TIMEOUT_MS = 5_000;
/** What a relay answers that is asked for too much. */
const SERVICE_UNAVAILABLE = 503;

export interface JoinSiteOptions {
  /** Base URL of the relay. */
  readonly endpoint: string;
  /** PEM text; the authorities of the system when absent. */
  readonly certificateAuthority?: string | undefined;
}

export function joinSite({ endpoint, certificateAuthority }: JoinSiteOptions): JoinSite {
  const server = new URL(endpoint);
  const dialler = createDialler({ server, certificateAuthority, timeoutMs: JOIN_TIMEOUT_MS });
  return (events: SiteLineEvents, signal: AbortSignal) =>
    new Promise((resolve) => {
      // One connection for each attempt: nothing of an attempt that failed is left.
      const agent = new DiallingAgent(dialler, 1);
      const outgoing = httpsRequest({
        agent,
        host: bareHost(server.hostname),
        port: server.port,
        path: SITE_PATH,
        signal,
        headers: { connection: 'upgrade', upgrade: SITE_PROTOCOL },
      });
      const timer = setTimeout(
        () => outgoing.destroy(new Error(`no answer in ${JOIN_TIMEOUT_MS} ms`)),
        JOIN_TIMEOUT_MS,
      );
      outgoing.on('error', (cause) => {
        clearTimeout(timer);
        agent.destroy();
        resolve({ kind: 'failed', cause });
      });
      outgoing.on('upgrade', (_answer, socket: Duplex, head) => {
        clearTimeout(timer);
        resolve({ kind: 'joined', line: openSiteLine(socket, head, server.hostname, () => events) });
      });
      outgoing.on('response', (answer) => {
        clearTimeout(timer);
        answer.resume();
        agent.destroy();
        const status = answer.statusCode ?? 0;
        if (status === SERVICE_UNAVAILABLE) resolve({ kind: 'failed', cause: new Error('the relay is busy') });
        else resolve({ kind: 'unsupported' });
      });
      outgoing.end();
    });
}
