/** Evicted pods and the pods that replaced them. */
export interface PodSummary {
  readonly namespace: string;
  readonly name: string;
  readonly phase: string;
  /** '' for a pod without a node. */
  readonly node: string;
  /** Name of the first owner; '' without one. */
  readonly owner: string;
  readonly createdAtMs: number;
  readonly isTerminating: boolean;
  /** Why the scheduler did not bind it; '' when it did, or has not tried. */
  readonly whyPending: string;
}

export interface EvictedPod {
  readonly namespace: string;
  readonly name: string;
  readonly atMs: number;
}

export interface Replacement {
  readonly evicted: EvictedPod;
  /** undefined: none exists yet. */
  readonly by: PodSummary | undefined;
}

/** Source: apiserver/pkg/storage/names: a generated name ends in five of these characters. */
const GENERATED_SUFFIX = /-[bcdfghjklmnpqrstvwxz2456789]{5}$/;

/** Creation times have whole seconds. */
const CREATED_BEFORE_MS_MAX = 1_000;

/**
 * The evicted pod is deleted, so its owner is known by its name alone. Each new pod of the owner replaces one evicted
 * pod, in the order of time. A pod of a StatefulSet has the name of its predecessor.
 */
export function replacementsOf(evicted: readonly EvictedPod[], pods: readonly PodSummary[]): readonly Replacement[] {
  const used = new Set<PodSummary>();
  const found = [...evicted]
    .sort((one, other) => one.atMs - other.atMs)
    .map((pod): Replacement => {
      const owner = pod.name.replace(GENERATED_SUFFIX, '');
      const by = pods
        .filter(
          (each) =>
            each.namespace === pod.namespace &&
            !used.has(each) &&
            each.createdAtMs >= pod.atMs - CREATED_BEFORE_MS_MAX &&
            (each.name === pod.name || (owner !== pod.name && each.owner === owner)),
        )
        .sort((one, other) => one.createdAtMs - other.createdAtMs)[0];
      if (by !== undefined) used.add(by);
      return { evicted: pod, by };
    });
  return found.reverse();
}
