/** Machines that send heartbeats to a cluster, and follow it as an agent does (agent/app/follow-move.ts). */
import { setTimeout as pause } from 'node:timers/promises';
import { createHttpKubeApi, type HttpKubeApi } from '../../agent/adapters/http/kube-api.ts';
import { MoveFollower } from '../../agent/app/follow-move.ts';
import type { Credentials } from '../../agent/ports/credentials.ts';
import type { KubeApi } from '../../agent/ports/kube-api.ts';
import type { ClusterAddress } from '../../shared/agents/moved-cluster.ts';

const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const SILENT = { debug() {}, info() {}, warn() {}, error() {} };
const MERGE = 'application/merge-patch+json';

export class MovingMachine {
  readonly name: string;
  /** Codes of answers to heartbeats, and `failed`. */
  readonly answers = new Map<number | 'failed', number>();
  /** Base URL of the cluster. */
  at: string;
  readonly #credentials: Credentials;
  #client: HttpKubeApi;
  #api: KubeApi;
  readonly #follower: MoveFollower;

  constructor(name: string, address: ClusterAddress, token: string) {
    this.name = name;
    this.at = address.endpoint;
    this.#credentials = { bearer: async () => token, answered: () => false };
    let next = address;
    this.#follower = new MoveFollower({
      nodeName: name,
      open: (other) => createHttpKubeApi({ ...other, credentials: this.#credentials }),
      remember: async (other) => {
        next = other;
      },
      restart: () => {
        this.#client.close();
        this.#client = this.#open(next);
        this.#api = this.#follower.watching(this.#client);
        this.at = next.endpoint;
      },
      monotonicMs: () => performance.now(),
      log: SILENT,
    });
    this.#client = this.#open(address);
    this.#api = this.#follower.watching(this.#client);
  }

  async register(): Promise<void> {
    const { name } = this;
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name } };
    await this.#require('POST', '/api/v1/nodes', node);
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '' };
    await this.#require('PATCH', `/api/v1/nodes/${name}/status`, { status: { conditions: [ready] } });
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name, namespace: 'kube-node-lease' },
    };
    await this.#require('POST', LEASES, { ...lease, spec: this.#spec() });
  }

  /** Sends heartbeats until the signal is aborted. */
  async run(everyMs: number, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      const answer = await this.#api.send({
        ...{ method: 'PATCH', path: `${LEASES}/${this.name}`, contentType: MERGE, timeoutMs: everyMs },
        ...{ body: { spec: this.#spec() }, prefersMinimal: true },
      });
      const code = answer.kind === 'answered' ? answer.status : 'failed';
      this.answers.set(code, (this.answers.get(code) ?? 0) + 1);
      await pause(everyMs, undefined, { signal: stop }).catch(() => {});
    }
    this.#client.close();
  }

  #open(address: ClusterAddress): HttpKubeApi {
    return createHttpKubeApi({ ...address, credentials: this.#credentials });
  }

  #spec() {
    const renewTime = new Date().toISOString().replace('Z', '000Z');
    return { holderIdentity: this.name, leaseDurationSeconds: 40, renewTime };
  }

  async #require(method: 'POST' | 'PATCH', path: string, body: object): Promise<void> {
    const answer = await this.#api.send({ method, path, body, ...(method === 'PATCH' && { contentType: MERGE }) });
    if (answer.kind === 'answered' && answer.status < 300) return;
    throw new Error(`${method} ${path}: ${JSON.stringify(answer)}`);
  }
}
