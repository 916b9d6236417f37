/** Logs end to end in one process: API, streaming function and the agent's sender over one store, in virtual time. */
import { createHash, randomUUID } from 'node:crypto';
import { LogSender } from '../../agent/app/log-sender.ts';
import type { KubeAnswer, KubeApi } from '../../agent/ports/kube-api.ts';
import { type LogQuery, LogUnavailableError } from '../../agent/ports/pod-runtime.ts';
import { redirectLogs } from '../../functions/api/logs/log-redirect.ts';
import { composeApi } from '../../functions/api/work.ts';
import { serveWatch } from '../../functions/watch/work.ts';
import { inProcess } from '../../server/system.ts';
import type { AuditLine } from '../../shared/access/audit.ts';
import type { Authenticator } from '../../shared/access/authenticator.ts';
import { staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import { nodeKeys } from '../../shared/access/node-key-store.ts';
import { keepTicketKey, ticketKeys } from '../../shared/access/process-key-store.ts';
import { processKeys } from '../../shared/access/process-keys.ts';
import type { UserInfo } from '../../shared/access/user-info.ts';
import { watchTicketIssuer, watchTicketVerifier } from '../../shared/access/watch-tickets.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { gunzip, gzip } from '../../shared/gzip.ts';
import { KUBERNETES_VERSION } from '../../shared/kinds/generated/version.ts';
import type { HttpRequest } from '../../shared/kubernetes/http.ts';
import type { ConsumedUnits } from '../../shared/store/item-store.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { silentLog } from './agent-api.ts';
import { SteppedTime, settle } from './stepped-time.ts';

export const START_MS = Date.UTC(2026, 0, 1);
export const STREAM_URL = 'https://stream.example';
export const NODE_LOGS = '/apis/nodekeeper.dev/v1alpha1/nodelogs';
const FUNCTION_MS = 895_000;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

type Headers = Readonly<Record<string, string>>;

/** Each is also its token. */
const USERS = [
  { user: 'admin', groups: ['system:masters'] },
  { user: 'ann', groups: ['nodekeeper:viewers'] },
  { user: 'bob', groups: ['nodekeeper:viewers'] },
  { user: 'eve', groups: [] },
  { user: 'system:node:n1', groups: ['system:nodes'] },
  { user: 'system:node:n2', groups: ['system:nodes'] },
];

/** What a container writes. */
export class FakeOutput {
  readonly #pieces: Uint8Array[] = [];
  #isClosed = false;
  failure: string | undefined;
  /** Queries that were asked. */
  readonly queries: LogQuery[] = [];
  readonly #time: SteppedTime;

  constructor(time: SteppedTime) {
    this.#time = time;
  }

  write(bytes: string | Uint8Array): void {
    this.#pieces.push(Buffer.from(bytes));
  }

  /** The container terminates. */
  close(): void {
    this.#isClosed = true;
  }

  async *read(query: LogQuery, stop: AbortSignal): AsyncGenerator<Uint8Array> {
    this.queries.push(query);
    if (this.failure !== undefined) throw new LogUnavailableError(this.failure);
    for (let at = 0; !stop.aborted; ) {
      const piece = this.#pieces[at];
      if (piece !== undefined) {
        yield piece;
        at += 1;
      } else if (this.#isClosed || !query.follow) return;
      else await this.#time.sleep(250, stop);
    }
  }
}

export interface OpenedLog {
  status(): number | undefined;
  text(): string;
  hasEnded(): boolean;
}

export function logCluster(options: { readonly onConsumed?: (units: ConsumedUnits) => void } = {}) {
  const time = new SteppedTime(START_MS);
  const items = memoryItemStore(options);
  const faults: string[] = [];
  const auditLines: AuditLine[] = [];
  const people = staticTokenAuthenticator(USERS.map((each) => ({ ...each, sha256: sha256(each.user) })));
  /** Service accounts that may view, by token. */
  const accounts = new Map<string, UserInfo>();
  const authenticator: Authenticator = {
    async authenticate(headers, nowMs) {
      const user = accounts.get((headers['authorization'] ?? '').slice('Bearer '.length));
      return user === undefined ? people.authenticate(headers, nowMs) : { kind: 'authenticated', user };
    },
  };
  const common = {
    items,
    authenticator,
    clock: { nowMs: () => time.nowMs() },
    random: { uuid: () => randomUUID(), fraction: () => 0.5 },
    pause: (milliseconds: number) => time.sleep(milliseconds),
    log: { ...silentLog, error: (message: string) => void faults.push(message) },
    policy: defaultPolicy,
    ...inProcess,
    auditTrail: { record: async (line: AuditLine) => void auditLines.push(line) },
  };
  const tickets = watchTicketIssuer(processKeys(keepTicketKey(items)));
  const api = composeApi({ ...common, answerPodLog: redirectLogs({ watchUrl: STREAM_URL, tickets }, common) });
  const stream = serveWatch({
    ...common,
    gunzip,
    tickets: watchTicketVerifier(ticketKeys(items)),
    nodeKeys: nodeKeys(items),
  });
  const output = new FakeOutput(time);

  async function send(user: string, method: string, pathAndQuery: string, body?: unknown, headers: Headers = {}) {
    const request = requestFor(user, method, pathAndQuery, body);
    const answer = await api({ ...request, headers: { ...request.headers, ...headers } });
    const text = Buffer.from(answer.body).toString('utf8');
    return { status: answer.status, headers: answer.headers, body: text === '' ? undefined : JSON.parse(text) };
  }

  /** Behaves as a client that follows the redirect, by default without its credentials. */
  function follow(location: string, user = ''): OpenedLog {
    const url = new URL(location);
    let status: number | undefined;
    let text = '';
    let hasEnded = false;
    const reading = async (): Promise<void> => {
      const request = requestFor(user, 'GET', `${decodeURIComponent(url.pathname)}${url.search}`);
      const { head, output: bytes } = await stream(request, time.nowMs() + FUNCTION_MS);
      status = head.status;
      text += Buffer.from(head.body).toString('utf8');
      for await (const each of bytes ?? []) text += Buffer.from(each).toString('utf8');
    };
    void reading().finally(() => {
      hasEnded = true;
    });
    return { status: () => status, text: () => text, hasEnded: () => hasEnded };
  }

  return {
    time,
    items,
    output,
    /** Faults of ours that were logged. */
    faults,
    /** The audit log. */
    auditLines,
    send,
    follow,
    /** The answer of the API, a redirect. */
    request: (user: string, query = '', pod = 'web', own: Headers = {}) =>
      send(user, 'GET', `/api/v1/namespaces/default/pods/${pod}/log${query}`, undefined, own),
    async read(user: string, query = '', pod = 'web', own: Headers = {}): Promise<OpenedLog> {
      const { status, headers, body } = await this.request(user, query, pod, own);
      if (status !== 307) throw new Error(`${status} ${JSON.stringify(body)}`);
      const opened = follow(headers['location'] ?? '');
      await settle();
      return opened;
    },
    /** The agent of a node. `intercept` may answer in place of the API, which is `answerMs` away. */
    agent(
      nodeName: string,
      intercept?: (method: string, path: string) => KubeAnswer | undefined,
      { answerMs = 0 }: { readonly answerMs?: number } = {},
    ) {
      const stop = new AbortController();
      const kubeApi: KubeApi = {
        async send({ method, path, body }) {
          const answer = await send(`system:node:${nodeName}`, method, path, body);
          if (answerMs > 0) await time.sleep(answerMs);
          return intercept?.(method, path) ?? { kind: 'answered', status: answer.status, body: answer.body };
        },
        reconnect() {},
      };
      const sender = new LogSender({
        nodeName,
        api: kubeApi,
        runtime: { readLog: (query, ended) => output.read(query, ended) },
        time,
        fraction: () => 0,
        log: silentLog,
        stop: stop.signal,
        compress: gzip,
      });
      return { requested: () => sender.requested(), stop: () => stop.abort() };
    },
    async addNode(name: string, kubeletVersion = `${KUBERNETES_VERSION}-nodekeeper.0.1.0`) {
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { nodeInfo: { kubeletVersion } } };
      const answer = await send('admin', 'POST', '/api/v1/nodes', node);
      if (answer.status !== 201) throw new Error(JSON.stringify(answer.body));
    },
    /** A service account that may view everything. Returns a token of it. */
    async addAccount(name: string): Promise<string> {
      const { status, body } = await send('admin', 'POST', '/api/v1/namespaces/default/serviceaccounts', {
        metadata: { name },
      });
      if (status !== 201) throw new Error(JSON.stringify(body));
      const username = `system:serviceaccount:default:${name}`;
      accounts.set(`token-of-${name}`, { username, uid: body.metadata.uid, groups: ['nodekeeper:viewers'] });
      return `token-of-${name}`;
    },
    /** A pod with these containers. All of them run. */
    async addPod(name: string, nodeName: string | undefined, containers: readonly string[] = ['main']) {
      const path = '/api/v1/namespaces/default/pods';
      const pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name },
        spec: {
          ...(nodeName === undefined ? {} : { nodeName }),
          containers: containers.map((container) => ({ name: container, image: 'i' })),
        },
      };
      const created = await send('admin', 'POST', path, pod);
      if (created.status !== 201) throw new Error(JSON.stringify(created.body));
      const status = {
        phase: 'Running',
        containerStatuses: containers.map((container) => ({
          name: container,
          ready: true,
          restartCount: 0,
          image: 'i',
          imageID: '',
          state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
        })),
      };
      const updated = await send('admin', 'PUT', `${path}/${name}/status`, { ...created.body, status });
      if (updated.status !== 200) throw new Error(JSON.stringify(updated.body));
    },
    /** What is stored for logs. */
    stored: () => items.items('control').filter(({ pk }) => String(pk).startsWith('log-')),
  };
}

function requestFor(user: string, method: string, pathAndQuery: string, body?: unknown): HttpRequest {
  const [path = '', query = ''] = pathAndQuery.split('?', 2);
  return {
    method,
    path,
    query: new URLSearchParams(query),
    headers: {
      ...(user === '' ? {} : { authorization: `Bearer ${user}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    body: body === undefined ? new Uint8Array() : Buffer.from(JSON.stringify(body)),
    sourceIp: '192.0.2.1',
  };
}
