/**
 * Limits of a container as options of `podman create`. Source: podman-create(1). The values are those of a kubelet, as
 * for control groups of our own.
 */
import type { KubePod } from '../../shared/kinds/types.ts';
import type { CpuPlacement } from '../ports/pod-runtime.ts';
import {
  type CgroupNode,
  cpuList,
  cpuQuotaOf,
  cpuSharesOf,
  memoryLimitBytes,
  oomScoreAdjust,
  QUOTA_PERIOD_MICROSECONDS,
} from './cgroup-values.ts';
import type { Container } from './pod-containers.ts';
import { swapLimits } from './swap.ts';

const option = (name: string, text: string): readonly string[] => (text === '' ? [] : [name, text]);

/** The limits of each container, because podman makes no group around those of a pod that accepts limits. */
export function podmanLimits(
  node: CgroupNode,
  pod: KubePod,
  container: Container,
  placement: CpuPlacement,
): readonly string[] {
  return [
    ...podmanResources(node, pod, container, placement),
    ...podmanPlacement(placement),
    // Without the option podman permits 2048 processes.
    '--pids-limit',
    String(node.podPidsMax ?? -1),
    '--oom-score-adj',
    String(oomScoreAdjust(pod, container, node.swap.memoryBytes)),
  ];
}

/** The limits that follow from its resources. The same options change a running container (podman-update(1)). */
export function podmanResources(
  node: CgroupNode,
  pod: KubePod,
  container: Container,
  placement: CpuPlacement,
): readonly string[] {
  const memoryBytes = memoryLimitBytes(container);
  const quota = node.enforceCpuLimits && !placement.exclusive ? cpuQuotaOf(container) : 0;
  return [
    ...option('--cpu-shares', String(cpuSharesOf(container))),
    ...(quota === 0 ? [] : ['--cpu-period', String(QUOTA_PERIOD_MICROSECONDS), '--cpu-quota', String(quota)]),
    ...(memoryBytes === 0 ? [] : ['--memory', String(memoryBytes)]),
    ...swapOptions(node, pod, container, memoryBytes),
  ];
}

/**
 * Memory and swap together. Accepted only beside a limit of memory; without it podman permits as much swap as memory.
 */
function swapOptions(node: CgroupNode, pod: KubePod, container: Container, memoryBytes: number): readonly string[] {
  const swap = swapLimits(node.swap, pod).get(container.name);
  if (memoryBytes === 0 || swap?.kind !== 'swapMax') return [];
  return ['--memory-swap', String(memoryBytes + swap.bytes)];
}

/** The same options change a running container (podman-update(1)). */
export const podmanPlacement = ({ cpus, memoryNodes }: CpuPlacement): readonly string[] => [
  ...option('--cpuset-cpus', cpuList(cpus)),
  ...option('--cpuset-mems', cpuList(memoryNodes)),
];
