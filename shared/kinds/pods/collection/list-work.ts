/** Whether the list of pod-gc holds work. node-monitor reads it to wake pod-gc, and pod-gc before it claims a slot. */
import type { Policy } from '../../../fleet/policy.ts';
import { collectableRow } from './collectable-pods.ts';
import { podRemovals } from './rule.ts';
import type { PodGcList } from './work-list-store.ts';

export const hasWork = (
  list: PodGcList,
  { nowMs, policy }: { readonly nowMs: number; readonly policy: Pick<Policy, 'terminatedPodGcThreshold'> },
): boolean => list.volumes.length > 0 || hasPodsToCollect(list, policy) || isSweepDue(list, nowMs);

/**
 * Whether the list may lead to a removal. Terminated pods alone are only counted, until there are more of them than the
 * policy keeps.
 */
export function hasPodsToCollect(list: PodGcList, policy: Pick<Policy, 'terminatedPodGcThreshold'>): boolean {
  if (list.missing.size > 0 || list.pods.some(({ terminating }) => terminating)) return true;
  return podRemovals({ pods: list.pods.map(collectableRow), nodes: [], missing: new Set() }, policy).length > 0;
}

export const isSweepDue = ({ sweep }: PodGcList, nowMs: number): boolean =>
  sweep === undefined || sweep.dueAtMs <= nowMs;
