/**
 * ImageLocality: a node that has large images of the pod scores higher.
 *
 * Source: pkg/scheduler/framework/plugins/imagelocality/image_locality.go.
 */
import type { NodeState, Snapshot } from '../../shared/scheduling/snapshot.rule.ts';
import type { SchedulablePod } from '../../shared/scheduling/world.rule.ts';

const MEBIBYTE = 1_024 * 1_024;
/** Bytes. */
const LEAST = 23 * MEBIBYTE;
const MOST_PER_CONTAINER = 1_000 * MEBIBYTE;
const SCORE_MAX = 100;

/** 0 to 100. An image that few nodes have counts less: otherwise they would attract all pods of it. */
export function imageLocalityScore(pod: SchedulablePod, { node }: NodeState, snapshot: Snapshot): number {
  if (node.images.size === 0) return 0;
  let sum = 0;
  for (const image of pod.images) {
    const bytes = node.images.get(image);
    if (bytes !== undefined) sum += Math.trunc(bytes * (snapshot.nodesWithImage(image) / snapshot.nodes.size));
  }
  const most = MOST_PER_CONTAINER * Math.max(1, pod.containers);
  const clamped = Math.min(most, Math.max(LEAST, sum));
  return Math.trunc((SCORE_MAX * (clamped - LEAST)) / (most - LEAST));
}
