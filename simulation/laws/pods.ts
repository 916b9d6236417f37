/**
 * L7: a pod that tolerates all taints is never deleted. A pod with tolerationSeconds s is deleted in [s, s + 2
 * periods]. If the taint is removed before, the pod is not deleted.
 */
import type { Toleration } from '../../shared/kubernetes/kubernetes.ts';
import { EFFECT_MS, effectMs, type Law, type LawContext, seconds } from './law.ts';
import { isOurs, type TrueNode, type TruePod } from './truth.ts';

/** Times of taints are written in whole seconds. */
const ROUNDING_MS = 1_000;

/** tolerationSeconds of the first matching toleration: undefined without one, Infinity if it has no seconds. */
function toleratedSeconds(tolerations: readonly Toleration[], key: string, value: string): number | undefined {
  const fitting = tolerations.find((toleration) => {
    if (toleration.effect !== undefined && (toleration.effect as string) !== '' && toleration.effect !== 'NoExecute') {
      return false;
    }
    const isExists = toleration.operator === 'Exists';
    if (toleration.key === undefined || toleration.key === '') return isExists;
    return toleration.key === key && (isExists || (toleration.value ?? '') === value);
  });
  return fitting === undefined ? undefined : (fitting.tolerationSeconds ?? Number.POSITIVE_INFINITY);
}

interface Due {
  readonly atMs: number;
  /** When the toleration time began. */
  readonly sinceMs: number;
  readonly isOurs: boolean;
}

function dueOf(pod: TruePod, node: TrueNode): Due {
  let due: Due = { atMs: Number.POSITIVE_INFINITY, sinceMs: 0, isOurs: true };
  for (const [key, { value, sinceMs }] of node.noExecute) {
    const allowed = Math.max(0, toleratedSeconds(pod.tolerations, key, value) ?? 0);
    const beganAtMs = Math.max(sinceMs, pod.sinceMs);
    const atMs = beganAtMs + allowed * 1_000;
    if (atMs < due.atMs) due = { atMs, sinceMs: beganAtMs, isOurs: isOurs(key) };
  }
  return due;
}

export function podsHaveTheirTime(context: LawContext): Law {
  const { truth, nowMs, most, clockSlackMs, calmSinceMs, isPoisoned, poisonSlackMs, fail } = context;
  return {
    name: 'L7',
    onHappened(happened, by) {
      if (happened.kind !== 'podEnds') return;
      const { pod, isGone } = happened;
      // Not a deletion by taint eviction: a machine or user deleted the pod, or pod-gc did, or it was terminating.
      // Those of workloads have laws of their own.
      if (by.who !== '' || by.name === 'pod-gc' || by.name === 'workloads' || (isGone && pod.isTerminating)) return;
      const node = truth.nodes.get(pod.nodeName);
      const now = nowMs();
      const say = (what: string): void =>
        fail({
          law: 'L7',
          subjects: [pod.nodeName, pod.path],
          message: `${pod.path} was deleted by ${by.name}; ${what}`,
        });
      if (pod.isOfSite) return say('the hub of its site decides about it');
      // The commit that deletes a pod requires the Node of the decision: no tolerance for these two.
      if (node === undefined) return say('its Node does not exist: a task of pod-gc');
      if (node.noExecute.size === 0) return say('its node has no NoExecute taint');
      const due = dueOf(pod, node);
      if (due.atMs === Number.POSITIVE_INFINITY) return say('it tolerates every taint of its node');
      const earlyMs = due.atMs - now;
      if (earlyMs > clockSlackMs(due.sinceMs) + effectMs(context, due.sinceMs)) say(`it had ${seconds(earlyMs)} left`);
    },
    onMoment() {
      const calmMs = calmSinceMs();
      if (calmMs === undefined) return;
      const periodMs = most((policy) => policy.nodeMonitorPeriodSeconds) * 1_000;
      const graceMs = most((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
      const beatMs = most((policy) => policy.beatIntervalSeconds) * 1_000;
      // The gate stays closed for two heartbeat intervals after an outage of the API. No pod is deleted until then.
      const openMs = calmMs + 2 * beatMs + 2 * periodMs;
      for (const pod of truth.pods.values()) {
        if (pod.isOfSite || pod.isTerminating || isPoisoned(pod.nodeName)) continue;
        const node = truth.nodes.get(pod.nodeName);
        if (node === undefined || node.noExecute.size === 0) continue;
        const due = dueOf(pod, node);
        // After an outage of the API our own taints evict no pod until every node has had a full grace period.
        const heldMs = due.isOurs ? openMs + graceMs : openMs;
        const lateMs = nowMs() - Math.max(due.atMs + ROUNDING_MS, heldMs, node.noExecuteChangedAtMs) - 2 * periodMs;
        if (lateMs <= EFFECT_MS + clockSlackMs(due.sinceMs) + poisonSlackMs()) continue;
        const message = `${pod.path} is still there, ${seconds(nowMs() - due.atMs)} after its time`;
        fail({ law: 'L7', subjects: [pod.nodeName, pod.path], message, isLate: true });
      }
    },
  };
}
