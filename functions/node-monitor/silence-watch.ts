/**
 * Counts the silences of live machines, for `nodekeeper advise`. It needs no read: a tick sees every row anyway.
 *
 * The process remembers which nodes are late: silent for over one heartbeat interval. When such a node shows a sign of
 * life, its silence has ended. Its length is the difference of two receipt times of ours, at most one tick more than
 * the truth: two heartbeats between two ticks count as one.
 *
 * Why no silence over a candidate grace period is missed: the policy allows grace periods of at least two intervals and
 * two periods. Such a silence is late for at least one period, so a tick sees it.
 *
 * What is not counted:
 *   - Silences that began before the gate opened, or before total disruption ended: they may be ours.
 *   - Time between two ticks of this process that are more than two periods apart, because another process ran the
 *     ticks between, or none did. The observed seconds of the hour show how much is missing.
 *   - Planned silences: after the promised end they count from that end.
 *   - Silences of a Node that was deleted or created again meanwhile.
 *
 * A process that is ended loses its current hour. Ticks that run twice claim their slot once, and only the claimed tick
 * is observed.
 */
import { isSilencePlanned, lastSpokeAtMs, type NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { SILENCE_SECONDS_MAX, type SilenceHour, silenceBucketOf } from '../../shared/fleet/silences/silence-hour.ts';

const HOUR_MS = 3_600_000;
/** Ticks that are further apart are not compared, in periods. */
const PERIODS_APART_MAX = 2;
/** Late nodes in memory. A healthy fleet of 100,000 has 4,000: heartbeats are spread over 4 % of their interval. */
const LATE_NODES_MAX = 20_000;
/** Zones and profiles per hour. A machine chooses its zone label, so their number needs a bound. */
const GROUPS_MAX = 100;
/** Hours of groups that could not be written yet: three hours of the largest fleet. Older ones are dropped. */
const UNWRITTEN_MAX = 3 * GROUPS_MAX;

/** The numbers of the node's profile. */
export interface SilenceLimits {
  readonly profile: string;
  readonly beatIntervalSeconds: number;
  readonly graceSeconds: number;
}

export interface ObservedTick {
  /** Claimed by this process. */
  readonly slot: number;
  readonly nowMs: number;
  readonly periodSeconds: number;
  readonly nodes: readonly NodeHealth[];
  readonly gateOpen: boolean;
  /** Silences that began earlier may be ours. Epoch milliseconds. */
  readonly freshSinceMs: number;
  readonly limitsOf: (health: NodeHealth) => SilenceLimits;
}

export interface SilenceWatch {
  observe(tick: ObservedTick): void;
  /** Hours that have ended and are not yet written. */
  ended(): readonly SilenceHour[];
  written(hour: SilenceHour): void;
}

interface LateNode {
  readonly uid: string;
  /** Start of its silence. Epoch milliseconds. */
  readonly sinceMs: number;
  seenAtMs: number;
}

/** One zone and profile in the current hour. */
interface Group extends SilenceLimits {
  readonly zone: string;
  observedSeconds: number;
  nodeSeconds: number;
  nodes: number;
  uncounted: number;
  readonly buckets: Map<number, number>;
  /** Nodes of the tick that is being observed. */
  present: number;
}

interface CurrentHour {
  readonly startMs: number;
  readonly slot: number;
  readonly periodSeconds: number;
  /** By profile, then by zone. */
  readonly groups: Map<string, Map<string, Group>>;
  size: number;
}

export function silenceWatch(): SilenceWatch {
  const late = new Map<string, LateNode>();
  let hour: CurrentHour | undefined;
  let finished: SilenceHour[] = [];
  let lastTickMs: number | undefined;

  function hourOf({ nowMs, slot, periodSeconds }: ObservedTick): CurrentHour {
    const startMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
    if (hour?.startMs === startMs) return hour;
    if (hour !== undefined) finished = [...finished, ...hoursOf(hour)].slice(-UNWRITTEN_MAX);
    hour = { startMs, slot, periodSeconds, groups: new Map(), size: 0 };
    return hour;
  }

  return {
    observe(tick) {
      const { nowMs, periodSeconds } = tick;
      const elapsedMs = lastTickMs === undefined ? Infinity : nowMs - lastTickMs;
      lastTickMs = tick.gateOpen ? nowMs : undefined;
      if (!tick.gateOpen) return;
      const counts = elapsedMs >= 0 && elapsedMs <= PERIODS_APART_MAX * periodSeconds * 1_000;
      if (!counts) late.clear();
      const current = hourOf(tick);
      for (const health of tick.nodes) {
        if (health.ready === undefined) continue;
        const limits = tick.limitsOf(health);
        const group = groupOf(current, health.zone, limits);
        const spokeAtMs = lastSpokeAtMs(health);
        if (nowMs - spokeAtMs <= limits.graceSeconds * 1_000) group.present += 1;
        const endedMs = endSilence(late, health, spokeAtMs);
        if (counts && endedMs !== undefined && spokeAtMs - endedMs >= tick.freshSinceMs) countSilence(group, endedMs);
        if (isSilencePlanned(health, nowMs)) late.delete(health.nodeName);
        const sinceMs = silentSinceMs(health, spokeAtMs);
        if (nowMs - sinceMs > limits.beatIntervalSeconds * 1_000 && !remember(late, health, { sinceMs, nowMs })) {
          group.uncounted += 1;
        }
      }
      // A node that was not seen has been deleted.
      for (const [name, { seenAtMs }] of late) if (seenAtMs !== nowMs) late.delete(name);
      for (const group of groupsOf(current)) endTick(group, counts ? elapsedMs / 1_000 : 0);
    },
    ended: () => finished,
    written(done) {
      finished = finished.filter((each) => each !== done);
    },
  };
}

/** Start of the silence to count: the last sign of life, or a later end of a planned silence. */
const silentSinceMs = ({ plannedUntilMs = 0, silenceEndedAtMs = 0 }: NodeHealth, spokeAtMs: number): number =>
  Math.max(spokeAtMs, plannedUntilMs, silenceEndedAtMs);

/** Length of the silence that this sign of life ends; undefined: the node is still silent, or was not late. */
function endSilence(late: Map<string, LateNode>, { nodeName, uid }: NodeHealth, spokeAtMs: number): number | undefined {
  const before = late.get(nodeName);
  if (before === undefined || (before.uid === uid && before.sinceMs >= spokeAtMs)) return undefined;
  late.delete(nodeName);
  return before.uid === uid ? spokeAtMs - before.sinceMs : undefined;
}

/** @returns false if there are too many late nodes */
function remember(
  late: Map<string, LateNode>,
  { nodeName, uid }: NodeHealth,
  { sinceMs, nowMs }: { readonly sinceMs: number; readonly nowMs: number },
): boolean {
  // Switched off: forgotten, because it is not refreshed.
  if (nowMs - sinceMs > SILENCE_SECONDS_MAX * 1_000) return true;
  const known = late.get(nodeName);
  if (known !== undefined) known.seenAtMs = nowMs;
  else if (late.size >= LATE_NODES_MAX) return false;
  else late.set(nodeName, { uid, sinceMs, seenAtMs: nowMs });
  return true;
}

/** Zones above the bound share one group without a name. */
function groupOf(hour: CurrentHour, zone: string, limits: SilenceLimits): Group {
  let zones = hour.groups.get(limits.profile);
  if (zones === undefined) {
    zones = new Map();
    hour.groups.set(limits.profile, zones);
  }
  const known = zones.get(zone);
  if (known !== undefined) return known;
  if (hour.size >= GROUPS_MAX && zone !== '') return groupOf(hour, '', limits);
  const group = {
    zone,
    ...limits,
    observedSeconds: 0,
    nodeSeconds: 0,
    nodes: 0,
    uncounted: 0,
    buckets: new Map(),
    present: 0,
  };
  zones.set(zone, group);
  hour.size += 1;
  return group;
}

const groupsOf = ({ groups }: CurrentHour): Group[] => [...groups.values()].flatMap((zones) => [...zones.values()]);

function countSilence({ buckets }: Group, silentMs: number): void {
  if (silentMs > SILENCE_SECONDS_MAX * 1_000) return;
  const bucket = silenceBucketOf(silentMs / 1_000);
  buckets.set(bucket, (buckets.get(bucket) ?? 0) + 1);
}

function endTick(group: Group, elapsedSeconds: number): void {
  group.observedSeconds += elapsedSeconds;
  group.nodeSeconds += group.present * elapsedSeconds;
  group.nodes = Math.max(group.nodes, group.present);
  group.present = 0;
}

const hoursOf = (hour: CurrentHour): SilenceHour[] =>
  groupsOf(hour).map(({ buckets, present: _, ...group }) => ({
    hourStartMs: hour.startMs,
    slot: hour.slot,
    periodSeconds: hour.periodSeconds,
    ...group,
    counts: [...buckets].sort(([one], [other]) => one - other),
  }));

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

/**
 * Machines that return from a planned silence before its end. health-stream ends a promise at the first heartbeat after
 * the silence, from one stream record. If that work fails, or the gate is closed at that moment, no later record shows
 * the silence. node-monitor has seen it: this watch remembers which nodes were silent, and finds those that no longer
 * are.
 *
 * It needs no read and no write: a tick sees every row anyway. Each tick finds the silent nodes again, so a new process
 * lacks only those that returned before its first tick. Their promise ends at its time.
 *
 *     promise ── silence ──── tick: silent for a grace period ──── heartbeat ──── tick: returned, until it is written
 */
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
