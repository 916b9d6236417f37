/**
 * Which pod is evicted first. Source: pkg/kubelet/eviction/helpers.go (rankMemoryPressure and the functions beside it).
 */

import type { KubePod } from '../../shared/kinds/types.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import type { PodUsage } from '../ports/pod-runtime.ts';
import { priorityOf } from './critical-pod.ts';
import type { StarvedResource } from './eviction-signals.ts';
import { podRequests } from './pod-admission.ts';

/** Undefined if the pod cannot be measured. */
export type UsageOf = (pod: KubePod) => PodUsage | undefined;

type Compare = (left: KubePod, right: KubePod) => number;

/** Whole bytes, rounded up; 0 if unset. */
export function bytesOfQuantity(value: unknown): number {
  const parsed = parseQuantity(String(value));
  if (parsed.kind !== 'parsed') return 0;
  return Math.ceil(Number(parsed.quantity.nanos) / 1e9);
}

/** Files of the pod on the disk of the node: output, own files and volumes. Undefined if they were not measured. */
function storageOf(usage: PodUsage, amount: 'bytes' | 'inodes'): number {
  const parts = [...usage.containers.map(({ storage }) => storage), ...usage.volumes.values()];
  return parts.reduce((sum, each) => sum + each[amount], 0);
}

function usedOf(usage: PodUsage, resource: StarvedResource): number {
  switch (resource) {
    case 'memory':
      return usage.memoryBytes ?? 0;
    case 'ephemeral-storage':
      return storageOf(usage, 'bytes');
    case 'inodes':
      return storageOf(usage, 'inodes');
    case 'pids':
      return usage.processes ?? 0;
  }
}

const requestOf = (pod: KubePod, resource: string): number => Number(podRequests(pod).get(resource) ?? 0n);

/** Pods that cannot be measured come first. */
function byMeasure(usageOf: UsageOf, measure: (usage: PodUsage, pod: KubePod) => number): Compare {
  return (left, right) => {
    const [one, other] = [usageOf(left), usageOf(right)];
    if (one === undefined || other === undefined) return Number(one !== undefined) - Number(other !== undefined);
    return measure(other, right) - measure(one, left);
  };
}

const byPriority: Compare = (left, right) => priorityOf(left) - priorityOf(right);

/** Pods above their request, then those of lower priority, then those furthest above their request. */
export function rankForEviction(
  resource: StarvedResource,
  pods: readonly KubePod[],
  usageOf: UsageOf,
): readonly KubePod[] {
  const excess = (usage: PodUsage, pod: KubePod): number => usedOf(usage, resource) - requestOf(pod, resource);
  const exceeds = byMeasure(usageOf, (usage, pod) => Number(excess(usage, pod) > 0));
  // Inodes have no request, and are compared with that of ephemeral-storage, as upstream.
  const furthest = byMeasure(usageOf, (usage, pod) =>
    resource === 'inodes' ? usedOf(usage, resource) - requestOf(pod, 'ephemeral-storage') : excess(usage, pod),
  );
  // A pod has no request of processes, so it cannot exceed it.
  const order = resource === 'pids' ? [byPriority, furthest] : [exceeds, byPriority, furthest];
  return [...pods].sort((left, right) => order.reduce((sum, compare) => sum || compare(left, right), 0));
}
