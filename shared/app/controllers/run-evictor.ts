/**
 * One tick of evictor: NoExecute taints as far as each zone's limiter lets them, and pods whose time has come.
 *
 * A taint is one transaction: the Node with its taint, its digest, the queue entry that leaves, the limiter's token, and a
 * check that neither gate nor total disruption stands against it. So it happens whole or not at all; a token is never lost
 * to a crash, and of two evictors at once one is refused (L3). A node that has beaten since its digest was read refuses its
 * own taint.
 */
import { readyStatusOf } from '../../domain/conditions.ts';
import { compareTurns } from '../../domain/eviction-queue.ts';
import { decideEvictions, type EvictionDecision, type EvictionHold } from '../../domain/evictor.ts';
import { type GateVerdict, gateVerdictFor } from '../../domain/gate.ts';
import type { QueuedNode, ZoneRecord } from '../../domain/monitor.ts';
import type { NodeHealth } from '../../domain/node-health.ts';
import { addNoExecute, wantedNoExecute } from '../../domain/node-taints.ts';
import { slotStartMs, slotVerdict } from '../../domain/tick.ts';
import type { Condition, TransactWrite, UpdateWrite } from '../../ports/item-store.ts';
import { controlStore } from '../../store/control-store.ts';
import { readFleetHealth } from '../../store/fleet-health.ts';
import { type FleetRecords, leaveQueueWrite, mayTaint, takeTokenWrite } from '../../store/fleet-store.ts';
import { unchangedSince } from '../../store/health-store.ts';
import { groupedBy, workThrough, workUntil } from './bounded-work.ts';
import { changeNode, withTaints } from './change-node.ts';
import type { ControllerDependencies } from './dependencies.ts';
import { evictPods } from './evict-pods.ts';
import { swapTaints } from './lift-taints.ts';
import * as metric from './metric-names.ts';
import { type Tick, TickFault } from './run-node-monitor.ts';

export const EVICTOR = 'evictor';
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
    };

export async function runEvictor(dependencies: ControllerDependencies, tick: Tick): Promise<EvictorReport> {
  const { clock, policy, items, fleet, timers, meter } = dependencies;
  const nowMs = clock.nowMs();
  const periodSeconds = policy.nodeMonitorPeriodSeconds;
  if (slotVerdict({ slot: tick.slot, nowMs, periodSeconds }) === 'stale') return { kind: 'stale' };
  const claim = await controlStore(items).claimSlot(EVICTOR, tick.slot, nowMs);
  if (claim.kind === 'lost') return { kind: 'lost' };
  const [records, dueNodes] = await Promise.all([fleet.read(), timers.readDue(nowMs)]);
  const gate = gateVerdictFor(records.state.gate, { nowMs, policy });
  const timeMs = Math.min(tick.budgetMs ?? Infinity, periodSeconds * 1_000 - PERIOD_RESERVE_MS);
  const budget = workUntil(clock, nowMs + timeMs);

  let tainted = 0;
  const holds = new Map<string, EvictionHold>();
  const zones = [...groupedBy(records.queue, ({ zone }) => zone)];
  const queues = await workThrough(zones, { concurrencyMax: ZONES_AT_ONCE_MAX, budget }, async ([zone, waiting]) => {
    const turn = await takeTurn(dependencies, records, waiting, { nowMs, gate });
    if (turn.tainted) tainted += 1;
    if (turn.hold !== undefined) holds.set(zone, turn.hold);
  });
  // What is due stays due while the gate holds (D9): nothing is read for it.
  const due = gate.kind === 'holding' ? [] : dueNodes;
  const evictions = await workThrough(due, { concurrencyMax: NODES_AT_ONCE_MAX, budget }, (nodeName) =>
    evictPods(dependencies, nodeName, { nowMs, state: records.state }),
  );
  meter.add(metric.TICK_AGE, Math.max(0, nowMs - slotStartMs(tick.slot, periodSeconds)) / 1_000, 'Seconds');
  const faults = [...queues.faults, ...evictions.faults];
  if (faults.length > 0) throw new TickFault(faults, 'evictor could not finish its tick');
  return { kind: 'ran', tainted, holds };
}

interface Turn {
  readonly tainted: boolean;
  readonly hold: EvictionHold | undefined;
}

/** The turn of one zone. */
async function takeTurn(
  dependencies: ControllerDependencies,
  records: FleetRecords,
  waiting: readonly QueuedNode[],
  at: { readonly nowMs: number; readonly gate: GateVerdict },
): Promise<Turn> {
  const { nowMs, gate } = at;
  const { items, policy, fleet } = dependencies;
  const record = records.zones.find(({ zone }) => zone === waiting[0]?.zone);
  if (record === undefined) return { tainted: false, hold: { kind: 'never' } };
  const hold = holdAtOnce(record, records, at);
  if (hold !== undefined) return { tainted: false, hold };
  const heads = [...waiting].sort(compareTurns).slice(0, ITEMS_A_ZONE_MAX);
  const nodes = await readFleetHealth(
    items,
    heads.map(({ nodeName }) => nodeName),
  );
  const { disruption, gate: gateRecord } = records.state;
  const outcome = decideEvictions(
    { items: heads, nodes, limiter: record.limiter },
    {
      nowMs,
      gate,
      totalDisruption: disruption.total,
      policy,
      freshSinceMs: Math.max(gateRecord.freshSinceMs, disruption.freshSinceMs),
    },
  );
  let tainted = false;
  for (const decision of outcome.decisions) {
    switch (decision.kind) {
      case 'drop':
        await fleet.dequeue(decision);
        break;
      case 'swap':
        await swapTaints(dependencies, { ...decision, nowMs }, decision.to);
        await fleet.dequeue(decision);
        break;
      case 'taint':
        tainted = await taint(dependencies, decision, nodes.get(decision.nodeName)!, heads, nowMs);
    }
  }
  return { tainted, hold: outcome.hold };
}

/** Nothing can come of this turn, so nothing is read for it; what should leave the queue, node-monitor takes out. */
function holdAtOnce(
  { limiter }: ZoneRecord,
  { state }: FleetRecords,
  { nowMs, gate }: { readonly nowMs: number; readonly gate: GateVerdict },
): EvictionHold | undefined {
  if (gate.kind === 'holding') return { kind: 'gate', reasons: gate.reasons };
  if (state.disruption.total) return { kind: 'totalDisruption' };
  if (!(limiter.ratePerSecond > 0)) return { kind: 'never' };
  if (limiter.tatMs !== undefined && limiter.tatMs > nowMs) return { kind: 'rate', untilMs: limiter.tatMs };
  return undefined;
}

async function taint(
  { objects, meter, log }: ControllerDependencies,
  decision: Extract<EvictionDecision, { kind: 'taint' }>,
  seen: NodeHealth,
  waiting: readonly QueuedNode[],
  nowMs: number,
): Promise<boolean> {
  const { nodeName, uid, zone } = decision;
  const item = waiting.find((each) => each.nodeName === nodeName && each.uid === uid);
  const token = decision.token[0];
  if (item === undefined || token === undefined) return false;
  const outcome = await changeNode(objects, { nodeName, uid, nowMs }, (node) => {
    if (wantedNoExecute(readyStatusOf(node.status?.conditions)) !== decision.taint) return undefined;
    const taints = addNoExecute(node.spec?.taints ?? [], decision.taint, nowMs);
    if (taints === undefined) return undefined;
    return {
      next: withTaints(node, taints),
      extra: [takeTokenWrite(zone, token), leaveQueueWrite(item), mayTaint],
      health: (plain) => plain.map((write) => onlyAsSeen(write, seen)),
    };
  });
  if (outcome.kind !== 'written') return false;
  meter.add(metric.EVICTIONS, 1, 'Count', metric.zoneDimension(zone));
  log.info('a node got its NoExecute taint', {
    nodeName,
    zone,
    taint: decision.taint,
    waitedSeconds: decision.waitedSeconds,
    ratePerSecond: decision.ratePerSecond,
  });
  return true;
}

/** A silent node's digest is written only while it is silent; one that says itself that it is not ready goes on beating. */
function onlyAsSeen(write: TransactWrite, seen: NodeHealth): TransactWrite {
  const sameNode: Condition = { kind: 'compare', attribute: 'u', op: '=', value: seen.uid };
  return { ...(write as UpdateWrite), when: seen.ready === 'Unknown' ? unchangedSince(seen) : sameNode };
}
