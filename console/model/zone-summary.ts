/** One zone of the page: its nodes, and what the controllers report about it. */

import { type Samples, sampleValue } from './metrics-text.ts';
import type { NodeCell } from './node-cell.ts';

export interface ZoneSummary {
  readonly zone: string;
  readonly cells: readonly NodeCell[];
  readonly ready: number;
  readonly notReady: number;
  readonly unknown: number;
  /** Nodes that announced their silence. They are in none of the three numbers above. */
  readonly plannedSilence: readonly NodeCell[];
  readonly flapping: readonly NodeCell[];
  /** Nodes with a NoExecute taint that was added within the last hour. */
  readonly taintedInHour: number;
  /** The state that the controllers report; undefined before the first answer of /metrics. */
  readonly state: string | undefined;
  readonly queued: number | undefined;
  /** Taints per second. */
  readonly ratePerSecond: number | undefined;
  /** When the limiter grants its next token. Epoch milliseconds; undefined: it has one. */
  readonly nextTokenAtMs: number | undefined;
}

const HOUR_MS = 3_600_000;

/** The cells of a zone keep the order of `cells`. */
export function zonesOf(cells: Iterable<NodeCell>, samples: Samples, nowMs: number): readonly ZoneSummary[] {
  const byZone = new Map<string, NodeCell[]>();
  for (const cell of cells) {
    const found = byZone.get(cell.zone);
    if (found === undefined) byZone.set(cell.zone, [cell]);
    else found.push(cell);
  }
  return [...byZone]
    .map(([zone, members]) => summaryOf(zone, members, samples, nowMs))
    .sort((one, other) => (one.zone < other.zone ? -1 : 1));
}

function summaryOf(zone: string, cells: readonly NodeCell[], samples: Samples, nowMs: number): ZoneSummary {
  const count = (matches: (cell: NodeCell) => boolean): number => cells.filter(matches).length;
  const inState = (wanted: NodeCell['state']): number =>
    count(({ state, plannedSilence }) => state === wanted && plannedSilence === undefined);
  const nextTokenSeconds = sampleValue(samples, 'nodekeeper_zone_next_token_timestamp_seconds', { zone });
  const nextTokenAtMs = nextTokenSeconds === undefined ? undefined : nextTokenSeconds * 1_000;
  return {
    zone,
    cells,
    ready: inState('Ready'),
    notReady: inState('NotReady'),
    unknown: inState('Unknown'),
    plannedSilence: cells.filter(({ plannedSilence }) => plannedSilence !== undefined),
    flapping: cells.filter(({ isFlapping }) => isFlapping),
    taintedInHour: count(({ evictingSinceMs }) => evictingSinceMs !== undefined && nowMs - evictingSinceMs < HOUR_MS),
    state: samples.get('nodekeeper_zone_state')?.find(({ labels, value }) => labels['zone'] === zone && value === 1)
      ?.labels['state'],
    queued: sampleValue(samples, 'nodekeeper_queued_nodes', { zone }),
    ratePerSecond: sampleValue(samples, 'nodekeeper_zone_eviction_rate', { zone }),
    nextTokenAtMs: nextTokenAtMs !== undefined && nextTokenAtMs > nowMs ? nextTokenAtMs : undefined,
  };
}

/** "one taint every 10 s", "no taints". */
export function rateText(ratePerSecond: number): string {
  if (ratePerSecond <= 0) return 'no taints';
  const seconds = 1 / ratePerSecond;
  return `one taint every ${seconds < 10 ? Number(seconds.toFixed(1)) : Math.round(seconds)} s`;
}
