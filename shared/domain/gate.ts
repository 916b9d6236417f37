/**
 * Doubt ourselves first (D9). Before a node is called silent, two things must be true of us: we were watching, and a beat
 * sent to us would have arrived.
 *
 * missedTicks   more than two periods without a tick that finished. Holds for the tick that finds it out; every node has a
 *               full grace from that tick on.
 * failingPath   of the probe beats of the last two beat intervals at least half got no success. Holds until that is no
 *               longer so; every node has a full grace from the first probe accepted after the last refused one. A grace is
 *               at least two beat intervals, so the gate closes before the first beating node has used up its own.
 *
 * While it holds nothing is newly marked, tainted by a limiter, or deleted by taint eviction. Everything that heals goes on.
 * A fleet that is silent while probes get through is not our fault and does not close the gate.
 */
import type { Policy } from './policy.ts';
import { ticksWereMissing } from './tick.ts';

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
  /** From when every node has a full grace; 0 when the gate never held. */
  readonly freshSinceMs: number;
  /** Probes of the last two beat intervals, oldest first. */
  readonly probes: readonly Probe[];
}

export const UNTRIED_GATE: GateRecord = Object.freeze({
  lastTickAtMs: undefined,
  reasons: Object.freeze([]),
  sinceMs: 0,
  freshSinceMs: 0,
  probes: Object.freeze([]),
});

export type GatePolicy = Pick<Policy, 'nodeMonitorPeriodSeconds' | 'beatIntervalSeconds' | 'ingestGate' | 'tickGate'>;

/** Probes that count at nowMs: those of the last two beat intervals, oldest first. */
export const probesInWindow = (probes: readonly Probe[], nowMs: number, beatIntervalSeconds: number): Probe[] =>
  probes
    .filter((probe) => probe.sentAtMs > nowMs - 2 * beatIntervalSeconds * 1_000)
    .sort((a, b) => a.sentAtMs - b.sentAtMs);

/** At least half got no success. Without a single probe nothing is known, and nothing held against us. */
export const pathIsFailing = (probes: readonly Probe[]): boolean =>
  probes.length > 0 && probes.filter((probe) => !probe.accepted).length * 2 >= probes.length;

function firstAcceptedAfterLastRefused(probes: readonly Probe[], nowMs: number): number {
  const lastRefused = probes.findLastIndex((probe) => !probe.accepted);
  return probes[lastRefused + 1]?.sentAtMs ?? nowMs;
}

/**
 * The gate at this tick of node-monitor. `probes` are those sent since the last tick; send this tick's first, so that an
 * outage is seen by the tick it would mislead. The record is stored when the tick has finished, so that one that
 * failed half-way does not pass for a tick.
 */
export function decideGate(
  record: GateRecord,
  at: { readonly nowMs: number; readonly probes: readonly Probe[]; readonly policy: GatePolicy },
): GateRecord {
  const { nowMs, policy } = at;
  const probes = probesInWindow([...record.probes, ...at.probes], nowMs, policy.beatIntervalSeconds);
  const missed =
    policy.tickGate === 'on' &&
    ticksWereMissing({ lastTickAtMs: record.lastTickAtMs, nowMs, periodSeconds: policy.nodeMonitorPeriodSeconds });
  const failing = policy.ingestGate === 'on' && pathIsFailing(probes);
  const pathRecovered = record.reasons.includes('failingPath') && !failing;
  const reasons: GateReason[] = [];
  if (missed) reasons.push('missedTicks');
  if (failing) reasons.push('failingPath');
  const holds = reasons.length > 0;
  const held = record.reasons.length > 0;
  return {
    lastTickAtMs: nowMs,
    reasons,
    sinceMs: holds === held ? record.sinceMs : nowMs,
    freshSinceMs: Math.max(
      record.freshSinceMs,
      missed ? nowMs : 0,
      pathRecovered ? firstAcceptedAfterLastRefused(probes, nowMs) : 0,
    ),
    probes,
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
