/**
 * L1, L2 and L5: nodes with heartbeats are not marked, silent nodes are marked in time, and our own outage marks none.
 */
import { EFFECT_MS, type Law, type LawContext, seconds, type TrueMachine } from './law.ts';
import { marksNodes, UNREACHABLE } from './truth.ts';

/** A shorter unavailability of the API is not an outage for L5. Periods. */
const OUTAGE_PERIODS_MIN = 3;

const graceMs = ({ least }: LawContext): number => least((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
const periodMs = ({ most }: LawContext): number => most((policy) => policy.nodeMonitorPeriodSeconds) * 1_000;
/** Grace − period: a node with a heartbeat at least this often must never be marked. Milliseconds. */
export const steadyGapMs = (context: LawContext): number => graceMs(context) - periodMs(context);

/**
 * L1: a node that beats at least every (grace − period) is never marked nor tainted. (Evicted: by L7, only with a
 * taint.)
 */
export function beatingIsNotMarked(context: LawContext): Law {
  const { nowMs, clockSlackMs, fail } = context;
  // Clock steps lengthen a silence. The period already allows for the skew between processes.
  const allowedGapMs = (sinceMs: number): number => steadyGapMs(context) - clockSlackMs(sinceMs, 'steps');
  return {
    name: 'L1',
    onHappened(happened, by) {
      if (happened.kind === 'ready' && happened.to === 'Unknown' && marksNodes(by.name)) {
        const { node, from } = happened;
        const silentMs = nowMs() - node.lastHeartbeatAtMs;
        if (from === undefined || silentMs > allowedGapMs(node.lastHeartbeatAtMs)) return;
        if (context.isWitnessed(node.name)) return;
        const message = `${node.name} was marked Unknown ${seconds(silentMs)} after its last heartbeat or status`;
        fail({ law: 'L1', subjects: [node.name], message });
      }
      if (happened.kind === 'tainted' && happened.key === UNREACHABLE && !happened.isSwap && by.name === 'evictor') {
        const { node } = happened;
        if (context.isWitnessed(node.name)) return;
        const isSteady =
          nowMs() - node.lastHeartbeatAtMs <= allowedGapMs(node.lastHeartbeatAtMs) &&
          nowMs() - node.steadySinceMs >= 2 * graceMs(context);
        if (!isSteady) return;
        const message = `${node.name} was tainted unreachable; it has sent heartbeats for ${seconds(nowMs() - node.steadySinceMs)}`;
        fail({ law: 'L1', subjects: [node.name], message });
      }
    },
  };
}

/** L2: a silent node is Unknown at most grace + one period after its last beat (gate not holding, ticks running). */
export function silentIsMarked(context: LawContext): Law {
  const { truth, nowMs, most, clockSlackMs, calmSinceMs, isPoisoned, poisonSlackMs, fail } = context;
  return {
    name: 'L2',
    onMoment() {
      const calmMs = calmSinceMs();
      if (calmMs === undefined) return;
      const period = most((policy) => policy.nodeMonitorPeriodSeconds) * 1_000;
      const grace = most((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
      // After an outage every node has a full grace period from the first successful tick. After total disruption it
      // has one from the tick that found a Ready node.
      const lightMs = truth.lastDark === undefined ? 0 : truth.lastDark.untilMs + period + EFFECT_MS;
      for (const node of truth.nodes.values()) {
        if (node.ready === 'Unknown' || node.ready === undefined || isPoisoned(node.name)) continue;
        // It may have one more interval, to learn its new one (laws/profiles.ts).
        if (node.profileChangedAtMs !== undefined) continue;
        // Silence before the end of a promise does not count (laws/profiles.ts).
        if (node.plannedUntilMs !== undefined || node.promiseEndedAtMs > node.lastHeartbeatAtMs) continue;
        const fromMs = Math.max(node.lastHeartbeatAtMs, calmMs + 2 * period, lightMs);
        const dueMs = fromMs + grace + period + EFFECT_MS + clockSlackMs(fromMs - grace) + poisonSlackMs();
        if (nowMs() <= dueMs) continue;
        const message = `${node.name} is ${node.ready} ${seconds(nowMs() - node.lastHeartbeatAtMs)} after its last heartbeat or status`;
        fail({ law: 'L2', subjects: [node.name], message, isLate: true });
      }
    },
  };
}

/** An outage of a way of heartbeats that the machine uses. */
const outagesOf = ({ plan }: LawContext, { door }: TrueMachine) =>
  (['apiOutage', 'urlOutage'] as const)
    .filter((name) => name === 'apiOutage' || door !== 'api')
    .flatMap((name) => plan.last(name) ?? []);

/**
 * L5: after an outage of the API or the URL, L1 holds for each node that sends heartbeats again within one grace
 * period.
 */
export function outageIsForgiven(context: LawContext): Law {
  const { truth, nowMs, clockSlackMs, machine, fail } = context;
  return {
    name: 'L5',
    onHappened(happened, by) {
      if (happened.kind !== 'ready' || happened.to !== 'Unknown' || !marksNodes(by.name)) return;
      const { node, from } = happened;
      const real = machine(node.name);
      if (real === undefined || from === undefined || !real.isOn) return;
      for (const { fromMs, untilMs } of outagesOf(context, real)) {
        if (untilMs - fromMs < OUTAGE_PERIODS_MIN * periodMs(context)) continue;
        const slackMs = clockSlackMs(fromMs) + EFFECT_MS;
        const wasAlive = node.lastHeartbeatAtMs >= fromMs - steadyGapMs(context) + slackMs;
        const isReachable = real.sinceMs <= node.lastHeartbeatAtMs && real.lastCutMs < node.lastHeartbeatAtMs;
        const isForgiven = nowMs() < untilMs || nowMs() < untilMs + graceMs(context) - slackMs;
        if (!wasAlive || !isReachable || !isForgiven || truth.nodes.get(node.name) === undefined) continue;
        const message =
          `${node.name} was marked ${seconds(nowMs() - untilMs)} after the end of an outage of ours of ` +
          `${seconds(untilMs - fromMs)}; its last heartbeat was ${seconds(fromMs - node.lastHeartbeatAtMs)} before it`;
        fail({ law: 'L5', subjects: [node.name], message });
      }
    },
  };
}
