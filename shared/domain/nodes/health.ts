/**
 * Whether a node is alive, evaluated by the server's receipt times, never by a node's clock (D1). Lease renewals and
 * status posts are signs of life; creation is the first one.
 *
 *   sign of life ──────── grace ────────┤ still alive at this very millisecond
 *                                        └─ silent from the next one on
 *
 * Why this keeps the laws. Ticks come one period apart at most.
 * L1: a node that beats at least every (grace − period) is, at any moment, silent for at most grace − period plus the
 *     time its beat takes to be stored, and a period is allowed for that; silence must be strictly over grace to count.
 * L2: with the last beat at b, a tick at exactly b + grace does not count and the next one, at most a period later,
 * does.
 *     So the mark comes in (b + grace, b + grace + period]; with "at least" instead of "over" a beat exactly one grace
 *     apart would be too late, and L1 would hang on the order of two things in one millisecond.
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
  /** The first moment that still counts as alive and is not followed by another. Epoch milliseconds. */
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
  const heardMs = Math.max(health.renewedAtMs ?? -Infinity, health.statusAtMs ?? -Infinity, freshSinceMs);
  return Math.max(health.createdAtMs + startupMs, heardMs + Math.max(startupMs, graceMs));
}

/** The verdict at nowMs. A clock that stepped back, or a heartbeat that arrived during the read, is no silence. */
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
 * A node marked Unknown that has sent a heartbeat since: it is alive, and its status is still to come. It leaves the
 * eviction queue and is not enqueued again, but keeps its taints until its own status is Ready.
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
