/**
 * Batches of 1, 2, 4, 8 … operations, the last one cut to what remains. A batch with a failure is finished, and no
 * later one begins: a quota that refuses everything costs one request instead of five hundred. Source: slowStartBatch
 * in pkg/controller/replicaset/replica_set.go.
 */
export function slowStartBatches(count: number, batchMax = Number.POSITIVE_INFINITY): readonly number[] {
  const batches: number[] = [];
  let size = 1;
  for (let left = count; left > 0; left -= batches.at(-1) ?? left) {
    batches.push(Math.min(size, left, batchMax));
    size *= 2;
  }
  return batches;
}
