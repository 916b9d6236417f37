/**
 * What of each NUMA node was given to which container. A value: giving out makes a new one.
 * Source: the state of pkg/kubelet/cm/cpumanager and memorymanager (policy static).
 */

import { podQosClass } from '../../../shared/kube/pods/qos-class.ts';
import { parseQuantity } from '../../../shared/kube/quantity.ts';
import type { KubeObject } from '../../../shared/kube/types.ts';
import { type Container, containersOf } from '../pod-containers.ts';

export interface NumaNode {
  readonly id: number;
  readonly cpus: readonly number[];
  readonly memoryBytes: number;
}

export interface Grant {
  readonly podUid: string;
  readonly container: string;
  /** Of an init container that has ended before the next one begins: the pod may use it again. */
  readonly reusable: boolean;
  readonly cpus: readonly number[];
  /** By node id. */
  readonly memoryBytes: ReadonlyMap<number, number>;
}

export interface Ledger {
  readonly grants: readonly Grant[];
}

export const EMPTY_LEDGER: Ledger = Object.freeze({ grants: [] });

export const podUidOf = ({ metadata }: KubeObject): string =>
  metadata.uid ?? `${metadata.namespace ?? ''}/${metadata.name ?? ''}`;

/** Of a pod that is gone. */
export const released = (ledger: Ledger, podUid: string): Ledger => ({
  grants: ledger.grants.filter((grant) => grant.podUid !== podUid),
});

export const grantOf = (ledger: Ledger, podUid: string, container: string): Grant | undefined =>
  ledger.grants.find((grant) => grant.podUid === podUid && grant.container === container);

/** With so much more for the container. */
export function granted(
  ledger: Ledger,
  pod: KubeObject,
  container: Container,
  given: Partial<Pick<Grant, 'cpus' | 'memoryBytes'>>,
): Ledger {
  const podUid = podUidOf(pod);
  const before = grantOf(ledger, podUid, container.name);
  const grant: Grant = {
    cpus: [],
    memoryBytes: new Map(),
    ...before,
    ...given,
    podUid,
    container: container.name,
    reusable: container.kind === 'init',
  };
  return { grants: [...ledger.grants.filter((each) => each !== before), grant] };
}

/** Ascending, by node: what nobody has, unless it is the pod itself for an init container. */
export function freeCpus(nodes: readonly NumaNode[], ledger: Ledger, podUid: string): ReadonlyMap<number, number[]> {
  const others = ledger.grants.filter((grant) => grant.podUid !== podUid || !grant.reusable);
  const taken = new Set(others.flatMap(({ cpus }) => cpus));
  return new Map(
    nodes.map(({ id, cpus }) => [id, cpus.filter((cpu) => !taken.has(cpu)).sort((left, right) => left - right)]),
  );
}

/** Of one pod on one node: its containers together, or the init container that took most, if that is more. Bytes. */
function memoryOf(grants: readonly Grant[], nodeId: number, withReusable: boolean): number {
  let together = 0;
  let starting = 0;
  for (const { reusable, memoryBytes } of grants) {
    const bytes = memoryBytes.get(nodeId) ?? 0;
    if (!reusable) together += bytes;
    else if (withReusable) starting = Math.max(starting, bytes);
  }
  return Math.max(together, starting);
}

/** Bytes by node. */
export function freeMemory(nodes: readonly NumaNode[], ledger: Ledger, podUid: string): ReadonlyMap<number, number> {
  const pods = Map.groupBy(ledger.grants, (grant) => grant.podUid);
  return new Map(
    nodes.map(({ id, memoryBytes }) => {
      let free = memoryBytes;
      for (const [uid, grants] of pods) free -= memoryOf(grants, id, uid !== podUid);
      return [id, free];
    }),
  );
}

const NANO = 1_000_000_000n;

function amountOf(container: Container, resource: 'cpu' | 'memory'): number {
  const value = container.requests[resource] ?? container.limits[resource];
  const parsed = parseQuantity(typeof value === 'string' || typeof value === 'number' ? String(value) : '');
  if (parsed.kind !== 'parsed') return 0;
  const { nanos } = parsed.quantity;
  // A share of a core is not pinned: such a container runs on what is left.
  if (resource === 'cpu') return nanos % NANO === 0n ? Number(nanos / NANO) : 0;
  return Number((nanos + NANO - 1n) / NANO);
}

/**
 * What is dealt out by node: whole cores and memory of Guaranteed pods. 0: nothing. For the whole pod, its containers
 * together, or the largest moment of its start if that is more.
 */
export function exclusiveRequest(
  pod: KubeObject,
  container: Container | undefined,
  resource: 'cpu' | 'memory',
): number {
  if (podQosClass(pod) !== 'Guaranteed') return 0;
  if (container !== undefined) return amountOf(container, resource);
  let together = 0;
  let starting = 0;
  for (const each of containersOf(pod)) {
    const amount = amountOf(each, resource);
    if (each.kind === 'init') starting = Math.max(starting, together + amount);
    else together += amount;
  }
  return Math.max(starting, together);
}
