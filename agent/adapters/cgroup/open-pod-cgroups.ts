/** The groups of pods on this machine, by the agent's configuration. */
import { join } from 'node:path';
import type { Log } from '../../../shared/observability/log.ts';
import type { AgentConfig } from '../../config.ts';
import type { MachineFacts } from '../../ports/machine.ts';
import type { CgroupNode } from '../../rules/cgroup-values.ts';
import { limitWarning, openCgroupTree } from './find-tree.ts';
import { ownPods } from './own-pods.ts';
import { PodCgroups } from './pod-cgroups.ts';

export interface OpenedPodCgroups {
  /** Undefined when no groups can be created. */
  readonly cgroups: PodCgroups | undefined;
  /** Limits that are not enforced; undefined: all are. */
  readonly warning: string | undefined;
}

/** @param hasMemory whether groups have the controller memory */
export const cgroupNode = (
  config: AgentConfig,
  { memoryBytes, swapBytes }: Pick<MachineFacts, 'memoryBytes' | 'swapBytes'>,
  hasMemory: boolean,
): CgroupNode => ({
  swap: {
    cgroupVersion: 2,
    controllerPresent: hasMemory,
    swapBehavior: config.swapBehavior,
    memoryBytes,
    swapBytes,
  },
  enforceCpuLimits: config.cpuCfsQuota,
  podPidsMax: config.podPidsMax,
});

/**
 * @param pidsMax process ids of the machine; undefined if unknown
 * @param fileRoot prefix of /proc and /sys
 */
export function openPodCgroups(
  config: AgentConfig,
  facts: Pick<MachineFacts, 'cpuCores' | 'memoryBytes' | 'swapBytes'>,
  pidsMax: number | undefined,
  log: Log,
  fileRoot = '/',
): OpenedPodCgroups {
  const opened = openCgroupTree({ fileRoot, cgroupRoot: config.cgroupRoot });
  if (opened.kind === 'missing') return { cgroups: undefined, warning: limitWarning(undefined, opened.why) };
  const { tree } = opened;
  const { memoryBytes, cpuCores } = facts;
  const cgroups = new PodCgroups({
    tree,
    node: cgroupNode(config, facts, tree.controllers.has('memory')),
    allocatable: {
      capacity: {
        cpu: String(cpuCores),
        memory: String(memoryBytes),
        ...(pidsMax === undefined ? {} : { pid: String(pidsMax) }),
      },
      systemReserved: config.systemReserved,
      kubeReserved: config.kubeReserved,
      enforced: config.enforceNodeAllocatable,
    },
    own: ownPods(join(config.rootDirectory, 'cgroups')),
    log,
  });
  return { cgroups, warning: limitWarning(tree) };
}
