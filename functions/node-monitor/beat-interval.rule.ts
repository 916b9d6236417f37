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
const DAY_MS = 86_400_000;

export interface RareBeats {
  readonly nodeName: string;
  readonly uid: string;
  readonly message: string;
}

/** The day of a report: one event per node and day. */
export const dayOf = (nowMs: number): number => Math.floor(nowMs / DAY_MS);

export function rareBeats(nodes: readonly NodeHealth[], policy: Policy): readonly RareBeats[] {
  const found: RareBeats[] = [];
  for (const { nodeName, uid, ready, profile, leaseDurationSeconds: duration } of nodes) {
    if (found.length === REPORTED_MAX) break;
    if (ready !== 'True' || duration === undefined) continue;
    const { leaseDurationSeconds: wanted, nodeMonitorGracePeriodSeconds: grace } = policyOf(policy, profile);
    const intervalSeconds = duration / BEATS_PER_DURATION;
    // It follows its profile.
    if (duration === wanted || grace >= 2 * intervalSeconds) continue;
    const message =
      `The Lease lasts ${duration} s, so a kubelet sends a heartbeat every ${intervalSeconds} s. The grace period of ` +
      `profile ${profile ?? 'default'} is ${grace} s: one lost heartbeat marks the node.`;
    found.push({ nodeName, uid, message });
  }
  return found;
}
