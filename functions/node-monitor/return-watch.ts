/**
 * Machines that return from a planned silence before its end. health-stream ends a promise at the first heartbeat after
 * the silence, from one stream record. If that work fails, or the gate is closed at that moment, no later record shows the
 * silence. node-monitor has seen it: this watch remembers which nodes were silent, and finds those that no longer are.
 *
 * It needs no read and no write: a tick sees every row anyway. Each tick finds the silent nodes again, so a new process
 * lacks only those that returned before its first tick. Their promise ends at its time.
 *
 *     promise ── silence ──── tick: silent for a grace period ──── heartbeat ──── tick: returned, until it is written
 */
import { isSilencePlanned, lastSpokeAtMs } from '../../shared/fleet/health/health.ts';
import type { NodeHealth } from '../../shared/fleet/health/health-row.ts';

/** Nodes that are remembered. The promises of others may only end by health-stream, or at their time. */
const SILENT_NODES_MAX = 10_000;

interface SilentNode {
  readonly uid: string;
  readonly plannedUntilMs: number | undefined;
  readonly spokeAtMs: number;
}

export interface WatchedTick {
  readonly nowMs: number;
  readonly nodes: readonly NodeHealth[];
  /** Gate and grace period of the node's profile. Silence while it is closed, or before `freshSinceMs`, may be ours. */
  readonly gateOf: (health: NodeHealth) => {
    readonly isOpen: boolean;
    readonly freshSinceMs: number;
    readonly graceMs: number;
  };
}

export interface ReturnWatch {
  /** Nodes that were silent for more than one grace period, as promised, and have sent a heartbeat since. */
  returned(tick: WatchedTick): readonly NodeHealth[];
}

export function returnWatch(): ReturnWatch {
  let silent: ReadonlyMap<string, SilentNode> = new Map();
  return {
    returned({ nowMs, nodes, gateOf }) {
      const before = silent;
      const next = new Map<string, SilentNode>();
      const returned: NodeHealth[] = [];
      for (const health of nodes) {
        if (!isSilencePlanned(health, nowMs)) continue;
        const { nodeName, uid, plannedUntilMs } = health;
        const spokeAtMs = lastSpokeAtMs(health);
        const known = before.get(nodeName);
        const isKnown = known?.uid === uid && known.plannedUntilMs === plannedUntilMs;
        const { isOpen, freshSinceMs, graceMs } = gateOf(health);
        if (isKnown) next.set(nodeName, known);
        else if (isOpen && next.size < SILENT_NODES_MAX && nowMs - Math.max(spokeAtMs, freshSinceMs) > graceMs) {
          next.set(nodeName, { uid, plannedUntilMs, spokeAtMs });
        }
        if (isKnown && spokeAtMs > known.spokeAtMs) returned.push(health);
      }
      silent = next;
      return returned;
    },
  };
}
