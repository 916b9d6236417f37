/**
 * Taint eviction of the pods of one node.
 *
 * Runs when the node's NoExecute taints, a pod's tolerations or its binding changed, and when a timer is due. It always
 * evaluates the whole node, so a late or repeated trigger decides the same (L10). No kind of pod is exempt: DaemonSet
 * and static pods stay only because of their tolerations. A terminating pod is skipped: a second deletion changes
 * nothing, and on a silent machine it would repeat at every tick. Deletions are not rate limited, because the taints
 * are. A failed deletion is decided again, because the state has not changed.
 *
 * A terminating pod that its machine stops without a link (offline-stop.ts) is removed from a silent node when it has
 * stopped there: eviction-time.rule.ts.
 *
 * A pod that its site decides about (site-permit.ts) is left to the hub of the site: by now it may run on another
 * machine there.
 *
 * Source: pkg/controller/tainteviction/taint_eviction.go; D6, D7 and D9 in docs/deviations.md.
 */
import type { EventText } from '../events/event-text.ts';
import type { Toleration } from '../kubernetes/kubernetes.ts';
import { rfc3339 } from '../kubernetes/rfc3339.ts';
import {
  type EvictionQuestion,
  type EvictionVerdict,
  evictionVerdict,
  type NodeSigns,
  removalVerdict,
  timerChange,
} from './eviction-time.rule.ts';
import type { GateVerdict } from './gate.ts';
import type { NoExecuteTaint } from './nodes/taint.ts';
import type { Policy } from './policy.ts';

/** `status.conditions[]` entry with the cause of a deletion. The writer sets its transition time. */
export interface DisruptionCondition {
  readonly type: 'DisruptionTarget';
  readonly status: 'True';
  readonly reason: string;
  readonly message: string;
}

export const TAINT_EVICTION_CONDITION: DisruptionCondition = Object.freeze({
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'DeletionByTaintManager',
  message: 'Taint manager: deleting due to NoExecute taint',
});

interface PodCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string | null;
}

/**
 * A pod's conditions with this one; undefined when an identical one is present. The transition time changes only with
 * the status.
 */
export function withDisruption<C extends PodCondition>(
  conditions: readonly C[],
  disruption: DisruptionCondition,
  nowMs: number,
): (C | PodCondition)[] | undefined {
  const present = conditions.find(({ type }) => type === disruption.type);
  if (present === undefined) return [...conditions, { ...disruption, lastTransitionTime: rfc3339(nowMs) }];
  const { status, reason, message } = disruption;
  if (present.status === status && present.reason === reason && present.message === message) return undefined;
  const moved = present.status === status ? {} : { lastTransitionTime: rfc3339(nowMs) };
  return conditions.map((condition) =>
    condition === present ? { ...condition, status, reason, message, ...moved } : condition,
  );
}

/** `source.component` of the events of this controller. */
export const TAINT_EVICTION_COMPONENT = 'taint-eviction-controller';

export const markingEvent = (namespace: string, name: string): EventText => ({
  type: 'Normal',
  reason: 'TaintManagerEviction',
  message: `Marking for deletion Pod ${namespace}/${name}`,
  source: TAINT_EVICTION_COMPONENT,
});

export const cancellingEvent = (namespace: string, name: string): EventText => ({
  type: 'Normal',
  reason: 'TaintManagerEviction',
  message: `Cancelling deletion of Pod ${namespace}/${name}`,
  source: TAINT_EVICTION_COMPONENT,
});

export const removingEvent = (namespace: string, name: string, nodeName: string): EventText => ({
  type: 'Normal',
  reason: 'TaintManagerEviction',
  message: `Removing Pod ${namespace}/${name}: node ${nodeName} sends no heartbeats, and has stopped the pod by now`,
  source: TAINT_EVICTION_COMPONENT,
});

export interface EvictablePod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** '' or absent: not bound. */
  readonly nodeName: string | undefined;
  /**
   * Server time of the commit that bound the pod, never a time from its status, which nodes write. Absent while not
   * bound.
   */
  readonly boundAtMs: number | undefined;
  readonly tolerations: readonly Toleration[];
  /** The pod has a deletionTimestamp. */
  readonly terminating: boolean;
  /**
   * Of a terminating pod: from the last sign of life of its machine until it has stopped there (offline-stop.ts).
   * Milliseconds; absent: it may run for ever, or its deletion waits for no machine.
   */
  readonly offlineStopMs?: number | undefined;
  /** The hub that decides about the pod (site-permit.ts). Absent: none. */
  readonly siteHub?: string | undefined;
}

/** A stored timer. It belongs to the pod's uid: a pod re-created under the same name starts without one. */
export interface EvictionTimer {
  readonly namespace: string;
  readonly name: string;
  readonly podUid: string;
  readonly atMs: number;
}

export interface EvictionWorld {
  readonly nodeName: string;
  /** The NoExecute taints; absent when the Node does not exist. */
  readonly taints: readonly NoExecuteTaint[] | undefined;
  /** Pods of this node, and any other pod that has a timer here and still exists. */
  readonly pods: readonly EvictablePod[];
  readonly timers: readonly EvictionTimer[];
  /** While it is closed no pod is deleted (D9). */
  readonly gate: GateVerdict;
  /**
   * Start of every node's full grace period, as in GateRecord; 0 without an outage of the controller. Until that grace
   * period is over our own two taints evict no pod: its node may be about to send a heartbeat.
   */
  readonly freshSinceMs: number;
  /**
   * In total disruption node-monitor removes our own two taints, when it has marked nodes and pods. Until then they
   * evict no pod, as if they were removed. Absent: there is none.
   */
  readonly totalDisruption?: boolean | undefined;
  /** Absent: no pod has an `offlineStopMs`, so the digest is not read, or there is none. */
  readonly signs?: NodeSigns | undefined;
}

interface Target {
  readonly namespace: string;
  readonly name: string;
  readonly podUid: string;
  readonly reason: string;
}

export type PodEvictionDecision =
  | (Target & { readonly kind: 'schedule'; readonly atMs: number })
  | (Target & { readonly kind: 'move'; readonly fromMs: number; readonly atMs: number })
  /** The pod stays: remove its timer and record the event. */
  | (Target & { readonly kind: 'cancel'; readonly event: EventText })
  /**
   * The pod of the timer no longer exists, terminates or is not on this node: remove the timer without an event.
   * `isRecorded`: it is a decision, because the Node is deleted or is no longer silent.
   */
  | (Target & { readonly kind: 'drop'; readonly isRecorded: boolean })
  /** Record the event, write the condition, delete with the pod's own grace period and this uid. */
  | (Target & {
      readonly kind: 'delete';
      readonly condition: DisruptionCondition;
      readonly event: EventText;
    })
  /** The machine has stopped this terminating pod: delete it without a grace period, if it is still silent. */
  | (Target & { readonly kind: 'remove'; readonly event: EventText })
  /** A taint of this time would evict it: the hub of its site decides. Nothing changes. */
  | (Target & { readonly kind: 'leave'; readonly atMs: number })
  /**
   * Due, but the gate is closed: keep or create the timer at `atMs`. `timerExists`: it is stored already, with this
   * time.
   */
  | (Target & { readonly kind: 'hold'; readonly atMs: number; readonly timerExists: boolean });

/**
 * Decisions in the order of the pods, then dropped timers. An unchanged timer yields no decision. `policy`: that of the
 * node's profile.
 */
export function decidePodEvictions(
  world: EvictionWorld,
  nowMs: number,
  policy: Pick<Policy, 'nodeMonitorGracePeriodSeconds'>,
): PodEvictionDecision[] {
  const decisions: PodEvictionDecision[] = [];
  const timersByUid = new Map(world.timers.map((timer) => [timer.podUid, timer]));
  const settled = new Set<string>();
  const { freshSinceMs, totalDisruption } = world;
  const delayedSinceMs = totalDisruption === true ? nowMs : freshSinceMs;
  const lifecycleNotBeforeMs =
    delayedSinceMs > 0 ? delayedSinceMs + policy.nodeMonitorGracePeriodSeconds * 1_000 : undefined;
  const at = { nowMs, lifecycleNotBeforeMs, totalDisruption };

  // D7: the timers of a deleted node are dropped below. Pod garbage collection deletes its pods.
  const here = world.taints === undefined ? [] : world.pods.filter((pod) => pod.nodeName === world.nodeName);

  for (const pod of here) {
    const timer = timersByUid.get(pod.uid);
    if (pod.siteHub !== undefined) {
      if (pod.terminating || timer !== undefined) continue;
      const verdict = evictionVerdict({ ...pod, taints: world.taints ?? [], ...at });
      if (verdict.kind !== 'due') continue;
      const reason = `${verdict.reason}; left to ${pod.siteHub}, the hub of its site`;
      decisions.push({ kind: 'leave', ...targetOf(pod, reason), atMs: verdict.atMs });
      continue;
    }
    const verdict = verdictOn(pod, world, at);
    if (verdict === undefined) continue;
    settled.add(pod.uid);
    const target = targetOf(pod, verdict.reason);
    const change = timerChange(verdict, timer?.atMs, nowMs);
    switch (change.kind) {
      case 'nothing':
      case 'keep':
        break;
      case 'schedule':
        decisions.push({ kind: 'schedule', ...target, atMs: change.atMs });
        break;
      case 'move':
        decisions.push({ kind: 'move', ...target, fromMs: change.fromMs, atMs: change.atMs });
        break;
      case 'cancel':
        decisions.push(
          pod.terminating
            ? { kind: 'drop', ...target, isRecorded: true }
            : { kind: 'cancel', ...target, event: cancellingEvent(pod.namespace, pod.name) },
        );
        break;
      case 'fire':
        if (world.gate.kind === 'holding') {
          // A timer that lies in the future must not delay the pod beyond the opening of the gate.
          const atMs = Math.min(timer?.atMs ?? nowMs, nowMs);
          const reason = `${verdict.reason}; held: ${world.gate.reasons.join(', ')}`;
          decisions.push({ kind: 'hold', ...target, reason, atMs, timerExists: timer?.atMs === atMs });
          break;
        }
        decisions.push(
          pod.terminating
            ? { kind: 'remove', ...target, event: removingEvent(pod.namespace, pod.name, world.nodeName) }
            : {
                kind: 'delete',
                ...target,
                condition: TAINT_EVICTION_CONDITION,
                event: markingEvent(pod.namespace, pod.name),
              },
        );
        break;
      default:
        change satisfies never;
    }
  }

  const podsByUid = new Map(world.pods.map((pod) => [pod.uid, pod]));
  for (const timer of world.timers) {
    if (settled.has(timer.podUid)) continue;
    const { namespace, name, podUid } = timer;
    const pod = podsByUid.get(podUid);
    const reason =
      world.taints === undefined
        ? 'node is deleted'
        : pod === undefined
          ? 'pod no longer exists'
          : pod.terminating
            ? 'pod is already terminating'
            : 'pod is not on this node';
    decisions.push({ kind: 'drop', namespace, name, podUid, reason, isRecorded: world.taints === undefined });
  }
  return decisions;
}

const targetOf = ({ namespace, name, uid }: EvictablePod, reason: string): Target => ({
  namespace,
  name,
  podUid: uid,
  reason,
});

/** undefined: the pod terminates, and its machine must confirm the end. */
function verdictOn(
  { terminating, offlineStopMs, tolerations, boundAtMs }: EvictablePod,
  { taints = [], signs, freshSinceMs }: EvictionWorld,
  at: Pick<EvictionQuestion, 'nowMs' | 'lifecycleNotBeforeMs' | 'totalDisruption'>,
): EvictionVerdict | undefined {
  if (!terminating) return evictionVerdict({ taints, tolerations, boundAtMs, ...at });
  return offlineStopMs === undefined ? undefined : removalVerdict({ offlineStopMs, taints, signs, freshSinceMs });
}
