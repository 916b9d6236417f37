/** Pods as their owner reads them, for the order in which it deletes them. */
import type { OwnedPod } from '../../functions/workloads/owned-pods.rule.ts';

/** Bound to n1, running and ready. */
export const ownedPod = (more: Partial<OwnedPod> = {}): OwnedPod => ({
  ...{ namespace: 'default', name: 'p', uid: 'u', resourceVersion: '1', labels: {}, nodeName: 'n1' },
  ...{ phase: 'Running', ready: true, readyChangedAtMs: 1_000, createdAtMs: 1_000, isDeleting: false },
  ...{ isSingle: false, deletionCost: 0, restartsMax: 0, ...more },
});

/** Fields of the pod that is deleted first, and of the one that is deleted later. */
export type Criterion<Pod extends OwnedPod = OwnedPod> = readonly [first: Partial<Pod>, later: Partial<Pod>];

/** Two pods that are equal by the criteria before `rank`. All criteria after it would delete the other one first. */
export function pairAt<Pod extends OwnedPod>(
  criteria: readonly Criterion<Pod>[],
  rank: number,
): readonly Partial<Pod>[] {
  const fields = (own: 0 | 1, other: 0 | 1): Partial<Pod> =>
    Object.assign({}, ...criteria.map((each, at) => each[at < rank ? 1 : at === rank ? own : other]));
  return [fields(0, 1), fields(1, 0)];
}
