/**
 * The row of a node in the `health` table: its Lease and the digest of its Node. They share one item: a beat is one
 * write, and a tick one scan. Attribute names have one letter: a beat is billed by the size of the row (at most 1 KB,
 * one write unit), a tick by the sum of all rows.
 *
 * A row has a lease if it has LEASE.version, and a digest if it has DIGEST.uid. It may have only one of them.
 *
 * Whether a node is alive. Only the server's receipt times count, never a node's clock (D1). A sign of life is a Lease
 * renewal or a status post. The creation of the Node is the first one.
 *
 *   sign of life ──── grace period ────┤ deadline: still alive in this millisecond
 *                                       └─ silent from the next millisecond on
 *
 * Why this satisfies the laws. Two ticks are at most one period apart.
 * L1 (no node with heartbeats is marked): a node sends a heartbeat at least every (grace − period). Its silence is at
 *     most grace − period plus the time until the heartbeat is stored, which may be up to one period. That is at most
 *     grace, and only a silence longer than grace counts.
 * L2 (a silent node is marked in time): let b be the last heartbeat. A tick at exactly b + grace does not mark the
 *     node. The next tick does, at most one period later. So the mark is in (b + grace, b + grace + period].
 * If a silence of exactly grace counted, a heartbeat exactly one grace period after the last one would be too late. L1
 * would then depend on the order of two events in the same millisecond.
 *
 * Source: monitorNodeHealth and tryUpdateNodeHealth in pkg/controller/nodelifecycle/node_lifecycle_controller.go.
 */

import type { ConditionStatus } from '../../kubernetes/kubernetes.ts';
import type { Condition, Item } from '../../store/item-store.ts';
import {
  type Attribute,
  any,
  bytes,
  flag,
  isIn,
  mapped,
  namesOf,
  number,
  present,
  type RowValues,
  readRow,
  text,
} from '../../store/layout.ts';
import { type Policy, steadySeconds } from '../policy.ts';
import { overProfiles, policyOf } from './node-profile.ts';

type SignsOfLife = Pick<NodeHealth, 'createdAtMs' | 'renewedAtMs' | 'statusAtMs'>;
type Profiled = Pick<NodeHealth, 'profile' | 'profileChangedAtMs' | 'plannedUntilMs' | 'silenceEndedAtMs'>;

/**
 * A change of profile and a heartbeat at the same time: the answer may still have the old interval. Longer than
 * any request. Milliseconds.
 */
const PROFILE_LEARNED_AFTER_MS = 10_000;

export interface HealthVerdict {
  /**
   * alive: no heartbeat is missing. late: no sign of life for over one heartbeat interval; a metric only, which shows a
   * problem before a node is marked. silent: the grace period is over.
   */
  readonly kind: 'alive' | 'late' | 'silent';
  /** Time since the node's last sign of life, including outages of the controller. Never negative. Milliseconds. */
  readonly silentMs: number;
  /** The last moment at which the node counts as alive, see deadlineMs. Epoch milliseconds. */
  readonly deadlineMs: number;
}

/**
 * The last sign of life of the node itself: the latest of creation, lease renewal and status post. Epoch milliseconds.
 */
export const lastSpokeAtMs = (health: SignsOfLife): number =>
  Math.max(health.createdAtMs, health.renewedAtMs ?? health.createdAtMs, health.statusAtMs ?? health.createdAtMs);

/**
 * Start of the node's grace period: its last sign of life, or freshSinceMs if that is later. From freshSinceMs on,
 * every node has a full grace period: the gate opened then, or total disruption ended. Epoch milliseconds.
 */
export const lastSignOfLifeMs = (health: SignsOfLife, freshSinceMs: number): number =>
  Math.max(lastSpokeAtMs(health), freshSinceMs);

/**
 * The last moment at which the node still counts as alive. Epoch milliseconds. The times are those of its profile.
 * Silence before the end of a planned one does not count.
 *
 * A node without a Ready condition has the startup grace period from its creation. If it beats without posting a
 * status, its beats count too, with the longer of both grace periods. Otherwise a startup grace period below the
 * monitor grace period would violate L1 for a node that is only slow to post.
 */
export function deadlineMs(
  health: SignsOfLife & Profiled & Pick<NodeHealth, 'ready'>,
  freshSinceMs: number,
  policy: Policy,
): number {
  const times = policyOf(policy, health.profile);
  const graceMs = times.nodeMonitorGracePeriodSeconds * 1_000;
  const settledMs = Math.max(
    profileSettledMs(health, policy),
    health.plannedUntilMs ?? -Infinity,
    health.silenceEndedAtMs ?? -Infinity,
  );
  if (health.ready !== undefined) return Math.max(lastSignOfLifeMs(health, freshSinceMs), settledMs) + graceMs;
  const startupMs = times.nodeStartupGracePeriodSeconds * 1_000;
  const receivedMs = Math.max(health.renewedAtMs ?? -Infinity, health.statusAtMs ?? -Infinity, freshSinceMs, settledMs);
  return Math.max(health.createdAtMs + startupMs, receivedMs + Math.max(startupMs, graceMs));
}

/**
 * When a live node follows its new profile at the latest; -Infinity when it does, or never changed it. The node learns
 * its interval from the answer to a heartbeat, which may come one interval of any other profile after the change.
 * Without this wait, a change from a patient to a strict profile would mark live nodes. Epoch milliseconds.
 */
function profileSettledMs({ profileChangedAtMs, renewedAtMs }: SignsOfLife & Profiled, policy: Policy): number {
  if (profileChangedAtMs === undefined) return -Infinity;
  const learnedFromMs = profileChangedAtMs + PROFILE_LEARNED_AFTER_MS;
  if (renewedAtMs !== undefined && renewedAtMs > learnedFromMs) return -Infinity;
  return learnedFromMs + overProfiles(policy, 'beatIntervalSeconds', Math.max) * 1_000;
}

/**
 * The same for a node that witnesses report as silent since `accusedSinceMs`: witnessGraceSeconds after the later of
 * its last sign of life and that time. It is never later than the deadline without them.
 *
 * A node that sends heartbeats keeps L1, whatever others report: no deadline is before its next heartbeat must have
 * arrived, also through a relay that delays it as long as it can.
 *
 * Silence that may be ours (`freshSinceMs`), a promise and a change of profile are not shortened.
 */
function shortenedDeadlineMs(
  health: SignsOfLife & Profiled & Pick<NodeHealth, 'ready'>,
  freshSinceMs: number,
  policy: Policy,
  accusedSinceMs: number,
): number {
  const deadline = deadlineMs(health, freshSinceMs, policy);
  const { nodeMonitorGracePeriodSeconds, beatIntervalSeconds, witnessGraceSeconds } = policyOf(policy, health.profile);
  const spokeAtMs = lastSpokeAtMs(health);
  const isOrdinary = health.ready !== undefined && deadline === spokeAtMs + nodeMonitorGracePeriodSeconds * 1_000;
  if (!isOrdinary || witnessGraceSeconds === 0) return deadline;
  const owedAtMs = spokeAtMs + steadySeconds(beatIntervalSeconds) * 1_000;
  const shortenedMs = Math.max(spokeAtMs, accusedSinceMs) + witnessGraceSeconds * 1_000;
  return Math.min(deadline, Math.max(shortenedMs, owedAtMs));
}

/** The verdict at nowMs. If the last sign of life is later than nowMs, silentMs is 0. */
export function healthVerdict(
  health: SignsOfLife & Profiled & Pick<NodeHealth, 'ready'>,
  at: {
    readonly nowMs: number;
    readonly policy: Policy;
    readonly freshSinceMs: number;
    /** Since when witnesses agree that it is silent; absent: they do not. Epoch milliseconds. */
    readonly accusedSinceMs?: number | undefined;
  },
): HealthVerdict {
  const { freshSinceMs, policy, accusedSinceMs } = at;
  const silentMs = Math.max(0, at.nowMs - lastSpokeAtMs(health));
  const deadline =
    accusedSinceMs === undefined
      ? deadlineMs(health, freshSinceMs, policy)
      : shortenedDeadlineMs(health, freshSinceMs, policy, accusedSinceMs);
  if (at.nowMs > deadline) return { kind: 'silent', silentMs, deadlineMs: deadline };
  if (isSilencePlanned(health, at.nowMs)) return { kind: 'alive', silentMs, deadlineMs: deadline };
  const kind = silentMs > policyOf(at.policy, health.profile).beatIntervalSeconds * 1_000 ? 'late' : 'alive';
  return { kind, silentMs, deadlineMs: deadline };
}

/** Jitter of heartbeats (4 %), a relay's wait and stale reads. Share of the interval. */
const BEAT_TOLERANCE = 1.25;

/**
 * The heartbeat that a node owes at nowMs, as a metric. Of many nodes, the share of `received` is the share of
 * heartbeats that arrive, whatever the interval of each node, and whether it sends them itself or through a relay. A
 * node owes none while a promise of silence stands, and until it follows a new profile.
 */
export function beatArrival(
  health: SignsOfLife & Profiled,
  { nowMs, policy }: { readonly nowMs: number; readonly policy: Policy },
): 'received' | 'missing' | 'notOwed' {
  const spokeAtMs = Math.max(lastSpokeAtMs(health), health.plannedUntilMs ?? 0, health.silenceEndedAtMs ?? 0);
  const intervalMs = policyOf(policy, health.profile).beatIntervalSeconds * 1_000;
  if (isSilencePlanned(health, nowMs) || profileSettledMs(health, policy) > nowMs) return 'notOwed';
  return nowMs - spokeAtMs <= intervalMs * BEAT_TOLERANCE ? 'received' : 'missing';
}

/** Whether a promise of the node stands: it is not evaluated, and not counted in its zone. */
export const isSilencePlanned = ({ plannedUntilMs }: Pick<NodeHealth, 'plannedUntilMs'>, nowMs: number): boolean =>
  plannedUntilMs !== undefined && plannedUntilMs > nowMs;

/**
 * True for a node that is marked Unknown and has sent a heartbeat since, but no status post yet. It is removed from the
 * eviction queue and not enqueued again. It keeps its taints until its own status is Ready.
 */
export const isReturning = (
  health: SignsOfLife & Pick<NodeHealth, 'ready' | 'markedAtMs'>,
  verdict: HealthVerdict,
): boolean =>
  health.ready === 'Unknown' &&
  health.markedAtMs !== undefined &&
  verdict.kind !== 'silent' &&
  lastSpokeAtMs(health) > health.markedAtMs;

/**
 * Whether the node's next heartbeat needs processing (NodeHealth.suspect): it is not Ready, or carries taints of ours.
 */
export const isSuspect = (health: Pick<NodeHealth, 'ready' | 'noExecute'>): boolean =>
  health.ready !== 'True' || health.noExecute.notReady || health.noExecute.unreachable;

/** The Lease (shared/kinds/leases/lease-record.ts). */
export const LEASE = {
  version: present(number('v')),
  uid: present(text('i')),
  createdAtSeconds: present(number('c')),
  renewedAtMicros: number('t'),
  durationSeconds: number('d'),
  acquiredAtMicros: number('a'),
  transitions: number('n'),
  /** Absent: the node's name. '' for none. */
  holder: text('h'),
  /** Its only owner is the Node with the uid of the digest. */
  ownedByNode: flag('o'),
  /** JSON of all other fields. */
  extras: text('x'),
  /** What the machine used (shared/fleet/nodes/node-usage.ts). */
  usage: text('U'),
};

const READY_CODES = { True: 'T', False: 'F', Unknown: 'U' } as const;
const READY_OF: Readonly<Record<string, ConditionStatus>> = { T: 'True', F: 'False', U: 'Unknown' };

const NOT_READY = 1;
const UNREACHABLE = 2;

/** Positive: the promised end of a planned silence. Otherwise when it ended early or was removed. Seconds. */
const promise = number('S');

/** Server receipt time of the last renewal of the Lease. */
export const RECEIVED_AT_MS = number('r');
const createdAt = number('b');

const podsToMark: Attribute<boolean | undefined> = flag('w');

/** The digest of a Node and its marks. A tick reads all of it. */
export const DIGEST = {
  /** uid of the Node. A re-created Node gets a new digest (D2). */
  uid: present(text('u')),
  /** Zone key, see zoneKeyOf; '' for nodes without zone and region labels. */
  zone: mapped(text('z'), { read: (zone = '') => zone, write: (zone: string) => (zone === '' ? undefined : zone) }),
  /** Stored status of the Ready condition; absent when the Node has none. */
  ready: mapped(text('y'), {
    read: (code = ''): ConditionStatus | undefined => READY_OF[code],
    write: (ready) => (ready === undefined ? undefined : READY_CODES[ready]),
  }),
  /** Whether the Node has the label node.kubernetes.io/exclude-disruption. */
  excluded: flag('e'),
  /** Its next heartbeat needs processing: the node is not Ready, or carries taints of ours. */
  suspect: flag('s'),
  /** Which of our two NoExecute taints the stored Node has. */
  noExecute: mapped(number('k'), {
    read: (code = 0) => ({ notReady: (code & NOT_READY) !== 0, unreachable: (code & UNREACHABLE) !== 0 }),
    write: ({ notReady, unreachable }) => (notReady ? NOT_READY : 0) + (unreachable ? UNREACHABLE : 0) || undefined,
  }),
  /** Creation of the Node, server time. */
  createdAtMs: present(createdAt),
  /**
   * Server receipt time of the last renewal since the Node was created. An earlier one belongs to another Node (D2).
   */
  renewedAtMs: {
    ...RECEIVED_AT_MS,
    of(row: Item) {
      const atMs = RECEIVED_AT_MS.of(row);
      return atMs !== undefined && atMs >= (createdAt.of(row) ?? 0) ? atMs : undefined;
    },
  },
  /** Server receipt time of the last status post; absent when none was received. */
  statusAtMs: number('l'),
  /**
   * When node-monitor marked the node Unknown; removed by the next status post. A node that has sent a heartbeat since,
   * but no status yet, is not tainted.
   */
  markedAtMs: number('m'),
  /** Pods of this node are still to be marked not ready, because writing some of them failed after the mark. */
  podsToMark,
  /** Name of the profile; absent: `default`. A name that the policy no longer has means `default`, too. */
  profile: text('P'),
  /** When the profile last changed, server time; absent: never since the Node was created. */
  profileChangedAtMs: mapped(number('C'), {
    read: (seconds): number | undefined => (seconds === undefined ? undefined : seconds * 1_000),
    write: (atMs) => (atMs === undefined ? undefined : Math.floor(atMs / 1_000)),
  }),
  /** Promised end of its planned silence; absent without a promise. It may be over. */
  plannedUntilMs: mapped(promise, {
    read: (seconds): number | undefined => (seconds !== undefined && seconds > 0 ? seconds * 1_000 : undefined),
    write: (untilMs) => (untilMs === undefined ? undefined : Math.ceil(untilMs / 1_000)),
  }),
  /** When its last promise ended early or was removed, server time: silence before it does not count. */
  silenceEndedAtMs: mapped(promise, {
    read: (seconds): number | undefined => (seconds !== undefined && seconds <= 0 ? -seconds * 1_000 : undefined),
    write: (atMs) => (atMs === undefined ? undefined : -Math.ceil(atMs / 1_000)),
  }),
  /** Duration that the machine wrote into its Lease. Seconds. Shown in an event, and never decided on. */
  leaseDurationSeconds: LEASE.durationSeconds,
  /** Its last marks, packed (shared/fleet/silences/flapping.ts); absent: it was never marked. */
  flaps: bytes('F'),
};

/** Conditions stored with the first lastHeartbeatTime are shown with the second (node-digest.ts). Epoch seconds. */
export interface HeartbeatTimes {
  readonly fromSeconds: number;
  readonly toSeconds: number;
}

export const HEARTBEAT_TIMES = { fromSeconds: number('f'), toSeconds: number('g') };

/** Reported in the response to a beat. */
export const COUNTERS = {
  /** Changes whenever pods of the node change: bound, changed, removed. Absent before the first change. */
  podsVersion: number('p'),
  /** Changes whenever a log of the node's pods is requested (log-request-store.ts). Absent before the first request. */
  logsVersion: number('j'),
  /** Changes whenever its agent has to make or remove a volume (volume-work-store.ts). Absent before the first time. */
  volumesVersion: number('q'),
  /** Changes whenever Services may have changed for its agent (service-readers.ts). Absent before the first time. */
  servicesVersion: number('E'),
};

const NODE_HEALTH = { nodeName: present(text('sk')), ...DIGEST };

/**
 * The digest of a node: one small item per node beside its Lease. A tick reads only digests; it reads a Node object
 * only when it changes it.
 */
export type NodeHealth = RowValues<typeof NODE_HEALTH>;

export const hasLease = isIn(LEASE.version);
export const hasDigest = isIn(DIGEST.uid);

export const holdsLease: Condition = { kind: 'has', attribute: LEASE.version.name };
export const rowExists: Condition = any(holdsLease, { kind: 'has', attribute: DIGEST.uid.name });

/** Attributes that a scan reads. */
export const DIGEST_ATTRIBUTES = namesOf(DIGEST);

export function heartbeatTimesOf(row: Item): HeartbeatTimes | undefined {
  const { fromSeconds, toSeconds } = readRow(HEARTBEAT_TIMES, row);
  return fromSeconds !== undefined && toSeconds !== undefined ? { fromSeconds, toSeconds } : undefined;
}

/** The digest of a row; undefined for a row that only holds a lease. */
export const nodeHealthOf = (row: Item): NodeHealth | undefined =>
  hasDigest(row) ? readRow(NODE_HEALTH, row) : undefined;
