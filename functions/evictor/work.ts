/**
 * One tick of evictor: adds NoExecute taints at each zone's rate, and evicts pods with due timers.
 *
 *   1. Read the control records, the due timers and the due retries of object-stream. Done if there is no work.
 *   2. Claim the slot. The loser exits.
 *   3. At the same time: process each zone's queue once, evict the due pods, start the retries (start-retries.ts).
 *
 * Only a claimed slot has effects; a slot without work is not claimed. Another tick may have done the same work since
 * the records were read: every effect carries its own condition, as for overlapping ticks.
 *
 * A taint is one transaction: the Node with its taint, its digest, the removed queue entry, the limiter's token, and a
 * check of gate and total disruption. So a crash never loses a token, and of two concurrent evictors one is refused
 * (L3). A node that sent a heartbeat since its digest was read is not tainted.
 */

import type { TickMark } from '../../shared/decisions/ledger.ts';
import { evictionTimerStore } from '../../shared/fleet/eviction-timer-store.ts';
import { evictPods } from '../../shared/fleet/evictions.ts';
import type { QueuedNode } from '../../shared/fleet/fleet-records.ts';
import { acquireTokenWrite, dequeueWrite, type FleetRecords, mayTaint } from '../../shared/fleet/fleet-store.ts';
import { type GateVerdict, gateVerdictFor } from '../../shared/fleet/gate.ts';
import type { Limiter } from '../../shared/fleet/limiter.ts';
import { changeNode, withTaints } from '../../shared/fleet/nodes/change-node.ts';
import { readyStatusOf } from '../../shared/fleet/nodes/conditions.ts';
import { DIGEST, type NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { readHealth, samePromise, unchangedSince } from '../../shared/fleet/nodes/health-store.ts';
import { swapTaints } from '../../shared/fleet/nodes/lift-taints.ts';
import { zoneDimension } from '../../shared/fleet/nodes/node-digest.ts';
import { addNoExecute, wantedNoExecute } from '../../shared/fleet/nodes/node-taints.ts';
import { reportUnwritable } from '../../shared/fleet/nodes/report-unwritable.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import type { TransactWrite, UpdateWrite } from '../../shared/store/item-store.ts';
import { all, holds } from '../../shared/store/layout.ts';
import { groupedBy, inParts, type WorkBudget, workThrough, workUntil } from '../../shared/ticks/bounded-work.ts';
import type { WorkDependencies } from '../../shared/ticks/dependencies.ts';
import type { ParkedRow } from '../../shared/ticks/parked-store.ts';
import {
  attemptTick,
  bareClaim,
  PERIOD_RESERVE_MS,
  type RunningTick,
  runTick,
  type SkippedTick,
  type Tick,
  type TickSteps,
  tickFault,
} from '../../shared/ticks/tick.ts';
import { holdDraft, holdKey, taintDraft } from './decisions.ts';
import * as metric from './metrics.ts';
import { compareQueueItems, decideEvictions, type EvictionDecision, type EvictionHold, evictionHold } from './rule.ts';
import { readDueRetries, startRetries } from './start-retries.ts';

const EVICTOR = 'evictor';
/** Queue entries that are read at once: those that leave untainted, and the one that is tainted. */
const ITEMS_PER_READ_MAX = 25;
/** Reads per zone and round. More than one only if no node of a read is tainted and none waits: up to 200 nodes. */
const READS_PER_ZONE_MAX = 8;
const ZONE_CONCURRENCY_MAX = 8;
const NODE_CONCURRENCY_MAX = 8;

export type EvictorReport =
  | SkippedTick
  | {
      readonly kind: 'ran';
      /** Nodes that got a NoExecute taint. */
      readonly tainted: number;
      /** Per zone with waiting nodes: why none was tainted. */
      readonly holds: ReadonlyMap<string, EvictionHold>;
      /**
       * When a limiter next grants a token to a waiting node. At rates above one per period this lies between ticks.
       */
      readonly nextTokenAtMs: number | undefined;
      /** Timers or retries could not be read. */
      readonly isBlind?: boolean;
    };

/** Rounds between two ticks: a bound on reads, reached only at rates above 20 per second. */
const ROUNDS_PER_SLOT_MAX = 100;

interface EvictorWorld {
  readonly records: FleetRecords;
  readonly gate: GateVerdict;
  /** Nodes with pods that have due timers. */
  readonly due: readonly string[];
  readonly retries: readonly ParkedRow[];
  /** Faults of the reads of timers and retries. They do not affect the queues. */
  readonly faults: readonly unknown[];
}

/**
 * One round, for the simulation and benchmarks, which keep time themselves.
 *
 * @throws TickFault when an effect failed; the next tick decides it again
 */
export const runEvictor = (dependencies: WorkDependencies, tick: Tick): Promise<EvictorReport> =>
  runTick(dependencies, tick, evictorSteps(dependencies, tick));

function evictorSteps(
  dependencies: WorkDependencies,
  tick: Tick,
): TickSteps<EvictorWorld, EvictorWorld, EvictorReport> {
  const { policy, fleet } = dependencies;
  const timers = evictionTimerStore(dependencies.items);
  return {
    controller: EVICTOR,
    periodSeconds: policy.nodeMonitorPeriodSeconds,
    async read(nowMs) {
      const readFaults: unknown[] = [];
      // A partition that cannot be read delays its own work alone.
      const orNothing = <Row>(read: Promise<readonly Row[]>): Promise<readonly Row[]> =>
        read.catch((fault: unknown) => {
          readFaults.push(fault);
          return [];
        });
      const [records, retries] = await Promise.all([fleet.read(), orNothing(readDueRetries(dependencies, nowMs))]);
      const gate = gateVerdictFor(records.state.gate, { nowMs, policy });
      // Timers stay due while the gate is closed (D9), so none are read.
      const due = gate.kind === 'holding' ? [] : await orNothing(timers.readDue(nowMs));
      const world: EvictorWorld = { records, gate, due, retries, faults: readFaults };
      if (hasWork(world)) return { kind: 'work', world };
      return { kind: 'done', report: { kind: 'ran', tainted: 0, holds: new Map(), nextTokenAtMs: undefined } };
    },
    claim: bareClaim(dependencies, EVICTOR, { slot: tick.slot, periodSeconds: policy.nodeMonitorPeriodSeconds }),
    work: (world, running) => workOn(dependencies, world, running),
  };
}

async function workOn(
  dependencies: WorkDependencies,
  { records, gate, due, retries, faults: readFaults }: EvictorWorld,
  { slot, nowMs, budget, faults }: RunningTick,
): Promise<Extract<EvictorReport, { kind: 'ran' }>> {
  const mark = { slot };
  const within = budget();
  // Concurrently: work of one kind that is slow, or fails slowly, must not use up the time of the others.
  const retrying = startRetries(dependencies, retries, { nowMs, budget: within });
  const [queues, evictions] = await Promise.all([
    processQueues(dependencies, records, { nowMs, gate, budget: within, tick: mark }),
    workThrough(due, { concurrencyMax: NODE_CONCURRENCY_MAX, budget: within }, (nodeName) =>
      evictPods(dependencies, nodeName, { nowMs, state: records.state, tick: mark }),
    ),
  ]);
  faults.push(...readFaults, ...queues.faults, ...evictions.faults, ...(await retrying));
  const { tainted, holds, nextTokenAtMs } = queues;
  if (faults.length === 0) reportHolds(dependencies, holds);
  return { kind: 'ran', tainted, holds, nextTokenAtMs, ...(readFaults.length > 0 && { isBlind: true }) };
}

/** Whether a node waits, a timer or a retry is due, or a zone without waiting nodes still has a recorded hold. */
const hasWork = ({ records: { queue, zones }, due, retries, faults }: EvictorWorld): boolean =>
  queue.length + due.length + retries.length + faults.length > 0 || zones.some(({ hold }) => hold !== undefined);

function reportHolds({ meter }: WorkDependencies, holds: ReadonlyMap<string, EvictionHold>): void {
  const zones = new Map<string, number>();
  for (const { kind } of holds.values()) zones.set(kind, (zones.get(kind) ?? 0) + 1);
  for (const [reason, count] of zones) meter.add(metric.HELD_ZONES, count, 'Count', { reason });
}

interface QueueResults {
  readonly tainted: number;
  readonly holds: ReadonlyMap<string, EvictionHold>;
  readonly nextTokenAtMs: number | undefined;
  readonly faults: readonly unknown[];
}

interface QueueTime {
  readonly nowMs: number;
  readonly gate: GateVerdict;
  /** For decision records. */
  readonly tick: TickMark;
}

/** Processes the queue of every zone with waiting nodes once. */
async function processQueues(
  dependencies: WorkDependencies,
  records: FleetRecords,
  at: QueueTime & { readonly budget: WorkBudget },
): Promise<QueueResults> {
  let tainted = 0;
  const holds = new Map<string, EvictionHold>();
  const tokensAtMs: number[] = [];
  const zones = [...groupedBy(records.queue, ({ zone }) => zone)];
  const faults: unknown[] = [];
  const worked = await workThrough(
    zones,
    { concurrencyMax: ZONE_CONCURRENCY_MAX, budget: at.budget },
    async ([zone, waiting]) => {
      const result = await processQueue(dependencies, records, waiting, at);
      faults.push(...result.faults);
      if (result.tainted) tainted += 1;
      if (result.hold !== undefined) holds.set(zone, result.hold);
      if (result.hold?.kind === 'rate') tokensAtMs.push(result.hold.untilMs);
      const ratePerSecond = records.zones.find((record) => record.zone === zone)?.limiter.ratePerSecond ?? 0;
      if (result.tainted && waiting.length > 1 && ratePerSecond > 0) tokensAtMs.push(at.nowMs + 1_000 / ratePerSecond);
      if (result.hold !== undefined) await recordHold(dependencies, records, waiting, result.hold, at);
    },
  );
  const waited = new Set(zones.map(([zone]) => zone));
  // Faults are only reported: a hold that cannot be cleared must not block the eviction of due pods.
  const cleared = await workThrough(
    records.zones.filter(({ zone, hold }) => hold !== undefined && !waited.has(zone)),
    { concurrencyMax: ZONE_CONCURRENCY_MAX, budget: at.budget },
    ({ zone, hold }) => dependencies.fleet.setHold(zone, hold, undefined),
  );
  return {
    tainted,
    holds,
    nextTokenAtMs: tokensAtMs.length === 0 ? undefined : Math.min(...tokensAtMs),
    faults: [...faults, ...worked.faults, ...cleared.faults],
  };
}

/** Records a hold when it begins, not while it lasts. A hold by rate lasts until the next taint. */
async function recordHold(
  { fleet, ledger, policy }: WorkDependencies,
  { zones, state }: FleetRecords,
  waiting: readonly QueuedNode[],
  hold: EvictionHold,
  { nowMs, gate, tick }: QueueTime,
): Promise<void> {
  const record = zones.find(({ zone }) => zone === waiting[0]?.zone);
  if (record === undefined) return;
  const { zone, limiter } = record;
  const key = holdKey(hold, limiter.ratePerSecond);
  if (key === record.hold) return;
  const inOrder = [...waiting].sort(compareQueueItems);
  const draft = holdDraft(hold, {
    nowMs,
    zone,
    limiter,
    gate,
    totalDisruption: state.disruption.total,
    waiting: inOrder,
    policy,
  });
  await fleet.setHold(zone, record.hold, key, ledger.write(draft, tick));
}

/**
 * Processes the queues once between two ticks, for the simulation and benchmarks, which keep time themselves.
 *
 * @throws TickFault when an effect failed
 */
export async function processQueuesBetweenTicks(
  dependencies: WorkDependencies,
): Promise<Extract<EvictorReport, { kind: 'ran' }>> {
  const { faults, ...results } = await processRound(dependencies);
  if (faults.length > 0) throw tickFault(EVICTOR, faults, { hasRun: true });
  return { kind: 'ran', ...results };
}

/**
 * One round between two ticks. Needs no claim: a taint and its token are one transaction, so of two concurrent callers
 * one is refused.
 */
async function processRound(dependencies: WorkDependencies): Promise<QueueResults> {
  const { clock, policy, fleet } = dependencies;
  const nowMs = clock.nowMs();
  const records = await fleet.read();
  const gate = gateVerdictFor(records.state.gate, { nowMs, policy });
  const budget = workUntil(clock, nowMs + policy.nodeMonitorPeriodSeconds * 1_000);
  return processQueues(dependencies, records, { nowMs, gate, budget, tick: {} });
}

/**
 * A tick, and further rounds until the next one. A limiter's bucket holds one token, so a rate above one per period
 * needs more than one round per period. Pauses only when a waiting node gets a token within this slot.
 */
export async function runEvictorSlot(
  dependencies: WorkDependencies,
  tick: Tick,
  pause: (milliseconds: number) => Promise<unknown>,
): Promise<EvictorReport> {
  const { clock, policy } = dependencies;
  const startedMs = clock.nowMs();
  const { report, faults: tickFaults } = await attemptTick(dependencies, tick, evictorSteps(dependencies, tick));
  const faults = [...tickFaults];
  const budgetMs = Math.min(tick.budgetMs ?? Infinity, policy.nodeMonitorPeriodSeconds * 1_000 - PERIOD_RESERVE_MS);
  // Also after a fault: a node, a zone or a partition that fails must not slow down the other zones.
  let last = report;
  for (let round = 0; round < ROUNDS_PER_SLOT_MAX && last?.kind === 'ran'; round += 1) {
    const atMs = last.nextTokenAtMs;
    if (atMs === undefined || atMs >= startedMs + budgetMs) break;
    await pause(Math.max(0, Math.ceil(atMs - clock.nowMs())));
    const { faults: roundFaults, ...results } = await processRound(dependencies).catch(
      (fault: unknown): QueueResults => ({ ...NO_RESULTS, faults: [fault] }),
    );
    faults.push(...roundFaults);
    last = { kind: 'ran', ...results, tainted: last.tainted + results.tainted };
  }
  if (faults.length > 0 || last === undefined) {
    const hasRun = report !== undefined && !(report.kind === 'ran' && report.isBlind === true);
    throw tickFault(EVICTOR, faults, { hasRun });
  }
  return last;
}

const NO_RESULTS: QueueResults = { tainted: 0, holds: new Map(), nextTokenAtMs: undefined, faults: [] };

interface QueueResult {
  readonly tainted: boolean;
  readonly hold: EvictionHold | undefined;
  /** Faults of single nodes; the other nodes were processed. */
  readonly faults: readonly unknown[];
}

/**
 * Processes the queue of one zone: removes entries that need no taint, and taints one node at most. While no node of a
 * part can be tainted, the next part is read: nodes that have returned, or cannot be written, do not keep the others of
 * their zone from being evicted.
 */
async function processQueue(
  dependencies: WorkDependencies,
  records: FleetRecords,
  waiting: readonly QueuedNode[],
  at: QueueTime & { readonly budget: WorkBudget },
): Promise<QueueResult> {
  const { nowMs, gate } = at;
  const { items } = dependencies;
  const { disruption } = records.state;
  const record = records.zones.find(({ zone }) => zone === waiting[0]?.zone);
  if (record === undefined) return { tainted: false, hold: { kind: 'never' }, faults: [] };
  const { limiter } = record;
  // No node of this zone can be tainted now, so no digest is read. node-monitor removes entries that should leave the
  // queue.
  const hold = evictionHold(limiter, { nowMs, gate, totalDisruption: disruption.total });
  if (hold !== undefined) return { tainted: false, hold, faults: [] };
  const freshSinceMs = Math.max(records.state.gate.freshSinceMs, disruption.freshSinceMs);
  const faults: unknown[] = [];
  const inOrder = [...waiting].sort(compareQueueItems);
  for (const heads of inParts(inOrder, ITEMS_PER_READ_MAX).slice(0, READS_PER_ZONE_MAX)) {
    const names = heads.map(({ nodeName }) => nodeName);
    const nodes = await readHealth(items, names);
    const zone: QueuedZone = { heads, nodes, limiter, freshSinceMs, waiting: waiting.length };
    const { result, hold: stillHeld } = await processHeads(dependencies, zone, { ...at, disruption }, faults);
    if (result !== 'next') return { tainted: result === 'tainted', hold: stillHeld, faults };
  }
  return { tainted: false, hold: undefined, faults };
}

/** `next`: none of these nodes needs a taint, or the taint of every one that does failed. */
async function processHeads(
  dependencies: WorkDependencies,
  zone: QueuedZone,
  at: QueueTime & { readonly budget: WorkBudget; readonly disruption: { readonly total: boolean } },
  faults: unknown[],
): Promise<{ readonly result: TaintResult; readonly hold?: EvictionHold | undefined }> {
  const { nowMs, gate, disruption, budget } = at;
  const { policy } = dependencies;
  const { nodes, limiter, freshSinceMs } = zone;
  // If the stored state of a node makes its taint impossible, the next node is tried. Each round settles at least one.
  let rest = zone.heads;
  while (rest.length > 0) {
    if (!budget.hasTime()) return { result: 'stop' };
    const { decisions, hold } = decideEvictions(
      { items: rest, nodes, limiter },
      { nowMs, gate, totalDisruption: disruption.total, policy, freshSinceMs },
    );
    const settled = new Set(decisions.map(({ nodeName }) => nodeName));
    const result = await applyEvictions(dependencies, decisions, zone, at, faults);
    if (result !== 'next') return { result, hold };
    if (hold !== undefined) return { result: 'stop', hold };
    rest = rest.filter(({ nodeName }) => !settled.has(nodeName));
  }
  return { result: 'next' };
}

/** A part of a zone's queue, as it was read. */
interface QueuedZone {
  readonly heads: readonly QueuedNode[];
  readonly nodes: ReadonlyMap<string, NodeHealth>;
  readonly limiter: Limiter;
  readonly freshSinceMs: number;
  /** Number of waiting nodes. */
  readonly waiting: number;
}

/** Applies decisions in order. A fault is added to `faults` and does not stop the decisions after it. */
async function applyEvictions(
  dependencies: WorkDependencies,
  decisions: readonly EvictionDecision[],
  zone: QueuedZone,
  { nowMs, tick }: QueueTime,
  faults: unknown[],
): Promise<TaintResult> {
  const { fleet } = dependencies;
  let result: TaintResult = 'next';
  for (const decision of decisions) {
    try {
      switch (decision.kind) {
        case 'drop':
          await fleet.dequeue(decision);
          break;
        case 'swap':
          await swapTaints(dependencies, { ...decision, nowMs, tick }, decision.to);
          await fleet.dequeue(decision);
          break;
        case 'taint':
          result = await taint(dependencies, decision, zone, { nowMs, tick });
      }
    } catch (fault) {
      faults.push(fault);
    }
  }
  return result;
}

/**
 * `next`: this node cannot be tainted, but another one may be. `stop`: the limiter, the gate or total disruption
 * refused the taint, and would refuse any other.
 */
type TaintResult = 'tainted' | 'next' | 'stop';

async function taint(
  dependencies: WorkDependencies,
  decision: Extract<EvictionDecision, { kind: 'taint' }>,
  { heads, nodes, ...zoneInputs }: QueuedZone,
  { nowMs, tick }: { readonly nowMs: number; readonly tick: TickMark },
): Promise<TaintResult> {
  const { objects, fleet, meter, log, ledger, policy } = dependencies;
  const { nodeName, uid, zone } = decision;
  const item = heads.find((each) => each.nodeName === nodeName && each.uid === uid);
  if (item === undefined) return 'stop';
  const seen = nodes.get(nodeName)!;
  const record = ledger.write(taintDraft(decision, { ...zoneInputs, nowMs, seen, item, policy }), tick);
  let stored: KubeNode | undefined;
  const outcome = await changeNode(objects, { nodeName, uid, nowMs }, (node) => {
    stored = node;
    if (wantedNoExecute(readyStatusOf(node.status?.conditions)) !== decision.taint) return undefined;
    const taints = addNoExecute(node.spec?.taints ?? [], decision.taint, nowMs);
    if (taints === undefined) return undefined;
    return {
      next: withTaints(node, taints),
      extra: [dequeueWrite(item), acquireTokenWrite(zone, decision.token), mayTaint, record],
      health: (plain) => plain.map((write) => onlyAsSeen(write, seen)),
    };
  });
  if (outcome.kind === 'tooLarge') {
    // Removed from the head of its zone's queue. node-monitor enqueues it again at the end while it needs the taint.
    await fleet.dequeue(item);
    if (stored !== undefined) {
      await reportUnwritable(dependencies, { kind: 'Node', object: stored, what: 'add its NoExecute taint', nowMs });
    }
    return 'next';
  }
  if (outcome.kind === 'refused') return STOPPED_BY.includes(outcome.index) ? 'stop' : 'next';
  if (outcome.kind !== 'written') return 'next';
  meter.add(metric.EVICTIONS, 1, 'Count', zoneDimension(zone));
  log.info('NoExecute taint added', {
    nodeName,
    zone,
    taint: decision.taint,
    waitedSeconds: decision.waitedSeconds,
    ratePerSecond: decision.ratePerSecond,
  });
  return 'tainted';
}

/** Positions in the taint's `extra` with a refusal that stops the whole zone: token, gate and total disruption. */
const STOPPED_BY: readonly number[] = [1, 2];

/**
 * The digest of a silent node is written only while it is silent. A node that reports NotReady itself keeps sending
 * heartbeats. No node is tainted after a promise of silence that the decision did not see.
 */
function onlyAsSeen(write: TransactWrite, seen: NodeHealth): TransactWrite {
  const when = seen.ready === 'Unknown' ? unchangedSince(seen) : all(holds(DIGEST.uid, seen.uid), samePromise(seen));
  return { ...(write as UpdateWrite), when };
}
