/**
 * Total disruption: every listed zone is dark, so it is more likely us than them. A stored flag (D12), entered when
 * every listed zone is FullDisruption and left when one is not. While it stands nothing is queued, every rate is never,
 * and NoExecute taints of ours are off. When it is left, every node gets a full grace before it can be marked, and the
 * limiters start drained: nodes already Unknown follow one by one.
 *
 * A zone is listed when it counts at least one node. With no zone listed there is nothing to judge by and the flag
 * stays as it is.
 *
 * Source: handleDisruption in pkg/controller/nodelifecycle/node_lifecycle_controller.go, which derives the flag from
 * the zone states of the pass before and so forgets it in a restart.
 */
import type { ZoneState } from './zone-state.ts';

export interface DisruptionRecord {
  readonly total: boolean;
  /** Since when the flag is as it is. Epoch milliseconds. */
  readonly sinceMs: number;
  /** From when every node has a full grace, because total disruption was left then; 0 when it never was. */
  readonly freshSinceMs: number;
}

export const NO_DISRUPTION: DisruptionRecord = Object.freeze({ total: false, sinceMs: 0, freshSinceMs: 0 });

export type DisruptionVerdict = 'unchanged' | 'enter' | 'leave';

/** `listedStates`: state of each zone that counts a node, in any order. */
export function disruptionVerdict(total: boolean, listedStates: Iterable<ZoneState>): DisruptionVerdict {
  let listed = false;
  for (const state of listedStates) {
    listed = true;
    if (state !== 'FullDisruption') return total ? 'leave' : 'unchanged';
  }
  return listed && !total ? 'enter' : 'unchanged';
}

/** The record after a verdict. */
export function applyDisruption(record: DisruptionRecord, verdict: DisruptionVerdict, nowMs: number): DisruptionRecord {
  switch (verdict) {
    case 'unchanged':
      return record;
    case 'enter':
      return { ...record, total: true, sinceMs: nowMs };
    case 'leave':
      return { total: false, sinceMs: nowMs, freshSinceMs: nowMs };
  }
}
