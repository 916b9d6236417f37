/**
 * The safety gate (D9). A node is called silent only while two things are true of the controller: its ticks ran, and a
 * heartbeat sent to it would have arrived.
 *
 * missedTicks   No finished tick for more than half a grace period (tickGapMaxMs). Before the first finished tick the
 *               gap is counted from the first tick. Closes the gate for the tick that detects it. Every node has a
 *               full grace period from then. A shorter gap cannot exceed a grace period by itself, so it does not
 *               matter how many ticks were late or lost.
 * failingPath   At least half of the probe heartbeats of the last two heartbeat intervals failed. The gate opens when
 *               fewer failed and none failed for a whole heartbeat interval: a path that loses half of all heartbeats
 *               also accepts half of the probes, and must not open the gate by chance. Every node has a full grace
 *               period from the first probe accepted after the last failed one.
 *
 * A grace period is at least two heartbeat intervals. With four (the default), half of the probes is strict enough: the
 * gate closes before the first live node exceeds its grace period. With barely two, or with a period close to the grace
 * period, an outage can lose two heartbeats between few probes. So the path also counts as failing while the last grace
 * period contains no proven stretch in which every node could send a heartbeat (L5): consecutive ticks over one
 * heartbeat interval, none of them over one and a half periods after the one before, with most of their probes
 * accepted. The last heartbeat of a live node is then at most one interval old, with its jitter, and by another clock
 * than ours. So the proof is valid for the grace period less that age. In steady state every tick proves it. The next
 * proof comes a gap between ticks and one heartbeat interval later. So a gap of up to half a grace period leaves the
 * proof in time where a grace period is well over four heartbeat intervals. With fewer, or after several gaps in a row,
 * the gate closes although all probes were accepted, until the next proof.
 *
 * While the gate is closed, no node is newly marked or tainted by a limiter, and taint eviction deletes no pod.
 * Recovery continues. Nodes that are silent while probes succeed do not close the gate.
 *
 * With profiles, each profile has a gate with its own times, and its nodes are marked only while that one is open
 * (gateOf). All gates see the same ticks and probes. The record as a whole is closed while one of them is: evictions
 * and workloads wait for all (docs/decisions/0037).
 */
import { defined } from '../defined.ts';
import { periodsBetween, tickGapMaxMs, ticksWereMissing } from '../ticks/tick.ts';
import { earlierFaults, rememberedFaults } from './fault-times.ts';
import { DEFAULT_PROFILE, overProfiles, policyOf, profileNames } from './nodes/node-profile.ts';
import { INTERVAL_JITTER, type Policy } from './policy.ts';

export type GateReason = 'missedTicks' | 'failingPath';

/** A probe heartbeat, sent through the public endpoint as nodes send theirs. */
export interface Probe {
  readonly sentAtMs: number;
  /** Answered with success in time. False for every other result, and for a probe that could not be sent. */
  readonly accepted: boolean;
}

/** The gate of one profile. */
export interface ProfileGate {
  readonly reasons: readonly GateReason[];
  readonly sinceMs: number;
  readonly freshSinceMs: number;
  readonly provenAtMs: number | undefined;
  /** Heartbeat interval of the profile at this tick. Seconds; absent: not known yet. */
  readonly beatSeconds?: number | undefined;
}

export interface GateRecord extends ProfileGate {
  /** The last tick of node-monitor that finished; absent before the first. Epoch milliseconds. */
  readonly lastTickAtMs: number | undefined;
  /** Why the gate is closed; empty when it is open. */
  readonly reasons: readonly GateReason[];
  /** Time of the last transition. Epoch milliseconds. */
  readonly sinceMs: number;
  /** Start of a full grace period for every node: the first tick ever, or the opening of the gate; 0 before either. */
  readonly freshSinceMs: number;
  /** Probes of the last two heartbeat intervals, of the longest one of all profiles, oldest first. */
  readonly probes: readonly Probe[];
  /** First of the consecutive good ticks up to now; absent when the last tick was not good. Epoch milliseconds. */
  readonly goodSinceMs: number | undefined;
  /**
   * Last time with good ticks over at least one heartbeat interval, or start of a new grace period. Epoch milliseconds.
   */
  readonly provenAtMs: number | undefined;
  /** When the gate of any profile last closed for `failingPath`; absent: never. Epoch milliseconds. */
  readonly pathFailedAtMs?: number | undefined;
  /** When it closed for that before, newest first; absent: never. */
  readonly earlierPathFailuresMs?: readonly number[] | undefined;
  /** The gate of each profile, `default` included; absent without profiles: this record is the gate of all nodes. */
  readonly profiles?: Readonly<Record<string, ProfileGate>> | undefined;
}

/** Whether the gate is closed for other reasons than before, or open again. */
export const hasOtherReasons = (before: Pick<GateRecord, 'reasons'>, after: Pick<GateRecord, 'reasons'>): boolean =>
  before.reasons.join() !== after.reasons.join();

export const UNTRIED_GATE: GateRecord = Object.freeze({
  lastTickAtMs: undefined,
  reasons: Object.freeze([]),
  sinceMs: 0,
  freshSinceMs: 0,
  probes: Object.freeze([]),
  goodSinceMs: undefined,
  provenAtMs: undefined,
});

/** A deployment updates all functions within this time. Milliseconds. */
export const DEPLOYED_WITHIN_MS = 120_000;

export type GatePolicy = Policy;
type ProbePolicy = Pick<Policy, 'beatIntervalSeconds' | 'nodeMonitorPeriodSeconds'>;

/** Probes per tick after a failed one: a single probe says too little about a path that loses some heartbeats. */
export const PROBES_PER_TICK_MAX = 3;

/** Least number of probes in two heartbeat intervals while none fails. */
const PROBES_PER_WINDOW_MIN = 4;

/** Longest time for which probes are stored and evaluated. Seconds: the record is written with each tick. */
const PROBE_WINDOW_SECONDS_MAX = 120;

/** Probes that a tick sends first: one, or more where two heartbeat intervals contain few ticks. */
export function firstProbes(policy: Policy): number {
  const shortestSeconds = overProfiles(policy, 'beatIntervalSeconds', Math.min);
  const ticks = Math.max(1, Math.floor((2 * shortestSeconds) / policy.nodeMonitorPeriodSeconds));
  return Math.min(PROBES_PER_TICK_MAX, Math.ceil(PROBES_PER_WINDOW_MIN / ticks));
}

/**
 * Whether a tick sends all its probes. The first ones are enough while no probe failed in the last two heartbeat
 * intervals. Otherwise the others follow at once.
 */
export const needsAllProbes = (record: Pick<GateRecord, 'probes'>, first: readonly boolean[]): boolean =>
  first.includes(false) || record.probes.some(({ accepted }) => !accepted);

/**
 * The probes evaluated at nowMs: those of the last two heartbeat intervals, at most 120 s, oldest first, and no more
 * than their ticks can have sent. A shorter window closes the gate earlier, which is safe. Probes from the future,
 * which remain when the clock steps back, are dropped.
 */
export function probesInWindow(probes: readonly Probe[], nowMs: number, policy: ProbePolicy): Probe[] {
  const windowSeconds = probeWindowSeconds(policy);
  const ticks = Math.ceil(windowSeconds / policy.nodeMonitorPeriodSeconds) + 1;
  return probes
    .filter(({ sentAtMs }) => sentAtMs > nowMs - windowSeconds * 1_000 && sentAtMs <= nowMs)
    .sort((a, b) => a.sentAtMs - b.sentAtMs)
    .slice(-ticks * PROBES_PER_TICK_MAX);
}

const probeWindowSeconds = ({ beatIntervalSeconds }: ProbePolicy): number =>
  Math.min(2 * beatIntervalSeconds, PROBE_WINDOW_SECONDS_MAX);

const lastFailed = (probes: readonly Probe[]): Probe | undefined => probes.findLast(({ accepted }) => !accepted);

/**
 * Until when our own way of heartbeats was not proven, for grace periods that reports shorten: the last failed
 * heartbeat of our own that is remembered, or the first tick after a gap. Between ticks that are over one and a half
 * periods apart an outage is not seen, or all clocks have stepped. Undefined: neither is known. Epoch milliseconds.
 * @param lookFailedAtMs when that of a look between two ticks failed
 */
export function pathFailedAtMs(
  { probes, goodSinceMs }: Pick<GateRecord, 'probes' | 'goodSinceMs'>,
  lookFailedAtMs: number | undefined,
): number | undefined {
  const times = [lastFailed(probes)?.sentAtMs, lookFailedAtMs, goodSinceMs].filter((atMs) => atMs !== undefined);
  return times.length === 0 ? undefined : Math.max(...times);
}

/** At least half of the probes failed. Without probes the path is unknown and does not count as failing. */
export const pathIsFailing = (probes: readonly Probe[]): boolean =>
  probes.length > 0 && probes.filter((probe) => !probe.accepted).length * 2 >= probes.length;

/** Start of the consecutive good ticks. Failed probes, a tick without probes, or a missed tick end them. */
function goodRunSince(
  record: GateRecord,
  at: { readonly nowMs: number; readonly probes: readonly Probe[]; readonly policy: GatePolicy },
): number | undefined {
  if (at.probes.length === 0 || pathIsFailing(at.probes)) return undefined;
  if (record.goodSinceMs === undefined || record.lastTickAtMs === undefined) return at.nowMs;
  const periods = periodsBetween(record.lastTickAtMs, at.nowMs, at.policy.nodeMonitorPeriodSeconds);
  return periods > 1 ? at.nowMs : record.goodSinceMs;
}

interface GateTick {
  readonly nowMs: number;
  /** The probes of this tick. */
  readonly probes: readonly Probe[];
  readonly policy: GatePolicy;
}

/**
 * The gate at this tick of node-monitor. `probes` are those of this tick: they are sent first: the tick that an
 * outage would mislead detects it. The record is stored with the claim of the tick, except `lastTickAtMs`: it is stored
 * when the tick has finished: a tick that failed half-way does not count.
 */
export function decideGate(record: GateRecord, at: GateTick): GateRecord {
  const { nowMs, policy } = at;
  const lostSeconds = lostBeatSeconds(record, policy);
  const fleet = decideOne(gateOf(record, DEFAULT_PROFILE), {
    ...at,
    earlierBeatSeconds: Math.max(removedBeatSeconds(record, policy), lostSeconds),
  });
  if (policy.profiles.length === 0) return withPathFailure(fleet, record, nowMs);
  const ofDefault = { ...profileGate(fleet) };
  const profiles: Record<string, ProfileGate> = {};
  for (const { name } of policy.profiles) {
    const known = record.profiles?.[name];
    // The ticks before did not watch for this profile: its nodes have a full grace period from now on.
    const before = gateOf(record, name);
    const entry = known === undefined ? { ...before, freshSinceMs: nowMs, provenAtMs: nowMs } : before;
    // Its nodes may have had any profile before.
    const addedSeconds = known === undefined ? longestBeatSeconds(Object.values(record.profiles ?? {})) : 0;
    const earlierBeatSeconds = Math.max(addedSeconds, lostSeconds);
    profiles[name] = profileGate(decideOne(entry, { ...at, policy: policyOf(policy, name), earlierBeatSeconds }));
  }
  profiles[DEFAULT_PROFILE] = ofDefault;
  const gates = Object.values(profiles);
  const reasons = REASONS.filter((reason) => gates.some((gate) => gate.reasons.includes(reason)));
  const isClosed = reasons.length > 0;
  const whole: GateRecord = {
    ...fleet,
    reasons,
    sinceMs: isClosed === record.reasons.length > 0 ? record.sinceMs : nowMs,
    freshSinceMs: Math.max(...gates.map((gate) => gate.freshSinceMs)),
    probes: probesInWindow([...record.probes, ...at.probes], nowMs, {
      ...policy,
      beatIntervalSeconds: overProfiles(policy, 'beatIntervalSeconds', Math.max),
    }),
    profiles,
  };
  return withPathFailure(whole, record, nowMs);
}

function withPathFailure(gate: GateRecord, before: GateRecord, nowMs: number): GateRecord {
  const isNew = gate.reasons.includes('failingPath') && !before.reasons.includes('failingPath');
  const { pathFailedAtMs, earlierPathFailuresMs } = before;
  const earlier = isNew
    ? earlierFaults(pathFailedAtMs, earlierPathFailuresMs, nowMs)
    : earlierPathFailuresMs && rememberedFaults(earlierPathFailuresMs, nowMs);
  return { ...gate, ...defined({ pathFailedAtMs: isNew ? nowMs : pathFailedAtMs, earlierPathFailuresMs: earlier }) };
}

const REASONS: readonly GateReason[] = ['missedTicks', 'failingPath'];

/**
 * The gate of the nodes of one profile, as a record by itself. A profile that is not in the record has the default one.
 */
export function gateOf(record: GateRecord, profile: string | undefined): GateRecord {
  const { profiles, ...shared } = record;
  if (profiles === undefined) return record;
  const own = profiles[profile ?? DEFAULT_PROFILE] ?? profiles[DEFAULT_PROFILE];
  return { ...shared, ...own };
}

const profileGate = ({ reasons, sinceMs, freshSinceMs, provenAtMs, beatSeconds }: GateRecord): ProfileGate => ({
  reasons,
  sinceMs,
  freshSinceMs,
  provenAtMs,
  beatSeconds,
});

/** The longest heartbeat interval of profiles that the policy no longer has; their nodes are `default` now. */
function removedBeatSeconds({ profiles = {} }: GateRecord, policy: GatePolicy): number {
  const names = new Set(profileNames(policy));
  const removed = Object.entries(profiles).filter(([name]) => !names.has(name));
  return longestBeatSeconds(removed.map(([, gate]) => gate));
}

/**
 * The longest heartbeat interval of the last tick, if no profile of the policy has one as long. A node that changes its
 * profile at about the same time may still have it, and its own wait knows only intervals of the policy (health.ts).
 */
function lostBeatSeconds({ profiles = {} }: GateRecord, policy: Policy): number {
  const longest = longestBeatSeconds(Object.values(profiles));
  return longest > overProfiles(policy, 'beatIntervalSeconds', Math.max) ? longest : 0;
}

const longestBeatSeconds = (gates: readonly ProfileGate[]): number =>
  Math.max(0, ...gates.map(({ beatSeconds = 0 }) => beatSeconds));

interface ProfileTick extends GateTick {
  /** Heartbeat interval that nodes of this gate may have had under another profile. Seconds. */
  readonly earlierBeatSeconds?: number;
}

/** A heartbeat on its way, and the difference between the clocks of two processes. Milliseconds. */
const BEAT_RECEIVED_WITHIN_MS = 2_000;

/** For how long after a proven stretch no live node exceeds its grace period. Milliseconds. */
const proofMaxMs = ({ nodeMonitorGracePeriodSeconds, beatIntervalSeconds }: GatePolicy): number =>
  1_000 * (nodeMonitorGracePeriodSeconds - beatIntervalSeconds * (1 + INTERVAL_JITTER)) - BEAT_RECEIVED_WITHIN_MS;

/** The gate by one set of times. */
function decideOne(record: GateRecord, at: ProfileTick): GateRecord {
  const { nowMs, policy } = at;
  const beatMs = policy.beatIntervalSeconds * 1_000;
  const probes = probesInWindow([...record.probes, ...at.probes], nowMs, policy);
  const failedAtMs = lastFailed(probes)?.sentAtMs;
  const goodSinceMs = goodRunSince(record, at);
  const provenNow = goodSinceMs !== undefined && nowMs - goodSinceMs >= beatMs;
  const provenAtMs = provenNow ? nowMs : record.provenAtMs;
  const unproven = probes.length > 0 && provenAtMs !== undefined && nowMs - provenAtMs > proofMaxMs(policy);
  // Before the first tick ever no controller watched the nodes. A control table that was lost or restored empty looks
  // the same. The gate stays open, but silence before this tick does not count. Every tick stores `provenAtMs`,
  // finished or not.
  const isFirst = policy.tickGate === 'on' && record.lastTickAtMs === undefined && record.provenAtMs === undefined;
  // While no tick has finished, the new grace period shows when the first tick ran. Once that closes the gate, it stays
  // closed until a tick finishes.
  const isClosedForTicks = record.reasons.includes('missedTicks');
  const lastTickAtMs = record.lastTickAtMs ?? (isClosedForTicks ? undefined : record.freshSinceMs);
  const missed =
    policy.tickGate === 'on' && !isFirst && ticksWereMissing({ lastTickAtMs, nowMs, gapMaxMs: tickGapMaxMs(policy) });
  const wasFailing = record.reasons.includes('failingPath');
  const lossy = wasFailing && failedAtMs !== undefined && failedAtMs > nowMs - beatMs;
  const failing = policy.ingestGate === 'on' && (pathIsFailing(probes) || lossy || (unproven && !missed));
  const pathRecovered = wasFailing && !failing;
  const recoveredAtMs =
    probes.find(({ sentAtMs }) => failedAtMs === undefined || sentAtMs > failedAtMs)?.sentAtMs ?? goodSinceMs ?? nowMs;
  const reasons: GateReason[] = [];
  if (missed) reasons.push('missedTicks');
  if (failing) reasons.push('failingPath');
  const isClosed = reasons.length > 0;
  const wasClosed = record.reasons.length > 0;
  const freshSinceMs = Math.max(
    record.freshSinceMs,
    missed || isFirst ? nowMs : 0,
    pathRecovered ? recoveredAtMs : 0,
    intervalLearnedMs(record, at),
  );
  return {
    lastTickAtMs: nowMs,
    reasons,
    sinceMs: isClosed === wasClosed ? record.sinceMs : nowMs,
    freshSinceMs,
    probes,
    goodSinceMs,
    // A new grace period replaces the proof: silence before it does not count.
    provenAtMs: Math.max(provenAtMs ?? nowMs, freshSinceMs),
    beatSeconds: policy.beatIntervalSeconds,
  };
}

/**
 * When live nodes follow a shorter heartbeat interval at the latest; 0 when the interval is not shorter than at the
 * last tick. A node learns the interval from the answer to a heartbeat, which may come one old interval after the
 * change of function heartbeat. That function may get the policy later than node-monitor. Every node has a full grace
 * period from then.
 */
function intervalLearnedMs({ beatSeconds = 0 }: GateRecord, at: ProfileTick): number {
  const oldSeconds = Math.max(beatSeconds, at.earlierBeatSeconds ?? 0);
  return oldSeconds > at.policy.beatIntervalSeconds ? at.nowMs + DEPLOYED_WITHIN_MS + oldSeconds * 1_000 : 0;
}

export type GateVerdict =
  | { readonly kind: 'open' }
  | { readonly kind: 'holding'; readonly reasons: readonly GateReason[]; readonly sinceMs: number };

/** The verdict of a record at the tick that decided it. */
export const gateVerdict = (record: GateRecord): GateVerdict =>
  record.reasons.length === 0
    ? { kind: 'open' }
    : { kind: 'holding', reasons: record.reasons, sinceMs: record.sinceMs };

/** The same for the marks of the nodes of one profile. */
export const gateVerdictOf = (
  record: GateRecord,
  profile: string | undefined,
  { nowMs, policy }: { readonly nowMs: number; readonly policy: Policy },
): GateVerdict =>
  gateVerdictFor(gateOf(record, profile), { nowMs, policy: { ...policyOf(policy, profile), profiles: [] } });

/**
 * The gate for the other controllers: as stored, and also closed while node-monitor has missed ticks. After an outage
 * the evictor may run before node-monitor, and must not act on outdated state.
 */
export function gateVerdictFor(
  record: GateRecord,
  at: { readonly nowMs: number; readonly policy: Policy },
): GateVerdict {
  const stored = gateVerdict(record);
  if (stored.kind === 'holding' || at.policy.tickGate === 'off') return stored;
  const missing = ticksWereMissing({
    lastTickAtMs: record.lastTickAtMs,
    nowMs: at.nowMs,
    gapMaxMs: tickGapMaxMs({
      ...at.policy,
      nodeMonitorGracePeriodSeconds: overProfiles(at.policy, 'nodeMonitorGracePeriodSeconds', Math.min),
    }),
  });
  return missing ? { kind: 'holding', reasons: ['missedTicks'], sinceMs: record.lastTickAtMs ?? at.nowMs } : stored;
}
