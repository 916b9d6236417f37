/**
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
 * L2 (a silent node is marked in time): let b be the last heartbeat. A tick at exactly b + grace does not mark the node.
 *     The next tick does, at most one period later. So the mark is in (b + grace, b + grace + period].
 * If a silence of exactly grace counted, a heartbeat exactly one grace period after the last one would be too late. L1
 * would then depend on the order of two events in the same millisecond.
 *
 * Source: monitorNodeHealth and tryUpdateNodeHealth in pkg/controller/nodelifecycle/node_lifecycle_controller.go.
 */

import type { Policy } from '../policy.ts';
import type { NodeHealth } from './node-health.ts';

type SignsOfLife = Pick<NodeHealth, 'createdAtMs' | 'renewedAtMs' | 'statusAtMs'>;
export type GracePolicy = Pick<
  Policy,
  'nodeMonitorGracePeriodSeconds' | 'nodeStartupGracePeriodSeconds' | 'beatIntervalSeconds'
>;

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
 * The last moment at which the node still counts as alive. Epoch milliseconds.
 *
 * A node without a Ready condition has the startup grace period from its creation. If it beats without posting a
 * status, its beats count too, with the longer of both grace periods. Otherwise a startup grace period below the
 * monitor grace period would violate L1 for a node that is only slow to post.
 */
export function deadlineMs(
  health: SignsOfLife & Pick<NodeHealth, 'ready'>,
  freshSinceMs: number,
  policy: GracePolicy,
): number {
  const graceMs = policy.nodeMonitorGracePeriodSeconds * 1_000;
  if (health.ready !== undefined) return lastSignOfLifeMs(health, freshSinceMs) + graceMs;
  const startupMs = policy.nodeStartupGracePeriodSeconds * 1_000;
  const receivedMs = Math.max(health.renewedAtMs ?? -Infinity, health.statusAtMs ?? -Infinity, freshSinceMs);
  return Math.max(health.createdAtMs + startupMs, receivedMs + Math.max(startupMs, graceMs));
}

/** The verdict at nowMs. If the last sign of life is later than nowMs, silentMs is 0. */
export function healthVerdict(
  health: SignsOfLife & Pick<NodeHealth, 'ready'>,
  at: { readonly nowMs: number; readonly policy: GracePolicy; readonly freshSinceMs: number },
): HealthVerdict {
  const silentMs = Math.max(0, at.nowMs - lastSpokeAtMs(health));
  const deadline = deadlineMs(health, at.freshSinceMs, at.policy);
  if (at.nowMs > deadline) return { kind: 'silent', silentMs, deadlineMs: deadline };
  const kind = silentMs > at.policy.beatIntervalSeconds * 1_000 ? 'late' : 'alive';
  return { kind, silentMs, deadlineMs: deadline };
}

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
