/** Controllers and the Kubernetes API over the same tables in memory, on one virtual clock. */
import { createHash } from 'node:crypto';
import { serveHeartbeat } from '../../functions/heartbeat/work.ts';
import { staticTokenAuthenticator } from '../../shared/access/bearer.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import type { ItemStore } from '../../shared/store/item-store.ts';
import { type ApiInMemory, apiInMemory, MERGE, type Send } from './api-in-memory.ts';
import { type ControlledFleet, controlledFleet, type FleetOptions } from './controlled-fleet.ts';

export interface ServedFleet {
  readonly fleet: ControlledFleet;
  readonly api: ApiInMemory;
  /** Sends as an administrator. Answers the body. Throws on any answer but 2xx. */
  send(method: string, path: string, send?: Send): Promise<KubeObject>;
  /** Sends as the identity of a machine. */
  sendAs(nodeName: string, method: string, path: string, send?: Send): ReturnType<ApiInMemory['send']>;
  /** PATCH of the machine's Lease at the heartbeat. Answers the status code. */
  beatAs(nodeName: string, lease: object, send?: { query?: string; headers?: Record<string, string> }): Promise<number>;
}

export function servedFleet(machines: readonly string[], options: FleetOptions = {}): ServedFleet {
  const fleet = controlledFleet(options);
  const tokenOf = (nodeName: string): string => `token-of-${nodeName}`;
  const heartbeat = serveHeartbeat({
    items: fleet.serving,
    authenticator: staticTokenAuthenticator(
      machines.map((name) => ({
        sha256: createHash('sha256').update(tokenOf(name)).digest('hex'),
        user: `system:node:${name}`,
        groups: ['system:nodes'],
      })),
    ),
    clock: { nowMs: fleet.nowMs },
    random: { uuid: () => 'u', fraction: () => 0.5 },
    log: { debug() {}, info() {}, warn() {}, error() {} },
  });
  const api = apiInMemory({
    items: fleet.serving,
    clock: { nowMs: fleet.nowMs },
    policy: fleet.policy,
    users: Object.fromEntries(
      machines.map((name) => [tokenOf(name), { name: `system:node:${name}`, groups: ['system:nodes'] }]),
    ),
  });
  return {
    fleet,
    api,
    async send(method, path, send) {
      const { code, body, text } = await api.send(method, path, send);
      if (code >= 300) throw new Error(`${method} ${path}: ${code} ${text}`);
      return body as KubeObject;
    },
    async beatAs(nodeName, lease, { query = '', headers = {} } = {}) {
      const { status } = await heartbeat({
        method: 'PATCH',
        path: `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/${nodeName}`,
        query: new URLSearchParams(query),
        headers: { authorization: `Bearer ${tokenOf(nodeName)}`, 'content-type': MERGE, ...headers },
        body: Buffer.from(JSON.stringify(lease)),
        sourceIp: '192.0.2.9',
      });
      return status;
    },
    sendAs: (nodeName, method, path, send = {}) =>
      api.send(method, path, { ...send, headers: { ...send.headers, authorization: `Bearer ${tokenOf(nodeName)}` } }),
  };
}

/** A store in which each call first lets other work run for up to so many turns, as the fraction says. */
export function staggered(items: ItemStore, fraction: () => number, turnsMax: number): ItemStore {
  const wait = async (): Promise<void> => {
    for (let turns = Math.floor(fraction() * turnsMax); turns > 0; turns -= 1) await Promise.resolve();
  };
  const after =
    <A extends unknown[], R>(call: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      await wait();
      return call.apply(items, args);
    };
  return {
    ...items,
    get: after(items.get),
    getMany: after(items.getMany),
    query: after(items.query),
    write: after(items.write),
    transact: after(items.transact),
  };
}
