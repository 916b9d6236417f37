/** Pods as the rule of pod garbage collection reads them: from the live object, or from their row in the work list. */

import { parseTimeMs } from '../../../kubernetes/time.ts';
import type { KubePod } from '../../types.ts';
import { siteHubOf } from '../site-permit.ts';
import { type CollectablePod, isTerminated } from './rule.ts';
import type { ListedPod } from './work-list-store.ts';

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

export const collectablePod = (pod: KubePod): CollectablePod => ({
  namespace: pod.metadata.namespace ?? '',
  name: pod.metadata.name ?? '',
  uid: pod.metadata.uid ?? '',
  nodeName: textOf(pod.spec?.nodeName),
  phase: textOf(pod.status?.phase),
  reason: textOf(pod.status?.reason),
  createdAtMs: parseTimeMs(pod.metadata.creationTimestamp) ?? 0,
  terminating: pod.metadata.deletionTimestamp !== undefined,
  ...(siteHubOf(pod) !== undefined && { isOfSite: true }),
});

const EVICTED = 'Evicted';

export const collectableRow = ({ evicted, ...pod }: ListedPod): CollectablePod => ({
  ...pod,
  reason: evicted ? EVICTED : undefined,
});

/** The row of a pod that belongs to the work list: terminating or terminated. */
export function listedPod(pod: KubePod | undefined): ListedPod | undefined {
  if (pod === undefined) return undefined;
  const { reason, isOfSite: _, ...collectable } = collectablePod(pod);
  if (!collectable.terminating && !isTerminated(collectable)) return undefined;
  return { ...collectable, evicted: reason === EVICTED };
}
