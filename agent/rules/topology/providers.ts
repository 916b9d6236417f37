/**
 * Cores and memory on NUMA nodes: the sets of nodes that can hold a request now, and the smallest sets that could hold
 * it if they were empty. Source: pkg/kubelet/cm/cpumanager/policy_static.go,
 * pkg/kubelet/cm/memorymanager/policy_static.go.
 */
import type { Allocated, HintProvider } from './admission.ts';
import type { Hint, ProviderHints } from './hint.ts';
import { exclusiveRequest, freeCpus, freeMemory, granted, type Ledger, type NumaNode, podUidOf } from './ledger.ts';
import { bitCount, EMPTY, type Mask, maskOf } from './mask.ts';

/** n nodes have 2^n sets. With more nodes than this, only single nodes and the set of all nodes are proposed. */
const NODES_COMBINED_MAX = 12;

function masksOf(nodeIds: readonly number[]): Mask[] {
  if (nodeIds.length > NODES_COMBINED_MAX) return [...nodeIds.map((id) => maskOf([id])), maskOf(nodeIds)];
  let masks: Mask[] = [EMPTY];
  for (const id of nodeIds) masks = [...masks, ...masks.map((mask) => mask | maskOf([id]))];
  return masks.filter((mask) => mask !== EMPTY);
}

const sumOver = (mask: Mask, amounts: ReadonlyMap<number, number>): number =>
  [...amounts].reduce((sum, [id, amount]) => (mask & maskOf([id]) ? sum + amount : sum), 0);

/** Preferred: the fewest nodes that could hold the request if they were empty. */
function hintsFor(request: number, total: ReadonlyMap<number, number>, free: ReadonlyMap<number, number>): Hint[] {
  const masks = masksOf([...total.keys()]);
  const large = masks.filter((mask) => sumOver(mask, total) >= request).map(bitCount);
  const least = Math.min(...large);
  return masks
    .filter((mask) => sumOver(mask, free) >= request)
    .map((mask) => ({ mask, preferred: bitCount(mask) === least }));
}

/** Nodes of the hint come first. */
function inOrderOf(hint: Hint | undefined, nodes: readonly NumaNode[]): readonly NumaNode[] {
  const mask = hint?.mask;
  if (mask === undefined) return nodes;
  const inside = ({ id }: NumaNode): boolean => (mask & maskOf([id])) !== EMPTY;
  return [...nodes.filter(inside), ...nodes.filter((node) => !inside(node))];
}

const lacking = (what: string, requested: number, available: number): Allocated<Ledger> => ({
  kind: 'failed',
  message: `not enough ${what} available to satisfy request: requested=${requested}, available=${available}`,
});

export function cpuProvider(nodes: readonly NumaNode[]): HintProvider<Ledger> {
  const total = new Map(nodes.map(({ id, cpus }) => [id, cpus.length]));
  return {
    hints(ledger, pod, container): ProviderHints {
      const request = exclusiveRequest(pod, container, 'cpu');
      if (request === 0) return undefined;
      const free = new Map([...freeCpus(nodes, ledger, podUidOf(pod))].map(([id, cpus]) => [id, cpus.length]));
      return new Map([['cpu', hintsFor(request, total, free)]]);
    },
    allocate(ledger, pod, container, hint) {
      const request = exclusiveRequest(pod, container, 'cpu');
      if (request === 0) return { kind: 'allocated', state: ledger };
      const free = freeCpus(nodes, ledger, podUidOf(pod));
      const cpus = inOrderOf(hint, nodes).flatMap(({ id }) => free.get(id) ?? []);
      if (cpus.length < request) return lacking('cpus', request, cpus.length);
      return { kind: 'allocated', state: granted(ledger, pod, container, { cpus: cpus.slice(0, request) }) };
    },
  };
}

export function memoryProvider(nodes: readonly NumaNode[]): HintProvider<Ledger> {
  const total = new Map(nodes.map(({ id, memoryBytes }) => [id, memoryBytes]));
  return {
    hints(ledger, pod, container): ProviderHints {
      const request = exclusiveRequest(pod, container, 'memory');
      if (request === 0) return undefined;
      return new Map([['memory', hintsFor(request, total, freeMemory(nodes, ledger, podUidOf(pod)))]]);
    },
    allocate(ledger, pod, container, hint) {
      const request = exclusiveRequest(pod, container, 'memory');
      if (request === 0) return { kind: 'allocated', state: ledger };
      const free = freeMemory(nodes, ledger, podUidOf(pod));
      const memoryBytes = new Map<number, number>();
      let missing = request;
      for (const { id } of inOrderOf(hint, nodes)) {
        const taken = Math.min(missing, Math.max(0, free.get(id) ?? 0));
        if (taken > 0) memoryBytes.set(id, taken);
        missing -= taken;
      }
      if (missing > 0) return lacking('memory', request, request - missing);
      return { kind: 'allocated', state: granted(ledger, pod, container, { memoryBytes }) };
    },
  };
}
