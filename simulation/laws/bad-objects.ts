/**
 * L12: one bad object never delays the mark, taint, eviction or recovery of another node by more than one period. L2
 * and L7 check marks and evictions, and report a delay as L12 while there is poison. This law checks taints and
 * recoveries:
 *
 * - a zone with a rate and a waiting node adds a taint within the time of one token and some periods;
 * - a node that is Ready again loses our taints, and one that is not has its NoSchedule taint, within some periods.
 *
 * Effects on nodes of poisoned machines may be late. Poison is not a fault that interrupts a calm interval.
 */
import { effectMs, type Law, type LawContext, seconds } from './law.ts';
import { type Happened, isOurs, isUncounted, NOT_READY, type TrueNode, UNREACHABLE } from './truth.ts';

/** Maximum time from a cause to its effect: two periods as without poison, and the one that L12 allows. */
const PERIODS = 3;
/** The same for the queue of a zone: after a node that cannot be tainted the next tick tries another node. */
const QUEUE_PERIODS = 4;

export function badObjectsAffectOnlyThemselves(context: LawContext): Law {
  return new BadObjectsAffectOnlyThemselves(context);
}

class BadObjectsAffectOnlyThemselves implements Law {
  readonly name = 'L12';
  readonly #context: LawContext;
  /** When a node's Ready changed last. */
  readonly #readySinceMs = new Map<TrueNode, number>();
  readonly #taintedAtMs = new Map<string, number>();
  /**
   * When a node lost one of our taints. Total disruption lifts them before the marks of a mass failure are all written.
   */
  readonly #untaintedAtMs = new Map<TrueNode, number>();
  /** Since when there is no total disruption; undefined while there may be. */
  #lightSinceMs: number | undefined = Number.NEGATIVE_INFINITY;
  /** Since when a zone grants tokens at this rate, by its own nodes. */
  readonly #rates = new Map<string, { readonly perSecond: number; readonly sinceMs: number }>();

  constructor(context: LawContext) {
    this.#context = context;
  }

  onHappened(happened: Happened): void {
    if (happened.kind === 'ready' || happened.kind === 'nodeCreated')
      this.#readySinceMs.set(happened.node, this.#context.nowMs());
    if (happened.kind === 'nodeGone') {
      this.#readySinceMs.delete(happened.node);
      this.#untaintedAtMs.delete(happened.node);
    }
    if (happened.kind === 'untainted' && isOurs(happened.key))
      this.#untaintedAtMs.set(happened.node, this.#context.nowMs());
    if (happened.kind === 'tainted' && isOurs(happened.key))
      this.#taintedAtMs.set(happened.node.zone, this.#context.nowMs());
  }

  onMoment(): void {
    const calmMs = this.#context.calmSinceMs();
    if (calmMs === undefined) return;
    const periodMs = this.#context.most((policy) => policy.nodeMonitorPeriodSeconds) * 1_000;
    const graceMs = this.#context.most((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
    const beatMs = this.#context.most((policy) => policy.beatIntervalSeconds) * 1_000;
    // L7 has the same rule: after an outage of ours, and after the dark, every node has its grace.
    const lightMs =
      this.#context.truth.lastDark === undefined ? 0 : this.#context.truth.lastDark.untilMs + periodMs + graceMs;
    const openMs = Math.max(calmMs + 2 * beatMs + 2 * periodMs + graceMs, lightMs);
    this.#lookAtZones(openMs, graceMs, QUEUE_PERIODS * periodMs + effectMs(this.#context));
    for (const node of this.#context.truth.nodes.values()) {
      if (!this.#context.isPoisoned(node.name))
        this.#lookAtNode(node, calmMs + 2 * periodMs, PERIODS * periodMs + effectMs(this.#context));
    }
  }

  #rateOf({ ready, notReady }: { readonly ready: number; readonly notReady: number }): number {
    const size = ready + notReady;
    const full = this.#context.least(({ nodeEvictionRatePerSecond }) => nodeEvictionRatePerSecond);
    if (ready === 0 && notReady > 0)
      return this.#context.least(({ fullDisruption }) => Number(fullDisruption !== 'hold')) * full;
    if (notReady <= 2 || notReady < this.#context.least(({ unhealthyZoneThreshold }) => unhealthyZoneThreshold) * size)
      return full;
    const isLarge = size > this.#context.most(({ largeClusterSizeThreshold }) => largeClusterSizeThreshold);
    return isLarge
      ? this.#context.least(({ secondaryNodeEvictionRatePerSecond }) => secondaryNodeEvictionRatePerSecond)
      : 0;
  }

  /** Silent for so long that node-monitor counts it as lost, though its mark cannot be written. */
  #isLostUnmarked(node: TrueNode): boolean {
    if (node.ready !== 'True' || !this.#context.isPoisoned(node.name)) return false;
    const graceMs = this.#context.least((policy) => policy.nodeMonitorGracePeriodSeconds) * 1_000;
    return (
      this.#context.nowMs() - node.lastHeartbeatAtMs >= graceMs - this.#context.clockSlackMs(node.lastHeartbeatAtMs)
    );
  }

  /** A zone's rate at least. A poisoned node counts by its own silence; one that beats counts as Ready. */
  #leastRateOf(zone: string): number {
    const counts = this.#context.truth.zone(zone);
    const unsure = [...this.#context.truth.nodes.values()].filter(
      (node) => node.zone === zone && !isUncounted(node) && this.#isLostUnmarked(node),
    ).length;
    const rates = Array.from({ length: unsure + 1 }, (_, lost) =>
      this.#rateOf({ ready: counts.ready - lost, notReady: counts.notReady + lost }),
    );
    return Math.min(...rates);
  }

  /** All zones may be dark: every Ready node is silent, and its mark cannot be written. */
  #mayBeDark(): boolean {
    return ![...this.#context.truth.nodes.values()].some(
      (node) => node.ready === 'True' && !isUncounted(node) && !this.#isLostUnmarked(node),
    );
  }

  /** Neither Ready nor tainted, and not on its way back. */
  #waits(node: TrueNode): boolean {
    return (
      !this.#context.isPoisoned(node.name) &&
      node.plannedUntilMs === undefined &&
      (node.ready === 'False' ||
        (node.ready === 'Unknown' && node.lastHeartbeatAtMs < (this.#readySinceMs.get(node) ?? 0))) &&
      ![...node.noExecute.keys()].some(isOurs)
    );
  }

  #waitsSinceMs(node: TrueNode): number {
    const readySinceMs = this.#readySinceMs.get(node) ?? this.#context.nowMs();
    return Math.max(readySinceMs, this.#untaintedAtMs.get(node) ?? readySinceMs, node.promiseEndedAtMs);
  }

  #lookAtZones(openMs: number, graceMs: number, allowedMs: number): void {
    const waiting = Map.groupBy(
      [...this.#context.truth.nodes.values()].filter((node) => this.#waits(node)),
      ({ zone }) => zone,
    );
    if (!this.#mayBeDark()) this.#lightSinceMs ??= this.#context.nowMs();
    else this.#lightSinceMs = undefined;
    for (const zone of new Set([...this.#context.truth.nodes.values()].map((node) => node.zone))) {
      const perSecond = this.#lightSinceMs === undefined ? 0 : this.#leastRateOf(zone);
      if (this.#rates.get(zone)?.perSecond !== perSecond)
        this.#rates.set(zone, { perSecond, sinceMs: this.#context.nowMs() });
      const nodes = waiting.get(zone) ?? [];
      if (perSecond === 0 || nodes.length === 0) continue;
      const sinceMs = Math.max(
        openMs,
        // The grace period begins as after the dark of L4.
        (this.#lightSinceMs ?? 0) + graceMs,
        this.#rates.get(zone)!.sinceMs,
        this.#taintedAtMs.get(zone) ?? 0,
        Math.min(...nodes.map((node) => this.#waitsSinceMs(node))),
      );
      const waitedMs = this.#context.nowMs() - sinceMs;
      if (waitedMs <= 1_000 / perSecond + allowedMs + this.#context.clockSlackMs(sinceMs)) continue;
      const names = nodes.map(({ name }) => name);
      const message = `${names.join(', ')} wait for a taint; zone ${zone} added none for ${seconds(waitedMs)} at a rate of ${perSecond} per second`;
      this.#context.fail({ law: 'L12', subjects: [...names, zone], message });
    }
  }

  #lookAtNode(node: TrueNode, calmMs: number, allowedMs: number): void {
    const sinceMs = Math.max(calmMs, this.#readySinceMs.get(node) ?? node.createdAtMs);
    const lateMs = this.#context.nowMs() - sinceMs - allowedMs - this.#context.clockSlackMs(sinceMs);
    if (lateMs <= 0 || node.ready === undefined) return;
    const since = seconds(this.#context.nowMs() - sinceMs);
    const report = (what: string): void =>
      this.#context.fail({
        law: 'L12',
        subjects: [node.name],
        message: `${node.name} has been Ready=${node.ready} for ${since} and ${what}`,
      });
    const carried = [...node.noExecute].find(([key]) => isOurs(key));
    if (node.ready === 'True' && carried !== undefined) report(`still has ${carried[0]}:NoExecute`);
    const expected = node.ready === 'True' ? undefined : node.ready === 'False' ? NOT_READY : UNREACHABLE;
    for (const key of [NOT_READY, UNREACHABLE]) {
      if (node.noSchedule.has(key) !== (key === expected)) {
        report(`${key === expected ? 'has no' : 'still has'} ${key}:NoSchedule`);
      }
    }
  }
}
