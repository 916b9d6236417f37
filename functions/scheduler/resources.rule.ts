/**
 * What a node has for a pod: NodeResourcesFit (filter and LeastAllocated), NodeResourcesBalancedAllocation, NodePorts
 * (host ports that pods of the node use) and ImageLocality (a node that has large images of the pod scores higher).
 *
 * Source: pkg/scheduler/framework/plugins, noderesources/{fit,least_allocated,balanced_allocation}.go,
 * nodeports/node_ports.go and imagelocality/image_locality.go.
 */

import { conflictsWith } from '../../shared/kinds/pods/pod-needs.ts';
import type { Filter, Rejection } from '../../shared/scheduling/filter.rule.ts';
import { comparedAmounts } from '../../shared/scheduling/requests.rule.ts';
import type { NodeState, Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';

const PLUGIN = 'NodeResourcesFit';
const SCORE_MAX = 100;
/** Each node keeps its reasons, and a pod may request thousands of resources. Upstream has no bound. */
const REASONS_MAX = 64;

export const resourcesFilter =
  ({ requests }: SchedulablePod): Filter =>
  (state) =>
    resourcesRejection(requests, state);

/** Beyond what the node offers at all, removing pods does not help. */
function resourcesRejection(requests: SchedulablePod['requests'], state: NodeState): Rejection | undefined {
  const { node, pods, used } = state;
  const reasons: string[] = [];
  let isResolvable = true;
  if (pods.size + 1 > node.podsMax) reasons.push('Too many pods');
  for (const { name, requested, allocatable, used: inUse } of comparedAmounts(requests, node.allocatable, used)) {
    if (requested <= allocatable - inUse) continue;
    if (reasons.length < REASONS_MAX) reasons.push(`Insufficient ${name}`);
    if (requested > allocatable) isResolvable = false;
    if (reasons.length >= REASONS_MAX && !isResolvable) break;
  }
  return reasons.length === 0 ? undefined : { plugin: PLUGIN, reasons, isResolvable };
}

const leastOf = (used: number, allocatable: number): number =>
  used > allocatable ? 0 : Math.floor(((allocatable - used) * SCORE_MAX) / allocatable);

/** Free share of cpu and memory after the pod, 0 to 100. */
export function leastAllocatedScore({ scored }: SchedulablePod, state: NodeState): number {
  const { cpu, memory } = state.node.allocatable;
  let sum = 0;
  let resources = 0;
  if (cpu > 0) {
    sum += leastOf(state.scoredCpu + scored.cpu, cpu);
    resources += 1;
  }
  if (memory > 0) {
    sum += leastOf(state.scoredMemory + scored.memory, memory);
    resources += 1;
  }
  return resources === 0 ? 0 : Math.floor(sum / resources);
}

/** 100 when cpu and memory are used in equal shares. */
function balanceOf(
  cpu: number,
  memory: number,
  allocatable: { readonly cpu: number; readonly memory: number },
): number {
  if (allocatable.cpu <= 0 || allocatable.memory <= 0) return SCORE_MAX;
  const cpuShare = Math.min(1, cpu / allocatable.cpu);
  const memoryShare = Math.min(1, memory / allocatable.memory);
  const deviation = Math.abs(cpuShare - memoryShare) / 2;
  return Math.trunc((1 - deviation) * SCORE_MAX);
}

/** 75 when the pod does not change the balance; more when it improves it. */
export function balancedAllocationScore({ requests }: SchedulablePod, { node, used }: NodeState): number {
  const withPod = balanceOf(used.cpu + requests.cpu, used.memory + requests.memory, node.allocatable);
  const without = balanceOf(used.cpu, used.memory, node.allocatable);
  return 50 + Math.trunc((50 + withPod - without) / 2);
}

const PORTS_IN_USE: Rejection = {
  plugin: 'NodePorts',
  reasons: ["node(s) didn't have free ports for the requested pod ports"],
  isResolvable: true,
};
export function hostPortFilter({ hostPorts }: SchedulablePod): Filter {
  const conflicts = conflictsWith(hostPorts);
  return (state) => (conflicts(state.hostPorts) ? PORTS_IN_USE : undefined);
}

const MEBIBYTE = 1_024 * 1_024;
/** Bytes. */
const LEAST = 23 * MEBIBYTE;
const MOST_PER_CONTAINER = 1_000 * MEBIBYTE;

/** 0 to 100. An image that few nodes have counts less: otherwise they would attract all pods of it. */
export function imageLocalityScore(pod: SchedulablePod, { node }: NodeState, snapshot: Snapshot): number {
  if (node.images.size === 0) return 0;
  let sum = 0;
  for (const image of pod.images) {
    const bytes = node.images.get(image);
    if (bytes !== undefined) sum += Math.trunc(bytes * (snapshot.nodesWithImage(image) / snapshot.nodes.size));
  }
  const most = MOST_PER_CONTAINER * Math.max(1, pod.containers);
  const clamped = Math.min(most, Math.max(LEAST, sum));
  return Math.trunc((SCORE_MAX * (clamped - LEAST)) / (most - LEAST));
}
