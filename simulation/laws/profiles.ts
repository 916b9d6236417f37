/**
 * L1, L2 and L5 with the times of each node's profile. The other laws use the most patient or the strictest times of
 * all profiles, which is right but less exact.
 *
 * A node that changed its profile may send heartbeats at its old interval until it receives an answer. So for one
 * interval of the most patient profile and one new grace period it is not marked, if it was not already silent.
 *
 * Silence before the end of a planned one does not count: a node is not marked before one grace period after that end,
 * and at most one period later.
 */
import { policyOf } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy, ProfileTimes } from '../../shared/fleet/policy.ts';
import { EFFECT_MS, type Law, type LawContext, seconds } from './law.ts';
import { marksNodes, type TrueNode } from './truth.ts';

/** An answer that was on its way when the profile changed. Milliseconds, as in the rule. */
const ON_THE_WAY_MS = 10_000;

type TimesOf = (of: (policy: Policy) => number) => number;
/** The end of the last promise of silence, in the future while it stands. The row stores whole seconds. */
export const promiseEndMs = (node: TrueNode): number =>
  Math.max(node.plannedUntilMs ?? node.promiseEndedAtMs, node.promiseEndedAtMs);

const inMs = (of: TimesOf, node: TrueNode, field: keyof ProfileTimes): number =>
  1_000 * of((policy) => policyOf(policy, node.profile)[field]);

export function profilesAreKept(context: LawContext): Law {
  const { nowMs, most, least, clockSlackMs, fail } = context;
  const longestBeatMs = (): number => 1_000 * most(({ beatIntervalSeconds }) => beatIntervalSeconds);
  const periodMs = (): number => 1_000 * most(({ nodeMonitorPeriodSeconds }) => nodeMonitorPeriodSeconds);

  function failIfAlive(node: TrueNode): void {
    const graceMs = inMs(least, node, 'nodeMonitorGracePeriodSeconds');
    const allowedMs = graceMs - periodMs() - clockSlackMs(node.lastHeartbeatAtMs, 'steps');
    const silentMs = nowMs() - node.lastHeartbeatAtMs;
    const promisedMs = nowMs() - promiseEndMs(node);
    if (promisedMs <= graceMs - clockSlackMs(Number.NEGATIVE_INFINITY)) {
      const message = `${node.name} was marked ${seconds(promisedMs)} after the end of its planned silence`;
      fail({ law: 'L1', subjects: [node.name], message });
    }
    if (silentMs <= allowedMs && !context.isWitnessed(node.name)) {
      const message = `${node.name} of profile ${node.profile ?? 'default'} was marked ${seconds(silentMs)} after its last heartbeat`;
      fail({ law: 'L1', subjects: [node.name], message });
    }
    const { profileChangedAtMs: changedAtMs } = node;
    if (changedAtMs === undefined || node.lastHeartbeatAtMs > changedAtMs) return;
    const sinceChangeMs = nowMs() - changedAtMs;
    // At the change it was at most one interval late, by the strictest times.
    const wasAlive = changedAtMs - node.lastHeartbeatAtMs <= least((policy) => policy.beatIntervalSeconds) * 1_000;
    if (!wasAlive || sinceChangeMs > longestBeatMs() + allowedMs) return;
    const message = `${node.name} was marked ${seconds(sinceChangeMs)} after a change of its profile, before it could learn it`;
    fail({ law: 'L1', subjects: [node.name], message });
  }

  function failIfOverdue(node: TrueNode, calmMs: number): void {
    const { truth, isPoisoned, poisonSlackMs } = context;
    if (node.ready === 'Unknown' || node.ready === undefined || isPoisoned(node.name)) return;
    const graceMs = inMs(most, node, 'nodeMonitorGracePeriodSeconds');
    const beatMs = inMs(most, node, 'beatIntervalSeconds');
    const lightMs = truth.lastDark === undefined ? 0 : truth.lastDark.untilMs + periodMs() + EFFECT_MS;
    const learnedMs =
      node.profileChangedAtMs === undefined || node.lastHeartbeatAtMs > node.profileChangedAtMs + ON_THE_WAY_MS
        ? 0
        : node.profileChangedAtMs + ON_THE_WAY_MS + longestBeatMs();
    const fromMs = Math.max(
      node.lastHeartbeatAtMs,
      calmMs + 2 * Math.max(beatMs, periodMs()),
      lightMs,
      learnedMs,
      // A promise is a time of day: it ends by our clock, whatever that was set to before.
      promiseEndMs(node) + 1_000 + clockSlackMs(Number.NEGATIVE_INFINITY),
    );
    const dueMs = fromMs + graceMs + periodMs() + EFFECT_MS + clockSlackMs(fromMs - graceMs) + poisonSlackMs();
    if (nowMs() <= dueMs) return;
    const silence = seconds(nowMs() - node.lastHeartbeatAtMs);
    const message = `${node.name} of profile ${node.profile ?? 'default'} is ${node.ready} ${silence} after its last heartbeat`;
    fail({ law: 'L2', subjects: [node.name], message, isLate: true });
  }

  return {
    name: 'L1',
    onHappened(happened, by) {
      if (happened.kind !== 'ready' || happened.to !== 'Unknown' || !marksNodes(by.name)) return;
      if (happened.from !== undefined) failIfAlive(happened.node);
    },
    onMoment() {
      const calmMs = context.calmSinceMs();
      if (calmMs === undefined) return;
      for (const node of context.truth.nodes.values()) failIfOverdue(node, calmMs);
    },
  };
}
