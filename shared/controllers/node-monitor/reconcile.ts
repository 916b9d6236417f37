/**
 * One tick of node-monitor: read the world, decide (domain/monitor.ts), claim the slot, apply.
 *
 *   read the control records ── slot taken? exit
 *   probe, and scan the health table
 *   decide gate, marks, zones, queue
 *   claim the slot: one conditional write that carries gate, probes and total disruption; loser exits
 *   apply what was decided, within the time budget; then say that the tick finished
 *
 * The claim comes after deciding, so that a quiet tick is one write: the claim that finds nothing to do has finished the
 * tick. Whoever decided on control records that another tick has changed since is told so by the refusal and decides
 * again. A tick that dies leaves a claimed and unfinished slot behind; the next slot does its work, and the gate sees how
 * long no tick has finished.
 *
 * Twice, at once, late, half-way: every effect carries its own condition (the Node's version, the receipt time of the last
 * beat, the zone's rate, the queue entry's uid), and what is not done is decided again from the stored state. Two
 * ticks that overlap do the work of one; a tick stops taking new work before the next one begins, unless reading and
 * deciding alone took that long: then it works on for a while.
 *
 * Order of application is that of the decisions: what heals first.
 */

import { runningDollarsPerDay, tellsCost } from '../../domain/cost/running-cost.ts';
import type { ClusterEvent } from '../../domain/events/cluster-event.ts';
import { gateClosed, gateOpened } from '../../domain/events/event-text.ts';
import type { NodeHealth } from '../../domain/nodes/node-health.ts';
import { rfc3339 } from '../../domain/rfc3339.ts';
import { slotStartMs, slotVerdict } from '../../domain/tick.ts';
import { decideGate, firstProbes, type GateRecord, isPathInDoubt, PROBES_A_TICK } from '../../domain/zones/gate.ts';
import { fleetMetricsOf } from '../../domain/zones/zone-state.ts';
import type { FleetRecords, FleetState } from '../../store/fleet-store.ts';
import { podsMarked, scanHealth } from '../../store/health-store.ts';
import { LEASE_NAMESPACE } from '../../store/lease-record.ts';
import { disruptionNote, gateNote, zoneNote } from '../decisions/decision-notes.ts';
import type { DecisionDraft } from '../decisions/decision-record.ts';
import { UNBOUNDED, workThrough, workUntil } from '../framework/bounded-work.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import * as metric from '../framework/metric-names.ts';
import { publishEvents } from '../framework/publish-events.ts';
import { recordEvents } from '../framework/record-event.ts';
import { tellTickAge } from '../framework/tick-age.ts';
import { liftTaints, swapTaints } from '../node-reconciler/lift-taints.ts';
import { type MarkDecision, type Marking, markNodes } from './mark-nodes.ts';
import { isMarkable, markPods } from './mark-pods.ts';
import { decideMonitor, type MonitorDecision, type MonitorOutcome } from './rule.ts';
import { zoneTransitions } from './zone-events.rule.ts';

/** A claim decided on an older state is decided again, this often. */
const CLAIM_ATTEMPTS_MAX = 3;
/** Effects of one kind at once, on as many items. */
const APPLY_CONCURRENCY_MAX = 32;
/** Kept free at the end of a period, so that a tick is done when the next one begins. Milliseconds. */
const PERIOD_RESERVE_MS = 500;
/**
 * Time to apply, as a share of the period, when reading and deciding took nearly all of it: a fleet too large for its machine
 * is marked slowly, never not at all. Such a tick may overlap the next one.
 */
const LEAST_APPLY_SHARE = 0.25;
/** Names told in one log line. */
const NAMES_TOLD_MAX = 10;
/** That a flag is down again is told until it fills the periods that its alarm looks at, four minutes at most. */
const TURN_TOLD_MS = 300_000;

export interface Tick {
  readonly slot: number;
  /** Time the caller may run. Milliseconds; about a period is used. */
  readonly budgetMs?: number;
}

export type MonitorReport =
  /** Held up by an outage of ours; dropped unclaimed. */
  | { readonly kind: 'stale' }
  /** Another tick has this slot, or a later one. */
  | { readonly kind: 'lost' }
  | { readonly kind: 'ran'; readonly decisions: number; readonly marked: number; readonly left: number };

/** The tick could not do all it began. Everything else was done; the next tick does the rest. */
export class TickFault extends AggregateError {
  override readonly name = 'TickFault';
}

interface Decided {
  readonly outcome: MonitorOutcome;
  readonly gate: GateRecord;
  readonly before: FleetState;
  readonly disruption: FleetState['disruption'];
  /** What was decided about ourselves, for the ledger. */
  readonly notes: readonly DecisionDraft[];
}

export async function runNodeMonitor(dependencies: ControllerDependencies, tick: Tick): Promise<MonitorReport> {
  const { clock, policy, items, fleet, ledger } = dependencies;
  const nowMs = clock.nowMs();
  const periodSeconds = policy.nodeMonitorPeriodSeconds;
  if (slotVerdict({ slot: tick.slot, nowMs, periodSeconds }) === 'stale') return { kind: 'stale' };
  dependencies.takeUnits?.();
  const records = await fleet.read();
  if (records.state.slot !== undefined && records.state.slot >= tick.slot) return { kind: 'lost' };
  const [answers, nodes] = await Promise.all([
    sendProbes(dependencies, records.state.gate),
    // Late reads only make a beat look older, and every effect asks again; they cost half.
    scanHealth(items, { consistent: false, rowsExpected: records.state.nodes }),
  ]);
  const probes = answers.map((accepted) => ({ sentAtMs: nowMs, accepted }));

  const decide = (state: FleetState): Decided => {
    const gate = decideGate(state.gate, { nowMs, probes, policy });
    const outcome = decideMonitor(worldOf(records, nodes, state, gate), { nowMs, policy });
    const notes = notesOf(outcome, { before: state.gate, after: gate, probes, nowMs, policy });
    return { outcome, gate, before: state, disruption: disruptionAfter(outcome, state), notes };
  };
  let decided = decide(records.state);
  for (let attempt = 1; ; attempt += 1) {
    const claim = await fleet.claim({
      slot: tick.slot,
      seenFence: decided.before.fence,
      nowMs,
      gate: decided.gate,
      disruption: decided.disruption,
      nodes: nodes.length,
      finished: isQuiet(decided.outcome) && gateTurn(decided) === undefined,
      along: decided.notes.map((note) => ledger.write(note, { slot: tick.slot, fence: decided.before.fence + 1 })),
    });
    if (claim.kind === 'claimed') break;
    if (claim.kind === 'lost' || attempt === CLAIM_ATTEMPTS_MAX) return { kind: 'lost' };
    decided = decide(claim.state);
  }

  measureCost(dependencies, { slot: tick.slot, nodes: nodes.length });
  measure(dependencies, records, decided, nowMs);
  tellTickAge(dependencies.meter, { slot: tick.slot, periodSeconds, nowMs });
  const untold = await tellGate(dependencies, decided, nowMs);
  if (isQuiet(decided.outcome)) {
    throwFaults(untold);
    if (gateTurn(decided) !== undefined) await fleet.finish(nowMs);
    return { kind: 'ran', decisions: 0, marked: 0, left: 0 };
  }
  const zones = zoneTransitions(decided.outcome.decisions, decided.before.gate.lastTickAtMs);
  await publishEvents(dependencies, zones, nowMs);

  const periodMs = periodSeconds * 1_000;
  const untilMs = Math.max(nowMs + periodMs - PERIOD_RESERVE_MS, clock.nowMs() + LEAST_APPLY_SHARE * periodMs);
  const budget = workUntil(clock, Math.min(nowMs + (tick.budgetMs ?? Infinity), untilMs));
  const applied = await applyDecisions(dependencies, decided.outcome.decisions, nodes, {
    nowMs,
    budget,
    tick: { slot: tick.slot, fence: decided.before.fence + 1 },
    zones: new Map(decided.outcome.zoneMetrics.map((zone) => [zone.zone, zone])),
    totalDisruption: decided.disruption.total,
  });
  // Before it rejects: an effect that failed is one object's, and is decided again from the stored state. The tick has
  // watched the whole fleet, and that is all the gate asks (docs/decisions/0003). What is untold must be told first.
  if (untold.length === 0) await fleet.finish(nowMs);
  throwFaults([...untold, ...applied.faults]);
  const { marked, left } = applied;
  return { kind: 'ran', decisions: decided.outcome.decisions.length, marked, left };
}

function throwFaults(faults: readonly unknown[]): void {
  if (faults.length > 0) throw new TickFault([...faults], 'node-monitor could not finish its tick');
}

const isQuiet = (outcome: MonitorOutcome): boolean => outcome.decisions.length === 0;

const worldOf = (records: FleetRecords, nodes: readonly NodeHealth[], state: FleetState, gate: GateRecord) => ({
  nodes,
  zones: records.zones,
  queue: records.queue,
  disruption: state.disruption,
  gate,
});

/** Whether each probe got through; none without a probe to send. */
async function sendProbes({ probe, policy, log }: ControllerDependencies, gate: GateRecord): Promise<boolean[]> {
  if (probe === undefined || policy.ingestGate === 'off') return [];
  const send = (count: number) => Promise.all(Array.from({ length: count }, () => probe.beat()));
  const outcomes = await send(firstProbes(policy));
  const isDoubt = isPathInDoubt(
    gate,
    outcomes.map(({ kind }) => kind === 'accepted'),
  );
  if (isDoubt) outcomes.push(...(await send(PROBES_A_TICK - outcomes.length)));
  const failed = outcomes.find((outcome) => outcome.kind === 'failed');
  if (failed !== undefined) log.warn('a probe beat failed', { reason: failed.reason });
  return outcomes.map(({ kind }) => kind === 'accepted');
}

function disruptionAfter(outcome: MonitorOutcome, state: FleetState): FleetState['disruption'] {
  for (const decision of outcome.decisions) {
    if (decision.kind === 'enterTotalDisruption' || decision.kind === 'leaveTotalDisruption')
      return decision.disruption;
  }
  return state.disruption;
}

/** About ourselves: gate, and total disruption. */
function notesOf(
  outcome: MonitorOutcome,
  at: Pick<Parameters<typeof gateNote>[2], 'nowMs' | 'probes' | 'policy'> & {
    readonly before: GateRecord;
    readonly after: GateRecord;
  },
): DecisionDraft[] {
  const notes: DecisionDraft[] = [];
  const gate = gateNote(at.before, at.after, { ...at, withheldMarks: outcome.withheldMarks });
  if (gate !== undefined) notes.push(gate);
  for (const decision of outcome.decisions) {
    if (decision.kind === 'enterTotalDisruption' || decision.kind === 'leaveTotalDisruption') {
      notes.push(disruptionNote(decision, { ...at, zones: outcome.zoneMetrics }));
    }
  }
  return notes;
}

interface Applying extends Marking {
  readonly totalDisruption: boolean;
}

interface Applied {
  readonly marked: number;
  /** Not begun for lack of time, or met by other writes: decided again at the next tick. */
  readonly left: number;
  readonly faults: readonly unknown[];
}

async function applyDecisions(
  dependencies: ControllerDependencies,
  decisions: readonly MonitorDecision[],
  nodes: readonly NodeHealth[],
  at: Applying,
): Promise<Applied> {
  const { log } = dependencies;
  const faults: unknown[] = [];
  let marked = 0;
  let left = 0;
  // Marks refused by a beat: what was decided on them does not hold either.
  const unmarked = new Set<string>();
  for (const run of runsOf(decisions)) {
    if (run[0]?.kind === 'markUnknown') {
      const marks = run as MarkDecision[];
      const seen = new Map(nodes.map((health) => [health.nodeName, health]));
      const todo = marks.map((decision) => ({ decision, seen: seen.get(decision.nodeName)! }));
      const outcome = await markNodes(dependencies, todo, at);
      faults.push(...outcome.faults);
      marked = outcome.marked.length;
      left += outcome.left;
      for (const { nodeName } of marks) unmarked.add(nodeName);
      for (const { decision } of outcome.marked) unmarked.delete(decision.nodeName);
      dependencies.meter.add(metric.MARKED_NODES, marked, 'Count');
      if (marked > 0) {
        const silentSeconds = outcome.marked.map(({ decision }) => decision.silentSeconds);
        dependencies.meter.add(metric.DETECTION_TIME, Math.max(...silentSeconds), 'Seconds');
      }
      log.info('silent nodes marked Unknown', {
        marked,
        spared: outcome.spared,
        left: outcome.left,
        nodes: outcome.marked.slice(0, NAMES_TOLD_MAX).map(({ decision }) => ({
          nodeName: decision.nodeName,
          zone: decision.zone,
          silentSeconds: decision.silentSeconds,
          graceSeconds: decision.graceSeconds,
        })),
      });
      const withPods = outcome.marked.filter(({ pods }) => pods.length > 0);
      const pods = await workThrough(
        withPods,
        { concurrencyMax: APPLY_CONCURRENCY_MAX, budget: at.budget },
        async (each) => {
          const done = await markPods(dependencies, each.pods, at.nowMs, at.budget);
          faults.push(...done.faults);
          if (done.left === 0) await dependencies.items.write(podsMarked(each.decision.nodeName, each.decision.uid));
          else left += 1;
        },
      );
      faults.push(...pods.faults);
      left += pods.left;
      continue;
    }
    const todo = run.filter((decision) => !('nodeName' in decision && unmarked.has(decision.nodeName)));
    const outcome = await workThrough(
      todo,
      {
        concurrencyMax: APPLY_CONCURRENCY_MAX, // What concerns zones is little, and no rate may lag behind the marks it follows from.
        budget: 'nodeName' in run[0]! ? at.budget : UNBOUNDED,
      },
      (decision) => applyDecision(dependencies, decision as Exclude<MonitorDecision, MarkDecision>, at),
    );
    faults.push(...outcome.faults);
    left += outcome.left;
  }
  if (left > 0) log.warn('a tick left work for the next one', { left });
  return { marked, left, faults };
}

/** Neighbours of one kind, which may be applied side by side. */
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
  dependencies: ControllerDependencies,
  decision: Exclude<MonitorDecision, MarkDecision>,
  { nowMs, tick, zones, totalDisruption, budget }: Applying,
): Promise<void> {
  const { fleet, items, objects, log, ledger, policy } = dependencies;
  const ofZone = (zone: Parameters<typeof zoneNote>[0]) =>
    ledger.write(zoneNote(zone, { nowMs, policy, totalDisruption, zone: zones.get(zone.zone) }), tick);
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
    case 'enqueue': {
      const { zone, nodeName, uid, addedAtMs } = decision;
      await fleet.enqueue({ zone, nodeName, uid, addedAtMs });
      return;
    }
    case 'markPods': {
      const pods = (await objects.listByNode(decision.nodeName)).filter(isMarkable);
      const { left, faults } = await markPods(dependencies, pods, nowMs, budget);
      if (left === 0) await items.write(podsMarked(decision.nodeName, decision.uid));
      if (faults.length > 0) throw new AggregateError(faults, `pods of ${decision.nodeName} could not be marked`);
      return;
    }
    case 'dropPodsToMark':
      await items.write(podsMarked(decision.nodeName, decision.uid));
      return;
    case 'createZone':
      await fleet.createZone(decision.zone, decision, ofZone(decision));
      return;
    case 'setZoneState': {
      const { zone, from, to, size, notReady } = decision;
      log.warn('zone state changed', { zone, from, to, size, notReady });
      await fleet.setZoneState(zone, from, to, ofZone(decision));
      return;
    }
    case 'setZoneRate': {
      const { zone, fromPerSecond, toPerSecond } = decision;
      log.info('eviction rate of a zone changed', { zone, fromPerSecond, toPerSecond });
      await fleet.setZoneRate(zone, { nowMs, fromPerSecond, toPerSecond }, ofZone(decision));
      return;
    }
    case 'dropZone':
      await fleet.dropZone(decision.zone, nowMs);
      return;
    case 'enterTotalDisruption':
    case 'leaveTotalDisruption':
      // Stored with the claim; here it is only told.
      log.warn(
        decision.kind === 'enterTotalDisruption'
          ? 'every zone is dark: evictions are called off'
          : 'not every zone is dark any more: every node gets a fresh grace',
        { zones: decision.zones },
      );
      return;
  }
}

/** A quiet tick tells little: each name is billed by the hour in which it is told, and what is absent is none. */
function measure(
  { meter, policy }: ControllerDependencies,
  { queue }: FleetRecords,
  { outcome, gate, disruption }: Decided,
  nowMs: number,
): void {
  const queued = new Map<string, number>();
  for (const { zone } of queue) queued.set(zone, (queued.get(zone) ?? 0) + 1);
  for (const { zone, size, healthPercent, unhealthy } of outcome.zoneMetrics) {
    const dimension = metric.zoneDimension(zone);
    meter.add(metric.ZONE_SIZE, size, 'Count', dimension);
    meter.add(metric.ZONE_HEALTH, healthPercent, 'Percent', dimension);
    meter.add(metric.UNHEALTHY_NODES, unhealthy, 'Count', dimension);
    const waiting = queued.get(zone) ?? 0;
    if (waiting > 0) meter.add(metric.QUEUED_NODES, waiting, 'Count', dimension);
  }
  if (outcome.zoneMetrics.length > 0) {
    const { notReadyShareMaxPercent, disruptedZones } = fleetMetricsOf(outcome.zoneMetrics, policy);
    meter.add(metric.NOT_READY_SHARE_MAX, notReadyShareMaxPercent, 'Percent');
    meter.add(metric.DISRUPTED_ZONES, disruptedZones, 'Count');
  }
  if (queue.length > 0) {
    const oldestMs = Math.min(...queue.map(({ addedAtMs }) => addedAtMs));
    meter.add(metric.QUEUE_AGE_MAX, Math.max(0, nowMs - oldestMs) / 1_000, 'Seconds');
  }
  if (outcome.lateNodes > 0) meter.add(metric.LATE_NODES, outcome.lateNodes, 'Count');
  if (outcome.withheldMarks > 0) meter.add(metric.WITHHELD_MARKS, outcome.withheldMarks, 'Count');
  // While they are so, and a while after: alarms wake people by them, and see the line crossed back.
  const tellFlag = (name: string, isUp: boolean, sinceMs: number): void => {
    if (isUp || nowMs - sinceMs < TURN_TOLD_MS) meter.add(name, isUp ? 1 : 0, 'Count');
  };
  tellFlag(metric.GATE_HOLDING, gate.reasons.length > 0, gate.sinceMs);
  tellFlag(metric.TOTAL_DISRUPTION, disruption.total, disruption.sinceMs);
}

/** Of the units that this tick took to read, decide and claim: a quiet one is done by then. */
function measureCost(
  { meter, policy, takeUnits }: ControllerDependencies,
  { slot, nodes }: { readonly slot: number; readonly nodes: number },
): void {
  const periodSeconds = policy.nodeMonitorPeriodSeconds;
  if (takeUnits === undefined || !tellsCost(slotStartMs(slot, periodSeconds))) return;
  const { readUnits, writeUnits } = takeUnits();
  const { beatIntervalSeconds } = policy;
  const dollars = runningDollarsPerDay({
    nodes,
    beatIntervalSeconds,
    periodSeconds,
    tickReadUnits: readUnits,
    tickWriteUnits: writeUnits,
  });
  meter.add(metric.COST_DOLLARS_PER_DAY, dollars, 'None');
  meter.add(metric.TICK_UNITS, readUnits + writeUnits, 'Count');
}

/** About us and no node: told of the namespace in which nodes renew their leases. */
const LEASE_NAMESPACE_SUBJECT = { kind: 'Namespace', namespace: '', name: LEASE_NAMESPACE, uid: '' } as const;

/** Tells when the gate closes or opens, once. What cannot be told holds up nothing else: its faults are the answer. */
async function tellGate(
  dependencies: ControllerDependencies,
  { gate, before, outcome }: Decided,
  nowMs: number,
): Promise<readonly unknown[]> {
  const { log } = dependencies;
  const turn = gateTurn({ gate, before });
  if (turn === undefined) return [];
  const holding = gate.reasons.length > 0;
  if (holding) {
    log.warn('the gate holds: nothing is newly marked, tainted or deleted', {
      reasons: gate.reasons,
      lastTickAtMs: before.gate.lastTickAtMs,
      withheldMarks: outcome.withheldMarks,
    });
  } else log.warn('the gate is open', { heldFor: before.gate.reasons, freshSinceMs: gate.freshSinceMs });
  const text = holding ? gateClosed(gate.reasons) : gateOpened(rfc3339(gate.freshSinceMs));
  const faults: unknown[] = [];
  await recordEvents(dependencies, [{ ...text, about: LEASE_NAMESPACE_SUBJECT, once: gate.sinceMs }], nowMs).catch(
    (fault: unknown) => faults.push(fault),
  );
  if (turn === 'reasons') return faults;
  const { reasons, sinceMs, freshSinceMs } = gate;
  const event: ClusterEvent = holding
    ? { type: 'GateClosed', id: `GateClosed/${sinceMs}`, reasons }
    : { type: 'GateOpened', id: `GateOpened/${sinceMs}`, freshSince: rfc3339(freshSinceMs) };
  await publishEvents(dependencies, [event], nowMs);
  return faults;
}

/**
 * Whether the gate has turned, or holds for other reasons than before. A turn that no finished tick has told may be untold:
 * the tick that made it died.
 */
function gateTurn({ gate, before }: Pick<Decided, 'gate' | 'before'>): 'turned' | 'reasons' | undefined {
  const { reasons, sinceMs, lastTickAtMs } = before.gate;
  if (gate.sinceMs !== sinceMs) return gate.reasons.length > 0 || reasons.length > 0 ? 'turned' : undefined;
  if (sinceMs > 0 && (lastTickAtMs ?? 0) < sinceMs) return 'turned';
  return gate.reasons.join() === reasons.join() ? undefined : 'reasons';
}
