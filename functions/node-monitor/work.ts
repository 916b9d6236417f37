/**
 * One tick of node-monitor: read the stored state, decide (rule.ts), claim the slot, apply.
 *
 *   1. Read the control records. Exit if the slot is already claimed.
 *   2. Send probe heartbeats, scan the health table, and read what machines report about others.
 *   3. Decide the safety gate, marks, zones and the eviction queue.
 *   4. Claim the slot: one conditional write with gate, probes and total disruption. The loser exits.
 *   5. Send the message that starts the next tick (chain.ts).
 *   6. Wake the functions that have work (shared/ticks/tick.ts).
 *   7. Apply the decisions within the time budget, then record that the tick finished. More than some hundred marks are
 *      sent to node-marker (distribute-marks.ts).
 *   8. Look again at nodes with a shortened grace period that ends before the next tick (look-again.ts).
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
import { publishEvents } from '../../shared/events/cluster-event.ts';
import { recordEvents } from '../../shared/events/record-event.ts';
import { isClaimed } from '../../shared/fleet/fleet-store.ts';
import { firstProbes, type GateRecord, needsAllProbes, PROBES_PER_TICK_MAX } from '../../shared/fleet/gate.ts';
import { scanHealth } from '../../shared/fleet/nodes/health-store.ts';
import type { SilenceReport } from '../../shared/fleet/silent-machines.ts';
import { forgetReport, readReports } from '../../shared/fleet/witness-report-store.ts';
import { StoreFault } from '../../shared/store/item-store.ts';
import { workThrough } from '../../shared/ticks/bounded-work.ts';
import {
  type Claim,
  type RunningTick,
  reportTickAge,
  runTick,
  type SkippedTick,
  slotStartMs,
  type Tick,
  wake,
} from '../../shared/ticks/tick.ts';
import { applyDecisions, endKeptPromises } from './apply-decisions.ts';
import { sendNextTick } from './chain.ts';
import { type Decided, decideTick, gateTransition, isQuiet, type MonitorWorld } from './decide-tick.ts';
import type { MonitorDependencies } from './dependencies.ts';
import { type WakeUpTick, wakeFunctionsWithWork } from './due-work.ts';
import { lookAgain } from './look-again.ts';
import { profileSweepPart } from './profile-sweep.rule.ts';
import { reportRefusals } from './report-refusals.ts';
import {
  evaluatesIntervals,
  measure,
  measureCost,
  minutesToReport,
  recordSilences,
  reportGate,
  reportRareBeats,
} from './report-tick.ts';
import { sweepProfiles } from './sweep-profiles.ts';
import { clusterEvents, zoneTransitions } from './zone-events.rule.ts';

/** Attempts to claim a slot. Each one decides again on newer control records. */
const CLAIM_ATTEMPTS_MAX = 3;

/** Enough to distinguish the few ticks of one slot, in a row that costs one write unit. */
const CLAIM_ID_LENGTH = 8;

/**
 * Least time to apply decisions, as a share of the period. Without it, a fleet too large for its Lambda would never be
 * marked. Such a tick may overlap the next one.
 */
const APPLY_SHARE_MIN = 0.25;

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
      const times = wakeUpTick(dependencies, claimed, running);
      const waking = wakeFunctionsWithWork(dependencies, times);
      try {
        const report = await applyTick(dependencies, claimed, running);
        running.faults.push(...(await evaluateProfiles(dependencies, claimed, running)));
        running.faults.push(...(await reportSeldom(dependencies, claimed, times)));
        running.faults.push(...(await forgetReports(dependencies, claimed.reports, running)));
        return report;
      } finally {
        await wakeEvictor(dependencies, claimed, { woken: await waking, slot: tick.slot });
        if (claimed.decided.outcome.accused.length > 0) await lookAgain(dependencies, claimed, running);
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
  const { items, fleet, policy } = dependencies;
  dependencies.takeUnits?.();
  const records = await fleet.read();
  const { nodeMonitorPeriodSeconds: periodSeconds } = policy;
  if (isClaimed(records.state, { slot, periodSeconds })) return { kind: 'done', report: { kind: 'lost' } };
  const [answers, nodes, reports] = await Promise.all([
    sendProbes(dependencies, records.state.gate),
    // Eventually consistent reads cost half. A stale read only makes a heartbeat look older, and every effect has a
    // condition.
    scanHealth(items, { consistent: false, rowsExpected: records.state.nodes }),
    readSilenceReports(dependencies),
  ]);
  const probes = answers.map((accepted) => ({ sentAtMs: nowMs, accepted }));
  return { kind: 'work', world: { records, nodes, probes, reports } };
}

/** Without them every node has its full grace period: a read that fails must not delay the tick. */
async function readSilenceReports({ items, policy, log }: MonitorDependencies): Promise<readonly SilenceReport[]> {
  if (policy.witnessGraceSeconds === 0) return [];
  return readReports(items).catch((error: unknown) => {
    log.warn('reports of silent machines could not be read: no grace period is shortened', { error });
    return [];
  });
}

/** Old reports that one tick removes, and how many at a time. Each tick reads those that are left. */
const FORGOTTEN_MAX = 100;
const FORGOTTEN_AT_ONCE_MAX = 10;

async function forgetReports(
  { items }: MonitorDependencies,
  reports: readonly SilenceReport[],
  { nowMs, budget }: RunningTick,
): Promise<readonly unknown[]> {
  const old = reports.flatMap((report) => forgetReport(report, nowMs) ?? []).slice(0, FORGOTTEN_MAX);
  return (
    await workThrough(old, { concurrencyMax: FORGOTTEN_AT_ONCE_MAX, budget: budget() }, (write) => items.write(write))
  ).faults;
}

/** Decides, and claims the slot with what was decided; control records that changed since are decided on again. */
async function claimDecided(
  { fleet, ledger, random, policy }: MonitorDependencies,
  slot: number,
  world: MonitorWorld,
  nowMs: number,
): Promise<Claim<ClaimedWorld>> {
  // The id is that of all attempts: one without a response may be the one that succeeded.
  const claimId = random.uuid().slice(0, CLAIM_ID_LENGTH);
  let decided = decideTick(world, world.records.state, { nowMs, policy });
  for (let attempt = 1; ; attempt += 1) {
    const { fence } = decided.before;
    const claim = await fleet.claim({
      slot,
      periodSeconds: policy.nodeMonitorPeriodSeconds,
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
    decided = decideTick(world, claim.state, { nowMs, policy });
  }
}

/** After the decisions, in the time that is left. */
async function evaluateProfiles(
  dependencies: MonitorDependencies,
  { records: { profileSweep: stored }, nodes }: ClaimedWorld,
  { nowMs, budget }: RunningTick,
): Promise<readonly unknown[]> {
  const nodeNames = () => nodes.map(({ nodeName }) => nodeName);
  const part = profileSweepPart(stored, { nowMs, policy: dependencies.policy, nodeNames });
  if (part === undefined) return [];
  return sweepProfiles(dependencies, { stored, part }, { nowMs, budget: budget() }).catch((fault: unknown) => [fault]);
}

/** What only some ticks report. */
async function reportSeldom(
  dependencies: MonitorDependencies,
  claimed: ClaimedWorld,
  { nowMs, slotStartMs: startMs, slotBeforeStartMs }: WakeUpTick,
): Promise<readonly unknown[]> {
  const faults: unknown[] = [];
  if (evaluatesIntervals(nowMs, dependencies.policy.nodeMonitorPeriodSeconds)) {
    faults.push(...(await reportRareBeats(dependencies, claimed, nowMs)));
  }
  const minutes = minutesToReport(startMs, slotBeforeStartMs);
  if (minutes.length > 0) faults.push(...(await reportRefusals(dependencies, minutes, nowMs)));
  return faults;
}

const EVICTOR = 'evictor';

const wakeUpTick = (
  { policy }: MonitorDependencies,
  { records }: ClaimedWorld,
  { slot, nowMs }: RunningTick,
): WakeUpTick => ({
  nowMs,
  slotStartMs: slotStartMs(slot, policy.nodeMonitorPeriodSeconds),
  slotBeforeStartMs: records.state.slotStartMs,
  records,
});

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
  // No mark waits for them.
  const events = clusterEvents(decided.outcome.decisions, zones, decided.before.gate.lastTickAtMs);
  if (events.length > 0) {
    await recordEvents(dependencies, events, nowMs).catch((fault: unknown) => faults.push(fault));
  }
  faults.push(...(await endKeptPromises(dependencies, { nowMs, nodes, decided, budget: budget() })));
  const { marked, left, sent, awaited } = applied;
  return { kind: 'ran', decisions: decided.outcome.decisions.length, marked, left, sent, awaited };
}

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
