/**
 * When workloads give up no pod on their own (docs/workloads.md). Pure.
 *
 * Pods of a silent node are not Ready. While the safety gate is closed, or every zone is in FullDisruption, that more
 * likely is a fault of ours than the state of all pods. Then a rollout reduces and replaces nothing, no history is
 * deleted, and no progress deadline passes. Changes by people are followed, and missing pods are created.
 */
import { type GateReason, type GateRecord, gateVerdictFor } from '../../shared/fleet/gate.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { DisruptionRecord } from '../../shared/fleet/zone-state.ts';

/** `sinceMs`: epoch milliseconds; 0 before the first tick of node-monitor. */
export type WorkloadHold =
  | { readonly kind: 'gate'; readonly reasons: readonly GateReason[]; readonly sinceMs: number }
  | { readonly kind: 'totalDisruption'; readonly sinceMs: number };

export interface HoldInputs {
  readonly gate: GateRecord;
  readonly disruption: DisruptionRecord;
}

/** undefined: nothing is held. */
export function workloadHold(
  { gate, disruption }: HoldInputs,
  at: { readonly nowMs: number; readonly policy: Policy },
): WorkloadHold | undefined {
  const verdict = gateVerdictFor(gate, at);
  if (verdict.kind === 'holding') {
    // A gate that is closed because ticks are missing is not stored: it is closed since the last tick.
    const sinceMs = gate.reasons.length > 0 ? verdict.sinceMs : (gate.lastTickAtMs ?? 0);
    return { kind: 'gate', reasons: verdict.reasons, sinceMs };
  }
  return disruption.total ? { kind: 'totalDisruption', sinceMs: disruption.sinceMs } : undefined;
}

/** End of the last hold: a progress deadline does not count the time before it. Epoch milliseconds. */
export const lastHoldEndedMs = ({ gate, disruption }: HoldInputs): number =>
  Math.max(gate.freshSinceMs, disruption.freshSinceMs);
