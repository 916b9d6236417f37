/** Applies the decisions of a tick in their order, those of one kind concurrently, within its time budget. */
import type { TickMark } from '../../shared/decisions/ledger.ts';
import type { SentParts } from '../../shared/fleet/fleet-store.ts';
import { gateOf } from '../../shared/fleet/gate.ts';
import { type ZoneDecision, zoneDraft } from '../../shared/fleet/mark-decisions.ts';
import { type MarkedNode, type Marking, type MarkToDo, markNodes, reportMarks } from '../../shared/fleet/mark-nodes.ts';
import { awaitsFollowUp } from '../../shared/fleet/mark-parts.ts';
import { markPods, markPodsOfNode } from '../../shared/fleet/mark-pods.ts';
import type { MarkDecision, MonitorDecision } from '../../shared/fleet/marks.rule.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { podsMarked } from '../../shared/fleet/nodes/health-store.ts';
import { endPlannedSilence, liftTaints, swapTaints } from '../../shared/fleet/nodes/lift-taints.ts';
import { UNBOUNDED, type WorkBudget, workThrough } from '../../shared/ticks/bounded-work.ts';
import { type Decided, limitsByProfile } from './decide-tick.ts';
import type { MonitorDependencies } from './dependencies.ts';
import { distributeMarks } from './distribute-marks.ts';
import { setFlapping } from './set-flapping.ts';
import type { WatchedTick } from './silence-watch.ts';

/** Effects of one kind that run concurrently. */
export const APPLY_CONCURRENCY_MAX = 32;

/**
 * Ends the promises of nodes that have returned, where health-stream did not. Fails only itself: the next tick tries
 * again.
 */
export async function endKeptPromises(
  dependencies: MonitorDependencies,
  {
    nowMs,
    nodes,
    decided: { gate },
    budget,
  }: Pick<WatchedTick, 'nowMs' | 'nodes'> & { readonly decided: Decided; readonly budget: WorkBudget },
): Promise<readonly unknown[]> {
  const { returns, policy } = dependencies;
  const limits = limitsByProfile(policy);
  const returned = returns.returned({
    nowMs,
    nodes,
    gateOf(health) {
      const { reasons, freshSinceMs } = gateOf(gate, health.profile);
      return { isOpen: reasons.length === 0, freshSinceMs, graceMs: limits(health).graceSeconds * 1_000 };
    },
  });
  const ended = await workThrough(
    returned,
    { concurrencyMax: APPLY_CONCURRENCY_MAX, budget },
    ({ nodeName, uid, plannedUntilMs = 0 }) =>
      endPlannedSilence(dependencies, { nodeName, uid, plannedUntilMs }, nowMs),
  );
  return ended.faults;
}

interface Applying extends Marking {
  readonly tick: Required<TickMark>;
  readonly totalDisruption: boolean;
  /** Parts sent by earlier ticks. */
  readonly sentBefore: SentParts | undefined;
}

interface Applied {
  readonly marked: number;
  /** Not applied, for lack of time or because of concurrent writes: decided again at the next tick. */
  readonly left: number;
  readonly faults: readonly unknown[];
}

interface AppliedTick extends Applied {
  readonly sent: number;
  readonly awaited: number;
  /** To be stored with the end of the tick; undefined: no change. */
  readonly sentAfter: SentParts | undefined;
}

interface AppliedMarks extends AppliedTick {
  readonly markedNames: ReadonlySet<string>;
}

const NO_MARKS: AppliedMarks = {
  marked: 0,
  left: 0,
  faults: [],
  sent: 0,
  awaited: 0,
  sentAfter: undefined,
  markedNames: new Set(),
};

export async function applyDecisions(
  dependencies: MonitorDependencies,
  decisions: readonly MonitorDecision[],
  nodes: readonly NodeHealth[],
  at: Applying,
): Promise<AppliedTick> {
  const faults: unknown[] = [];
  const seen = new Map(nodes.map((health) => [health.nodeName, health]));
  let marks = NO_MARKS;
  let left = 0;
  let awaited = 0;
  // Marks that a heartbeat refused, or that node-marker writes. Decisions that follow from such a mark are dropped; the
  // tick after the mark makes them.
  const unmarked = new Set<string>();
  for (const run of runsOf(decisions)) {
    if (run[0]?.kind === 'markUnknown') {
      marks = await applyMarks(dependencies, run as MarkDecision[], seen, at);
      for (const { nodeName } of run as MarkDecision[]) if (!marks.markedNames.has(nodeName)) unmarked.add(nodeName);
      left += marks.left;
      awaited += marks.awaited;
      faults.push(...marks.faults);
      continue;
    }
    const isAwaited = (decision: MonitorDecision): boolean =>
      decision.kind === 'markPods' && awaitsFollowUp(seen.get(decision.nodeName)?.markedAtMs, at.sentBefore, at.nowMs);
    const todo = run.filter((decision) => !('nodeName' in decision && unmarked.has(decision.nodeName)));
    const due = todo.filter((decision) => !isAwaited(decision));
    awaited += todo.length - due.length;
    const outcome = await workThrough(
      due,
      {
        concurrencyMax: APPLY_CONCURRENCY_MAX,
        // Zone decisions are few, and an eviction rate must not lag behind the marks that changed it.
        budget: 'nodeName' in run[0]! ? at.budget : UNBOUNDED,
      },
      (decision) => applyDecision(dependencies, decision as Exclude<MonitorDecision, MarkDecision>, { ...at, seen }),
    );
    faults.push(...outcome.faults);
    left += outcome.left;
  }
  if (left > 0) dependencies.log.warn('tick left work for the next one', { left });
  return { marked: marks.marked, left, faults, sent: marks.sent, awaited, sentAfter: marks.sentAfter };
}

/** Marks silent nodes Unknown, then their pods not ready. Sends the nodes of a mass failure to node-marker. */
async function applyMarks(
  dependencies: MonitorDependencies,
  marks: readonly MarkDecision[],
  seen: ReadonlyMap<string, NodeHealth>,
  at: Applying,
): Promise<AppliedMarks> {
  const todo = marks.map((decision) => ({ decision, seen: seen.get(decision.nodeName)! }));
  const { here, sent, awaited, sentAfter } = await distributeMarks(dependencies, todo, at);
  return { ...(await markHere(dependencies, here, at)), sent, awaited, sentAfter };
}

/** Marks nodes in this process, and their pods. */
export async function markHere(
  dependencies: MonitorDependencies,
  todo: readonly MarkToDo[],
  at: Marking,
): Promise<Pick<AppliedMarks, 'marked' | 'markedNames' | 'left' | 'faults'>> {
  const outcome = await markNodes(dependencies, todo, at);
  reportMarks(dependencies, outcome);
  const pods = await markPodsOf(dependencies, outcome.marked, at);
  return {
    marked: outcome.marked.length,
    markedNames: new Set(outcome.marked.map(({ decision }) => decision.nodeName)),
    left: outcome.left + pods.left,
    faults: [...outcome.faults, ...pods.faults],
  };
}

/** Marks the pods of these nodes not ready. A node counts as left while one of its pods could not be marked. */
async function markPodsOf(
  dependencies: MonitorDependencies,
  marked: readonly MarkedNode[],
  { nowMs, budget }: Marking,
): Promise<{ readonly left: number; readonly faults: readonly unknown[] }> {
  const faults: unknown[] = [];
  let left = 0;
  const withPods = marked.filter(({ pods }) => pods.length > 0);
  const worked = await workThrough(withPods, { concurrencyMax: APPLY_CONCURRENCY_MAX, budget }, async (each) => {
    const done = await markPods(dependencies, each.pods, nowMs, budget);
    faults.push(...done.faults);
    if (done.left === 0) await dependencies.items.write(podsMarked(each.decision.nodeName, each.decision.uid));
    else left += 1;
  });
  return { left: left + worked.left, faults: [...faults, ...worked.faults] };
}

/** Groups consecutive decisions of one kind, which may be applied concurrently. */
function runsOf(decisions: readonly MonitorDecision[]): MonitorDecision[][] {
  const runs: MonitorDecision[][] = [];
  for (const decision of decisions) {
    const last = runs.at(-1);
    if (last?.[0]?.kind === decision.kind) last.push(decision);
    else runs.push([decision]);
  }
  return runs;
}

async function applyDecision(
  dependencies: MonitorDependencies,
  decision: Exclude<MonitorDecision, MarkDecision>,
  { nowMs, tick, zones, totalDisruption, budget, seen }: Applying & { readonly seen: ReadonlyMap<string, NodeHealth> },
): Promise<void> {
  const { fleet, items, log, ledger, policy } = dependencies;
  const zoneRecord = (zone: ZoneDecision) =>
    ledger.write(zoneDraft(zone, { nowMs, policy, totalDisruption, zone: zones.get(zone.zone) }), tick);
  switch (decision.kind) {
    case 'lift':
      await liftTaints(dependencies, { ...decision, nowMs, tick }, decision.reason);
      return;
    case 'swap':
      await swapTaints(dependencies, { ...decision, nowMs, tick }, decision.to);
      return;
    case 'dequeue':
      await fleet.dequeue(decision);
      return;
    case 'setFlapping':
      await setFlapping(dependencies, decision, { seen: seen.get(decision.nodeName)!, nowMs, tick });
      return;
    case 'endSilence':
      await endPlannedSilence(dependencies, decision, nowMs);
      return;
    case 'enqueue': {
      const { zone, nodeName, uid, addedAtMs } = decision;
      await fleet.enqueue({ zone, nodeName, uid, addedAtMs });
      return;
    }
    case 'markPods':
      await markPodsOfNode(dependencies, decision, { nowMs, budget });
      return;
    case 'dropPodsToMark':
      await items.write(podsMarked(decision.nodeName, decision.uid));
      return;
    case 'createZone':
      await fleet.createZone(decision.zone, { ...decision, nowMs }, zoneRecord(decision));
      return;
    case 'setZoneState': {
      const { zone, from, to, size, notReady } = decision;
      log.warn('zone state changed', { zone, from, to, size, notReady });
      await fleet.setZoneState(zone, from, to, zoneRecord(decision));
      return;
    }
    case 'setZoneRate': {
      const { zone, fromPerSecond, toPerSecond } = decision;
      log.info('eviction rate of a zone changed', { zone, fromPerSecond, toPerSecond });
      await fleet.setZoneRate(zone, { nowMs, fromPerSecond, toPerSecond }, zoneRecord(decision));
      return;
    }
    case 'dropZone':
      await fleet.dropZone(decision.zone, nowMs);
      return;
    case 'enterTotalDisruption':
    case 'leaveTotalDisruption':
      // Stored with the claim; only logged here.
      log.warn(
        decision.kind === 'enterTotalDisruption'
          ? 'total disruption: every zone is in full disruption, all evictions stop'
          : 'total disruption is over: every node has a new grace period',
        { zones: decision.zones },
      );
      return;
  }
}
