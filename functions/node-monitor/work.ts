/**
 * One tick of node-monitor: read the stored state, decide (rule.ts), claim the slot, apply.
 *
 *   1. Read the control records. Exit if the slot is already claimed.
 *   2. Send probe heartbeats and scan the health table.
 *   3. Decide the safety gate, marks, zones and the eviction queue.
 *   4. Claim the slot: one conditional write with gate, probes and total disruption. The loser exits.
 *   5. Send the message that starts the next tick (chain.ts).
 *   6. Wake the functions that have work (shared/ticks/wake-up.ts).
 *   7. Apply the decisions within the time budget, then record that the tick finished. More than some hundred marks are
 *      sent to node-marker (distribute-marks.ts).
 *
 * The claim follows the decision, so a quiet tick is one write: its claim also records that it finished. If another
 * tick changed the control records in between, the claim is refused and this tick decides again. A tick that dies
 * leaves a claimed, unfinished slot. The next slot does its work, and the gate sees for how long no tick has finished.
 *
 * Ticks may run twice, at once, late or be killed half-way:
 *   - Every effect carries its own condition: the Node's version, the receipt time of the last heartbeat, the zone's
 *     rate, the queue entry's uid.
 *   - Work that was not done is decided again from the stored state.
 *   - A tick starts no new work after the next one begins, unless reading and deciding alone last that long.
 *
 * Decisions are applied in their order: recovery first.
 */

import { reportsCost, runningDollarsPerDay } from '../../shared/cost/running-cost.ts';
import type { DecisionDraft } from '../../shared/decisions/decision-record.ts';
import type { TickMark } from '../../shared/decisions/ledger.ts';
import type { ClusterEvent } from '../../shared/events/cluster-event.ts';
import { beatIntervalTooLong, gateClosed, gateOpened } from '../../shared/events/event-text.ts';
import { publishEvents } from '../../shared/events/publish-events.ts';
import { recordEvents } from '../../shared/events/record-event.ts';
import {
  decideGate,
  firstProbes,
  type GateRecord,
  gateOf,
  needsAllProbes,
  PROBES_PER_TICK_MAX,
} from '../../shared/fleet/gate/gate.ts';
import type { NodeHealth } from '../../shared/fleet/health/health-row.ts';
import { podsMarked, scanHealth } from '../../shared/fleet/health/health-store.ts';
import { disruptionDraft, gateDraft, type ZoneDecision, zoneDraft } from '../../shared/fleet/marks/decisions.ts';
import { type MarkedNode, type Marking, markNodes } from '../../shared/fleet/marks/mark-nodes.ts';
import { awaitsFollowUp } from '../../shared/fleet/marks/mark-parts.ts';
import { markPods, markPodsOfNode } from '../../shared/fleet/marks/mark-pods.ts';
import * as metric from '../../shared/fleet/marks/metrics.ts';
import { reportMarks } from '../../shared/fleet/marks/report-marks.ts';
import {
  decideMonitor,
  type MarkDecision,
  type MonitorDecision,
  type MonitorOutcome,
} from '../../shared/fleet/marks/rule.ts';
import { DEFAULT_PROFILE, policyOf, profileNames } from '../../shared/fleet/nodes/node-profile.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { silenceHourWrite } from '../../shared/fleet/silences/silence-store.ts';
import { endPlannedSilence } from '../../shared/fleet/taints/end-planned-silence.ts';
import { liftTaints, swapTaints } from '../../shared/fleet/taints/lift-taints.ts';
import { withoutOldStarts } from '../../shared/fleet/zones/disruption.ts';
import type { FleetRecords, FleetState, SentParts } from '../../shared/fleet/zones/fleet-store.ts';
import { fleetMetricsOf } from '../../shared/fleet/zones/zone-state.ts';
import { LEASE_NAMESPACE } from '../../shared/kinds/leases/lease-record.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import { UNBOUNDED, type WorkBudget, workThrough } from '../../shared/ticks/bounded-work.ts';
import { zoneDimension } from '../../shared/ticks/metrics.ts';
import { slotStartMs } from '../../shared/ticks/tick.ts';
import { reportTickAge } from '../../shared/ticks/tick-age.ts';
import { type Claim, type RunningTick, runTick, type SkippedTick, type Tick } from '../../shared/ticks/tick-runner.ts';
import { wake } from '../../shared/ticks/wake-up.ts';
import { dayOf, evaluatesIntervals, rareBeats } from './beat-interval.rule.ts';
import { sendNextTick } from './chain.ts';
import type { MonitorDependencies } from './dependencies.ts';
import { distributeMarks } from './distribute-marks.ts';
import { type WakeUpTick, wakeFunctionsWithWork } from './due-work.ts';
import { reportRefusals } from './report-refusals.ts';
import type { WatchedTick } from './return-watch.ts';
import { setFlapping } from './set-flapping.ts';
import type { ObservedTick } from './silence-watch.ts';
import { sweepProfiles } from './sweep-profiles.ts';
import { zoneTransitions } from './zone-events.rule.ts';

/** Attempts to claim a slot. Each one decides again on newer control records. */
const CLAIM_ATTEMPTS_MAX = 3;
/** Enough to distinguish the few ticks of one slot, in a row that costs one write unit. */
const CLAIM_ID_LENGTH = 8;
/** Effects of one kind that run concurrently. */
const APPLY_CONCURRENCY_MAX = 32;
/**
 * Least time to apply decisions, as a share of the period. Without it, a fleet too large for its Lambda would never be
 * marked. Such a tick may overlap the next one.
 */
const APPLY_SHARE_MIN = 0.25;
/** A flag that ended is emitted as 0 for this long: its alarm evaluates up to four minutes. */
const ENDED_FLAG_EMITTED_MS = 300_000;

/**
 * Age from which a zone has metrics of its own. CloudWatch bills each zone name by the hour, and a machine may change its
 * zone label with every request: zones that last for seconds must cost nothing. Milliseconds.
 */
const MEASURED_ZONE_AGE_MS = 60_000;

export type MonitorReport =
  | SkippedTick
  | {
      readonly kind: 'ran';
      readonly decisions: number;
      readonly marked: number;
      readonly left: number;
      /** Nodes sent to node-marker. */
      readonly sent: number;
      /** Decisions that node-marker may still apply, for parts of earlier ticks. */
      readonly awaited: number;
    };

interface Decided {
  readonly outcome: MonitorOutcome;
  readonly gate: GateRecord;
  readonly before: FleetState;
  readonly disruption: FleetState['disruption'];
  /** Records of gate and total disruption, written with the claim. */
  readonly drafts: readonly DecisionDraft[];
}

/** What was read before the slot is claimed. */
interface MonitorWorld {
  readonly records: FleetRecords;
  readonly nodes: readonly NodeHealth[];
  readonly decide: (state: FleetState) => Decided;
}

interface ClaimedWorld extends MonitorWorld {
  readonly decided: Decided;
}

/** @throws TickFault when something could not be done; the next tick does it */
export const runNodeMonitor = (dependencies: MonitorDependencies, tick: Tick): Promise<MonitorReport> =>
  runTick(dependencies, tick, {
    controller: 'node-monitor',
    periodSeconds: dependencies.policy.nodeMonitorPeriodSeconds,
    read: (nowMs) => readWorld(dependencies, tick.slot, nowMs),
    claim: (world: MonitorWorld, nowMs) => claimDecided(dependencies, tick.slot, world, nowMs),
    async work(claimed: ClaimedWorld, running) {
      const broken = await sendNextTick(dependencies, tick.slot);
      if (broken !== undefined) running.faults.push(broken);
      const waking = wakeFunctionsWithWork(dependencies, wakeUpTick(dependencies, claimed, running));
      try {
        const report = await applyTick(dependencies, claimed, running);
        running.faults.push(...(await evaluateProfiles(dependencies, claimed, running)));
        running.faults.push(...(await reportRareBeats(dependencies, claimed, running.nowMs)));
        const slotBefore = claimed.records.state.slot;
        running.faults.push(
          ...(await reportRefusals(dependencies, { slot: tick.slot, slotBefore, nowMs: running.nowMs })),
        );
        return report;
      } finally {
        await wakeEvictor(dependencies, claimed, { woken: await waking, slot: tick.slot });
      }
    },
  });

async function readWorld(
  dependencies: MonitorDependencies,
  slot: number,
  nowMs: number,
): Promise<
  { readonly kind: 'work'; readonly world: MonitorWorld } | { readonly kind: 'done'; readonly report: MonitorReport }
> {
  const { policy, items, fleet } = dependencies;
  dependencies.takeUnits?.();
  const records = await fleet.read();
  if (records.state.slot !== undefined && records.state.slot >= slot) return { kind: 'done', report: { kind: 'lost' } };
  const [answers, nodes] = await Promise.all([
    sendProbes(dependencies, records.state.gate),
    // Eventually consistent reads cost half. A stale read only makes a heartbeat look older, and every effect has a
    // condition.
    scanHealth(items, { consistent: false, rowsExpected: records.state.nodes }),
  ]);
  const probes = answers.map((accepted) => ({ sentAtMs: nowMs, accepted }));
  const decide = (state: FleetState): Decided => {
    const gate = decideGate(state.gate, { nowMs, probes, policy });
    const outcome = decideMonitor(worldOf(records, nodes, state, gate), { nowMs, policy });
    const drafts = fleetDrafts(outcome, { before: state.gate, after: gate, probes, nowMs, policy });
    return { outcome, gate, before: state, disruption: disruptionAfter(outcome, state, nowMs), drafts };
  };
  return { kind: 'work', world: { records, nodes, decide } };
}

/** Decides, and claims the slot with what was decided; control records that changed since are decided on again. */
async function claimDecided(
  { fleet, ledger, random }: MonitorDependencies,
  slot: number,
  world: MonitorWorld,
  nowMs: number,
): Promise<Claim<ClaimedWorld>> {
  // The id is that of all attempts: one without a response may be the one that succeeded.
  const claimId = random.uuid().slice(0, CLAIM_ID_LENGTH);
  let decided = world.decide(world.records.state);
  for (let attempt = 1; ; attempt += 1) {
    const { fence } = decided.before;
    const claim = await fleet.claim({
      slot,
      seenFence: fence,
      nowMs,
      claimId,
      gate: decided.gate,
      disruption: decided.disruption,
      nodes: world.nodes.length,
      finished: isQuiet(decided.outcome) && gateTransition(decided) === undefined,
      along: decided.drafts.map((draft) => ledger.write(draft, { slot, fence: fence + 1 })),
    });
    if (claim.kind === 'claimed') return { kind: 'claimed', claimed: { ...world, decided } };
    if (claim.kind === 'lost') return 'lost';
    // Not lost: no tick has this slot, and the message of this one must not be deleted (chain.ts).
    if (attempt === CLAIM_ATTEMPTS_MAX) {
      throw new StoreFault('throttled', 'the claim of the slot was contended', { retryable: true });
    }
    decided = world.decide(claim.state);
  }
}

/** Last in the tick, in the time that is left. */
const evaluateProfiles = (
  dependencies: MonitorDependencies,
  { records, nodes }: ClaimedWorld,
  { nowMs, budget }: RunningTick,
): Promise<readonly unknown[]> =>
  sweepProfiles(dependencies, records.profileSweep, {
    nowMs,
    nodeNames: () => nodes.map(({ nodeName }) => nodeName),
    budget: budget(),
  }).catch((fault: unknown) => [fault]);

/** One event per node and day; the store refuses a second one. */
async function reportRareBeats(
  dependencies: MonitorDependencies,
  { nodes }: ClaimedWorld,
  nowMs: number,
): Promise<readonly unknown[]> {
  const { policy } = dependencies;
  if (!evaluatesIntervals(nowMs, policy.nodeMonitorPeriodSeconds)) return [];
  const events = rareBeats(nodes, policy).map(({ nodeName: name, uid, message }) => ({
    ...beatIntervalTooLong(message),
    about: { kind: 'Node', namespace: '', name, uid } as const,
    once: dayOf(nowMs),
  }));
  if (events.length === 0) return [];
  return recordEvents(dependencies, events, nowMs).then(
    () => [],
    (fault: unknown) => [fault],
  );
}

const EVICTOR = 'evictor';

const wakeUpTick = (
  { policy }: MonitorDependencies,
  { records }: ClaimedWorld,
  { slot, nowMs }: RunningTick,
): WakeUpTick => {
  const startOf = (each: number): number => slotStartMs(each, policy.nodeMonitorPeriodSeconds);
  const before = records.state.slot;
  return {
    nowMs,
    slotStartMs: startOf(slot),
    slotBeforeStartMs: before === undefined ? before : startOf(before),
    records,
  };
};

/** A node that this tick has queued is the first work of evictor: it need not wait for the next tick. */
async function wakeEvictor(
  dependencies: MonitorDependencies,
  { decided }: ClaimedWorld,
  { woken, slot }: { readonly woken: readonly string[]; readonly slot: number },
): Promise<void> {
  if (woken.includes(EVICTOR)) return;
  if (!decided.outcome.decisions.some(({ kind }) => kind === 'enqueue')) return;
  await wake(dependencies, [EVICTOR], slotStartMs(slot, dependencies.policy.nodeMonitorPeriodSeconds));
}

async function applyTick(
  dependencies: MonitorDependencies,
  { records, nodes, decided }: ClaimedWorld,
  { slot, nowMs, budget, faults }: RunningTick,
): Promise<MonitorReport> {
  const { fleet, meter, policy } = dependencies;
  measureCost(dependencies, { slot, nodes });
  faults.push(...(await recordSilences(dependencies, { slot, nowMs, nodes, decided })));
  measure(dependencies, records, decided, nowMs);
  reportTickAge(meter, { slot, slotBefore: records.state.slot, periodSeconds: policy.nodeMonitorPeriodSeconds, nowMs });
  const reportFaults = await reportGate(dependencies, decided, nowMs);
  faults.push(...reportFaults);
  if (isQuiet(decided.outcome)) {
    if (reportFaults.length === 0 && gateTransition(decided) !== undefined) await fleet.finish(nowMs);
    faults.push(...(await endKeptPromises(dependencies, { nowMs, nodes, decided, budget: budget() })));
    return { kind: 'ran', decisions: 0, marked: 0, left: 0, sent: 0, awaited: 0 };
  }
  const zones = zoneTransitions(decided.outcome.decisions, decided.before.gate.lastTickAtMs);
  await publishEvents(dependencies, zones, nowMs);

  const applied = await applyDecisions(dependencies, decided.outcome.decisions, nodes, {
    nowMs,
    budget: budget(APPLY_SHARE_MIN),
    tick: { slot, fence: decided.before.fence + 1 },
    zones: new Map(decided.outcome.zoneMetrics.map((zone) => [zone.zone, zone])),
    totalDisruption: decided.disruption.total,
    sentBefore: decided.before.sent,
  });
  // Recorded before the tick fails. A failed effect concerns one object and is decided again from the stored
  // state. The tick has evaluated the whole fleet, which is all the gate requires (docs/decisions/0003). A gate
  // transition that could not be reported leaves the tick unfinished: the next one reports it.
  if (reportFaults.length === 0) await fleet.finish(nowMs, applied.sentAfter);
  faults.push(...applied.faults);
  faults.push(...(await endKeptPromises(dependencies, { nowMs, nodes, decided, budget: budget() })));
  const { marked, left, sent, awaited } = applied;
  return { kind: 'ran', decisions: decided.outcome.decisions.length, marked, left, sent, awaited };
}

/** Names and times of the profiles, computed once per tick. A name that the policy no longer has means `default`. */
function limitsByProfile(policy: Policy): ObservedTick['limitsOf'] {
  const known = new Map(
    profileNames(policy).map((profile) => {
      const { beatIntervalSeconds, nodeMonitorGracePeriodSeconds } = policyOf(policy, profile);
      return [profile, { profile, beatIntervalSeconds, graceSeconds: nodeMonitorGracePeriodSeconds }];
    }),
  );
  const ofDefault = known.get(DEFAULT_PROFILE)!;
  return ({ profile = DEFAULT_PROFILE }) => known.get(profile) ?? ofDefault;
}

/**
 * Ends the promises of nodes that have returned, where health-stream did not. Fails only itself: the next tick tries again.
 */
async function endKeptPromises(
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

/**
 * Counts the silences that have ended, and writes the hours that are over: one item per hour, zone and profile. An item
 * that cannot be written is written by a later tick.
 */
async function recordSilences(
  { silences, items, policy }: MonitorDependencies,
  tick: Pick<ObservedTick, 'slot' | 'nowMs' | 'nodes'> & { readonly decided: Decided },
): Promise<readonly unknown[]> {
  const { gate, disruption } = tick.decided;
  // Seldom apart: time and silences count only while every profile's gate is open.
  const gates = profileNames(policy).map((profile) => gateOf(gate, profile));
  silences.observe({
    ...tick,
    periodSeconds: policy.nodeMonitorPeriodSeconds,
    gateOpen: gates.every(({ reasons }) => reasons.length === 0),
    freshSinceMs: Math.max(disruption.freshSinceMs, ...gates.map(({ freshSinceMs }) => freshSinceMs)),
    limitsOf: limitsByProfile(policy),
  });
  const written = await workThrough(
    silences.ended(),
    { concurrencyMax: APPLY_CONCURRENCY_MAX, budget: UNBOUNDED },
    async (hour) => {
      await items.write(silenceHourWrite(hour));
      silences.written(hour);
    },
  );
  return written.faults;
}

const isQuiet = (outcome: MonitorOutcome): boolean => outcome.decisions.length === 0;

const worldOf = (records: FleetRecords, nodes: readonly NodeHealth[], state: FleetState, gate: GateRecord) => ({
  nodes,
  zones: records.zones,
  queue: records.queue,
  disruption: state.disruption,
  gate,
});

/** Whether each probe heartbeat was accepted; empty where no probe is configured. */
async function sendProbes({ probe, policy, log }: MonitorDependencies, gate: GateRecord): Promise<boolean[]> {
  if (probe === undefined || policy.ingestGate === 'off') return [];
  const send = (count: number) => Promise.all(Array.from({ length: count }, () => probe.beat()));
  const outcomes = await send(firstProbes(policy));
  const sendsMore = needsAllProbes(
    gate,
    outcomes.map(({ kind }) => kind === 'accepted'),
  );
  if (sendsMore) outcomes.push(...(await send(PROBES_PER_TICK_MAX - outcomes.length)));
  const failed = outcomes.find((outcome) => outcome.kind === 'failed');
  if (failed !== undefined) log.warn('probe heartbeat failed', { reason: failed.reason });
  return outcomes.map(({ kind }) => kind === 'accepted');
}

function disruptionAfter(outcome: MonitorOutcome, state: FleetState, nowMs: number): FleetState['disruption'] {
  for (const decision of outcome.decisions) {
    if (decision.kind === 'enterTotalDisruption' || decision.kind === 'leaveTotalDisruption')
      return decision.disruption;
  }
  return withoutOldStarts(state.disruption, nowMs);
}

/** Records about the whole fleet: safety gate and total disruption. */
function fleetDrafts(
  outcome: MonitorOutcome,
  at: Pick<Parameters<typeof gateDraft>[2], 'nowMs' | 'probes' | 'policy'> & {
    readonly before: GateRecord;
    readonly after: GateRecord;
  },
): DecisionDraft[] {
  const drafts: DecisionDraft[] = [];
  const gate = gateDraft(at.before, at.after, { ...at, withheldMarks: outcome.withheldMarks });
  if (gate !== undefined) drafts.push(gate);
  for (const decision of outcome.decisions) {
    if (decision.kind === 'enterTotalDisruption' || decision.kind === 'leaveTotalDisruption') {
      drafts.push(disruptionDraft(decision, { ...at, zones: outcome.zoneMetrics }));
    }
  }
  return drafts;
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

async function applyDecisions(
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
  const outcome = await markNodes(dependencies, here, at);
  reportMarks(dependencies, outcome);
  const pods = await markPodsOf(dependencies, outcome.marked, at);
  return {
    marked: outcome.marked.length,
    markedNames: new Set(outcome.marked.map(({ decision }) => decision.nodeName)),
    left: outcome.left + pods.left,
    faults: [...outcome.faults, ...pods.faults],
    sent,
    awaited,
    sentAfter,
  };
}

/** Marks the pods of these nodes not ready. A node counts as left while one of its pods could not be marked. */
async function markPodsOf(
  dependencies: MonitorDependencies,
  marked: readonly MarkedNode[],
  { nowMs, budget }: Applying,
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

/** A metric is billed for each hour in which it is emitted, so a quiet tick emits few. An absent metric means none. */
function measure(
  { meter, policy }: MonitorDependencies,
  { queue, zones }: FleetRecords,
  { outcome, gate, disruption }: Decided,
  nowMs: number,
): void {
  const records = new Map(zones.map((record) => [record.zone, record]));
  const queued = new Map<string, number>();
  for (const { zone } of queue) queued.set(zone, (queued.get(zone) ?? 0) + 1);
  for (const [zone, { nodes }] of outcome.beyondQueue) queued.set(zone, (queued.get(zone) ?? 0) + nodes);
  for (const { zone, size, healthPercent, unhealthy } of outcome.zoneMetrics) {
    const record = records.get(zone);
    if (record === undefined || nowMs - (record.createdAtMs ?? 0) < MEASURED_ZONE_AGE_MS) continue;
    const dimension = zoneDimension(zone);
    meter.add(metric.ZONE_SIZE, size, 'Count', dimension);
    meter.add(metric.ZONE_HEALTH, healthPercent, 'Percent', dimension);
    meter.add(metric.UNHEALTHY_NODES, unhealthy, 'Count', dimension);
    const planned = outcome.plannedNodes.get(zone) ?? 0;
    if (planned > 0) meter.add(metric.PLANNED_SILENCE_NODES, planned, 'Count', dimension);
    const flapping = outcome.flappingNodes.get(zone) ?? 0;
    if (flapping > 0) meter.add(metric.FLAPPING_NODES, flapping, 'Count', dimension);
    const waiting = queued.get(zone) ?? 0;
    if (waiting > 0) meter.add(metric.QUEUED_NODES, waiting, 'Count', dimension);
  }
  if (outcome.zoneMetrics.length > 0) {
    const { notReadyShareMaxPercent, disruptedZones } = fleetMetricsOf(outcome.zoneMetrics, policy);
    meter.add(metric.NOT_READY_SHARE_MAX, notReadyShareMaxPercent, 'Percent');
    meter.add(metric.DISRUPTED_ZONES, disruptedZones, 'Count');
  }
  const { owed, received } = outcome.beats;
  if (owed > 0) meter.add(metric.HEARTBEATS_RECEIVED_SHARE, (100 * received) / owed, 'Percent');
  if (queue.length > 0) {
    const oldestMs = [
      ...queue.map(({ addedAtMs }) => addedAtMs),
      ...[...outcome.beyondQueue.values()].map(({ sinceMs }) => sinceMs),
    ].reduce((oldest, each) => Math.min(oldest, each));
    meter.add(metric.QUEUE_AGE_MAX, Math.max(0, nowMs - oldestMs) / 1_000, 'Seconds');
  }
  if (outcome.lateNodes > 0) meter.add(metric.LATE_NODES, outcome.lateNodes, 'Count');
  if (outcome.withheldMarks > 0) meter.add(metric.WITHHELD_MARKS, outcome.withheldMarks, 'Count');
  // While true, and for some minutes after: their alarms need the values that clear them.
  const emitFlag = (name: string, isUp: boolean, sinceMs: number): void => {
    if (isUp || nowMs - sinceMs < ENDED_FLAG_EMITTED_MS) meter.add(name, isUp ? 1 : 0, 'Count');
  };
  emitFlag(metric.GATE_HOLDING, gate.reasons.length > 0, gate.sinceMs);
  emitFlag(metric.TOTAL_DISRUPTION, disruption.total, disruption.sinceMs);
}

/** From the units that this tick consumed to read, decide and claim. A quiet tick does nothing after that. */
function measureCost(
  { meter, policy, takeUnits }: MonitorDependencies,
  { slot, nodes }: { readonly slot: number; readonly nodes: readonly NodeHealth[] },
): void {
  const periodSeconds = policy.nodeMonitorPeriodSeconds;
  if (takeUnits === undefined || !reportsCost(slotStartMs(slot, periodSeconds))) return;
  const { readUnits, writeUnits } = takeUnits();
  const dollars = runningDollarsPerDay({
    nodes: nodes.length,
    beatsPerSecond: nodes.reduce((sum, { profile }) => sum + 1 / policyOf(policy, profile).beatIntervalSeconds, 0),
    periodSeconds,
    tickReadUnits: readUnits,
    tickWriteUnits: writeUnits,
  });
  meter.add(metric.COST_DOLLARS_PER_DAY, dollars, 'None');
  meter.add(metric.TICK_UNITS, readUnits + writeUnits, 'Count');
}

/** The gate concerns no single node: its events are about the namespace of the Leases. */
const LEASE_NAMESPACE_SUBJECT = { kind: 'Namespace', namespace: '', name: LEASE_NAMESPACE, uid: '' } as const;

/** Logs and publishes a transition of the gate, once. Returns the faults: they must not block the rest of the tick. */
async function reportGate(
  dependencies: MonitorDependencies,
  { gate, before, outcome }: Decided,
  nowMs: number,
): Promise<readonly unknown[]> {
  const { log } = dependencies;
  const transition = gateTransition({ gate, before });
  if (transition === undefined) return [];
  const isClosed = gate.reasons.length > 0;
  if (isClosed) {
    log.warn('safety gate closed: no node is newly marked, tainted or evicted', {
      reasons: gate.reasons,
      lastTickAtMs: before.gate.lastTickAtMs,
      withheldMarks: outcome.withheldMarks,
    });
  } else log.warn('safety gate open', { closedFor: before.gate.reasons, freshSinceMs: gate.freshSinceMs });
  const text = isClosed ? gateClosed(gate.reasons) : gateOpened(rfc3339(gate.freshSinceMs));
  const faults: unknown[] = [];
  await recordEvents(dependencies, [{ ...text, about: LEASE_NAMESPACE_SUBJECT, once: gate.sinceMs }], nowMs).catch(
    (fault: unknown) => faults.push(fault),
  );
  if (transition === 'reasons') return faults;
  const { reasons, sinceMs, freshSinceMs } = gate;
  const event: ClusterEvent = isClosed
    ? { type: 'GateClosed', id: `GateClosed/${sinceMs}`, reasons }
    : { type: 'GateOpened', id: `GateOpened/${sinceMs}`, freshSince: rfc3339(freshSinceMs) };
  await publishEvents(dependencies, [event], nowMs);
  return faults;
}

/**
 * Whether the gate closed or opened, or is closed for other reasons than before. A transition that no finished tick has
 * reported may be unreported, because its tick died: it is reported again.
 */
function gateTransition({ gate, before }: Pick<Decided, 'gate' | 'before'>): 'state' | 'reasons' | undefined {
  const { reasons, sinceMs, lastTickAtMs } = before.gate;
  if (gate.sinceMs !== sinceMs) return gate.reasons.length > 0 || reasons.length > 0 ? 'state' : undefined;
  if (sinceMs > 0 && (lastTickAtMs ?? 0) < sinceMs) return 'state';
  return gate.reasons.join() === reasons.join() ? undefined : 'reasons';
}
