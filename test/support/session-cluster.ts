/** The API of `nodekeeper serve` over tables in memory, behind its listener, with connections of agents and clients. */
import { createHash } from 'node:crypto';
import { WebSocket } from 'ws';
import { composeCluster } from '../../server/cluster.ts';
import { openListener } from '../../server/listener.ts';
import { changeSignals } from '../../server/watches/change-signals.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { makeAuthority, makeServerCertificate } from '../../shared/host/certificate.ts';
import { MessageSocket } from '../../shared/host/message-socket.ts';
import {
  type LineMessage,
  linePath,
  SESSION_PROTOCOL,
  type SessionRequest,
  sessionPath,
} from '../../shared/sessions/session-request.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';

const USERS: Readonly<Record<string, readonly string[]>> = {
  admin: ['system:masters'],
  viewer: ['nodekeeper:viewers'],
  reader: [],
  'system:node:n1': ['system:nodes'],
  'system:node:n2': ['system:nodes'],
};

const tokenOf = (user: string): string => createHash('sha256').update(`token of ${user}`).digest('hex');

/** What an upgrade led to: a WebSocket, or the status of the answer. */
export type Connected =
  | { readonly kind: 'opened'; readonly socket: MessageSocket; readonly raw: WebSocket }
  | { readonly kind: 'refused'; readonly status: number; readonly body: string };

export interface SessionCluster {
  readonly url: string;
  readonly ca: string;
  connections(): number;
  heldWatches(): number;
  token(user: string): string;
  send(method: string, path: string, body?: unknown): Promise<void>;
  /** @param user '' for no credentials */
  connect(user: string, path: string, protocols: readonly string[]): Promise<Connected>;
  /** The line of a node, and what it is asked for. */
  agent(nodeName: string): Promise<{ requests: AsyncIterator<SessionRequest>; line: MessageSocket }>;
  /** The connection of a node for a session. */
  answer(nodeName: string, id: string): Promise<Connected>;
  stop(): Promise<void>;
}

export async function sessionCluster(): Promise<SessionCluster> {
  const nowMs = Date.now();
  const authority = await makeAuthority({ commonName: 'test', nowMs, validDays: 1 });
  const certificate = await makeServerCertificate(authority, { names: ['127.0.0.1'], nowMs, validDays: 1 });
  const signals = changeSignals();
  const nothing = (): void => {};
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const cluster = composeCluster({
    items: memoryItemStore(),
    signals,
    policy: defaultPolicy,
    clusterId: 'c',
    staticTokens: Object.entries(USERS).map(([user, groups]) => ({
      sha256: createHash('sha256').update(tokenOf(user)).digest('hex'),
      user,
      groups,
    })),
    authorities: () => '',
    apiAddress: () => undefined,
    authority,
    isServerName: () => false,
    log,
    meter: { add: nothing },
    waker: { wake: async () => [] },
    auditTrail: { record: async () => undefined },
    processFamilies: () => [],
    checks: [],
    probe: { url: 'https://127.0.0.1:1', fetch: globalThis.fetch },
  });
  const listener = await openListener({ host: '127.0.0.1', port: 0, ...certificate, log, serve: cluster.serve });
  const ca = authority.certificatePem;
  const url = `https://127.0.0.1:${listener.port}`;
  const raws = new Set<WebSocket>();

  const connect: SessionCluster['connect'] = (user, path, protocols) =>
    new Promise((resolve, reject) => {
      const headers = user === '' ? {} : { authorization: `Bearer ${tokenOf(user)}` };
      const raw = new WebSocket(`${url.replace('https', 'wss')}${path}`, [...protocols], { ca, headers });
      raws.add(raw);
      raw.once('open', () => resolve({ kind: 'opened', socket: new MessageSocket(raw), raw }));
      raw.once('unexpected-response', (request, response) => {
        response.setEncoding('utf8');
        let body = '';
        response.on('data', (text: string) => {
          body += text;
        });
        response.once('end', () => resolve({ kind: 'refused', status: response.statusCode ?? 0, body }));
        response.once('error', () => request.destroy());
      });
      raw.once('error', reject);
    });

  return {
    url,
    ca,
    connections: () => listener.connections(),
    heldWatches: () => cluster.heldWatches(),
    token: tokenOf,
    connect,
    async send(method, path, body) {
      const answer = await cluster.serve(
        {
          method,
          path,
          query: new URLSearchParams(),
          headers: { authorization: `Bearer ${tokenOf('admin')}`, 'content-type': 'application/json' },
          body: Buffer.from(body === undefined ? '' : JSON.stringify(body)),
          sourceIp: '192.0.2.1',
        },
        new AbortController().signal,
      );
      if (answer.head.status >= 300) throw new Error(String(answer.head.body));
      signals.changed(path.split('/').at(-1) ?? '');
    },
    async agent(nodeName) {
      const connected = await connect(`system:node:${nodeName}`, linePath(nodeName), [SESSION_PROTOCOL]);
      if (connected.kind !== 'opened') throw new Error(connected.body);
      return { requests: requestsOf(connected.socket), line: connected.socket };
    },
    answer: (nodeName, id) => connect(`system:node:${nodeName}`, sessionPath(nodeName, id), [SESSION_PROTOCOL]),
    async stop() {
      for (const raw of raws) raw.terminate();
      cluster.sessions.stop();
      await listener.stop();
    },
  };
}

async function* requestsOf(line: MessageSocket): AsyncGenerator<SessionRequest> {
  for await (const bytes of line) {
    const message = JSON.parse(bytes.toString('utf8')) as LineMessage;
    if ('session' in message) yield message.session;
  }
}
