/**
 * Times of faults of ours, in epoch milliseconds: the heartbeat path failed, or total disruption began. Marks shortly
 * before each of them do not count for flapping (silences/flapping.ts). One incident often consists of several: a path
 * that recovers and fails again must not make earlier marks count.
 */
/** Earlier times in one record. The record is written with each tick, so it stays small. */
const EARLIER_MAX = 7;
/** Marks count together for up to a day, and the longest grace period before a fault belongs to it. Milliseconds. */
const REMEMBERED_MS = 86_400_000 + 3_600_000;

/** Those of the earlier times that still count, newest first; undefined: none does. */
export function rememberedFaults(earlierMs: readonly number[], nowMs: number): readonly number[] | undefined {
  const recent = earlierMs.filter((atMs) => nowMs - atMs <= REMEMBERED_MS);
  return recent.length === 0 ? undefined : recent.slice(0, EARLIER_MAX);
}

/** The same for the times before a new one. `lastAtMs`: the latest of them. */
export const earlierFaults = (
  lastAtMs: number | undefined,
  earlierMs: readonly number[] | undefined,
  nowMs: number,
): readonly number[] | undefined =>
  rememberedFaults([...(lastAtMs === undefined ? [] : [lastAtMs]), ...(earlierMs ?? [])], nowMs);
