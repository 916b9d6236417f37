/**
 * One pass of node-monitor: from what is stored to what is to be done. Pure; the world is not changed here.
 *
 * In named steps, each reading the last one's result:
 *   1. verdict of every node; marks, unless the gate holds
 *   2. zone states from the Ready statuses as they are after the marks
 *   3. total disruption, entered or left; leaving it gives every node a fresh grace, so the marks of this pass fall away
 *   4. NoExecute taints and queue, node by node: lift, swap, enqueue, dequeue
 *   5. rates of the zones
 *
 * Every decision carries its reason and the numbers it rests on, so that a ledger can replay it. The order of the list is
 * the order to apply it in: what heals first, what can wait last; a pass that dies on the way is healed by the next one.
 * A quiet world yields no decision, and so does the world after all decisions were applied (L10). Nothing depends on the
 * order in which nodes, zones or queue were read, nor on how many passes ran.
 *
 * Whether the evictor may act is not decided here (evictor.ts): enqueueing goes on while the gate holds.
 *
 * Source: monitorNodeHealth, handleDisruption and processTaintBaseEviction in
 * pkg/controller/nodelifecycle/node_lifecycle_controller.go. What is different is told where it is.
 */

import { type EventText, nodeNotReady } from '../../domain/events/event-text.ts';
import type { ConditionStatus } from '../../domain/kubernetes.ts';
import { healthVerdict, isReturning, lastSpokeAtMs } from '../../domain/nodes/health.ts';
import type { NodeHealth } from '../../domain/nodes/node-health.ts';
import { carriedNoExecute, decideNoExecute, type NoExecuteKind } from '../../domain/nodes/node-taints.ts';
import type { Policy } from '../../domain/policy.ts';
import {
  applyDisruption,
  type DisruptionRecord,
  type DisruptionVerdict,
  disruptionVerdict,
} from '../../domain/zones/disruption.ts';
import type { QueuedNode, ZoneRecord } from '../../domain/zones/fleet-records.ts';
import { type GateRecord, type GateVerdict, gateVerdict } from '../../domain/zones/gate.ts';
import {
  type ZoneMetrics,
  type ZoneState,
  zoneMetricsOf,
  zoneRatePerSecond,
  zoneSize,
  zoneStateOf,
} from '../../domain/zones/zone-state.ts';

export interface MonitorWorld {
  /** All of them: a partial read is a fault of the reader, never a smaller world. */
  readonly nodes: readonly NodeHealth[];
  readonly zones: readonly ZoneRecord[];
  readonly queue: readonly QueuedNode[];
  readonly disruption: DisruptionRecord;
  /** As decided for this very tick (gate.ts). */
  readonly gate: GateRecord;
}

interface OfNode {
  readonly nodeName: string;
  readonly uid: string;
  readonly zone: string;
}

export type DequeueReason = 'ready' | 'returning' | 'tainted' | 'totalDisruption' | 'zoneChanged' | 'nodeGone';

export type MonitorDecision =
  /** Take these NoExecute taints of ours off, at once. */
  | ({
      readonly kind: 'lift';
      readonly reason: 'ready' | 'totalDisruption';
      readonly taints: readonly NoExecuteKind[];
    } & OfNode)
  | ({ readonly kind: 'dequeue'; readonly reason: DequeueReason; readonly addedAtMs: number } & OfNode)
  /**
   * Set Ready Unknown (conditions.ts) and the digest's ready, suspect and markedAtMs; statusAtMs stays. With `markPods`
   * the node's pods follow, and the digest's `podsToMark` then says whether that failed for some.
   */
  | ({
      readonly kind: 'markUnknown';
      readonly from: ConditionStatus | undefined;
      readonly silentSeconds: number;
      readonly graceSeconds: number;
      readonly lastSpokeAtMs: number;
      readonly freshSinceMs: number;
      readonly markPods: boolean;
      /** Told when it was Ready before. */
      readonly event: EventText | undefined;
    } & OfNode)
  /** An earlier pass could not mark all pods: again. */
  | ({ readonly kind: 'markPods'; readonly ready: ConditionStatus } & OfNode)
  /** The node is Ready again: its pods are no longer to be marked. */
  | ({ readonly kind: 'dropPodsToMark' } & OfNode)
  /** A zone seen for the first time: create its record, with a full limiter, in one write. */
  | {
      readonly kind: 'createZone';
      readonly zone: string;
      readonly state: ZoneState | undefined;
      readonly size: number;
      readonly notReady: number;
      readonly ratePerSecond: number;
    }
  /** `to` undefined: no node counts any more. */
  | {
      readonly kind: 'setZoneState';
      readonly zone: string;
      readonly from: ZoneState | undefined;
      readonly to: ZoneState | undefined;
      readonly size: number;
      readonly notReady: number;
    }
  /** To be applied by changeRateUpdates (limiter.ts). */
  | {
      readonly kind: 'setZoneRate';
      readonly zone: string;
      readonly fromPerSecond: number;
      readonly toPerSecond: number;
      readonly state: ZoneState | undefined;
      readonly size: number;
    }
  /** The zone has no node and its limiter is full: drop the record, if the limiter still is (tatMs absent or <= now). */
  | { readonly kind: 'dropZone'; readonly zone: string }
  | { readonly kind: 'enterTotalDisruption'; readonly zones: number; readonly disruption: DisruptionRecord }
  | { readonly kind: 'leaveTotalDisruption'; readonly zones: number; readonly disruption: DisruptionRecord }
  /** Change the one NoExecute taint for the other, at once; outside any rate and not counted as an eviction. */
  | ({
      readonly kind: 'swap';
      readonly from: NoExecuteKind;
      readonly to: NoExecuteKind;
      readonly ready: ConditionStatus;
    } & OfNode)
  /** Wait for the zone's limiter. */
  | ({
      readonly kind: 'enqueue';
      readonly taint: NoExecuteKind;
      readonly addedAtMs: number;
      readonly silentSeconds: number;
    } & OfNode);

export interface MonitorOutcome {
  readonly decisions: readonly MonitorDecision[];
  /** One a zone, by name; with size 0 for a zone whose last counted node has just gone. */
  readonly zoneMetrics: readonly ZoneMetrics[];
  readonly gate: GateVerdict;
  /** Nodes over one beat interval without a sign, marked ones included; a meter. */
  readonly lateNodes: number;
  /** Nodes that would have been marked, had the gate not held; a meter, and the reason of an alarm. */
  readonly withheldMarks: number;
}

/** Order of application. Healing first; a Ready node must not wait behind five thousand dead ones. */
function phaseOf(decision: MonitorDecision): number {
  switch (decision.kind) {
    case 'lift':
      return decision.reason === 'ready' ? 0 : 8;
    case 'dequeue':
      return decision.reason === 'totalDisruption' ? 7 : 1;
    case 'dropPodsToMark':
      return 1;
    case 'markUnknown':
      return 2;
    case 'enterTotalDisruption':
    case 'leaveTotalDisruption':
      return 3;
    case 'createZone':
    case 'setZoneState':
      return 4;
    case 'setZoneRate':
      return 5;
    case 'dropZone':
      return 6;
    case 'swap':
      return 9;
    case 'enqueue':
      return 10;
    case 'markPods':
      return 11;
  }
}

const compareText = (a: string, b: string): number => (a < b ? -1 : Number(a > b));

function inOrder(decisions: MonitorDecision[]): MonitorDecision[] {
  const nameOf = (decision: MonitorDecision): string => ('nodeName' in decision ? decision.nodeName : '');
  const zoneOf = (decision: MonitorDecision): string => ('zone' in decision ? decision.zone : '');
  return decisions.sort(
    (a, b) =>
      phaseOf(a) - phaseOf(b) ||
      compareText(zoneOf(a), zoneOf(b)) ||
      compareText(nameOf(a), nameOf(b)) ||
      compareText(a.kind, b.kind),
  );
}

/** A node as step 1 left it. */
interface Judged {
  readonly health: NodeHealth;
  /** Ready as it is after the marks of this pass. */
  readonly ready: ConditionStatus | undefined;
  readonly marked: boolean;
  readonly returning: boolean;
  readonly silentSeconds: number;
}

const identity = (health: NodeHealth): OfNode => ({
  nodeName: health.nodeName,
  uid: health.uid,
  zone: health.zone,
});

interface ZoneCounts {
  ready: number;
  notReady: number;
  /** Excluded ones included. */
  nodes: number;
}

function countZones(nodes: readonly Judged[]): Map<string, ZoneCounts> {
  const zones = new Map<string, ZoneCounts>();
  for (const { health, ready } of nodes) {
    let counts = zones.get(health.zone);
    if (counts === undefined) {
      counts = { ready: 0, notReady: 0, nodes: 0 };
      zones.set(health.zone, counts);
    }
    counts.nodes += 1;
    if (health.excluded) continue;
    if (ready === 'True') counts.ready += 1;
    else counts.notReady += 1;
  }
  return zones;
}

interface JudgedZone {
  readonly zone: string;
  readonly counts: ZoneCounts;
  /** Undefined: no node counts. */
  readonly state: Exclude<ZoneState, 'Initial'> | undefined;
}

const judgeZones = (nodes: readonly Judged[], policy: Policy): JudgedZone[] =>
  [...countZones(nodes)].map(([zone, counts]) => ({
    zone,
    counts,
    state: zoneSize(counts) === 0 ? undefined : zoneStateOf(counts, policy),
  }));

function statesOf(zones: readonly JudgedZone[]): ZoneState[] {
  return zones.map((zone) => zone.state).filter((state) => state !== undefined);
}

/** Step 1. `mayMark` false: verdicts only. */
function judgeNode(
  health: NodeHealth,
  at: { readonly nowMs: number; readonly policy: Policy; readonly freshSinceMs: number },
  mayMark: boolean,
): Judged & { readonly late: boolean; readonly withheld: boolean } {
  const verdict = healthVerdict(health, at);
  const due = verdict.kind === 'silent' && health.ready !== 'Unknown';
  const marked = due && mayMark;
  return {
    health,
    ready: marked ? 'Unknown' : health.ready,
    marked,
    returning: isReturning(health, verdict),
    silentSeconds: verdict.silentMs / 1_000,
    late: verdict.kind !== 'alive',
    withheld: due && !mayMark,
  };
}

function markDecision(node: Judged, freshSinceMs: number, policy: Policy): MonitorDecision {
  const { health } = node;
  const wasReady = health.ready === 'True';
  return {
    kind: 'markUnknown',
    ...identity(health),
    from: health.ready,
    silentSeconds: node.silentSeconds,
    graceSeconds:
      health.ready === undefined ? policy.nodeStartupGracePeriodSeconds : policy.nodeMonitorGracePeriodSeconds,
    lastSpokeAtMs: lastSpokeAtMs(health),
    freshSinceMs,
    markPods: wasReady || health.podsToMark === true,
    event: wasReady ? nodeNotReady(health.nodeName) : undefined,
  };
}

/** Step 4 for one node. `queued`: its own item, same uid. */
function* decideTaints(
  node: Judged,
  queued: QueuedNode | undefined,
  total: boolean,
  nowMs: number,
): Generator<MonitorDecision> {
  const { health, ready } = node;
  const of = identity(health);
  const dequeue = (reason: DequeueReason): MonitorDecision => ({
    kind: 'dequeue',
    ...of,
    zone: queued?.zone ?? of.zone,
    reason,
    addedAtMs: queued?.addedAtMs ?? nowMs,
  });
  const decision = decideNoExecute(ready, health.noExecute);
  if (decision.kind === 'lift') yield { kind: 'lift', ...of, reason: 'ready', taints: decision.taints };
  if (ready === 'True') {
    if (queued !== undefined) yield dequeue('ready');
    return;
  }
  if (total) {
    // Not only on entering, as upstream: whatever a pass that died left behind goes in the next one.
    const taints = carriedNoExecute(health.noExecute);
    if (taints.length > 0) yield { kind: 'lift', ...of, reason: 'totalDisruption', taints };
    if (queued !== undefined) yield dequeue('totalDisruption');
    return;
  }
  if (decision.kind === 'swap' && ready !== undefined) {
    yield { kind: 'swap', ...of, from: decision.from, to: decision.to, ready };
  }
  if (decision.kind === 'enqueue' && !node.returning) {
    // Upstream stamps a waiting node again on each pass; here it keeps its turn, or no world would ever be quiet.
    if (queued?.zone === health.zone) return;
    if (queued !== undefined) yield dequeue('zoneChanged');
    yield { kind: 'enqueue', ...of, taint: decision.taint, addedAtMs: nowMs, silentSeconds: node.silentSeconds };
    return;
  }
  if (queued !== undefined && ready !== undefined) yield dequeue(node.returning ? 'returning' : 'tainted');
}

/** Retries of marking pods, for a node that is not marked in this very pass. */
function* decidePods(node: Judged): Generator<MonitorDecision> {
  const { health, ready } = node;
  if (health.podsToMark !== true || node.marked) return;
  if (ready === 'True') yield { kind: 'dropPodsToMark', ...identity(health) };
  else if (ready !== undefined) yield { kind: 'markPods', ...identity(health), ready };
}

/** Step 5, and the records of zones. */
function* decideZones(
  zones: readonly JudgedZone[],
  records: ReadonlyMap<string, ZoneRecord>,
  total: boolean,
  nowMs: number,
  policy: Policy,
): Generator<MonitorDecision> {
  for (const { zone, counts, state } of zones) {
    const record = records.get(zone);
    const size = zoneSize(counts);
    const { notReady } = counts;
    const toPerSecond = total ? 0 : zoneRatePerSecond(state ?? 'Initial', size, policy);
    if (record === undefined) {
      yield { kind: 'createZone', zone, state, size, notReady, ratePerSecond: toPerSecond };
      continue;
    }
    if (record.state !== state) yield { kind: 'setZoneState', zone, from: record.state, to: state, size, notReady };
    const fromPerSecond = record.limiter.ratePerSecond;
    if (fromPerSecond !== toPerSecond) yield { kind: 'setZoneRate', zone, fromPerSecond, toPerSecond, state, size };
  }
  const present = new Set(zones.map(({ zone }) => zone));
  for (const record of records.values()) {
    if (present.has(record.zone)) continue;
    if ((record.limiter.tatMs ?? nowMs) <= nowMs) yield { kind: 'dropZone', zone: record.zone };
    else if (record.state !== undefined) {
      // No longer a zone, but a zone of this name that came back now must not find a full bucket (L3).
      yield { kind: 'setZoneState', zone: record.zone, from: record.state, to: undefined, size: 0, notReady: 0 };
    }
  }
}

export function decideMonitor(
  world: MonitorWorld,
  at: { readonly nowMs: number; readonly policy: Policy },
): MonitorOutcome {
  const { nowMs, policy } = at;
  const gate = gateVerdict(world.gate);
  let freshSinceMs = Math.max(world.gate.freshSinceMs, world.disruption.freshSinceMs);
  const decisions: MonitorDecision[] = [];

  const judge = () =>
    world.nodes.map((health) => judgeNode(health, { nowMs, policy, freshSinceMs }, gate.kind === 'open'));
  let nodes = judge();
  let zones = judgeZones(nodes, policy);
  let verdict: DisruptionVerdict = disruptionVerdict(world.disruption.total, statesOf(zones));
  if (verdict === 'leave') {
    // The fresh grace begins now, so nobody is marked in this pass. Fewer marks leave no more zones dark: it stays a leave.
    freshSinceMs = nowMs;
    nodes = judge();
    zones = judgeZones(nodes, policy);
    verdict = disruptionVerdict(world.disruption.total, statesOf(zones));
  }
  const disruption = applyDisruption(world.disruption, verdict, nowMs);
  if (verdict === 'enter') {
    decisions.push({ kind: 'enterTotalDisruption', zones: statesOf(zones).length, disruption });
  } else if (verdict === 'leave') {
    decisions.push({ kind: 'leaveTotalDisruption', zones: statesOf(zones).length, disruption });
  }

  const queueByName = new Map<string, QueuedNode>();
  const uidByName = new Map<string, string>();
  if (world.queue.length > 0) for (const health of world.nodes) uidByName.set(health.nodeName, health.uid);
  for (const item of world.queue) {
    const { nodeName, uid, zone, addedAtMs } = item;
    if (uidByName.get(nodeName) === uid) queueByName.set(nodeName, item);
    else decisions.push({ kind: 'dequeue', nodeName, uid, zone, addedAtMs, reason: 'nodeGone' });
  }
  for (const node of nodes) {
    if (node.marked) decisions.push(markDecision(node, freshSinceMs, policy));
    if (node.health.podsToMark === true) decisions.push(...decidePods(node));
    const queued = queueByName.get(node.health.nodeName);
    if (
      node.ready !== 'True' ||
      queued !== undefined ||
      node.health.noExecute.notReady ||
      node.health.noExecute.unreachable
    ) {
      decisions.push(...decideTaints(node, queued, disruption.total, nowMs));
    }
  }

  const records = new Map(world.zones.map((record) => [record.zone, record]));
  decisions.push(...decideZones(zones, records, disruption.total, nowMs, policy));

  const zoneMetrics = zones.map(({ zone, counts }) => zoneMetricsOf(zone, counts));
  const present = new Set(zones.map(({ zone }) => zone));
  for (const record of world.zones) {
    if (record.state !== undefined && !present.has(record.zone)) {
      zoneMetrics.push(zoneMetricsOf(record.zone, { ready: 0, notReady: 0 }));
    }
  }
  return {
    decisions: inOrder(decisions),
    zoneMetrics: zoneMetrics.sort((a, b) => compareText(a.zone, b.zone)),
    gate,
    lateNodes: nodes.reduce((sum, node) => sum + Number(node.late), 0),
    withheldMarks: gate.kind === 'open' ? 0 : nodes.reduce((sum, node) => sum + Number(node.withheld), 0),
  };
}
