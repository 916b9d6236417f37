/** The cost of the cluster as the page knows it. Counts and exclusions: shared/cost/monthly-bill.ts. */
import { HELD_WATCH_DOLLARS_PER_HOUR } from '../../shared/cost/held-watch.ts';
import { type BillItem, billItems } from '../../shared/cost/monthly-bill.ts';
import { DEFAULT_PROFILE } from '../../shared/fleet/nodes/node-profile.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { KubeClusterStatus } from '../../shared/kinds/types.ts';
import type { NodeCell } from './node-cell.ts';

/** The nodes of one profile. */
export interface ProfileBeats {
  /** Name of the profile. */
  readonly profile: string;
  readonly nodes: number;
  readonly intervalSeconds: number;
}

/** Assumed where the API reports no intervals, as before an update of the cluster. */
export const ASSUMED_INTERVAL_SECONDS = defaultPolicy.beatIntervalSeconds;

/** The nodes by profile. `heartbeats`: intervals by profile, undefined if they are unknown. */
export function beatsByProfile(
  nodes: Iterable<Pick<NodeCell, 'profile'>>,
  heartbeats: NonNullable<KubeClusterStatus['status']>['heartbeats'],
): readonly ProfileBeats[] {
  const intervals = new Map((heartbeats ?? []).map(({ profile, intervalSeconds }) => [profile, intervalSeconds]));
  const counts = new Map<string, number>();
  for (const { profile = DEFAULT_PROFILE } of nodes) {
    // A name that the policy no longer has means `default`.
    const known = intervals.has(profile) ? profile : DEFAULT_PROFILE;
    counts.set(known, (counts.get(known) ?? 0) + 1);
  }
  return [...counts].map(([profile, count]) => ({
    profile,
    nodes: count,
    intervalSeconds: intervals.get(profile) ?? ASSUMED_INTERVAL_SECONDS,
  }));
}

export const costItems = (beats: readonly ProfileBeats[], zones: number): readonly BillItem[] =>
  billItems({
    nodes: beats.reduce((sum, each) => sum + each.nodes, 0),
    zones,
    beatsPerSecond: beats.reduce((sum, each) => sum + each.nodes / each.intervalSeconds, 0),
  });

/** What an open page adds: the watches that it holds. */
export const pageDollarsPerDay = (watches: number): number => watches * HELD_WATCH_DOLLARS_PER_HOUR * 24;

/** Which intervals the estimate uses, as a sentence. */
export function intervalsText(beats: readonly ProfileBeats[], isKnown: boolean): string {
  if (beats.length === 0) return 'There are no nodes.';
  if (!isKnown)
    return `The API reports no heartbeat intervals: ${ASSUMED_INTERVAL_SECONDS} s are assumed for each node.`;
  const texts = beats.map(
    ({ profile, nodes, intervalSeconds }) => `${nodes} every ${intervalSeconds} s (profile ${profile})`,
  );
  return `Heartbeats of the nodes by policy: ${texts.join(', ')}.`;
}
