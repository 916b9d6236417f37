/** Decision records of node-monitor: silent nodes, the safety gate, total disruption, zones. */
import {
  aboutNode,
  aboutZone,
  type DecisionAct,
  type DraftOf,
  FLEET,
  fullPolicy,
  GRACE_FIELDS,
  healthOf,
  NOTHING,
  policyPart,
  type RecordedHealth,
  type RecordedPolicy,
  type ReplayRules,
  rateText,
  recordedHealth,
  secondsText,
  zoneText,
} from '../decisions/decision-record.ts';
import { defined } from '../defined.ts';
import { gateReasonsText } from '../events/event-text.ts';
import { rfc3339 } from '../kubernetes/rfc3339.ts';
import type { Testimony } from './accusation.rule.ts';
import { decideGate, type GateRecord, type Probe, UNTRIED_GATE } from './gate.ts';
import { type Accusation, decideMonitor, type MonitorDecision } from './marks.rule.ts';
import type { NodeHealth } from './nodes/health.ts';
import { policyOf } from './nodes/node-profile.ts';
import type { Policy } from './policy.ts';
import { FLAPPING_TAINT_KEY, type FlapHistory, flapText, flapVerdict } from './silences/flapping.ts';
import {
  disruptionVerdict,
  NO_DISRUPTION,
  type ZoneMetrics,
  type ZoneState,
  zoneRatePerSecond,
  zoneStateOf,
} from './zone-state.ts';

/** What the store of refusals returns. */
export interface RefusedInMinute {
  readonly kind: string;
  readonly username: string;
  readonly over: string;
  readonly count: number;
}

interface NodeMonitorInputs {
  /** decideMonitor for one node. */
  readonly silence: {
    readonly health: RecordedHealth;
    readonly freshSinceMs: number;
    /** Not read by the rule: the zone after this tick's marks. */
    readonly zoneCount?: { readonly size: number; readonly notReady: number } | undefined;
    /** What others of its site reported; absent: no machine reported it. */
    readonly testimony?: Testimony | undefined;
    readonly policy: RecordedPolicy;
  };
  /** flapVerdict. */
  readonly flapping: {
    readonly isFlapping: boolean;
    readonly marksSeconds: readonly number[];
    readonly ownFaultsAtMs: readonly number[];
    readonly policy: RecordedPolicy;
  };
  /** decideGate. */
  readonly gate: {
    readonly before: GateRecord;
    readonly probes: readonly Probe[];
    /** Not read by the rule: silent nodes that the closed gate kept from being marked. */
    readonly withheldMarks: number;
    readonly policy: RecordedPolicy;
  };
  /** disruptionVerdict. */
  readonly disruption: {
    readonly total: boolean;
    /** Number of non-empty zones per state. */
    readonly zones: Readonly<Partial<Record<ZoneState, number>>>;
  };
  /** zoneStateOf and zoneRatePerSecond. */
  readonly zone: {
    readonly ready: number;
    readonly notReady: number;
    readonly totalDisruption: boolean;
    readonly policy: RecordedPolicy;
  };
  /** refusalVerdict. */
  readonly refusals: {
    /** The kind of the identity: node, probe or person. */
    readonly kind: string;
    /** Which limit: the rate of requests, or the time that they use. */
    readonly over: string;
    readonly minuteMs: number;
    readonly count: number;
  };
}

export type NodeMonitorDraft = DraftOf<NodeMonitorInputs>;

export function markDraft(
  decision: Extract<MonitorDecision, { kind: 'markUnknown' }>,
  seen: NodeHealth,
  at: { readonly nowMs: number; readonly policy: Policy; readonly zone: ZoneMetrics | undefined },
): NodeMonitorDraft {
  const { silentSeconds, graceSeconds, freshSinceMs, accusation } = decision;
  const { zone } = at;
  const profile = seen.profile === undefined ? '' : ` of profile ${seen.profile}`;
  const zoneCount = zone === undefined ? '' : `; ${zone.unhealthy} of ${zone.size} nodes in its zone are not ready`;
  const silence = `No heartbeat or status for ${secondsText(silentSeconds)}`;
  return {
    act: 'MarkUnknown',
    about: aboutNode(decision),
    atMs: at.nowMs,
    reason: `${silence} (grace period ${secondsText(graceSeconds)}${profile})${accusationText(accusation, at.nowMs)}${zoneCount}`,
    rule: 'silence',
    inputs: {
      health: recordedHealth(seen),
      freshSinceMs,
      ...defined({
        zoneCount: zone === undefined ? undefined : { size: zone.size, notReady: zone.unhealthy },
        testimony: accusation?.testimony,
      }),
      policy: policyPart(
        policyOf(at.policy, seen.profile),
        ...GRACE_FIELDS,
        ...(accusation === undefined ? [] : WITNESS_FIELDS),
      ),
    },
    outcome: { mark: true, silentSeconds, graceSeconds },
  };
}

/** The policy fields that the rule of witnesses reads besides. */
const WITNESS_FIELDS = ['witnessGraceSeconds', 'nodeMonitorPeriodSeconds'] as const;

/** Who reported the node, and why its grace period was shortened or not. */
function accusationText(accusation: Accusation | undefined, nowMs: number): string {
  if (accusation === undefined) return '';
  const { testimony, verdict, shortens } = accusation;
  const { witnesses, accused, machines } = testimony;
  const names = witnesses.map(
    ({ nodeName, role, sinceMs }) =>
      `${nodeName}${role === 'hub' ? ' (relay)' : ''} since ${secondsText((nowMs - sinceMs) / 1_000)}`,
  );
  const reported = `reported as silent on its site by ${names.join(' and ')}`;
  if (shortens) return `; grace period shortened: ${reported}`;
  switch (verdict) {
    case 'counts':
      return `; ${reported}`;
    case 'tooManyAccused':
      return `; grace period not shortened: ${accused} of ${machines} machines of its zone were reported as silent`;
    case 'pathFailed':
      return `; grace period not shortened: our own ticks or heartbeats failed; ${reported}`;
    case 'tooFewWitnesses':
      return `; grace period not shortened: only ${reported}`;
  }
}

/** The node begins or ends flapping. */
export function flappingDraft(
  { verdict, ownFaultsAtMs, ...node }: Extract<MonitorDecision, { kind: 'setFlapping' }>,
  history: FlapHistory,
  at: { readonly nowMs: number; readonly policy: Policy },
): NodeMonitorDraft {
  const { flapStableSeconds, flapEffect } = at.policy;
  const why = flapText(verdict, at.policy);
  const taint = `${FLAPPING_TAINT_KEY}:${flapEffect}`;
  return {
    act: verdict.kind === 'begin' ? 'FlappingBegan' : 'FlappingEnded',
    about: aboutNode(node),
    atMs: at.nowMs,
    reason:
      verdict.kind === 'begin'
        ? `${why}: taint ${taint} until ${secondsText(flapStableSeconds)} pass without a mark`
        : `${why}: taint ${FLAPPING_TAINT_KEY} removed`,
    rule: 'flapping',
    inputs: {
      ...history,
      ownFaultsAtMs,
      policy: policyPart(
        at.policy,
        'flapThreshold',
        'flapWindowSeconds',
        'flapStableSeconds',
        'nodeMonitorGracePeriodSeconds',
        'profiles',
      ),
    },
    outcome: { ...defined({ ...verdict }) },
  };
}

/** For a gate that is closed for other reasons than before, or open again. */
export function gateDraft(
  before: GateRecord,
  after: GateRecord,
  at: {
    readonly nowMs: number;
    readonly probes: readonly Probe[];
    readonly policy: Policy;
    readonly withheldMarks: number;
  },
): NodeMonitorDraft {
  const { reasons, sinceMs, freshSinceMs } = after;
  const isClosed = reasons.length > 0;
  const withheld = at.withheldMarks === 0 ? '' : `; silent nodes not marked: ${at.withheldMarks}`;
  return {
    act: isClosed ? 'GateClosed' : 'GateOpened',
    about: FLEET,
    atMs: at.nowMs,
    reason: isClosed
      ? `safety gate closed: ${gateReasonsText(reasons)}; no node is newly marked, tainted or evicted${withheld}`
      : `safety gate open; every node has a full grace period from ${rfc3339(freshSinceMs)}`,
    rule: 'gate',
    inputs: {
      before,
      probes: at.probes,
      withheldMarks: at.withheldMarks,
      policy: policyPart(
        at.policy,
        'nodeMonitorPeriodSeconds',
        'nodeMonitorGracePeriodSeconds',
        'beatIntervalSeconds',
        'ingestGate',
        'tickGate',
        'profiles',
      ),
    },
    outcome: { reasons, sinceMs, freshSinceMs },
  };
}

export function disruptionDraft(
  decision: Extract<MonitorDecision, { kind: 'enterTotalDisruption' | 'leaveTotalDisruption' }>,
  at: { readonly nowMs: number; readonly policy: Policy; readonly zones: readonly ZoneMetrics[] },
): NodeMonitorDraft {
  const enters = decision.kind === 'enterTotalDisruption';
  const zones: Partial<Record<ZoneState, number>> = {};
  for (const { size, unhealthy } of at.zones) {
    if (size === 0) continue;
    const state = zoneStateOf({ ready: size - unhealthy, notReady: unhealthy }, at.policy);
    zones[state] = (zones[state] ?? 0) + 1;
  }
  return {
    act: enters ? 'TotalDisruptionEntered' : 'TotalDisruptionLeft',
    about: FLEET,
    atMs: at.nowMs,
    reason: enters
      ? `all zones (${decision.zones}) are in full disruption: a fault of the controller is likely, all evictions stop`
      : `not all zones (${decision.zones}) are in full disruption any more: every node has a new grace period`,
    rule: 'disruption',
    inputs: { total: !enters, zones },
    outcome: { total: enters },
  };
}

export type ZoneDecision = Extract<MonitorDecision, { kind: 'createZone' | 'setZoneState' | 'setZoneRate' }>;

/** A zone was created, or its state or its eviction rate changed. */
export function zoneDraft(
  decision: ZoneDecision,
  at: {
    readonly nowMs: number;
    readonly policy: Policy;
    readonly totalDisruption: boolean;
    readonly zone: ZoneMetrics | undefined;
  },
): NodeMonitorDraft {
  const { policy, totalDisruption, zone } = at;
  const notReady = zone?.unhealthy ?? 0;
  const size = zone?.size ?? 0;
  const to = decision.kind === 'setZoneState' ? decision.to : decision.state;
  const count = `${notReady} of ${size} nodes are not ready`;
  const draft = (act: DecisionAct, reason: string, ratePerSecond: number): NodeMonitorDraft => ({
    act,
    about: aboutZone(decision.zone),
    atMs: at.nowMs,
    reason,
    rule: 'zone',
    inputs: {
      ready: size - notReady,
      notReady,
      totalDisruption,
      policy: policyPart(
        policy,
        'unhealthyZoneThreshold',
        'nodeEvictionRatePerSecond',
        'secondaryNodeEvictionRatePerSecond',
        'largeClusterSizeThreshold',
        'fullDisruption',
      ),
    },
    outcome: { ...defined({ state: to }), ratePerSecond },
  });
  switch (decision.kind) {
    case 'createZone': {
      const reason = `zone ${zoneText(decision.zone)} is new: ${to ?? 'empty'}, ${count}`;
      return draft('ZoneStateSet', reason, decision.ratePerSecond);
    }
    case 'setZoneState': {
      const rate = totalDisruption ? 0 : zoneRatePerSecond(to ?? 'Initial', size, policy);
      return draft('ZoneStateSet', `${decision.from ?? 'empty'} to ${to ?? 'empty'}: ${count}`, rate);
    }
    case 'setZoneRate': {
      const { fromPerSecond, toPerSecond } = decision;
      const cause = totalDisruption ? 'total disruption' : (to ?? 'empty');
      const reason = `${rateText(fromPerSecond)} to ${rateText(toPerSecond)}: ${cause}, ${count}`;
      return draft('ZoneRateSet', reason, toPerSecond);
    }
  }
}

const NODE_USER = 'system:node:';

interface RefusalVerdict {
  readonly kind: 'recorded';
  /** Requests per minute. */
  readonly refused: number;
}

/** Every identity that was refused is recorded. */
const refusalVerdict = (count: number): RefusalVerdict | undefined =>
  count > 0 ? { kind: 'recorded', refused: count } : undefined;

/** Requests of an identity were refused in a minute, because it is over its limit. */
export function refusalDraft(
  { username, kind, over, count }: RefusedInMinute,
  { minuteMs, nowMs }: { readonly minuteMs: number; readonly nowMs: number },
): NodeMonitorDraft {
  const isNode = username.startsWith(NODE_USER);
  const limit = over === 'time' ? 'its share of the time of a function' : 'the rate of requests of one identity';
  const verdict = refusalVerdict(count);
  return {
    act: 'RequestsRefused',
    about: isNode ? { kind: 'Node', name: username.slice(NODE_USER.length) } : { kind: 'Object', name: username },
    atMs: nowMs,
    reason: `${count} requests of ${username} were refused in the minute from ${rfc3339(minuteMs)}: over ${limit}; requests of others were served`,
    rule: 'refusals',
    inputs: { kind, over, minuteMs, count },
    outcome: verdict === undefined ? NOTHING : { ...verdict },
  };
}

export const nodeMonitorReplay: ReplayRules<NodeMonitorInputs> = {
  silence({ health, freshSinceMs, testimony, policy }, { about, atMs }) {
    const { decisions } = decideMonitor(
      {
        nodes: [healthOf(about, health)],
        zones: [],
        queue: [],
        disruption: NO_DISRUPTION,
        gate: { ...UNTRIED_GATE, freshSinceMs },
        ...(testimony === undefined ? {} : { testimonies: new Map([[about.name, testimony]]) }),
      },
      { nowMs: atMs, policy: fullPolicy(policy) },
    );
    const mark = decisions.find((decision) => decision.kind === 'markUnknown');
    return mark === undefined
      ? NOTHING
      : { mark: true, silentSeconds: mark.silentSeconds, graceSeconds: mark.graceSeconds };
  },
  flapping({ isFlapping, marksSeconds, ownFaultsAtMs, policy: recorded }, { atMs: nowMs }) {
    const policy = fullPolicy(recorded);
    const verdict = flapVerdict({ isFlapping, marksSeconds }, { nowMs, policy, ownFaultsAtMs, mayBegin: true });
    return verdict.kind === 'unchanged' ? NOTHING : { ...defined({ ...verdict }) };
  },
  gate({ before, probes, policy }, { atMs }) {
    const at = { nowMs: atMs, probes, policy: fullPolicy(policy) };
    const { reasons, sinceMs, freshSinceMs } = decideGate(before, at);
    return { reasons, sinceMs, freshSinceMs };
  },
  disruption({ total, zones }) {
    const states = (Object.keys(zones) as ZoneState[]).filter((state) => (zones[state] ?? 0) > 0);
    const verdict = disruptionVerdict(total, states);
    return { total: verdict === 'enter' || (verdict === 'unchanged' && total) };
  },
  zone({ ready, notReady, totalDisruption, policy: recorded }) {
    const policy = fullPolicy(recorded);
    const size = ready + notReady;
    const state = size === 0 ? undefined : zoneStateOf({ ready, notReady }, policy);
    const ratePerSecond = totalDisruption ? 0 : zoneRatePerSecond(state ?? 'Initial', size, policy);
    return { ...defined({ state }), ratePerSecond };
  },
  refusals({ count }) {
    return { ...(refusalVerdict(count) ?? NOTHING) };
  },
};
