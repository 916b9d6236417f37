/**
 * Nodes with heartbeats too rare for their profile. Pure.
 *
 * An agent follows the interval of its profile. A kubelet sends a heartbeat four times per duration of its Lease
 * (component-helpers/apimachinery/lease), whatever its profile says. If its grace period is shorter than two of these
 * intervals, one lost heartbeat marks the node.
 *
 * The duration is what the machine wrote: it is reported, and nothing else follows from it (L11).
 */

import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { policyOf } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../../shared/fleet/policy.ts';

const BEATS_PER_DURATION = 4;
/** Nodes reported per evaluation. A wrong selector concerns many; some of them are enough to find it. */
const REPORTED_MAX = 100;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

export interface RareBeats {
  readonly nodeName: string;
  readonly uid: string;
  readonly message: string;
}

/** The day of a report: one event per node and day. */
export const dayOf = (nowMs: number): number => Math.floor(nowMs / DAY_MS);

/** Each hour other nodes, where there are more than are reported at once. */
export function rareBeats(nodes: readonly NodeHealth[], policy: Policy, nowMs: number): readonly RareBeats[] {
  const rare = nodes.filter((node) => node.ready === 'True' && isRare(node, policy));
  const first = (Math.floor(nowMs / HOUR_MS) * REPORTED_MAX) % Math.max(1, rare.length);
  return [...rare.slice(first), ...rare.slice(0, first)].slice(0, REPORTED_MAX).map((node) => {
    const { nodeName, uid, profile, leaseDurationSeconds: duration = 0 } = node;
    const { nodeMonitorGracePeriodSeconds: grace } = policyOf(policy, profile);
    const message =
      `The Lease lasts ${duration} s, so a kubelet sends a heartbeat every ${duration / BEATS_PER_DURATION} s. The ` +
      `grace period of profile ${profile ?? 'default'} is ${grace} s: one lost heartbeat marks the node.`;
    return { nodeName, uid, message };
  });
}

function isRare({ profile, leaseDurationSeconds: duration }: NodeHealth, policy: Policy): boolean {
  if (duration === undefined) return false;
  const { leaseDurationSeconds: wanted, nodeMonitorGracePeriodSeconds: grace } = policyOf(policy, profile);
  // Else it follows its profile.
  return duration !== wanted && grace < (2 * duration) / BEATS_PER_DURATION;
}
