/**
 * When a terminating pod that must not run twice has stopped on its silent machine, and is removed.
 *
 *     b             last heartbeat or status that the cluster received, or the end of an outage of the controller
 *     b + stop      the machine has stopped the pod, its margin included (offlineStoppedAtMs)
 *
 * The machine must still be silent then: its Node has the taint `unreachable`, and its digest says Unknown. A heartbeat
 * moves the time. A Node that recovers cancels it: the machine then finds the deletion in its list.
 *
 * An outage of the controller may be a step of its clock forward. What it received before seems older than it is, so
 * the whole time counts from the end of the outage (D9). A shorter step looks like late ticks, and is added.
 */
import type { ConditionStatus } from '../../kubernetes/kubernetes.ts';
import { rfc3339 } from '../../kubernetes/rfc3339.ts';
import { type TickGapPolicy, tickGapMaxMs } from '../../ticks/tick.ts';
import { lastSignOfLifeMs, lastSpokeAtMs, type NodeHealth } from '../nodes/health.ts';
import { TAINT_UNREACHABLE } from '../taints/taint.ts';
import type { NoExecuteTaint } from '../taints/taint-times.ts';
import type { EvictionVerdict } from './eviction-time.rule.ts';

/** The signs of life in a node's digest. */
export type NodeSigns = Pick<NodeHealth, 'ready' | 'createdAtMs' | 'renewedAtMs' | 'statusAtMs'>;

/** The part of the margin (offline-stop.ts) that is for a step of the controller's clock. Milliseconds. */
const STEP_IN_MARGIN_MS = 30_000;

/** The longest step of the controller's clock that is no outage, as far as the margin is too short. Milliseconds. */
export const unnoticedStepMs = (policy: TickGapPolicy): number => Math.max(0, tickGapMaxMs(policy) - STEP_IN_MARGIN_MS);

/** Whether a node with these NoExecute taints and this Ready condition is silent. */
export const isSilentNode = (taints: readonly NoExecuteTaint[], ready: ConditionStatus | undefined): boolean =>
  ready === 'Unknown' && taints.some(({ key }) => key === TAINT_UNREACHABLE);

export function removalVerdict(of: {
  readonly offlineStopMs: number;
  readonly taints: readonly NoExecuteTaint[];
  readonly signs: NodeSigns | undefined;
  readonly freshSinceMs: number;
}): EvictionVerdict {
  const { offlineStopMs, taints, signs, freshSinceMs } = of;
  if (signs === undefined || !isSilentNode(taints, signs.ready)) {
    return { kind: 'none', reason: 'pod is already terminating, and the node is not silent' };
  }
  const fromMs = lastSignOfLifeMs(signs, freshSinceMs);
  const spokeAtMs = lastSpokeAtMs(signs);
  const counted = fromMs > spokeAtMs ? ` (counted from ${rfc3339(fromMs)}, after a controller outage)` : '';
  const silence = `no heartbeat or status since ${rfc3339(spokeAtMs)}${counted}`;
  const reason = `${silence}, and the machine has stopped the pod after ${offlineStopMs / 1_000} s`;
  return { kind: 'due', atMs: fromMs + offlineStopMs, taintKey: TAINT_UNREACHABLE, reason };
}
