/** L6: a Node is deleted only by a user or because its instance no longer exists (D11), and then in time. */
import { EC2_STALE_MAX_MS } from '../faults/faulty-cloud.ts';
import { EFFECT_MS, type Law, type LawContext, seconds } from './law.ts';
import { promiseEndMs } from './profiles.ts';

/** Maximum number of polls until the Node of a terminated instance is deleted. */
const POLLS_MAX = 3;

export function nodesOfLiveInstancesStay(context: LawContext): Law {
  const { truth, nowMs, most, clockSlackMs, calmSinceMs, machine, isPoisoned, poisonSlackMs, fail } = context;
  return {
    name: 'L6',
    onHappened(happened, by) {
      if (happened.kind !== 'nodeGone' || by.who !== '') return;
      const { node } = happened;
      const real = machine(node.name);
      if (by.name === 'cloud-node' && real?.instance === 'ended') return;
      const message = `${node.name} was deleted by ${by.name}; its instance ${real?.instance === 'lives' ? 'lives' : 'is none of EC2'}`;
      fail({ law: 'L6', subjects: [node.name], message });
    },
    onMoment() {
      const calmMs = calmSinceMs();
      if (calmMs === undefined) return;
      const periodMs = most((policy) => policy.nodeMonitorPeriodSeconds) * 1_000;
      for (const node of truth.nodes.values()) {
        const real = machine(node.name);
        if (real?.instance !== 'ended' || node.ready === 'True' || isPoisoned(node.name)) continue;
        // A node in planned silence is not marked.
        const endedMs = Math.max(real.instanceEndedAtMs + EC2_STALE_MAX_MS, promiseEndMs(node));
        const seenMs = Math.max(calmMs, endedMs, node.lastHeartbeatAtMs);
        // Only while it is marked is EC2 asked; that it is marked in time is L2. A young one that vanished is waited
        // for.
        const youngMs = most((policy) => policy.cloudYoungInstanceSeconds) * 1_000;
        const graceMs = most((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
        const dueMs =
          Math.max(seenMs + 2 * graceMs, node.createdAtMs + youngMs) + (POLLS_MAX + 2) * periodMs + EFFECT_MS;
        const lightMs = truth.lastDark === undefined ? 0 : truth.lastDark.untilMs + 2 * graceMs;
        if (nowMs() <= Math.max(dueMs, lightMs) + clockSlackMs(seenMs) + poisonSlackMs()) continue;
        const message = `${node.name} is still there ${seconds(nowMs() - real.instanceEndedAtMs)} after the end of its instance`;
        fail({ law: 'L6', subjects: [node.name], message, isLate: true });
      }
    },
  };
}
