/**
 * Is a node alive? Judged by our own receipt times, never by a node's clock (D1): a lease renewal or a status post is a
 * sign of life; creation is the first one.
 *
 *   sign of life ──────── grace ────────┤ still alive at this very millisecond
 *                                        └─ silent from the next one on
 *
 * Why this keeps the laws. Ticks come one period apart at most.
 * L1: a node that beats at least every (grace − period) is, at any moment, silent for at most grace − period plus the
 *     time its beat takes to be stored, and a period is allowed for that; silence must be strictly over grace to count.
 * L2: with the last beat at b, a tick at exactly b + grace does not count and the next one, at most a period later, does.
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
   * alive: nothing is missing. late: over one beat interval without a sign; feeds a meter only, so that trouble is seen
   * before anything is marked. silent: over the grace.
   */
  readonly kind: 'alive' | 'late' | 'silent';
  /** Since the node's own last sign of life, our own pauses included. Never negative. Milliseconds. */
  readonly silentMs: number;
  /** The first moment that still counts as alive and is not followed by another. Epoch milliseconds. */
  readonly deadlineMs: number;
}

/** When the node itself last spoke: the later of creation, lease renewal and status post. Epoch milliseconds. */
export const lastSpokeAtMs = (health: SignsOfLife): number =>
  Math.max(health.createdAtMs, health.renewedAtMs ?? health.createdAtMs, health.statusAtMs ?? health.createdAtMs);

/**
 * From when the node's grace counts: when it last spoke, or freshSinceMs if that is later. freshSinceMs is the moment
 * from which every node has a full grace: the gate let go, or total disruption was left. Epoch milliseconds.
 */
export const lastSignOfLifeMs = (health: SignsOfLife, freshSinceMs: number): number =>
  Math.max(lastSpokeAtMs(health), freshSinceMs);

/**
 * The last moment at which the node still counts as alive. Epoch milliseconds.
 *
 * A node without a Ready condition has the startup grace from its creation. If it beats without ever posting status, its
 * beats count as well and give it the longer of both graces: with a startup grace below the monitor grace, L1 would
 * otherwise fail for a node that is merely slow to post.
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

/** How a node stands at nowMs. A clock that stepped back, or a beat that came while we were reading, is no silence. */
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
 * A node that we marked Unknown and that has beaten since: it is back, its status is only on its way. It is taken out of
 * the eviction queue and not put in again, but what it carries stays until its own status says Ready.
 */
export const isReturning = (
  health: SignsOfLife & Pick<NodeHealth, 'ready' | 'markedAtMs'>,
  verdict: HealthVerdict,
): boolean =>
  health.ready === 'Unknown' &&
  health.markedAtMs !== undefined &&
  verdict.kind !== 'silent' &&
  lastSpokeAtMs(health) > health.markedAtMs;

/** Whether the next beat of the node is to be looked at (NodeHealth.suspect): it is not Ready, or carries taints of ours. */
export const isSuspect = (health: Pick<NodeHealth, 'ready' | 'noExecute'>): boolean =>
  health.ready !== 'True' || health.noExecute.notReady || health.noExecute.unreachable;
