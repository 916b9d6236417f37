/**
 * Sets of NUMA nodes 0 to 63, one bit per node.
 * Source: pkg/kubelet/cm/topologymanager/bitmask, numa_info.go.
 */
export type Mask = bigint;

export const NODE_ID_MAX = 63;
export const EMPTY: Mask = 0n;

export const maskOf = (nodeIds: Iterable<number>): Mask => {
  let mask = EMPTY;
  for (const id of nodeIds) mask |= 1n << BigInt(id);
  return mask;
};

export function nodeIdsOf(mask: Mask): number[] {
  const ids: number[] = [];
  for (let id = 0; id <= NODE_ID_MAX; id += 1) if ((mask >> BigInt(id)) & 1n) ids.push(id);
  return ids;
}

export function bitCount(mask: Mask): number {
  let count = 0;
  for (let rest = mask; rest > 0n; rest &= rest - 1n) count += 1;
  return count;
}

/** The mask with fewer nodes, or else with the smaller number; `current` if they are equal. */
export function narrowerMask(current: Mask, candidate: Mask): Mask {
  const difference = bitCount(candidate) - bitCount(current);
  return difference < 0 || (difference === 0 && candidate < current) ? candidate : current;
}

/** Distance from the node of the row to the node of the column, as in ACPI's SLIT: 10 to itself; may be asymmetric. */
export type Distances = ReadonlyMap<number, ReadonlyMap<number, number>>;

/**
 * Mean distance of all ordered pairs of nodes, including a node and itself. 0 for no nodes; unknown distances are 0.
 */
export function averageDistance(mask: Mask, distances: Distances): number {
  const ids = nodeIdsOf(mask);
  if (ids.length === 0) return 0;
  let sum = 0;
  for (const from of ids) for (const to of ids) sum += distances.get(from)?.get(to) ?? 0;
  return sum / ids.length ** 2;
}

/** The mask with fewer nodes, or else the smaller mean distance, or else the smaller number. */
export function closerMask(current: Mask, candidate: Mask, distances: Distances): Mask {
  if (bitCount(current) !== bitCount(candidate)) return narrowerMask(current, candidate);
  const difference = averageDistance(candidate, distances) - averageDistance(current, distances);
  if (difference === 0) return narrowerMask(current, candidate);
  return difference < 0 ? candidate : current;
}
