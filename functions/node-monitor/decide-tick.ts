/** What a tick decides, from what it has read: gate, marks, zones, total disruption, and the records of that. */
import type { DecisionDraft } from '../../shared/decisions/decision-record.ts';
import { defined } from '../../shared/defined.ts';
import { NO_TESTIMONIES, testimoniesOf } from '../../shared/fleet/accusation.rule.ts';
import { rememberedFaults } from '../../shared/fleet/fault-times.ts';
import type { FleetRecords, FleetState } from '../../shared/fleet/fleet-store.ts';
import { decideGate, type GateRecord, hasOtherReasons, type Probe, pathFailedAtMs } from '../../shared/fleet/gate.ts';
import { disruptionDraft, gateDraft } from '../../shared/fleet/mark-decisions.ts';
import { decideMonitor, type MonitorOutcome } from '../../shared/fleet/marks.rule.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { DEFAULT_PROFILE, policyOf, profileNames } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import type { SilenceReport } from '../../shared/fleet/silent-machines.ts';
import type { ObservedTick } from './silence-watch.ts';

export interface Decided {
  readonly outcome: MonitorOutcome;
  readonly gate: GateRecord;
  readonly before: FleetState;
  readonly disruption: FleetState['disruption'];
  /** Records of gate and total disruption, written with the claim. */
  readonly drafts: readonly DecisionDraft[];
}

/** What was read before the slot is claimed. */
export interface MonitorWorld {
  readonly records: FleetRecords;
  readonly nodes: readonly NodeHealth[];
  /** Of this tick. */
  readonly probes: readonly Probe[];
  /** What machines report about others of their sites. */
  readonly reports: readonly SilenceReport[];
}

/** Decides on the stored state, which may have changed since the world was read. */
export function decideTick(
  { records, nodes, probes, reports }: MonitorWorld,
  state: FleetState,
  { nowMs, policy }: { readonly nowMs: number; readonly policy: Policy },
): Decided {
  const gate = decideGate(state.gate, { nowMs, probes, policy });
  const testimonies =
    reports.length === 0
      ? NO_TESTIMONIES
      : testimoniesOf(nodes, reports, { nowMs, policy, pathFailedAtMs: pathFailedAtMs(gate, state.lookFailedAtMs) });
  const outcome = decideMonitor({ ...worldOf(records, nodes, state, gate), testimonies }, { nowMs, policy });
  const drafts = fleetDrafts(outcome, { before: state.gate, after: gate, probes, nowMs, policy });
  return { outcome, gate, before: state, disruption: disruptionAfter(outcome, state, nowMs), drafts };
}

export const isQuiet = (outcome: MonitorOutcome): boolean => outcome.decisions.length === 0;

const worldOf = (records: FleetRecords, nodes: readonly NodeHealth[], state: FleetState, gate: GateRecord) => ({
  nodes,
  zones: records.zones,
  queue: records.queue,
  disruption: state.disruption,
  gate,
});

function disruptionAfter(outcome: MonitorOutcome, state: FleetState, nowMs: number): FleetState['disruption'] {
  for (const decision of outcome.decisions) {
    if (decision.kind === 'enterTotalDisruption' || decision.kind === 'leaveTotalDisruption')
      return decision.disruption;
  }
  // Starts that no longer count would be bytes in a row that each tick writes.
  const { earlierStartsMs: known, ...disruption } = state.disruption;
  return { ...disruption, ...defined({ earlierStartsMs: known && rememberedFaults(known, nowMs) }) };
}

/** Records about the whole fleet: safety gate and total disruption. */
function fleetDrafts(
  outcome: MonitorOutcome,
  at: Pick<Parameters<typeof gateDraft>[2], 'nowMs' | 'probes' | 'policy'> & {
    readonly before: GateRecord;
    readonly after: GateRecord;
  },
): DecisionDraft[] {
  const drafts: DecisionDraft[] = [];
  if (hasOtherReasons(at.before, at.after)) {
    drafts.push(gateDraft(at.before, at.after, { ...at, withheldMarks: outcome.withheldMarks }));
  }
  for (const decision of outcome.decisions) {
    if (decision.kind === 'enterTotalDisruption' || decision.kind === 'leaveTotalDisruption') {
      drafts.push(disruptionDraft(decision, { ...at, zones: outcome.zoneMetrics }));
    }
  }
  return drafts;
}

/**
 * Whether the gate closed or opened, or is closed for other reasons than before. A transition that no finished tick has
 * reported may be unreported, because its tick died: it is reported again.
 */
export function gateTransition({ gate, before }: Pick<Decided, 'gate' | 'before'>): 'state' | 'reasons' | undefined {
  const { reasons, sinceMs, lastTickAtMs } = before.gate;
  if (gate.sinceMs !== sinceMs) return gate.reasons.length > 0 || reasons.length > 0 ? 'state' : undefined;
  if (sinceMs > 0 && (lastTickAtMs ?? 0) < sinceMs) return 'state';
  return hasOtherReasons(before.gate, gate) ? 'reasons' : undefined;
}

/** Names and times of the profiles, computed once per tick. A name that the policy no longer has means `default`. */
export function limitsByProfile(policy: Policy): ObservedTick['limitsOf'] {
  const known = new Map(
    profileNames(policy).map((profile) => {
      const { beatIntervalSeconds, nodeMonitorGracePeriodSeconds } = policyOf(policy, profile);
      return [profile, { profile, beatIntervalSeconds, graceSeconds: nodeMonitorGracePeriodSeconds }];
    }),
  );
  const ofDefault = known.get(DEFAULT_PROFILE)!;
  return ({ profile = DEFAULT_PROFILE }) => known.get(profile) ?? ofDefault;
}
