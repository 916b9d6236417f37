/** Pods and Deployments as the page shows them. */

import type { KubeObject, KubePod } from '../../shared/kinds/types.ts';
import { parseTimeMs } from '../../shared/kubernetes/time.ts';
import type { PodSummary } from './replacements.ts';

export function podSummaryOf({ metadata, spec, status }: KubePod): PodSummary {
  const scheduled = status?.conditions?.find(({ type }) => type === 'PodScheduled');
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name ?? '',
    phase: status?.phase ?? 'Unknown',
    node: spec?.nodeName ?? '',
    owner: metadata.ownerReferences?.[0]?.name ?? '',
    createdAtMs: parseTimeMs(metadata.creationTimestamp) ?? 0,
    isTerminating: metadata.deletionTimestamp !== undefined,
    whyPending: scheduled?.status === 'False' ? (scheduled.message ?? scheduled.reason ?? '') : '',
  };
}

export const podKeyOf = ({ namespace, name }: Pick<PodSummary, 'namespace' | 'name'>): string => `${namespace}/${name}`;

/** Pods that no node runs yet, the oldest first. */
export const pendingPods = (pods: readonly PodSummary[]): readonly PodSummary[] =>
  pods
    .filter(({ phase, isTerminating }) => phase === 'Pending' && !isTerminating)
    .sort((one, other) => one.createdAtMs - other.createdAtMs);

export const oldestPending = (pods: readonly PodSummary[]): PodSummary | undefined => pendingPods(pods)[0];

/** `cutAt`: the number of pods that were read, by name, if there are more. */
export const oldestPendingTitle = (cutAt: number | undefined): string =>
  cutAt === undefined ? 'Oldest pending pod' : `Oldest of the first ${cutAt} pending pods`;

export interface DeploymentSummary {
  readonly namespace: string;
  readonly name: string;
  readonly wanted: number;
  readonly ready: number;
  readonly updated: number;
}

interface Deployment extends KubeObject {
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly readyReplicas?: number; readonly updatedReplicas?: number };
}

export const deploymentSummaryOf = ({ metadata, spec, status }: Deployment): DeploymentSummary => ({
  namespace: metadata.namespace ?? '',
  name: metadata.name ?? '',
  wanted: spec?.replicas ?? 1,
  ready: status?.readyReplicas ?? 0,
  updated: status?.updatedReplicas ?? 0,
});
