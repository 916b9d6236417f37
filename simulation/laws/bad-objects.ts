/**
 * L12: one bad object never delays another node's mark, taint, eviction or recovery by more than one period. Marks and
 * evictions are L2's and L7's to watch (they count a delay as L12 while there is poison); here are taints and recoveries:
 *
 * - a zone that has a rate and a node that waits gives a taint within the time of one token and some periods;
 * - a node that is Ready again loses our taints, and one that is not has its NoSchedule taint, within some periods.
 *
 * Nodes of poisoned machines may themselves be late. There is no allowance for poison: only other faults end a calm.
 */
import { effectMs, type Law, type LawContext, seconds } from './law.ts';
import { isOurs, NOT_READY, type TrueNode, UNREACHABLE } from './truth.ts';

/** From a reason to its effect: two as without poison, and the one that L12 allows. */
const PERIODS = 3;
/** The same for a zone's queue: a turn that was spent on a node that cannot be tainted comes again at the next tick. */
const TURN_PERIODS = 4;

export function badObjectsHarmNobodyElse(context: LawContext): Law {
  const { truth, nowMs, most, least, clockSlackMs, calmSinceMs, isPoisoned, fail } = context;
  /** When a node's Ready changed last. */
  const readySinceMs = new Map<TrueNode, number>();
  const taintedAtMs = new Map<string, number>();
  /** Since when the fleet is not dark; undefined while it may be. */
  let lightSinceMs: number | undefined = Number.NEGATIVE_INFINITY;
  /** Since when a zone gives tokens at this rate, by its own nodes. */
  const rates = new Map<string, { readonly perSecond: number; readonly sinceMs: number }>();

  function rateOf({ ready, notReady }: { readonly ready: number; readonly notReady: number }): number {
    const size = ready + notReady;
    const full = least(({ nodeEvictionRatePerSecond }) => nodeEvictionRatePerSecond);
    if (ready === 0 && notReady > 0) return least(({ fullDisruption }) => Number(fullDisruption !== 'hold')) * full;
    if (notReady <= 2 || notReady < least(({ unhealthyZoneThreshold }) => unhealthyZoneThreshold) * size) return full;
    const isLarge = size > most(({ largeClusterSizeThreshold }) => largeClusterSizeThreshold);
    return isLarge ? least(({ secondaryNodeEvictionRatePerSecond }) => secondaryNodeEvictionRatePerSecond) : 0;
  }

  /** Silent for so long that node-monitor counts it as lost, though its mark cannot be written. */
  function isLostUnmarked(node: TrueNode): boolean {
    if (node.ready !== 'True' || !isPoisoned(node.name)) return false;
    const graceMs = least((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
    return nowMs() - node.heardAtMs >= graceMs - clockSlackMs(node.heardAtMs);
  }

  /** A zone's rate at least. A poisoned node counts by its own silence; one that beats counts as Ready. */
  function leastRateOf(zone: string): number {
    const counts = truth.zone(zone);
    const unsure = [...truth.nodes.values()].filter(
      (node) => node.zone === zone && !node.isExcluded && isLostUnmarked(node),
    ).length;
    const rates = Array.from({ length: unsure + 1 }, (_, lost) =>
      rateOf({ ready: counts.ready - lost, notReady: counts.notReady + lost }),
    );
    return Math.min(...rates);
  }

  /** All zones may be dark: every Ready node is a silent one whose mark cannot be written. */
  const mayBeDark = (): boolean =>
    ![...truth.nodes.values()].some((node) => node.ready === 'True' && !node.isExcluded && !isLostUnmarked(node));

  /** Neither Ready nor tainted, and not on its way back. */
  const waits = (node: TrueNode): boolean =>
    !isPoisoned(node.name) &&
    (node.ready === 'False' || (node.ready === 'Unknown' && node.heardAtMs < (readySinceMs.get(node) ?? 0))) &&
    ![...node.noExecute.keys()].some(isOurs);

  function lookAtZones(openMs: number, graceMs: number, allowedMs: number): void {
    const waiting = Map.groupBy([...truth.nodes.values()].filter(waits), ({ zone }) => zone);
    if (!mayBeDark()) lightSinceMs ??= nowMs();
    else lightSinceMs = undefined;
    for (const zone of new Set([...truth.nodes.values()].map((node) => node.zone))) {
      const perSecond = lightSinceMs === undefined ? 0 : leastRateOf(zone);
      if (rates.get(zone)?.perSecond !== perSecond) rates.set(zone, { perSecond, sinceMs: nowMs() });
      const nodes = waiting.get(zone) ?? [];
      if (perSecond === 0 || nodes.length === 0) continue;
      const sinceMs = Math.max(
        openMs,
        // As after the dark of L4.
        (lightSinceMs ?? 0) + graceMs,
        rates.get(zone)!.sinceMs,
        taintedAtMs.get(zone) ?? 0,
        Math.min(...nodes.map((node) => readySinceMs.get(node) ?? nowMs())),
      );
      const waitedMs = nowMs() - sinceMs;
      if (waitedMs <= 1_000 / perSecond + allowedMs + clockSlackMs(sinceMs)) continue;
      const names = nodes.map(({ name }) => name);
      const message = `${names.join(', ')} wait for a taint; zone ${zone} gave none for ${seconds(waitedMs)} at ${perSecond} a second`;
      fail({ law: 'L12', subjects: [...names, zone], message });
    }
  }

  function lookAtNode(node: TrueNode, calmMs: number, allowedMs: number): void {
    const sinceMs = Math.max(calmMs, readySinceMs.get(node) ?? node.createdAtMs);
    const lateMs = nowMs() - sinceMs - allowedMs - clockSlackMs(sinceMs);
    if (lateMs <= 0 || node.ready === undefined) return;
    const since = seconds(nowMs() - sinceMs);
    const say = (what: string): void =>
      fail({
        law: 'L12',
        subjects: [node.name],
        message: `${node.name} is Ready=${node.ready} for ${since} and ${what}`,
      });
    const carried = [...node.noExecute].find(([key]) => isOurs(key));
    if (node.ready === 'True' && carried !== undefined) say(`still carries ${carried[0]}:NoExecute`);
    const expected = node.ready === 'True' ? undefined : node.ready === 'False' ? NOT_READY : UNREACHABLE;
    for (const key of [NOT_READY, UNREACHABLE]) {
      if (node.noSchedule.has(key) !== (key === expected)) {
        say(`${key === expected ? 'has no' : 'still carries'} ${key}:NoSchedule`);
      }
    }
  }

  return {
    name: 'L12',
    onHappened(happened) {
      if (happened.kind === 'ready' || happened.kind === 'nodeCreated') readySinceMs.set(happened.node, nowMs());
      if (happened.kind === 'nodeGone') readySinceMs.delete(happened.node);
      if (happened.kind === 'tainted' && isOurs(happened.key)) taintedAtMs.set(happened.node.zone, nowMs());
    },
    onMoment() {
      const calmMs = calmSinceMs();
      if (calmMs === undefined) return;
      const periodMs = most((policy) => policy.nodeMonitorPeriodSeconds) * 1_000;
      const graceMs = most((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
      const beatMs = most((policy) => policy.beatIntervalSeconds) * 1_000;
      // As in L7: after an outage of ours, and after the dark, every node has its grace.
      const lightMs = truth.lastDark === undefined ? 0 : truth.lastDark.untilMs + periodMs + graceMs;
      const openMs = Math.max(calmMs + 2 * beatMs + 2 * periodMs + graceMs, lightMs);
      lookAtZones(openMs, graceMs, TURN_PERIODS * periodMs + effectMs(context));
      for (const node of truth.nodes.values()) {
        if (!isPoisoned(node.name)) lookAtNode(node, calmMs + 2 * periodMs, PERIODS * periodMs + effectMs(context));
      }
    },
  };
}
