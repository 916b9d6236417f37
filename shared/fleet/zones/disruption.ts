/**
 * Total disruption: every listed zone is in FullDisruption. A fault of the controller is then more likely than a fault of
 * all nodes. It is a stored flag (D12), set when every listed zone is in FullDisruption and cleared when one is not.
 * While it is set, no node is queued, every eviction rate is 0, and our NoExecute taints are removed. When it is
 * cleared, every node has a new full grace period. The limiters start without a token, so nodes that are already Unknown
 * are tainted one by one.
 *
 * A zone is listed when it counts at least one node. Without a listed zone the flag does not change.
 *
 * Source: handleDisruption in pkg/controller/nodelifecycle/node_lifecycle_controller.go, which computes
 * the flag from the zone states of the previous pass and loses it at a restart.
 */
import { defined } from '../../defined.ts';
import { earlierFaults, rememberedFaults } from './fault-times.ts';
import type { ZoneState } from './zone-state.ts';

export interface DisruptionRecord {
  readonly total: boolean;
  /** Time of the flag's last change. Epoch milliseconds. */
  readonly sinceMs: number;
  /**
   * End of the last total disruption, when every node got a full grace period; 0 when there was none. Epoch
   * milliseconds.
   */
  readonly freshSinceMs: number;
  /** When the current or the last total disruption began; absent: never, or in an earlier version. Epoch milliseconds. */
  readonly startedAtMs?: number | undefined;
  /** When earlier ones began, newest first; absent: none is known (fault-times.ts). */
  readonly earlierStartsMs?: readonly number[] | undefined;
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
    case 'enter': {
      const { earlierStartsMs, ...others } = record;
      const known = defined({ earlierStartsMs: earlierFaults(record.startedAtMs, earlierStartsMs, nowMs) });
      return { ...others, total: true, sinceMs: nowMs, startedAtMs: nowMs, ...known };
    }
    case 'leave':
      return { ...record, total: false, sinceMs: nowMs, freshSinceMs: nowMs };
  }
}

/** Without starts that no longer count: they would be bytes in a row that each tick writes. */
export const withoutOldStarts = (
  { earlierStartsMs, ...record }: DisruptionRecord,
  nowMs: number,
): DisruptionRecord => ({
  ...record,
  ...defined({ earlierStartsMs: rememberedFaults(earlierStartsMs, nowMs) }),
});
