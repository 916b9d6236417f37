/** Workloads that have fewer available pods than they want, and since when. Pure. */

import type { KubeObject } from '../../shared/kinds/types.ts';
import { controllerOf } from '../../shared/kubernetes/normal-form.ts';

/** Since when each workload lacks pods. Epoch milliseconds, by uid. */
export type Shortages = Readonly<Record<string, number>>;

/** Workloads that are remembered at most. */
const REMEMBERED_MAX = 2_000;

const countOf = (value: unknown, absent: number): number => (typeof value === 'number' ? value : absent);

/** By resource: available and wanted pods. Jobs fail instead, and a ReplicaSet of a Deployment counts with it. */
const LACKS: Readonly<Record<string, (object: KubeObject) => boolean>> = {
  daemonsets: ({ status }) => countOf(status?.['numberAvailable'], 0) < countOf(status?.['desiredNumberScheduled'], 0),
  deployments: lacksReplicas,
  replicasets: lacksReplicas,
  replicationcontrollers: lacksReplicas,
  statefulsets: lacksReplicas,
};

function lacksReplicas({ spec, status }: KubeObject): boolean {
  return countOf(status?.['availableReplicas'], 0) < countOf(spec?.['replicas'], 1);
}

/** Those that lack pods now, each with the time at which that was seen first. */
export function shortagesOf(
  before: Shortages,
  workloads: readonly { readonly resource: string; readonly object: KubeObject }[],
  nowMs: number,
): Shortages {
  const found = workloads
    .filter(({ resource, object }) => controllerOf(object) === undefined && LACKS[resource]?.(object) === true)
    .map(({ object }): [string, number] => {
      const uid = object.metadata.uid ?? '';
      return [uid, before[uid] ?? nowMs];
    });
  return Object.fromEntries(found.toSorted(([, one], [, other]) => one - other).slice(0, REMEMBERED_MAX));
}

/** Seconds of the longest shortage; undefined: none. */
export function longestSeconds(shortages: Shortages, nowMs: number): number | undefined {
  const times = Object.values(shortages);
  return times.length === 0 ? undefined : Math.floor((nowMs - Math.min(...times)) / 1_000);
}
