/**
 * Which resources of each NUMA node are assigned to which container. The ledger is a value: an assignment returns a new
 * one.
 * Source: the state of pkg/kubelet/cm/cpumanager and memorymanager (policy static).
 */

import { podQosClass } from '../../../shared/kinds/pods/pod-needs.ts';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { parseQuantity } from '../../../shared/kubernetes/quantity.ts';
import type { CpuPlacement } from '../../ports/pod-runtime.ts';
import { type Container, containersOf } from '../pod-containers.ts';

export interface NumaNode {
  readonly id: number;
  readonly cpus: readonly number[];
  readonly memoryBytes: number;
}

export interface Grant {
  readonly podUid: string;
  readonly container: string;
  /**
   * The container is an init container, which terminates before the next one starts: its pod may use the resources
   * again.
   */
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

/** The ledger without the assignments of this pod. */
export const released = (ledger: Ledger, podUid: string): Ledger => ({
  grants: ledger.grants.filter((grant) => grant.podUid !== podUid),
});

export const grantOf = (ledger: Ledger, podUid: string, container: string): Grant | undefined =>
  ledger.grants.find((grant) => grant.podUid === podUid && grant.container === container);

/** The ledger with a further assignment to this container. */
export function granted(
  ledger: Ledger,
  pod: KubeObject,
  container: Container,
  added: Partial<Pick<Grant, 'cpus' | 'memoryBytes'>>,
): Ledger {
  const podUid = podUidOf(pod);
  const before = grantOf(ledger, podUid, container.name);
  const grant: Grant = {
    cpus: [],
    memoryBytes: new Map(),
    ...before,
    ...added,
    podUid,
    container: container.name,
    reusable: container.kind === 'init',
  };
  return { grants: [...ledger.grants.filter((each) => each !== before), grant] };
}

/** Unassigned CPUs by node, ascending. CPUs of the pod's own init containers count as free. */
export function freeCpus(nodes: readonly NumaNode[], ledger: Ledger, podUid: string): ReadonlyMap<number, number[]> {
  const others = ledger.grants.filter((grant) => grant.podUid !== podUid || !grant.reusable);
  const taken = new Set(others.flatMap(({ cpus }) => cpus));
  return new Map(
    nodes.map(({ id, cpus }) => [id, cpus.filter((cpu) => !taken.has(cpu)).sort((left, right) => left - right)]),
  );
}

/**
 * Where a container may run: on its own processors, or on those that no container has for itself. Source:
 * pkg/kubelet/cm/cpumanager/cpu_manager.go (reconcileState), memorymanager (GetMemoryNUMANodes).
 */
export function placementIn(
  nodes: readonly NumaNode[],
  ledger: Ledger,
  podUid: string,
  container: string,
): CpuPlacement {
  const grant = grantOf(ledger, podUid, container);
  const memoryNodes = [...(grant?.memoryBytes.keys() ?? [])];
  if (grant !== undefined && grant.cpus.length > 0) return { cpus: grant.cpus, memoryNodes, exclusive: true };
  const taken = new Set(ledger.grants.flatMap(({ cpus }) => cpus));
  const shared = taken.size === 0 ? [] : nodes.flatMap(({ cpus }) => cpus).filter((cpu) => !taken.has(cpu));
  return { cpus: shared, memoryNodes, exclusive: false };
}

/** Memory of one pod on one node: the sum of its containers, or the largest init container if that is more. Bytes. */
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

/** Unassigned memory by node. Bytes. */
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
  // A fraction of a core is not pinned: the container runs on the unassigned cores.
  if (resource === 'cpu') return nanos % NANO === 0n ? Number(nanos / NANO) : 0;
  return Number((nanos + NANO - 1n) / NANO);
}

/**
 * The amount that is assigned exclusively: whole cores and memory of Guaranteed pods; 0 for all others. For a whole
 * pod: the sum of its containers, or the maximum during its start if that is more.
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
