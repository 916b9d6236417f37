/**
 * One tick of evictor: NoExecute taints as far as each zone's limiter lets them, and pods whose time has come.
 *
 *   read the control records, and which timers are due ── nobody waits, nothing due: done
 *   claim the slot; loser exits
 *   a turn of each zone's queue, and the due pods
 *
 * Nothing acts without a claim; a slot in which there is nothing to do need not be anybody's. What was read before the claim
 * may have been done by another tick since: every effect carries its own condition, as when two ticks overlap.
 *
 * A taint is one transaction: the Node with its taint, its digest, the queue entry that leaves, the limiter's token, and a
 * check that neither gate nor total disruption stands against it. So it happens whole or not at all; a token is never lost
 * to a crash, and of two evictors at once one is refused (L3). A node that has beaten since its digest was read refuses its
 * own taint.
 */
import { readyStatusOf } from '../../domain/nodes/conditions.ts';
import type { NodeHealth } from '../../domain/nodes/node-health.ts';
import { addNoExecute, wantedNoExecute } from '../../domain/nodes/node-taints.ts';
import { slotVerdict } from '../../domain/tick.ts';
import type { QueuedNode } from '../../domain/zones/fleet-records.ts';
import { type GateVerdict, gateVerdictFor } from '../../domain/zones/gate.ts';
import type { Limiter } from '../../domain/zones/limiter.ts';
import type { KubeNode } from '../../kube/types.ts';
import type { Condition, TransactWrite, UpdateWrite } from '../../ports/item-store.ts';
import { type FleetRecords, leaveQueueWrite, mayTaint, takeTokenWrite } from '../../store/fleet-store.ts';
import { readHealth, unchangedSince } from '../../store/health-store.ts';
import { holdKey, holdNote, taintNote } from '../decisions/decision-notes.ts';
import { groupedBy, type WorkBudget, workThrough, workUntil } from '../framework/bounded-work.ts';
import { changeNode, withTaints } from '../framework/change-node.ts';
import type { ControllerDependencies } from '../framework/dependencies.ts';
import type { TickMark } from '../framework/ledger.ts';
import * as metric from '../framework/metric-names.ts';
import { reportUnwritable } from '../framework/report-unwritable.ts';
import { tellTickAge } from '../framework/tick-age.ts';
import { type Tick, TickFault } from '../node-monitor/reconcile.ts';
import { swapTaints } from '../node-reconciler/lift-taints.ts';
import { evictPods } from '../pod-evictor/reconcile.ts';
import { compareTurns } from './queue-order.rule.ts';
import { decideEvictions, type EvictionDecision, type EvictionHold, evictionHold } from './rule.ts';

const EVICTOR = 'evictor';
/** Waiting nodes of one zone looked at in one tick: those that leave untainted, and the one that is tainted. */
const ITEMS_A_ZONE_MAX = 25;
const ZONES_AT_ONCE_MAX = 8;
const NODES_AT_ONCE_MAX = 8;
/** Kept free at the end of a period. Milliseconds. */
const PERIOD_RESERVE_MS = 500;

export type EvictorReport =
  | { readonly kind: 'stale' }
  | { readonly kind: 'lost' }
  | {
      readonly kind: 'ran';
      /** Nodes given a NoExecute taint. */
      readonly tainted: number;
      /** Why zones with waiting nodes had none tainted. */
      readonly holds: ReadonlyMap<string, EvictionHold>;
      /** When a limiter next has a token for somebody who waits; a rate above one a period comes due between ticks. */
      readonly nextTokenAtMs: number | undefined;
    };

/** Turns between two ticks at most: a bound on reads, reached only by rates above 20 a second. */
const TURNS_A_SLOT_MAX = 100;

export async function runEvictor(dependencies: ControllerDependencies, tick: Tick): Promise<EvictorReport> {
  const { clock, policy, fleet, timers, meter } = dependencies;
  const nowMs = clock.nowMs();
  const periodSeconds = policy.nodeMonitorPeriodSeconds;
  if (slotVerdict({ slot: tick.slot, nowMs, periodSeconds }) === 'stale') return { kind: 'stale' };
  const records = await fleet.read();
  const gate = gateVerdictFor(records.state.gate, { nowMs, policy });
  // What is due stays due while the gate holds (D9): nothing is read for it.
  const due = gate.kind === 'holding' ? [] : await timers.readDue(nowMs);
  const tellAge = (): void => tellTickAge(meter, { slot: tick.slot, periodSeconds, nowMs });
  if (!isAnythingToDo(records, due)) {
    tellAge();
    return { kind: 'ran', tainted: 0, holds: new Map(), nextTokenAtMs: undefined };
  }
  if ((await fleet.claimBare(EVICTOR, tick.slot, nowMs)) === 'lost') return { kind: 'lost' };
  const timeMs = Math.min(tick.budgetMs ?? Infinity, periodSeconds * 1_000 - PERIOD_RESERVE_MS);
  const budget = workUntil(clock, nowMs + timeMs);

  const mark = { slot: tick.slot };
  const queues = await takeTurns(dependencies, records, { nowMs, gate, budget, tick: mark });
  const evictions = await workThrough(due, { concurrencyMax: NODES_AT_ONCE_MAX, budget }, (nodeName) =>
    evictPods(dependencies, nodeName, { nowMs, state: records.state, tick: mark }),
  );
  tellAge();
  const faults = [...queues.faults, ...evictions.faults];
  if (faults.length > 0) throw new TickFault(faults, 'evictor could not finish its tick');
  const { tainted, holds, nextTokenAtMs } = queues;
  tellHolds(dependencies, holds);
  return { kind: 'ran', tainted, holds, nextTokenAtMs };
}

/** Whether somebody waits, something is due, or a hold is still noted of a zone in which nobody waits any more. */
const isAnythingToDo = ({ queue, zones }: FleetRecords, due: readonly string[]): boolean =>
  queue.length > 0 || due.length > 0 || zones.some(({ hold }) => hold !== undefined);

function tellHolds({ meter }: ControllerDependencies, holds: ReadonlyMap<string, EvictionHold>): void {
  const zones = new Map<string, number>();
  for (const { kind } of holds.values()) zones.set(kind, (zones.get(kind) ?? 0) + 1);
  for (const [reason, count] of zones) meter.add(metric.HELD_ZONES, count, 'Count', { reason });
}

interface Turns {
  readonly tainted: number;
  readonly holds: ReadonlyMap<string, EvictionHold>;
  readonly nextTokenAtMs: number | undefined;
  readonly faults: readonly unknown[];
}

interface Turning {
  readonly nowMs: number;
  readonly gate: GateVerdict;
  /** For the ledger. */
  readonly tick: TickMark;
}

/** One turn of every zone in which somebody waits. */
async function takeTurns(
  dependencies: ControllerDependencies,
  records: FleetRecords,
  at: Turning & { readonly budget: WorkBudget },
): Promise<Turns> {
  let tainted = 0;
  const holds = new Map<string, EvictionHold>();
  const tokensAtMs: number[] = [];
  const zones = [...groupedBy(records.queue, ({ zone }) => zone)];
  const faults: unknown[] = [];
  const worked = await workThrough(
    zones,
    { concurrencyMax: ZONES_AT_ONCE_MAX, budget: at.budget },
    async ([zone, waiting]) => {
      const turn = await takeTurn(dependencies, records, waiting, at);
      faults.push(...turn.faults);
      if (turn.tainted) tainted += 1;
      if (turn.hold !== undefined) holds.set(zone, turn.hold);
      if (turn.hold?.kind === 'rate') tokensAtMs.push(turn.hold.untilMs);
      const ratePerSecond = records.zones.find((record) => record.zone === zone)?.limiter.ratePerSecond ?? 0;
      if (turn.tainted && waiting.length > 1 && ratePerSecond > 0) tokensAtMs.push(at.nowMs + 1_000 / ratePerSecond);
      if (turn.hold !== undefined) await noteHold(dependencies, records, waiting, turn.hold, at);
    },
  );
  const waited = new Set(zones.map(([zone]) => zone));
  // Only told: what cannot be cleared here must not keep due pods from their eviction.
  const cleared = await workThrough(
    records.zones.filter(({ zone, hold }) => hold !== undefined && !waited.has(zone)),
    { concurrencyMax: ZONES_AT_ONCE_MAX, budget: at.budget },
    ({ zone, hold }) => dependencies.fleet.setHold(zone, hold, undefined),
  );
  return {
    tainted,
    holds,
    nextTokenAtMs: tokensAtMs.length === 0 ? undefined : Math.min(...tokensAtMs),
    faults: [...faults, ...worked.faults, ...cleared.faults],
  };
}

/** A hold goes into the ledger when it begins, not while it lasts; that a zone waits for its rate lasts from taint to taint. */
async function noteHold(
  { fleet, ledger }: ControllerDependencies,
  { zones, state }: FleetRecords,
  waiting: readonly QueuedNode[],
  hold: EvictionHold,
  { nowMs, gate, tick }: Turning,
): Promise<void> {
  const record = zones.find(({ zone }) => zone === waiting[0]?.zone);
  if (record === undefined) return;
  const { zone, limiter } = record;
  const key = holdKey(hold, limiter.ratePerSecond);
  if (key === record.hold) return;
  const inTurn = [...waiting].sort(compareTurns);
  const note = holdNote(hold, {
    nowMs,
    zone,
    limiter,
    gate,
    totalDisruption: state.disruption.total,
    waiting: inTurn,
  });
  await fleet.setHold(zone, record.hold, key, ledger.write(note, tick));
}

/**
 * The turns of one moment between two ticks. Needs no claim: a taint is one transaction with its token, and two at once are
 * settled there.
 */
export async function turnQueues(
  dependencies: ControllerDependencies,
): Promise<Extract<EvictorReport, { kind: 'ran' }>> {
  const { clock, policy, fleet } = dependencies;
  const nowMs = clock.nowMs();
  const records = await fleet.read();
  const gate = gateVerdictFor(records.state.gate, { nowMs, policy });
  const budget = workUntil(clock, nowMs + policy.nodeMonitorPeriodSeconds * 1_000);
  const { faults, ...turns } = await takeTurns(dependencies, records, { nowMs, gate, budget, tick: {} });
  if (faults.length > 0) throw new TickFault([...faults], 'evictor could not finish its turns');
  return { kind: 'ran', ...turns };
}

/**
 * A tick, and after it the turns that come due before the next one: the limiter's bucket holds one token, so a rate above
 * one a period needs more than one look a period. Waits only while somebody waits for a token of this very slot.
 */
export async function runEvictorSlot(
  dependencies: ControllerDependencies,
  tick: Tick,
  pause: (milliseconds: number) => Promise<unknown>,
): Promise<EvictorReport> {
  const { clock, policy } = dependencies;
  const startedMs = clock.nowMs();
  let report = await runEvictor(dependencies, tick);
  const budgetMs = Math.min(tick.budgetMs ?? Infinity, policy.nodeMonitorPeriodSeconds * 1_000 - PERIOD_RESERVE_MS);
  for (let turn = 0; turn < TURNS_A_SLOT_MAX && report.kind === 'ran'; turn += 1) {
    const atMs = report.nextTokenAtMs;
    if (atMs === undefined || atMs >= startedMs + budgetMs) break;
    await pause(Math.max(0, Math.ceil(atMs - clock.nowMs())));
    const more = await turnQueues(dependencies);
    report = { ...more, tainted: report.tainted + more.tainted };
  }
  return report;
}

interface Turn {
  readonly tainted: boolean;
  readonly hold: EvictionHold | undefined;
  /** Of single nodes; the others had their turn. */
  readonly faults: readonly unknown[];
}

/** The turn of one zone. */
async function takeTurn(
  dependencies: ControllerDependencies,
  records: FleetRecords,
  waiting: readonly QueuedNode[],
  at: Turning,
): Promise<Turn> {
  const { nowMs, gate } = at;
  const { items, policy, fleet } = dependencies;
  const record = records.zones.find(({ zone }) => zone === waiting[0]?.zone);
  if (record === undefined) return { tainted: false, hold: { kind: 'never' }, faults: [] };
  // Nothing can come of this turn, so nothing is read for it; what should leave the queue, node-monitor takes out.
  const hold = evictionHold(record.limiter, { nowMs, gate, totalDisruption: records.state.disruption.total });
  if (hold !== undefined) return { tainted: false, hold, faults: [] };
  const freshSinceMs = Math.max(records.state.gate.freshSinceMs, records.state.disruption.freshSinceMs);
  const heads = [...waiting].sort(compareTurns).slice(0, ITEMS_A_ZONE_MAX);
  const nodes = await readHealth(
    items,
    heads.map(({ nodeName }) => nodeName),
  );
  const { disruption } = records.state;
  const faults: unknown[] = [];
  // One that cannot be tainted for what is stored of it leaves the turn to the next; each round settles one at least.
  let rest = heads;
  while (rest.length > 0) {
    const outcome = decideEvictions(
      { items: rest, nodes, limiter: record.limiter },
      { nowMs, gate, totalDisruption: disruption.total, policy, freshSinceMs },
    );
    const settled = new Set<string>();
    let result: Tainting = 'stop';
    for (const decision of outcome.decisions) {
      settled.add(decision.nodeName);
      try {
        switch (decision.kind) {
          case 'drop':
            await fleet.dequeue(decision);
            break;
          case 'swap':
            await swapTaints(dependencies, { ...decision, nowMs, tick: at.tick }, decision.to);
            await fleet.dequeue(decision);
            break;
          case 'taint':
            result = 'next';
            result = await taint(dependencies, decision, heads, {
              nowMs,
              tick: at.tick,
              seen: nodes.get(decision.nodeName)!,
              limiter: record.limiter,
              freshSinceMs,
              waiting: waiting.length,
            });
        }
      } catch (fault) {
        faults.push(fault);
      }
    }
    if (result !== 'next') return { tainted: result === 'tainted', hold: outcome.hold, faults };
    rest = rest.filter(({ nodeName }) => !settled.has(nodeName));
  }
  return { tainted: false, hold: undefined, faults };
}

/** `next`: not for a reason of this node alone. `stop`: the token or the gate stood against it, and would against any. */
type Tainting = 'tainted' | 'next' | 'stop';

async function taint(
  dependencies: ControllerDependencies,
  decision: Extract<EvictionDecision, { kind: 'taint' }>,
  heads: readonly QueuedNode[],
  at: {
    readonly nowMs: number;
    readonly tick: TickMark;
    readonly seen: NodeHealth;
    readonly limiter: Limiter;
    readonly freshSinceMs: number;
    readonly waiting: number;
  },
): Promise<Tainting> {
  const { objects, fleet, meter, log, ledger, policy } = dependencies;
  const { nowMs, seen } = at;
  const { nodeName, uid, zone } = decision;
  const item = heads.find((each) => each.nodeName === nodeName && each.uid === uid);
  if (item === undefined) return 'stop';
  const record = ledger.write(taintNote(decision, { ...at, item, policy }), at.tick);
  let stored: KubeNode | undefined;
  const outcome = await changeNode(objects, { nodeName, uid, nowMs }, (node) => {
    stored = node;
    if (wantedNoExecute(readyStatusOf(node.status?.conditions)) !== decision.taint) return undefined;
    const taints = addNoExecute(node.spec?.taints ?? [], decision.taint, nowMs);
    if (taints === undefined) return undefined;
    return {
      next: withTaints(node, taints),
      extra: [leaveQueueWrite(item), takeTokenWrite(zone, decision.token), mayTaint, record],
      health: (plain) => plain.map((write) => onlyAsSeen(write, seen)),
    };
  });
  if (outcome.kind === 'tooLarge') {
    // It leaves the head of its zone's queue. node-monitor puts it back at the end as long as it wants the taint.
    await fleet.dequeue(item);
    if (stored !== undefined) {
      await reportUnwritable(dependencies, { kind: 'Node', object: stored, what: 'add its NoExecute taint', nowMs });
    }
    return 'next';
  }
  if (outcome.kind === 'refused') return STOPPED_BY.includes(outcome.index) ? 'stop' : 'next';
  if (outcome.kind !== 'written') return 'next';
  meter.add(metric.EVICTIONS, 1, 'Count', metric.zoneDimension(zone));
  log.info('a node got its NoExecute taint', {
    nodeName,
    zone,
    taint: decision.taint,
    waitedSeconds: decision.waitedSeconds,
    ratePerSecond: decision.ratePerSecond,
  });
  return 'tainted';
}

/** Of the taint's `extra`: the token, and what stands against any taint. */
const STOPPED_BY: readonly number[] = [1, 2];

/** A silent node's digest is written only while it is silent; one that says itself that it is not ready goes on beating. */
function onlyAsSeen(write: TransactWrite, seen: NodeHealth): TransactWrite {
  const sameNode: Condition = { kind: 'compare', attribute: 'u', op: '=', value: seen.uid };
  return { ...(write as UpdateWrite), when: seen.ready === 'Unknown' ? unchangedSince(seen) : sameNode };
}
