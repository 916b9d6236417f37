/** Decision records of evictor: NoExecute taints, and why a zone's waiting nodes get none. */
import {
  aboutNode,
  aboutZone,
  type DraftOf,
  fullPolicy,
  GRACE_FIELDS,
  gateOf,
  healthOf,
  limiterOf,
  NOTHING,
  policyPart,
  type RecordedHealth,
  type RecordedPolicy,
  type ReplayRules,
  rateText,
  recordedGate,
  recordedHealth,
  secondsText,
  zoneText,
} from '../../shared/decisions/decision-record.ts';
import { gateReasonsText } from '../../shared/events/event-text.ts';
import type { QueuedNode } from '../../shared/fleet/fleet-records.ts';
import type { GateReason, GateVerdict } from '../../shared/fleet/gate.ts';
import type { Limiter } from '../../shared/fleet/limiter.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { policyOf } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import { decideEvictions, type EvictionDecision, type EvictionHold, evictionHold } from './rule.ts';

interface EvictorInputs {
  /** evictionHold. */
  readonly hold: {
    readonly limiter: Limiter;
    readonly gate: readonly GateReason[];
    readonly totalDisruption: boolean;
    /** Not read by the rule: how many nodes wait. */
    readonly waiting: number;
    /** Not read by the rule: the first names in the queue. */
    readonly first: readonly string[];
  };
  /** decideEvictions for one node. */
  readonly eviction: {
    readonly item: { readonly addedAtMs: number };
    readonly health: RecordedHealth;
    readonly limiter: Limiter;
    readonly freshSinceMs: number;
    /** Not read by the rule: how many nodes wait. */
    readonly waiting: number;
    readonly policy: RecordedPolicy;
  };
}

export type EvictorDraft = DraftOf<EvictorInputs>;

/** Names in the record of a hold. */
const HOLD_NAMES_MAX = 5;

export function holdDraft(
  hold: EvictionHold,
  at: {
    readonly nowMs: number;
    readonly zone: string;
    readonly limiter: Limiter;
    readonly gate: GateVerdict;
    readonly totalDisruption: boolean;
    readonly waiting: readonly QueuedNode[];
    readonly policy: Policy;
  },
): EvictorDraft {
  const count = at.waiting.length;
  const waiting = `${count < at.policy.nodesQueuedPerZoneMax ? '' : 'at least '}${count} ${count === 1 ? 'node waits' : 'nodes wait'} for the NoExecute taint`;
  return {
    act: 'EvictionHeld',
    about: aboutZone(at.zone),
    atMs: at.nowMs,
    reason: `${waiting}: ${holdText(hold, at.limiter.ratePerSecond)}`,
    rule: 'hold',
    inputs: {
      limiter: at.limiter,
      gate: recordedGate(at.gate),
      totalDisruption: at.totalDisruption,
      waiting: count,
      first: at.waiting.slice(0, HOLD_NAMES_MAX).map(({ nodeName }) => nodeName),
    },
    outcome: { ...hold },
  };
}

function holdText(hold: EvictionHold, ratePerSecond: number): string {
  switch (hold.kind) {
    case 'gate':
      return `safety gate closed: ${gateReasonsText(hold.reasons)}`;
    case 'totalDisruption':
      return 'total disruption, every zone is in full disruption';
    case 'never':
      return 'the eviction rate in this zone state is 0';
    case 'rate':
      return `${rateText(ratePerSecond)}, next at ${rfc3339(hold.untilMs)}`;
  }
}

/** Identifies a hold for as long as it lasts: the same hold has the same key. */
export function holdKey(hold: EvictionHold, ratePerSecond: number): string {
  if (hold.kind === 'gate') return `gate ${hold.reasons.join()}`;
  return hold.kind === 'rate' ? `rate ${ratePerSecond}` : hold.kind;
}

export function taintDraft(
  decision: Extract<EvictionDecision, { kind: 'taint' }>,
  at: {
    readonly nowMs: number;
    readonly policy: Policy;
    readonly seen: NodeHealth;
    readonly item: QueuedNode;
    readonly limiter: Limiter;
    readonly freshSinceMs: number;
    readonly waiting: number;
  },
): EvictorDraft {
  const { taint, waitedSeconds, ratePerSecond, ready, zone } = decision;
  const key = taint === 'notReady' ? 'not-ready' : 'unreachable';
  const added = `node.kubernetes.io/${key}:NoExecute added after ${secondsText(waitedSeconds)} in the eviction queue`;
  return {
    act: 'Tainted',
    about: aboutNode(decision),
    atMs: at.nowMs,
    reason: `Ready is ${ready}: ${added}; zone ${zoneText(zone)}: ${rateText(ratePerSecond)}`,
    rule: 'eviction',
    inputs: {
      item: { addedAtMs: at.item.addedAtMs },
      health: recordedHealth(at.seen),
      limiter: at.limiter,
      freshSinceMs: at.freshSinceMs,
      waiting: at.waiting,
      policy: policyPart(policyOf(at.policy, at.seen.profile), ...GRACE_FIELDS),
    },
    outcome: { taint, waitedSeconds, ratePerSecond },
  };
}

export const evictorReplay: ReplayRules<EvictorInputs> = {
  hold({ limiter, gate, totalDisruption }, { atMs }) {
    return { ...(evictionHold(limiterOf(limiter), { nowMs: atMs, gate: gateOf(gate), totalDisruption }) ?? NOTHING) };
  },
  eviction({ item, health, limiter, freshSinceMs, policy }, { about, atMs }) {
    const { name: nodeName, uid = '' } = about;
    const { decisions } = decideEvictions(
      {
        items: [{ ...item, nodeName, uid, zone: health.zone }],
        nodes: new Map([[nodeName, healthOf(about, health)]]),
        limiter: limiterOf(limiter),
      },
      { nowMs: atMs, gate: { kind: 'open' }, totalDisruption: false, policy: fullPolicy(policy), freshSinceMs },
    );
    const decided = decisions[0];
    return decided?.kind === 'taint'
      ? { taint: decided.taint, waitedSeconds: decided.waitedSeconds, ratePerSecond: decided.ratePerSecond }
      : { ...(decided === undefined ? NOTHING : { kind: decided.kind }) };
  },
};
