/**
 * Limits of a container that `podman kube play` does not read from the manifest, as options of `podman update`
 * (podman-update(1)). Memory and CPU limits are podman's own.
 */
import type { KubePod } from '../../shared/kube/types.ts';
import type { CpuPlacement } from '../ports/pod-runtime.ts';
import { type CgroupNode, cpuList, cpuSharesOf, memoryLimitBytes } from './cgroup-values.ts';
import type { Container } from './pod-containers.ts';
import { swapLimits } from './swap.ts';

/** The options of each call. The number of processes has its own, because podman 4.3 does not know the option. */
export function podmanLimits(
  node: CgroupNode,
  pod: KubePod,
  container: Container,
  placement: CpuPlacement,
): readonly (readonly string[])[] {
  const memoryBytes = memoryLimitBytes(container);
  const swap = swapLimits(node.swap, pod).get(container.name);
  const hasSwapLimit = memoryBytes > 0 && swap?.kind === 'swapMax';
  const set = (option: string, text: string): readonly string[] => (text === '' ? [] : [option, text]);
  const options = [
    ...set('--cpu-shares', String(cpuSharesOf(container))),
    // Memory and swap together, accepted only beside the limit of memory. Without it, podman permits as much swap as
    // memory.
    ...(hasSwapLimit ? ['--memory', String(memoryBytes), '--memory-swap', String(memoryBytes + swap.bytes)] : []),
    ...set('--cpuset-cpus', cpuList(placement.cpus)),
    ...set('--cpuset-mems', cpuList(placement.memoryNodes)),
  ];
  // Of each container, because podman makes no group around those of a pod that accepts limits.
  return node.podPidsMax === undefined ? [options] : [options, ['--pids-limit', String(node.podPidsMax)]];
}
