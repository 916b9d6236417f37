/**
 * What a pod needs of its node beyond what every kubelet has: the node names it in `status.declaredFeatures`. Source:
 * upstream component-helpers/nodedeclaredfeatures at 1.36. Its fifth feature, ExtendWebSocketsToKubelet, no pod needs.
 */
import type { PodSpec } from '../types.ts';
import { mayRestartAll } from './container-restarts.ts';

/** The one that our agent has. */
export const RESTART_ALL = 'RestartAllContainersOnContainerExits';

/** To run the pod. Sorted. */
export const featuresToRun = (spec: PodSpec): readonly string[] => [
  ...(mayRestartAll(spec) ? [RESTART_ALL] : []),
  ...(spec.hostNetwork === true && spec.hostUsers === false ? ['UserNamespacesHostNetworkSupport'] : []),
];

export const missingFeatures = (needed: readonly string[], declared: readonly string[]): readonly string[] =>
  needed.filter((each) => !declared.includes(each));
