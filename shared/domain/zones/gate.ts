/**
 * Doubt ourselves first (D9). Before a node is called silent, two things must be true of us: we were watching, and a beat
 * sent to us would have arrived.
 *
 * missedTicks   more than two periods without a tick that finished, counted from the first where none has. Holds for the
 *               tick that finds it out; every node has a full grace from that tick on.
 * failingPath   of the probe beats of the last two beat intervals at least half got no success. Holds until that is no
 *               longer so and none was lost for a whole beat interval: a path that loses half of what it carries also lets
 *               half of the probes through, and must not open the gate by luck. Every node has a full grace from the first
 *               probe accepted after the last lost one.
 *
 * A grace is at least two beat intervals, and with four of them (the default) the half is enough: the gate closes before
 * the first beating node has used up its grace. With a grace of barely two, or a period near it, an outage can swallow two
 * beats between few probes. So the path also counts as failing while no stretch of the last grace is proven good that was
 * long enough for every node to beat in (L5): a run of ticks, none missing, of whose probes most were accepted, over one
 * beat interval. In steady state every tick proves it.
 *
 * While it holds nothing is newly marked, tainted by a limiter, or deleted by taint eviction. Everything that heals goes on.
 * A fleet that is silent while probes get through is not our fault and does not close the gate.
 */
import type { Policy } from '../policy.ts';
import { periodsBetween, ticksWereMissing } from '../tick.ts';

export type GateReason = 'missedTicks' | 'failingPath';

/** A probe beat, sent through the public endpoint as a node sends its own. */
export interface Probe {
  readonly sentAtMs: number;
  /** Answered with success in time. Everything else, and one that could not even be sent, is not. */
  readonly accepted: boolean;
}

export interface GateRecord {
  /** The last tick of node-monitor that finished; absent before the first. Epoch milliseconds. */
  readonly lastTickAtMs: number | undefined;
  /** Why the gate holds; empty when it is open. */
  readonly reasons: readonly GateReason[];
  /** Since when it holds, or is open. Epoch milliseconds. */
  readonly sinceMs: number;
  /** From when every node has a full grace: the first tick there ever was, or the end of a hold; 0 before either. */
  readonly freshSinceMs: number;
  /** Probes of the last two beat intervals, oldest first. */
  readonly probes: readonly Probe[];
  /** First tick of the present run of good ones; absent when the last tick was not good. Epoch milliseconds. */
  readonly goodSinceMs: number | undefined;
  /** When a good run of at least one beat interval was last seen, or a fresh grace began. Epoch milliseconds. */
  readonly provenAtMs: number | undefined;
}

export const UNTRIED_GATE: GateRecord = Object.freeze({
  lastTickAtMs: undefined,
  reasons: Object.freeze([]),
  sinceMs: 0,
  freshSinceMs: 0,
  probes: Object.freeze([]),
  goodSinceMs: undefined,
  provenAtMs: undefined,
});

export type GatePolicy = Pick<
  Policy,
  'nodeMonitorPeriodSeconds' | 'nodeMonitorGracePeriodSeconds' | 'beatIntervalSeconds' | 'ingestGate' | 'tickGate'
>;

/** Probes of a tick in doubt: one alone says too little of a path that loses some of what it carries. */
export const PROBES_A_TICK = 3;

/** Probes that two beat intervals hold at least, in calm. */
const PROBES_A_WINDOW_MIN = 4;

/** Probes a tick begins with: one, where the ticks of two beat intervals are many enough; more where they are few. */
export function firstProbes(policy: Pick<Policy, 'beatIntervalSeconds' | 'nodeMonitorPeriodSeconds'>): number {
  const ticks = Math.max(1, Math.floor((2 * policy.beatIntervalSeconds) / policy.nodeMonitorPeriodSeconds));
  return Math.min(PROBES_A_TICK, Math.ceil(PROBES_A_WINDOW_MIN / ticks));
}

/**
 * Whether a tick sends all its probes. Those it begins with are enough while none was lost in the last two beat intervals;
 * if one of them is lost, or one was, the others follow at once.
 */
export const isPathInDoubt = (record: Pick<GateRecord, 'probes'>, first: readonly boolean[]): boolean =>
  first.includes(false) || record.probes.some(({ accepted }) => !accepted);

/**
 * Probes that count at nowMs: those of the last two beat intervals, oldest first, and no more than their ticks can have
 * sent; none from a time that is yet to come, which a clock that stepped back would leave behind.
 */
export function probesInWindow(
  probes: readonly Probe[],
  nowMs: number,
  policy: Pick<Policy, 'beatIntervalSeconds' | 'nodeMonitorPeriodSeconds'>,
): Probe[] {
  const windowSeconds = 2 * policy.beatIntervalSeconds;
  const ticks = Math.ceil(windowSeconds / policy.nodeMonitorPeriodSeconds) + 1;
  return probes
    .filter(({ sentAtMs }) => sentAtMs > nowMs - windowSeconds * 1_000 && sentAtMs <= nowMs)
    .sort((a, b) => a.sentAtMs - b.sentAtMs)
    .slice(-ticks * PROBES_A_TICK);
}

const lastLost = (probes: readonly Probe[]): Probe | undefined => probes.findLast(({ accepted }) => !accepted);

/** At least half got no success. Without a single probe nothing is known, and nothing held against us. */
export const pathIsFailing = (probes: readonly Probe[]): boolean =>
  probes.length > 0 && probes.filter((probe) => !probe.accepted).length * 2 >= probes.length;

/** The present run of good ticks: begun, carried on, or broken by refused probes, by none at all, or by a missing tick. */
function goodRunSince(
  record: GateRecord,
  at: { readonly nowMs: number; readonly probes: readonly Probe[]; readonly policy: GatePolicy },
): number | undefined {
  if (at.probes.length === 0 || pathIsFailing(at.probes)) return undefined;
  if (record.goodSinceMs === undefined || record.lastTickAtMs === undefined) return at.nowMs;
  const periods = periodsBetween(record.lastTickAtMs, at.nowMs, at.policy.nodeMonitorPeriodSeconds);
  return periods > 1 ? at.nowMs : record.goodSinceMs;
}

/**
 * The gate at this tick of node-monitor. `probes` are those of this tick: send them first, so that an outage is seen by
 * the tick it would mislead. All of the record is stored with the claim of the tick but `lastTickAtMs`, which is stored when
 * the tick has finished, so that one that failed half-way does not pass for a tick.
 */
export function decideGate(
  record: GateRecord,
  at: { readonly nowMs: number; readonly probes: readonly Probe[]; readonly policy: GatePolicy },
): GateRecord {
  const { nowMs, policy } = at;
  const beatMs = policy.beatIntervalSeconds * 1_000;
  const graceMs = policy.nodeMonitorGracePeriodSeconds * 1_000;
  const probes = probesInWindow([...record.probes, ...at.probes], nowMs, policy);
  const lostAtMs = lastLost(probes)?.sentAtMs;
  const goodSinceMs = goodRunSince(record, at);
  const provenNow = goodSinceMs !== undefined && nowMs - goodSinceMs >= beatMs;
  const provenAtMs = provenNow ? nowMs : record.provenAtMs;
  const unproven = probes.length > 0 && provenAtMs !== undefined && nowMs - provenAtMs > graceMs - beatMs;
  // Before the first tick there ever was nobody watched, and a control table that was lost or restored empty looks the same:
  // the gate need not hold, but nobody is judged by what was before it. Each tick leaves `provenAtMs` behind, finished or not.
  const isFirst = policy.tickGate === 'on' && record.lastTickAtMs === undefined && record.provenAtMs === undefined;
  // Where none has finished, the grace of the first tick says when it was; once that holds the gate, until one finishes.
  const heldForTicks = record.reasons.includes('missedTicks');
  const lastTickAtMs = record.lastTickAtMs ?? (heldForTicks ? undefined : record.freshSinceMs);
  const missed =
    policy.tickGate === 'on' &&
    !isFirst &&
    ticksWereMissing({ lastTickAtMs, nowMs, periodSeconds: policy.nodeMonitorPeriodSeconds });
  const wasFailing = record.reasons.includes('failingPath');
  const lossy = wasFailing && lostAtMs !== undefined && lostAtMs > nowMs - beatMs;
  const failing = policy.ingestGate === 'on' && (pathIsFailing(probes) || lossy || (unproven && !missed));
  const pathRecovered = wasFailing && !failing;
  const recoveredAtMs =
    probes.find(({ sentAtMs }) => lostAtMs === undefined || sentAtMs > lostAtMs)?.sentAtMs ?? goodSinceMs ?? nowMs;
  const reasons: GateReason[] = [];
  if (missed) reasons.push('missedTicks');
  if (failing) reasons.push('failingPath');
  const holds = reasons.length > 0;
  const held = record.reasons.length > 0;
  const freshSinceMs = Math.max(record.freshSinceMs, missed || isFirst ? nowMs : 0, pathRecovered ? recoveredAtMs : 0);
  return {
    lastTickAtMs: nowMs,
    reasons,
    sinceMs: holds === held ? record.sinceMs : nowMs,
    freshSinceMs,
    probes,
    goodSinceMs,
    // A fresh grace stands in for a proof: nobody is judged by what was before it.
    provenAtMs: Math.max(provenAtMs ?? nowMs, freshSinceMs),
  };
}

export type GateVerdict =
  | { readonly kind: 'open' }
  | { readonly kind: 'holding'; readonly reasons: readonly GateReason[]; readonly sinceMs: number };

/** What a record says at the tick it was decided. */
export const gateVerdict = (record: GateRecord): GateVerdict =>
  record.reasons.length === 0
    ? { kind: 'open' }
    : { kind: 'holding', reasons: record.reasons, sinceMs: record.sinceMs };

/**
 * The gate for everybody but node-monitor: as stored, and holding as well while node-monitor itself has missed ticks.
 * After an outage the evictor may wake first; it must not act on what was believed before.
 */
export function gateVerdictFor(
  record: GateRecord,
  at: { readonly nowMs: number; readonly policy: Pick<Policy, 'nodeMonitorPeriodSeconds' | 'tickGate'> },
): GateVerdict {
  const stored = gateVerdict(record);
  if (stored.kind === 'holding' || at.policy.tickGate === 'off') return stored;
  const missing = ticksWereMissing({
    lastTickAtMs: record.lastTickAtMs,
    nowMs: at.nowMs,
    periodSeconds: at.policy.nodeMonitorPeriodSeconds,
  });
  return missing ? { kind: 'holding', reasons: ['missedTicks'], sinceMs: record.lastTickAtMs ?? at.nowMs } : stored;
}
