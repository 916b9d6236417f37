/**
 * How much swap a container may use.
 * Source: pkg/kubelet/kuberuntime/kuberuntime_container_linux.go, pkg/kubelet/util/swap,
 * pkg/kubelet/cm/container_manager_linux.go.
 */

import { podQosClass } from '../../shared/kinds/pods/pod-needs.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { parseQuantity } from '../../shared/kubernetes/quantity.ts';
import { isCriticalPod } from './critical-pod.ts';
import { type Container, containersOf } from './pod-containers.ts';

/** Bytes; undefined if the request exceeds the memory of the node, or the node reports none. */
function limitedSwapBytes(requestBytes: number, nodeMemoryBytes: number, nodeSwapBytes: number): number | undefined {
  if (nodeMemoryBytes <= 0 || requestBytes > nodeMemoryBytes) return undefined;
  return Math.trunc((requestBytes / nodeMemoryBytes) * nodeSwapBytes);
}

export interface SwapNode {
  readonly cgroupVersion: 1 | 2;
  /** Whether our own cgroup has a swap limit. */
  readonly controllerPresent: boolean;
  /** Without the feature gate NodeSwap only '' is valid; it means NoSwap. */
  readonly swapBehavior: '' | 'NoSwap' | 'LimitedSwap';
  readonly memoryBytes: number;
  /** All swap of the machine; none is reserved for the system. */
  readonly swapBytes: number;
}

export type SwapLimit =
  /** Nothing is written. */
  | { readonly kind: 'unset' }
  /** cgroup v2, memory.swap.max. */
  | { readonly kind: 'swapMax'; readonly bytes: number }
  /** cgroup v1: memory and swap together. */
  | { readonly kind: 'memoryAndSwap'; readonly bytes: number };

/** Whole bytes, rounded up; 0 if unset. */
function bytesOf(amounts: Readonly<Record<string, unknown>>): number {
  const value = amounts['memory'];
  if (typeof value !== 'string' && typeof value !== 'number') return 0;
  const parsed = parseQuantity(String(value));
  return parsed.kind === 'parsed' ? Math.ceil(Number(parsed.quantity.nanos) / 1e9) : 0;
}

function limitOf(node: SwapNode, podMaySwap: boolean, container: Container): SwapLimit {
  if (!node.controllerPresent) return { kind: 'unset' };
  const request = bytesOf(container.requests);
  const limit = bytesOf(container.limits);
  if (node.cgroupVersion === 1) return { kind: 'memoryAndSwap', bytes: limit };
  const maySwap = podMaySwap && (request > 0 || limit > 0) && request !== limit;
  const bytes = maySwap ? limitedSwapBytes(request, node.memoryBytes, node.swapBytes) : undefined;
  return { kind: 'swapMax', bytes: bytes ?? 0 };
}

/** By container. Only Burstable pods that are not critical may use swap. */
export function swapLimits(node: SwapNode, pod: KubeObject): ReadonlyMap<string, SwapLimit> {
  const podMaySwap = node.swapBehavior === 'LimitedSwap' && !isCriticalPod(pod) && podQosClass(pod) === 'Burstable';
  return new Map(containersOf(pod).map((container) => [container.name, limitOf(node, podMaySwap, container)]));
}
