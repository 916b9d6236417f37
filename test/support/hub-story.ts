/** A cluster and its hub, `nodekeeper serve` both, in this process, with a link between them that can be cut. */
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request as httpsRequest } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished } from 'vitest';
import { startLink } from '../../demo/machines/link.ts';
import { startHub } from '../../server/hub/serve-hub.ts';
import { parseServeOptions } from '../../server/options.ts';
import { startServe } from '../../server/serve.ts';
import { until } from './until.ts';

/** Token of a user who may do everything. */
export const ADA = 'a'.repeat(43);
/** Not the default: the hub has it from the cluster. */
export const CLUSTER_ID = 'edge';
/** Token of a user without rights. */
export const BOB = 'b'.repeat(43);
export const NAMESPACES = '/api/v1/namespaces';
export const RBAC = '/apis/rbac.authorization.k8s.io/v1';

interface Sent {
  readonly token?: string | undefined;
  readonly body?: object;
  readonly contentType?: string;
}

interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  // biome-ignore lint/suspicious/noExplicitAny: an answer of whatever kind, which expectations describe
  readonly body: any;
}

export class Api {
  readonly url: string;
  readonly ca: string | undefined;
  constructor(url: string, ca: string | undefined) {
    this.url = url;
    this.ca = ca;
  }

  private open(method: string, path: string, { token = ADA, body, contentType = 'application/json' }: Sent) {
    const payload = body && JSON.stringify(body);
    return httpsRequest(new URL(path, this.url), {
      ...{ method, agent: false, ...(this.ca !== undefined && { ca: this.ca }) },
      headers: { authorization: `Bearer ${token}`, ...(payload && { 'content-type': contentType }) },
    }).end(payload);
  }

  send(method: string, path: string, sent: Sent = {}): Promise<Received> {
    return new Promise((resolve, reject) => {
      this.open(method, path, sent)
        .once('error', reject)
        .once('response', (answer) => {
          text(answer).then((body) => {
            const isJson = answer.headers['content-type']?.includes('json');
            resolve({ status: answer.statusCode!, headers: answer.headers, body: isJson ? JSON.parse(body) : body });
          }, reject);
        });
    });
  }

  /** Events of a watch as they arrive. */
  watch(
    path: string,
    sent: Sent = {},
  ): Promise<{ readonly names: string[]; readonly isOpen: () => boolean; text(): string }> {
    return new Promise((resolve, reject) => {
      const asked = this.open('GET', path, sent).once('error', reject);
      onTestFinished(() => void asked.destroy());
      asked.once('response', (answer) => {
        const names: string[] = [];
        let received = '';
        let isOpen = true;
        answer.setEncoding('utf8').on('data', (chunk: string) => {
          received += chunk;
          names.splice(
            0,
            names.length,
            ...[...received.matchAll(/"metadata":\{"name":"([^"]+)"/g)].map(([, name]) => name!),
          );
        });
        answer.once('close', () => {
          isOpen = false;
        });
        resolve({ names, isOpen: () => isOpen, text: () => received });
      });
    });
  }
}

export function directory(): string {
  const made = mkdtempSync(join(tmpdir(), 'nk-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

export const quiet = { print: () => {} };

async function cluster(data: string, port: number) {
  const users = join(data, '..', 'users.json');
  const user = (token: string, name: string, ...groups: string[]) => ({
    ...{ sha256: createHash('sha256').update(token).digest('hex'), user: name, groups },
  });
  writeFileSync(users, JSON.stringify([user(ADA, 'ada', 'system:masters'), user(BOB, 'bob')]));
  const args = [
    '--data',
    data,
    '--port',
    String(port),
    '--tokens',
    users,
    '--cluster-id',
    CLUSTER_ID,
    '--log-level',
    'error',
  ];
  return startServe(parseServeOptions(args), quiet);
}

/** The credentials of a hub, as docs/hub.md says. */
export async function hubToken(api: Api, roles: readonly string[]): Promise<string> {
  await api.send('POST', `${NAMESPACES}/kube-system/serviceaccounts`, { body: { metadata: { name: 'hub' } } });
  for (const role of roles) {
    const body = {
      metadata: { name: role },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name: 'hub', namespace: 'kube-system' }],
    };
    expect(await api.send('POST', `${RBAC}/clusterrolebindings`, { body })).toMatchObject({ status: 201 });
  }
  const path = `${NAMESPACES}/kube-system/serviceaccounts/hub/token`;
  const { status, body } = await api.send('POST', path, { body: { spec: { expirationSeconds: 86_400 } } });
  expect(status).toBe(201);
  return body.status.token as string;
}

/** A cluster with an account for a hub, and the options of that hub. */
export async function clusterOfHub(roles: readonly string[]) {
  const base = directory();
  const clusterData = join(base, 'cluster');
  let served = await cluster(clusterData, 0);
  onTestFinished(() => served.stop());
  const port = Number(new URL(served.url).port);
  const link = await startLink({ host: '127.0.0.1', port });
  onTestFinished(() => link.close());
  const api = new Api(served.url, served.caPem);
  const tokenFile = join(base, 'hub-token');
  writeFileSync(tokenFile, await hubToken(api, roles));
  const authority = ['--upstream-ca', join(clusterData, 'ca.pem')];
  const upstream = ['--upstream', `https://127.0.0.1:${link.port}`, '--upstream-token', tokenFile];
  const data = ['--data', join(base, 'hub')];
  return {
    ...{ cluster: api, clusterData, link, tokenFile, authority, upstream, data },
    hubArguments: [...data, ...upstream, ...authority, '--port', '0'],
    stopCluster: () => served.stop(),
    async startCluster() {
      served = await cluster(clusterData, port);
    },
  };
}

export async function story(roles: readonly string[] = ['system:nodekeeper:hub'], more: readonly string[] = []) {
  const served = await clusterOfHub(roles);
  const hub = await started([...served.hubArguments, ...more]);
  return { ...served, hub: hub.api, stopHub: hub.stop };
}

export async function started(args: readonly string[], lines: string[] = []) {
  const options = parseServeOptions(args);
  const served = await startHub({ ...options, upstream: options.upstream! }, { print: (line) => lines.push(line) });
  onTestFinished(() => served.stop());
  const api = new Api(served.url, served.caPem);
  await until(() => served.fault() === undefined, {
    withinMs: 30_000,
    what: `a hub that is ready\n${lines.join('\n')}`,
  });
  return { api, stop: served.stop };
}

export const soon = (what: string, look: () => Promise<boolean> | boolean, withinMs = 20_000) =>
  until(look, { withinMs, what });

export const kubeconfigOf = ({ url, ca }: Api): string =>
  JSON.stringify({
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'hub' },
    clusters: [
      { name: 'hub', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca ?? '').toString('base64') } },
    ],
    users: [{ name: 'ada', user: { token: ADA } }],
    contexts: [{ name: 'hub', context: { cluster: 'hub', user: 'ada' } }],
  });
