/** Episodes of a fault at any moment. They are in order and do not overlap. */
import type { Episode } from '../faults/catalogue.ts';

/** Index of the last episode that began up to this moment; -1 without one. */
function lastBegun(episodes: readonly Episode[], atMs: number): number {
  let low = 0;
  let high = episodes.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (episodes[middle]!.fromMs <= atMs) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

export const isWithin = (episodes: readonly Episode[], atMs: number): boolean => severityAt(episodes, atMs) > 0;

export function severityAt(episodes: readonly Episode[], atMs: number): number {
  const episode = episodes[lastBegun(episodes, atMs)];
  return episode !== undefined && atMs < episode.untilMs ? episode.severity : 0;
}

/** The end of the episode that lasts at this moment; undefined without one. */
export function endOf(episodes: readonly Episode[], atMs: number): number | undefined {
  const episode = episodes[lastBegun(episodes, atMs)];
  return episode !== undefined && atMs < episode.untilMs ? episode.untilMs : undefined;
}

/** Whether an episode has a moment in common with this interval. */
export function overlaps(episodes: readonly Episode[], fromMs: number, untilMs: number): boolean {
  const episode = episodes[lastBegun(episodes, untilMs)];
  return episode !== undefined && episode.untilMs > fromMs;
}
