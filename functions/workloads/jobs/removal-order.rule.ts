/**
 * Which pods of a Job are removed first when it has too many. Sources: ActivePods.Less in
 * pkg/controller/controller_utils.go, and pkg/controller/job/{job_controller,indexed_job_utils}.go
 * (activePodsForRemoval, appendDuplicatedIndexPodsForRemoval).
 */
import type { JobPod } from './job-pod.rule.ts';

const PHASE_ORDER = { Pending: 0, Unknown: 1, Running: 2, Succeeded: 2, Failed: 2 } as const;

/**
 * At least `count` pods. Of an Indexed Job also those without an index in range, and all but one of each index.
 *
 * @param completions of an Indexed Job; undefined for any other
 */
export function removedFirst(
  pods: readonly JobPod[],
  count: number,
  completions: number | undefined,
): readonly JobPod[] {
  const ordered = pods.toSorted(compare);
  if (count >= pods.length) return ordered;
  const misplaced = completions === undefined ? [] : misplacedPods(ordered, completions);
  const others = ordered.filter((pod) => !misplaced.includes(pod));
  return [...misplaced, ...others.slice(0, Math.max(0, count - misplaced.length))];
}

function misplacedPods(ordered: readonly JobPod[], completions: number): readonly JobPod[] {
  const last = new Map(ordered.map((pod) => [pod.index, pod]));
  return ordered.filter((pod) => pod.index === undefined || pod.index >= completions || last.get(pod.index) !== pod);
}

/** Negative: `left` is removed first. */
function compare(left: JobPod, right: JobPod): number {
  return (
    Number(left.nodeName !== '') - Number(right.nodeName !== '') ||
    PHASE_ORDER[left.phase] - PHASE_ORDER[right.phase] ||
    Number(left.ready) - Number(right.ready) ||
    (left.ready && right.ready ? younger(left.readyChangedAtMs, right.readyChangedAtMs) : 0) ||
    right.restartsMax - left.restartsMax ||
    younger(left.createdAtMs, right.createdAtMs) ||
    (left.name < right.name ? -1 : 1)
  );
}

/** The later time first; a missing one counts as the latest. */
function younger(left: number | undefined, right: number | undefined): number {
  if (left === right) return 0;
  return (right ?? Number.POSITIVE_INFINITY) - (left ?? Number.POSITIVE_INFINITY);
}
