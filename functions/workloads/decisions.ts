/** The decision record that the controllers of workloads share: what a rollout holds back. */
import {
  type DecisionAbout,
  type DraftOf,
  fullPolicy,
  policyPart,
  type ReplayRules,
} from '../../shared/decisions/decision-record.ts';
import { defined } from '../../shared/defined.ts';
import { gateReasonsText } from '../../shared/events/event-text.ts';
import { type GateReason, UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import { overProfiles } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { NO_DISRUPTION } from '../../shared/fleet/zone-state.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import { type HoldInputs, type WorkloadHold, workloadHold } from './hold.rule.ts';

/** Names in one record. */
const NAMED_MAX = 10;

interface RolloutInputs {
  readonly rolloutHold: {
    readonly reasons: readonly GateReason[];
    readonly lastTickAtMs?: number;
    readonly totalDisruption: boolean;
    readonly policy: Pick<Policy, 'tickGate' | 'nodeMonitorPeriodSeconds' | 'nodeMonitorGracePeriodSeconds'>;
    /** What would have been reduced or deleted; the first ten. */
    readonly held: readonly string[];
  };
}

export type RolloutDraft = DraftOf<RolloutInputs>;

/** A rollout gives up no pod. Once for each hold and generation of the owner. */
export const rolloutHeldDraft = (
  about: DecisionAbout,
  hold: WorkloadHold,
  {
    state,
    held,
    policy,
    nowMs,
  }: { readonly state: HoldInputs; readonly held: readonly string[]; readonly policy: Policy; readonly nowMs: number },
): RolloutDraft => ({
  act: 'RolloutHeld',
  about,
  atMs: nowMs,
  reason: heldText(hold, held),
  rule: 'rolloutHold',
  inputs: {
    reasons: state.gate.reasons,
    ...defined({ lastTickAtMs: state.gate.lastTickAtMs }),
    totalDisruption: state.disruption.total,
    policy: {
      ...policyPart(policy, 'tickGate', 'nodeMonitorPeriodSeconds'),
      nodeMonitorGracePeriodSeconds: overProfiles(policy, 'nodeMonitorGracePeriodSeconds', Math.min),
    },
    held: held.slice(0, NAMED_MAX),
  },
  outcome: { held: hold.kind },
});

/** Also the text of the event. */
export function heldText(hold: WorkloadHold, held: readonly string[]): string {
  const since = hold.sinceMs === 0 ? '' : ` since ${rfc3339(hold.sinceMs)}`;
  const cause =
    hold.kind === 'gate'
      ? `the safety gate is closed${since} (${gateReasonsText(hold.reasons)})`
      : `every zone is in FullDisruption${since}`;
  const more = held.length > NAMED_MAX ? ` and ${held.length - NAMED_MAX} more` : '';
  return `${cause}: the rollout waits with ${held.slice(0, NAMED_MAX).join(', ')}${more}`;
}

export const rolloutReplay: ReplayRules<RolloutInputs> = {
  rolloutHold({ reasons, lastTickAtMs, totalDisruption, policy }, { atMs }) {
    const gate = { ...UNTRIED_GATE, reasons, lastTickAtMs };
    const disruption = { ...NO_DISRUPTION, total: totalDisruption };
    const hold = workloadHold({ gate, disruption }, { nowMs: atMs, policy: fullPolicy(policy) });
    return { held: hold?.kind ?? 'nothing' };
  },
};
