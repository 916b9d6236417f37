/** Machines with credentials of their own against a running local mode. One of them sends all that it can. */
import { createHash, randomBytes } from 'node:crypto';
import { Agent, request } from 'node:https';
import { IDENTITIES, identityBody, NODE_LEASES, TOKENS } from './identity-cluster.ts';
import { type NodeKeyPair, nodeKeyPair, nodeToken } from './node-key-pair.ts';

/** Name of the cluster in local mode. */
const CLUSTER_ID = 'nodekeeper';
const TIMEOUT_MS = 20_000;
const MERGE = 'application/merge-patch+json';

export interface Target {
  readonly url: string;
  readonly ca: string;
  readonly adminToken: string;
}

export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly token: string;
  readonly contentType?: string;
  readonly body?: string;
}

export interface RawAnswer {
  /** 0: no answer. */
  readonly status: number;
  readonly text: string;
  readonly milliseconds: number;
}

/** Sends bodies as they are, on connections that are kept. */
export function rawClient({ url, ca }: Pick<Target, 'url' | 'ca'>) {
  const agent = new Agent({ keepAlive: true, ca, maxSockets: 256 });
  const send = ({ method, path, token, contentType = 'application/json', body }: RawRequest): Promise<RawAnswer> =>
    new Promise((resolve) => {
      const startedMs = performance.now();
      const end = (status: number, text: string): void =>
        resolve({ status, text, milliseconds: performance.now() - startedMs });
      const headers = {
        authorization: `Bearer ${token}`,
        ...(body === undefined ? {} : { 'content-type': contentType, 'content-length': Buffer.byteLength(body) }),
      };
      const sent = request(new URL(path, url), { method, agent, headers, timeout: TIMEOUT_MS }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => end(response.statusCode ?? 0, Buffer.concat(chunks).toString()));
        response.on('error', () => end(0, ''));
      });
      sent.on('timeout', () => sent.destroy());
      sent.on('error', () => end(0, ''));
      sent.end(body);
    });
  return { send, close: () => agent.destroy() };
}

export type RawClient = ReturnType<typeof rawClient>;

export interface EnrolledMachine {
  readonly name: string;
  readonly pair: NodeKeyPair;
  token(): string;
}

/** Machines with a Node, a Lease and a key each. */
export async function enrolMachines(
  client: RawClient,
  { adminToken }: Pick<Target, 'adminToken'>,
  names: readonly string[],
): Promise<readonly EnrolledMachine[]> {
  const secret = randomBytes(32).toString('base64url');
  const id = `greedy${randomBytes(2).toString('hex')}`;
  const spec = {
    secretSha256: createHash('sha256').update(secret).digest('hex'),
    expires: new Date(Date.now() + 3_600_000).toISOString().replace(/\.\d+/, ''),
    uses: names.length,
  };
  const post = async (token: string, path: string, body: object): Promise<void> => {
    const answer = await client.send({ method: 'POST', path, token, body: JSON.stringify(body) });
    if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text.slice(0, 300)}`);
  };
  const apiVersion = 'nodekeeper.dev/v1alpha1';
  await post(adminToken, TOKENS, { apiVersion, kind: 'BootstrapToken', metadata: { name: id }, spec });
  const machines = names.map(machineNamed);
  for (const { name, pair, token } of machines) {
    await post(`${id}.${secret}`, IDENTITIES, identityBody(name, pair));
    const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'ready' }];
    const metadata = { name, labels: { 'kubernetes.io/hostname': name, 'topology.kubernetes.io/zone': 'z' } };
    await post(token(), '/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata, status: { conditions } });
    await post(token(), NODE_LEASES, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, namespace: 'kube-node-lease' },
      spec: { holderIdentity: name, leaseDurationSeconds: 40 },
    });
  }
  return machines;
}

function machineNamed(name: string): EnrolledMachine {
  const pair = nodeKeyPair();
  let [token, untilMs] = ['', 0];
  return {
    name,
    pair,
    token() {
      if (Date.now() < untilMs) return token;
      [token, untilMs] = [
        nodeToken(pair, { nodeName: name, nowMs: Date.now(), clusterId: CLUSTER_ID }),
        Date.now() + 200_000,
      ];
      return token;
    },
  };
}

export const leaseRenewal = ({ name, token }: EnrolledMachine, body = renewalBody()): RawRequest => ({
  method: 'PATCH',
  path: `${NODE_LEASES}/${name}`,
  token: token(),
  contentType: MERGE,
  body,
});

const renewalBody = (): string =>
  JSON.stringify({ spec: { renewTime: new Date().toISOString().replace('Z', '000Z') } });

const OWNERS = 700;
const ESCAPES = 60_000;

/** What a greedy machine sends, by name. */
export const GREEDY_REQUESTS: Readonly<Record<string, (machine: EnrolledMachine) => RawRequest>> = {
  /** The next one is sent when one is answered. */
  heartbeats: (machine) => leaseRenewal(machine),
  /** A Lease with hundreds of controllers: the text of the error lists them. */
  ownerReferences: (machine) => {
    const owner = { apiVersion: 'v1', kind: 'P', name: 'x', controller: true };
    const ownerReferences = Array.from({ length: OWNERS }, (_, index) => ({ ...owner, uid: String(index) }));
    return leaseRenewal(machine, JSON.stringify({ metadata: { ownerReferences } }));
  },
  /** A body with tens of thousands of errors. */
  yaml: ({ token }) => ({
    method: 'POST',
    path: '/api/v1/namespaces/default/events',
    token: token(),
    contentType: 'application/yaml',
    body: `a: "${'\\q'.repeat(ESCAPES)}"`,
  }),
  /** Lists of the pods of its own Node. */
  lists: ({ name, token }) => ({
    method: 'GET',
    path: `/api/v1/pods?fieldSelector=spec.nodeName%3D${name}`,
    token: token(),
  }),
};

/** Sends `concurrent` requests at a time until `goOn` is false. @returns number of answers by status */
export async function sendGreedily(
  client: RawClient,
  next: () => RawRequest,
  { concurrent, goOn }: { readonly concurrent: number; readonly goOn: () => boolean },
): Promise<Readonly<Record<number, number>>> {
  const statuses: Record<number, number> = {};
  const sender = async (): Promise<void> => {
    while (goOn()) {
      const { status } = await client.send(next());
      statuses[status] = (statuses[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: concurrent }, sender));
  return statuses;
}
