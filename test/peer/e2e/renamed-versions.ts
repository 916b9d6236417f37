/**
 * Stands between a client of Kubernetes 1.20 and a cluster that no longer serves batch/v1beta1 and
 * discovery.k8s.io/v1beta1, which Kubernetes 1.25 removed. Requests for these versions become requests for v1, and
 * answers name v1beta1 again. The fields that the tests read are the same in both versions. Bodies must be JSON.
 *
 * It listens on loopback without TLS. Clients send no token on such a connection, so it adds that of the kubeconfig.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { Agent, request } from 'node:https';
import { listenOnLoopback } from '../../../shared/host/loopback.ts';

const REMOVED = /^\/apis\/(batch|discovery\.k8s\.io)\/v1beta1(?=[/?]|$)/;
const REDIRECTS_MAX = 2;

export interface Target {
  readonly url: string;
  /** PEM text. Absent: the authorities of this machine. */
  readonly ca: string | undefined;
  readonly token: string;
}

/** The path in v1, and its group; undefined: the version was not removed. */
export function renamedPath(path: string): { readonly path: string; readonly group: string } | undefined {
  const group = REMOVED.exec(path)?.[1];
  return group === undefined ? undefined : { path: path.replace(REMOVED, `/apis/${group}/v1`), group };
}

export const asRemoved = (text: string, group: string): string =>
  text.replaceAll(`"${group}/v1"`, `"${group}/v1beta1"`);
const asServed = (text: string, group: string): string => text.replaceAll(`"${group}/v1beta1"`, `"${group}/v1"`);

export interface VersionProxy {
  readonly kubeconfig: string;
  close(): Promise<void>;
}

export async function startVersionProxy(target: Target): Promise<VersionProxy> {
  const agent = new Agent({ keepAlive: true, ...(target.ca !== undefined && { ca: target.ca }) });
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => forward({ target, agent, incoming, outgoing, body: Buffer.concat(chunks) }));
  });
  const port = await listenOnLoopback(server);
  const named = (name: string, field: string, value: object) => [{ name, [field]: value }];
  return {
    kubeconfig: JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'renamed',
      clusters: named('renamed', 'cluster', { server: `http://127.0.0.1:${port}` }),
      users: named('renamed', 'user', {}),
      contexts: named('renamed', 'context', { cluster: 'renamed', user: 'renamed' }),
    }),
    close: () =>
      new Promise((resolve) => {
        agent.destroy();
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}

interface Forwarded {
  readonly target: Target;
  readonly agent: Agent;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly body: Buffer;
}

function forward({ target, agent, incoming, outgoing, body }: Forwarded): void {
  const renamed = renamedPath(incoming.url ?? '/');
  const sent = renamed === undefined ? body : Buffer.from(asServed(body.toString('utf8'), renamed.group));
  const { 'content-length': _length, 'accept-encoding': _encoding, ...headers } = incoming.headers;
  const send = (url: URL, redirects: number): void => {
    const onward = request(url, {
      agent,
      method: incoming.method,
      headers: {
        ...headers,
        host: url.host,
        authorization: `Bearer ${target.token}`,
        ...(renamed === undefined ? {} : { accept: 'application/json' }),
        ...(sent.length === 0 ? {} : { 'content-length': sent.length }),
      },
    });
    onward.on('response', (answer) => {
      const { location } = answer.headers;
      // Watches are redirected.
      if (location !== undefined && redirects < REDIRECTS_MAX) {
        answer.resume();
        send(new URL(location, url), redirects + 1);
      } else reply(answer, outgoing, renamed?.group);
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => onward.destroy());
    onward.end(sent);
  };
  send(new URL(renamed?.path ?? incoming.url ?? '/', target.url), 0);
}

/** Events of a watch are one line each, and pass as they come. */
function reply(answer: IncomingMessage, outgoing: ServerResponse, group: string | undefined): void {
  const { 'content-length': _length, 'transfer-encoding': _encoding, ...headers } = answer.headers;
  outgoing.writeHead(answer.statusCode ?? 502, headers);
  // A client waits for the head of the answer before the first event of a watch.
  outgoing.flushHeaders();
  if (group === undefined) {
    answer.pipe(outgoing);
    return;
  }
  let rest = '';
  answer.setEncoding('utf8');
  answer.on('data', (chunk: string) => {
    const text = rest + chunk;
    const end = text.lastIndexOf('\n') + 1;
    if (end > 0) outgoing.write(asRemoved(text.slice(0, end), group));
    rest = text.slice(end);
  });
  answer.on('end', () => outgoing.end(asRemoved(rest, group)));
}
