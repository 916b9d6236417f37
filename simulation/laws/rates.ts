/** L3 and L4: the rate of NoExecute taints, and no new taint in total disruption. */
import { EFFECT_MS, effectMs, type Law, type LawContext, seconds } from './law.ts';
import { isOurs, isUncounted, marksNodes } from './truth.ts';

/** Number of the latest taints per zone that windows are computed over. */
const TAINTS_MAX = 40;
/** Periods after which a change of rate or total disruption must be known: the ticks know it, or the gate is closed. */
const UNNOTICED_PERIODS = 3.5;

const unnoticedMs = (context: LawContext, sinceMs: number): number =>
  UNNOTICED_PERIODS * context.most((policy) => policy.nodeMonitorPeriodSeconds) * 1_000 +
  effectMs(context) +
  context.clockSlackMs(sinceMs);

const RATE_EVENTS: ReadonlySet<string> = new Set(['ready', 'nodeCreated', 'nodeGone', 'tainted', 'promise']);
const isEviction = (kind: string): boolean => kind === 'evictor' || kind === 'node-monitor';

/** L3: in any window of T seconds a zone gets at most 1 + rate·T NoExecute taintings. */
export function zonesKeepTheirRate(context: LawContext): Law {
  const { truth, nowMs, most, clockSlackMs, fail } = context;
  const taintings = new Map<string, { readonly atMs: number; readonly slackMs: number }[]>();
  /** Since when the rate of a zone is 0, by the state of its own nodes. */
  const stoppedSinceMs = new Map<string, number>();

  function watchRate(zone: string): void {
    const { ready, notReady } = truth.zone(zone);
    const size = ready + notReady;
    const isPartial =
      ready > 0 && notReady > 2 && notReady >= most(({ unhealthyZoneThreshold }) => unhealthyZoneThreshold) * size;
    const isSmall = size <= context.least(({ largeClusterSizeThreshold }) => largeClusterSizeThreshold);
    const isHeld =
      ready === 0 && notReady > 0 && context.least(({ fullDisruption }) => Number(fullDisruption === 'hold')) === 1;
    if (!(isPartial && isSmall) && !isHeld) stoppedSinceMs.delete(zone);
    else if (!stoppedSinceMs.has(zone)) stoppedSinceMs.set(zone, nowMs());
  }

  /** True when no Ready node sent a recent heartbeat: the zone may already be in FullDisruption, with marks pending. */
  function mayBeFull(zone: string): boolean {
    if (context.least(({ fullDisruption }) => Number(fullDisruption === 'hold')) === 1) return false;
    const graceMs = context.least((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
    const sinceMs = nowMs() - graceMs + clockSlackMs(nowMs() - graceMs);
    return ![...truth.nodes.values()].some(
      (node) => node.zone === zone && !isUncounted(node) && node.ready === 'True' && node.lastHeartbeatAtMs > sinceMs,
    );
  }

  return {
    name: 'L3',
    onHappened(happened, by) {
      // Also before a taint: the policy may have changed meanwhile.
      if (RATE_EVENTS.has(happened.kind) && 'node' in happened) watchRate(happened.node.zone);
      if (happened.kind !== 'tainted' || !isOurs(happened.key) || happened.isSwap || !isEviction(by.name)) return;
      const { node } = happened;
      const now = nowMs();
      const stoppedMs = stoppedSinceMs.get(node.zone);
      if (stoppedMs !== undefined && now - stoppedMs > unnoticedMs(context, stoppedMs) && !mayBeFull(node.zone)) {
        const message = `${node.name} was tainted; the rate of its zone has been 0 for ${seconds(now - stoppedMs)}`;
        fail({ law: 'L3', subjects: [node.name, node.zone], message });
      }
      const rate = most((policy) =>
        Math.max(policy.nodeEvictionRatePerSecond, policy.secondaryNodeEvictionRatePerSecond),
      );
      const earlier = taintings.get(node.zone) ?? [];
      // The newest first: windows that end now.
      for (const [index, first] of earlier.toReversed().entries()) {
        const slackMs = Math.max(first.slackMs, effectMs(context)) + clockSlackMs(first.atMs);
        const windowSeconds = (now - first.atMs + slackMs) / 1_000;
        const most = 1 + rate * windowSeconds;
        if (index + 2 <= most + 1e-6) continue;
        const message = `${index + 2} taints in zone ${node.zone} within ${seconds(now - first.atMs)} at a rate of ${rate} per second`;
        fail({ law: 'L3', subjects: [node.name, node.zone], message });
        break;
      }
      taintings.set(node.zone, [...earlier, { atMs: now, slackMs: effectMs(context) }].slice(-TAINTS_MAX));
    },
  };
}

/**
 * L4: in total disruption no taint is added, and queued nodes are removed from the queue. After it every node has a
 * full grace period before it is marked. Nodes that are already Unknown are tainted at the rate of a limiter without a
 * token.
 */
export function darkIsNobodysFault(context: LawContext): Law {
  const { truth, nowMs, least, most, clockSlackMs, calmSinceMs, isPoisoned, poisonSlackMs, fail } = context;
  /** When total disruption, as stored, was last left. */
  let leftAtMs = Number.NEGATIVE_INFINITY;
  let wasTotal = false;

  return {
    name: 'L4',
    onHappened(happened, by) {
      if (truth.total.isOn !== wasTotal) {
        wasTotal = truth.total.isOn;
        if (!wasTotal) leftAtMs = nowMs();
      }
      const now = nowMs();
      const { darkSinceMs, lastDark } = truth;
      if (happened.kind === 'tainted' && isOurs(happened.key) && !happened.isSwap && isEviction(by.name)) {
        const { node } = happened;
        if (darkSinceMs !== undefined && now - darkSinceMs > unnoticedMs(context, darkSinceMs)) {
          const message = `${node.name} was tainted; all zones have been dark for ${seconds(now - darkSinceMs)}`;
          fail({ law: 'L4', subjects: [node.name, node.zone], message });
        }
        const rate = most((policy) =>
          Math.max(policy.nodeEvictionRatePerSecond, policy.secondaryNodeEvictionRatePerSecond),
        );
        const drainedMs = 1_000 / rate - effectMs(context) - clockSlackMs(leftAtMs);
        if (now - leftAtMs < drainedMs) {
          const message = `${node.name} was tainted ${seconds(now - leftAtMs)} after total disruption, from a full limiter`;
          fail({ law: 'L4', subjects: [node.name, node.zone], message });
        }
      }
      if (happened.kind === 'ready' && happened.to === 'Unknown' && marksNodes(by.name) && lastDark !== undefined) {
        if (lastDark.untilMs - lastDark.fromMs < unnoticedMs(context, lastDark.fromMs) || happened.from === undefined)
          return;
        // Its own grace period began with that heartbeat, and may be shortened: law `witnesses`.
        const hasSpoken = happened.node.lastHeartbeatAtMs > lastDark.untilMs;
        if (hasSpoken && context.isWitnessed(happened.node.name)) return;
        const grace = least((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
        const slackMs = clockSlackMs(lastDark.fromMs) + EFFECT_MS;
        if (darkSinceMs !== undefined || now >= lastDark.untilMs + grace - slackMs) return;
        const message = `${happened.node.name} was marked ${seconds(now - lastDark.untilMs)} after the end of the dark`;
        fail({ law: 'L4', subjects: [happened.node.name, happened.node.zone], message });
      }
    },
    onMoment() {
      const calmMs = calmSinceMs();
      const { darkSinceMs } = truth;
      if (calmMs === undefined || darkSinceMs === undefined) return;
      const fromMs = Math.max(calmMs, darkSinceMs);
      if (nowMs() - fromMs <= unnoticedMs(context, fromMs) + poisonSlackMs()) return;
      const waiting = [...truth.queued].find((each) => !isPoisoned(each.split('#')[1]!));
      if (waiting !== undefined) {
        fail({
          law: 'L4',
          subjects: [waiting.split('#')[1]!],
          message: `${waiting} is still queued while all zones are dark`,
        });
      }
      for (const node of truth.nodes.values()) {
        if (isPoisoned(node.name)) continue;
        // A taint that was added after this moment may still be removed in time.
        if (![...node.noExecute].some(([key, { sinceMs }]) => isOurs(key) && sinceMs < fromMs)) continue;
        fail({
          law: 'L4',
          subjects: [node.name],
          message: `${node.name} still has its NoExecute taint while all zones are dark`,
        });
      }
    },
  };
}
