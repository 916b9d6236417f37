/**
 * One pass of node-monitor: decisions from the stored state. Pure.
 *
 * Each step uses the result of the previous one:
 *   1. Evaluate every node; mark silent nodes while the gate is open.
 *   2. Compute zone states from the Ready statuses after the marks. A node counts as not ready even when its mark
 *      cannot be written: failed writes must not raise an eviction rate (docs/deviations.md).
 *   3. Enter or leave total disruption. Leaving it starts a new grace period for every node, so this pass marks none.
 *   4. Per node: remove or swap NoExecute taints, enqueue, dequeue.
 *   5. Set the eviction rates of the zones.
 *
 * Every decision carries its reason and its numbers: its record can be replayed. Decisions are applied in the
 * order of the list: recovery first. A pass that dies half-way is completed by the next one. A stable state yields no
 * decision, and so does the state after all decisions were applied (L10). The result does not depend on the order in
 * which nodes, zones and queue were read, nor on the number of passes.
 *
 * Whether the evictor may act is decided in its own rule: nodes are enqueued while the gate is closed, too.
 *
 * Source: monitorNodeHealth, handleDisruption and processTaintBaseEviction in
 * pkg/controller/nodelifecycle/node_lifecycle_controller.go. Differences are noted where they occur.
 */
import { type EventText, nodeNotReady } from '../events/event-text.ts';
import type { ConditionStatus } from '../kubernetes/kubernetes.ts';
import {
  type AccusationVerdict,
  NO_TESTIMONIES,
  recordedTestimony,
  type Testimonies,
  type Testimony,
  verdictOn,
} from './accusation.rule.ts';
import type { QueuedNode, ZoneRecord } from './fleet-records.ts';
import { type GateRecord, type GateVerdict, gateOf, gateVerdict } from './gate.ts';
import {
  beatArrival,
  deadlineMs,
  healthVerdict,
  isReturning,
  isSilencePlanned,
  lastSignOfLifeMs,
  lastSpokeAtMs,
  type NodeHealth,
} from './nodes/health.ts';
import { policyOf } from './nodes/node-profile.ts';
import { carriedNoExecute, decideNoExecute, type NoExecuteKind } from './nodes/node-taints.ts';
import type { Policy } from './policy.ts';
import { type FlapTime, type FlapVerdict, flapHistoryOf, flapsAfterMark, flapVerdict } from './silences/flapping.ts';
import {
  applyDisruption,
  type DisruptionRecord,
  type DisruptionVerdict,
  disruptionVerdict,
  type ZoneMetrics,
  type ZoneState,
  zoneMetricsOf,
  zoneRatePerSecond,
  zoneSize,
  zoneStateOf,
} from './zone-state.ts';

export type FlapChange = Exclude<FlapVerdict, { kind: 'unchanged' }>;

export interface MonitorWorld {
  /** All nodes: a partial read is a fault of the reader. */
  readonly nodes: readonly NodeHealth[];
  readonly zones: readonly ZoneRecord[];
  readonly queue: readonly QueuedNode[];
  readonly disruption: DisruptionRecord;
  /** The gate as decided for this tick (gate.ts). */
  readonly gate: GateRecord;
  /** What others report about silent nodes, by node name. @default - no machine reports any */
  readonly testimonies?: Testimonies;
}

export interface Accusation {
  readonly testimony: Testimony;
  readonly verdict: AccusationVerdict['kind'];
  /** Whether the mark rests on it: the grace period without it is not over. */
  readonly shortens: boolean;
}

interface OfNode {
  readonly nodeName: string;
  readonly uid: string;
  readonly zone: string;
}

export type DequeueReason =
  | 'ready'
  | 'returning'
  | 'tainted'
  | 'plannedSilence'
  | 'totalDisruption'
  | 'zoneChanged'
  | 'nodeGone';

export type MonitorDecision =
  /** Remove these NoExecute taints of ours, at once. */
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
      /** Present when the node was Ready before. */
      readonly event: EventText | undefined;
      /** The marks of the node to store with this one (flapping.ts); undefined: this one does not count. */
      readonly flaps: Uint8Array | undefined;
      /** What others report about the node, and what follows; undefined: no machine reports it. */
      readonly accusation: Accusation | undefined;
    } & OfNode)
  /** An earlier pass could not mark all pods: retry. */
  | ({ readonly kind: 'markPods'; readonly ready: ConditionStatus } & OfNode)
  /** The promised end of its silence is over: remove the promise, its taint and its condition. */
  | ({ readonly kind: 'endSilence'; readonly plannedUntilMs: number } & OfNode)
  /** The node begins or ends flapping: its taint, condition and record. */
  | ({ readonly kind: 'setFlapping'; readonly verdict: FlapChange; readonly ownFaultsAtMs: readonly number[] } & OfNode)
  /** The node is Ready again, so its pods are not marked any more. */
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
  /**
   * The zone has no node and its limiter is full: drop the record, if the limiter still is (tatMs absent or <= now).
   */
  | { readonly kind: 'dropZone'; readonly zone: string }
  | { readonly kind: 'enterTotalDisruption'; readonly zones: number; readonly disruption: DisruptionRecord }
  | { readonly kind: 'leaveTotalDisruption'; readonly zones: number; readonly disruption: DisruptionRecord }
  /** Replace one NoExecute taint by the other, at once; not rate limited and not counted as an eviction. */
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
  /** One per zone, by name; with size 0 for a zone after its last counted node was removed. */
  readonly zoneMetrics: readonly ZoneMetrics[];
  readonly gate: GateVerdict;
  /** Nodes without a sign of life for over one heartbeat interval, marked ones included; a metric. */
  readonly lateNodes: number;
  /** Nodes with a shortened grace period that is not over yet. */
  readonly accused: readonly { readonly nodeName: string; readonly deadlineMs: number }[];
  /** Heartbeats that the Ready nodes owe at this moment, and those of them that arrived; a metric with an alarm. */
  readonly beats: { readonly owed: number; readonly received: number };
  /** Nodes with a promise of silence that stands, by zone; a metric. */
  readonly plannedNodes: ReadonlyMap<string, number>;
  /** Nodes that are flapping, by zone; a metric. */
  readonly flappingNodes: ReadonlyMap<string, number>;
  /** Silent nodes that the closed gate kept from being marked; a metric with an alarm. */
  readonly withheldMarks: number;
  /** Nodes that wait for a place in the queue of their zone, by zone; a metric. */
  readonly beyondQueue: ReadonlyMap<string, NodesBeyondQueue>;
}

export interface NodesBeyondQueue {
  readonly nodes: number;
  /** Since when the first of them waits. Epoch milliseconds. */
  readonly sinceMs: number;
}

/** Order of application. Recovery first: a Ready node must not wait behind 5,000 silent ones. */
function phaseOf(decision: MonitorDecision): number {
  switch (decision.kind) {
    case 'lift':
      return decision.reason === 'ready' ? 0 : 8;
    case 'dequeue':
      return decision.reason === 'totalDisruption' ? 7 : 1;
    case 'dropPodsToMark':
    case 'endSilence':
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
    // No hurry: a node that was just marked has another taint.
    case 'setFlapping':
      return 12;
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

/** A node after step 1. */
interface EvaluatedNode {
  readonly health: NodeHealth;
  /** Ready status after the marks of this pass. */
  readonly ready: ConditionStatus | undefined;
  readonly marked: boolean;
  readonly returning: boolean;
  /** A promise of silence stands: it does not count in its zone, and waits for no taint. */
  readonly planned: boolean;
  readonly silentSeconds: number;
  /**
   * When it was marked, or its grace period ended if that is later: its order for a place in the queue. Epoch
   * milliseconds.
   */
  readonly waitsSinceMs: number;
  readonly accusation: Accusation | undefined;
}

const identity = (health: NodeHealth): OfNode => ({
  nodeName: health.nodeName,
  uid: health.uid,
  zone: health.zone,
});

interface ZoneCounts {
  ready: number;
  notReady: number;
}

function countZones(nodes: readonly EvaluatedNode[]): Map<string, ZoneCounts> {
  const zones = new Map<string, ZoneCounts>();
  for (const { health, ready, planned } of nodes) {
    let counts = zones.get(health.zone);
    if (counts === undefined) {
      counts = { ready: 0, notReady: 0 };
      zones.set(health.zone, counts);
    }
    if (health.excluded || planned) continue;
    if (ready === 'True') counts.ready += 1;
    else counts.notReady += 1;
  }
  return zones;
}

function countByZone(
  nodes: readonly EvaluatedNode[],
  isCounted: (node: EvaluatedNode) => boolean,
): ReadonlyMap<string, number> {
  const zones = new Map<string, number>();
  for (const node of nodes) {
    if (isCounted(node)) zones.set(node.health.zone, (zones.get(node.health.zone) ?? 0) + 1);
  }
  return zones;
}

function countBeats(
  nodes: readonly EvaluatedNode[],
  at: Pick<EvaluationTime, 'nowMs' | 'policy'>,
): MonitorOutcome['beats'] {
  const beats = { owed: 0, received: 0 };
  for (const { health, ready } of nodes) {
    if (ready !== 'True') continue;
    const arrival = beatArrival(health, at);
    if (arrival !== 'notOwed') beats.owed += 1;
    if (arrival === 'received') beats.received += 1;
  }
  return beats;
}

interface EvaluatedZone {
  readonly zone: string;
  readonly counts: ZoneCounts;
  /** Undefined: no node counts. */
  readonly state: Exclude<ZoneState, 'Initial'> | undefined;
}

const evaluateZones = (nodes: readonly EvaluatedNode[], policy: Policy): EvaluatedZone[] =>
  [...countZones(nodes)].map(([zone, counts]) => ({
    zone,
    counts,
    state: zoneSize(counts) === 0 ? undefined : zoneStateOf(counts, policy),
  }));

function statesOf(zones: readonly EvaluatedZone[]): ZoneState[] {
  return zones.map((zone) => zone.state).filter((state) => state !== undefined);
}

interface EvaluationTime {
  readonly nowMs: number;
  readonly policy: Policy;
  /** The time of the node's profile. */
  readonly freshSinceMs: number;
  readonly testimony: Testimony | undefined;
}

/** Step 1. `mayMark` false: verdicts only. */
function evaluateNode(
  health: NodeHealth,
  at: EvaluationTime,
  mayMark: boolean,
): EvaluatedNode & {
  readonly late: boolean;
  readonly withheld: boolean;
  readonly freshSinceMs: number;
  /** End of its shortened grace period, if it is not marked before. Epoch milliseconds. */
  readonly accusedUntilMs: number | undefined;
} {
  const accusation = verdictOn(health, at.testimony, at);
  const verdict = healthVerdict(
    health,
    accusation?.kind === 'counts' ? { ...at, accusedSinceMs: accusation.sinceMs } : at,
  );
  const shortens = accusation?.kind === 'counts' && verdict.deadlineMs < deadlineMs(health, at.freshSinceMs, at.policy);
  const due = verdict.kind === 'silent' && health.ready !== 'Unknown';
  const marked = due && mayMark;
  return {
    health,
    ready: marked ? 'Unknown' : health.ready,
    marked,
    returning: isReturning(health, verdict),
    planned: isSilencePlanned(health, at.nowMs),
    silentSeconds: verdict.silentMs / 1_000,
    waitsSinceMs: Math.min(at.nowMs, Math.max(health.markedAtMs ?? at.nowMs, verdict.deadlineMs)),
    late: verdict.kind !== 'alive',
    withheld: due && !mayMark,
    freshSinceMs: at.freshSinceMs,
    accusation:
      accusation === undefined
        ? undefined
        : {
            testimony: recordedTestimony(at.testimony!, accusation),
            verdict: accusation.kind,
            shortens: shortens && at.nowMs <= deadlineMs(health, at.freshSinceMs, at.policy),
          },
    accusedUntilMs:
      shortens && mayMark && verdict.kind !== 'silent' && health.ready !== 'Unknown' ? verdict.deadlineMs : undefined,
  };
}

const accusedNodes = (nodes: readonly ReturnType<typeof evaluateNode>[]): MonitorOutcome['accused'] =>
  nodes.flatMap(({ health, accusedUntilMs }) =>
    accusedUntilMs === undefined ? [] : [{ nodeName: health.nodeName, deadlineMs: accusedUntilMs }],
  );

export type MarkDecision = Extract<MonitorDecision, { kind: 'markUnknown' }>;
type EnqueueDecision = Extract<MonitorDecision, { kind: 'enqueue' }>;

interface MarkTime extends FlapTime {
  readonly freshSinceMs: number;
  readonly totalDisruption: boolean;
}

/** The grace period that decided (deadlineMs). */
function graceSecondsOf({ ready, ...health }: NodeHealth, freshSinceMs: number, times: Policy): number {
  const { nodeStartupGracePeriodSeconds: startup, nodeMonitorGracePeriodSeconds: monitor } = times;
  if (ready !== undefined) return monitor;
  // After a sign of life, or an outage of ours, the longer one.
  return lastSignOfLifeMs(health, freshSinceMs) > health.createdAtMs ? Math.max(startup, monitor) : startup;
}

function markDecision(node: EvaluatedNode, at: MarkTime): MarkDecision {
  const { health } = node;
  const { policy, freshSinceMs } = at;
  const wasReady = health.ready === 'True';
  const graceSeconds = graceSecondsOf(health, freshSinceMs, policyOf(policy, health.profile));
  return {
    kind: 'markUnknown',
    ...identity(health),
    from: health.ready,
    silentSeconds: node.silentSeconds,
    graceSeconds: node.accusation?.shortens === true ? policy.witnessGraceSeconds : graceSeconds,
    lastSpokeAtMs: lastSpokeAtMs(health),
    freshSinceMs,
    markPods: wasReady || health.podsToMark === true,
    event: wasReady ? nodeNotReady(health.nodeName, shortenedBy(node.accusation)) : undefined,
    flaps: at.totalDisruption ? undefined : flapsAfterMark(health.flaps, at),
    accusation: node.accusation,
  };
}

/** The witnesses of a mark that rests on them. */
const shortenedBy = (accusation: Accusation | undefined): readonly string[] =>
  accusation?.shortens === true ? accusation.testimony.witnesses.map(({ nodeName }) => nodeName) : [];

/** The mark of one node, for a process that repeats the decision of a tick; undefined: the node is not silent. */
export function decideMark(
  health: NodeHealth,
  at: { readonly nowMs: number; readonly policy: Policy } & Pick<MonitorWorld, 'gate' | 'disruption' | 'testimonies'>,
): MarkDecision | undefined {
  const { gate, disruption, testimonies = NO_TESTIMONIES } = at;
  const freshSinceMs = Math.max(gateOf(gate, health.profile).freshSinceMs, disruption.freshSinceMs);
  const node = evaluateNode(health, { ...at, freshSinceMs, testimony: testimonies.get(health.nodeName) }, true);
  if (!node.marked) return undefined;
  return markDecision(node, {
    ...at,
    freshSinceMs,
    totalDisruption: disruption.total,
    ownFaultsAtMs: ownFaultsAt(gate, disruption),
  });
}

/** When total disruption began, and when the heartbeat path failed: the last times of each. */
const ownFaultsAt = (gate: GateRecord, { startedAtMs, earlierStartsMs = [] }: DisruptionRecord): readonly number[] =>
  [gate.pathFailedAtMs, startedAtMs, ...(gate.earlierPathFailuresMs ?? []), ...earlierStartsMs].filter(
    (atMs) => atMs !== undefined,
  );

/**
 * Whether the node begins or ends flapping. A node that this pass marks is evaluated by the next one, also where this
 * pass is evaluated again after its mark was written (L10).
 */
function* decideFlapping(
  { health, marked }: EvaluatedNode,
  flaps: Uint8Array,
  at: FlapTime & { readonly mayBegin: boolean },
): Generator<MonitorDecision> {
  const { markedAtMs } = health;
  if (marked || (markedAtMs !== undefined && markedAtMs >= at.nowMs)) return;
  const verdict = flapVerdict(flapHistoryOf(flaps, at.nowMs, at.policy), at);
  if (verdict.kind === 'unchanged') return;
  yield { kind: 'setFlapping', ...identity(health), verdict, ownFaultsAtMs: at.ownFaultsAtMs };
}

const isFlapping = ({ flaps }: NodeHealth, { nowMs, policy }: Pick<EvaluationTime, 'nowMs' | 'policy'>): boolean =>
  flaps !== undefined && flapHistoryOf(flaps, nowMs, policy).isFlapping;

/** Step 4 for one node. `queued`: its own item, same uid. */
function* decideTaints(
  node: EvaluatedNode,
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
    // In every pass, not only on entering as upstream: a pass that died may have left taints and queue entries.
    const taints = carriedNoExecute(health.noExecute);
    if (taints.length > 0) yield { kind: 'lift', ...of, reason: 'totalDisruption', taints };
    if (queued !== undefined) yield dequeue('totalDisruption');
    return;
  }
  if (node.planned) {
    if (queued !== undefined) yield dequeue('plannedSilence');
    return;
  }
  if (decision.kind === 'swap' && ready !== undefined) {
    yield { kind: 'swap', ...of, from: decision.from, to: decision.to, ready };
  }
  if (decision.kind === 'enqueue' && !node.returning) {
    // Upstream enqueues a waiting node again on each pass. Here it keeps its place: a stable state needs no write.
    if (queued?.zone === health.zone) return;
    if (queued !== undefined) yield dequeue('zoneChanged');
    // Subject to the places that are free (admitToQueue).
    yield { kind: 'enqueue', ...of, taint: decision.taint, addedAtMs: nowMs, silentSeconds: node.silentSeconds };
    return;
  }
  if (queued !== undefined && ready !== undefined) yield dequeue(node.returning ? 'returning' : 'tainted');
}

/**
 * Divides the nodes that are to wait into those that enter the queue now, and those that wait for a place in it. A zone
 * queues nodesQueuedPerZoneMax nodes, more than evictor can taint before the next pass. The others need no write:
 * their digests show that they wait, and since when.
 *
 * The node that has waited longest enters first. A node without a mark reported itself NotReady. It enters at once,
 * because its digest has no time that would keep its order.
 */
function admitToQueue(
  candidates: readonly { readonly decision: EnqueueDecision; readonly node: EvaluatedNode }[],
  staying: readonly QueuedNode[],
  { nodesQueuedPerZoneMax }: Policy,
): { readonly entering: readonly EnqueueDecision[]; readonly beyond: ReadonlyMap<string, NodesBeyondQueue> } {
  const places = new Map<string, number>();
  for (const { zone } of staying) places.set(zone, (places.get(zone) ?? nodesQueuedPerZoneMax) - 1);
  const entering: EnqueueDecision[] = [];
  const beyond = new Map<string, NodesBeyondQueue>();
  const inTurn = [...candidates].sort(
    (a, b) => a.node.waitsSinceMs - b.node.waitsSinceMs || compareText(a.decision.nodeName, b.decision.nodeName),
  );
  for (const { decision, node } of inTurn) {
    const { zone } = decision;
    const free = places.get(zone) ?? nodesQueuedPerZoneMax;
    if (free > 0 || !(node.marked || node.health.markedAtMs !== undefined)) {
      entering.push(decision);
      places.set(zone, free - 1);
    } else {
      const { nodes, sinceMs } = beyond.get(zone) ?? { nodes: 0, sinceMs: node.waitsSinceMs };
      beyond.set(zone, { nodes: nodes + 1, sinceMs });
    }
  }
  return { entering, beyond };
}

/** The queue without the nodes that this pass removes. */
function stayingIn(queue: readonly QueuedNode[], decisions: readonly MonitorDecision[]): readonly QueuedNode[] {
  const keyOf = ({ zone, nodeName, uid }: OfNode): string => `${zone}#${nodeName}#${uid}`;
  const leaving = new Set(decisions.flatMap((decision) => (decision.kind === 'dequeue' ? [keyOf(decision)] : [])));
  return queue.filter((item) => !leaving.has(keyOf(item)));
}

/** Retries of marking pods, for a node that this pass does not mark. */
function* decidePods(node: EvaluatedNode): Generator<MonitorDecision> {
  const { health, ready } = node;
  if (ready === 'True') yield { kind: 'dropPodsToMark', ...identity(health) };
  else if (ready !== undefined) yield { kind: 'markPods', ...identity(health), ready };
}

/** Step 5, and the records of zones. */
function* decideZones(
  zones: readonly EvaluatedZone[],
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
      // The zone is empty. Its record stays: a new zone of this name does not start with a full bucket (L3).
      yield { kind: 'setZoneState', zone: record.zone, from: record.state, to: undefined, size: 0, notReady: 0 };
    }
  }
}

/** The gate of each profile that a node has. */
function profileGates(
  record: GateRecord,
  nodes: readonly NodeHealth[],
): ReadonlyMap<string | undefined, { readonly isOpen: boolean; readonly freshSinceMs: number }> {
  const profiles = new Set(nodes.map(({ profile }) => profile));
  return new Map(
    [...profiles].map((profile) => {
      const { reasons, freshSinceMs } = gateOf(record, profile);
      return [profile, { isOpen: reasons.length === 0, freshSinceMs }];
    }),
  );
}

export function decideMonitor(
  world: MonitorWorld,
  at: { readonly nowMs: number; readonly policy: Policy },
): MonitorOutcome {
  const { nowMs, policy } = at;
  const { testimonies = NO_TESTIMONIES } = world;
  const gates = profileGates(world.gate, world.nodes);
  let disruptionFreshMs = world.disruption.freshSinceMs;
  const decisions: MonitorDecision[] = [];

  const evaluate = () =>
    world.nodes.map((health) => {
      const { isOpen, freshSinceMs } = gates.get(health.profile)!;
      const testimony = testimonies.get(health.nodeName);
      return evaluateNode(
        health,
        { nowMs, policy, freshSinceMs: Math.max(freshSinceMs, disruptionFreshMs), testimony },
        isOpen,
      );
    });
  let nodes = evaluate();
  let zones = evaluateZones(nodes, policy);
  let verdict: DisruptionVerdict = disruptionVerdict(world.disruption.total, statesOf(zones));
  if (verdict === 'leave') {
    // A new grace period begins now, so this pass marks no node. Fewer marks cannot put more zones into FullDisruption,
    // so the verdict stays 'leave'.
    disruptionFreshMs = nowMs;
    nodes = evaluate();
    zones = evaluateZones(nodes, policy);
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
  // Stryker disable next-line ConditionalExpression,EqualityOperator: saves work in a quiet tick
  if (world.queue.length > 0) for (const health of world.nodes) uidByName.set(health.nodeName, health.uid);
  for (const item of world.queue) {
    const { nodeName, uid, zone, addedAtMs } = item;
    if (uidByName.get(nodeName) === uid) queueByName.set(nodeName, item);
    else decisions.push({ kind: 'dequeue', nodeName, uid, zone, addedAtMs, reason: 'nodeGone' });
  }
  const totalDisruption = disruption.total;
  const ownFaultsAtMs = ownFaultsAt(world.gate, disruption);
  const toQueue: { readonly decision: EnqueueDecision; readonly node: EvaluatedNode }[] = [];
  for (const node of nodes) {
    const { freshSinceMs } = node;
    if (node.marked)
      decisions.push(markDecision(node, { nowMs, policy, ownFaultsAtMs, freshSinceMs, totalDisruption }));
    const { flaps } = node.health;
    if (flaps !== undefined) {
      const mayBegin = !totalDisruption && gates.get(node.health.profile)!.isOpen;
      decisions.push(...decideFlapping(node, flaps, { nowMs, policy, ownFaultsAtMs, mayBegin }));
    }
    if (node.health.podsToMark === true && !node.marked) decisions.push(...decidePods(node));
    const { plannedUntilMs } = node.health;
    if (plannedUntilMs !== undefined && !node.planned) {
      decisions.push({ kind: 'endSilence', ...identity(node.health), plannedUntilMs });
    }
    const queued = queueByName.get(node.health.nodeName);
    const { notReady, unreachable } = node.health.noExecute;
    // Stryker disable next-line ConditionalExpression,EqualityOperator,LogicalOperator: saves work in a quiet tick
    if (node.ready === 'True' && queued === undefined && !notReady && !unreachable) continue;
    for (const decision of decideTaints(node, queued, totalDisruption, nowMs)) {
      if (decision.kind === 'enqueue') toQueue.push({ decision, node });
      else decisions.push(decision);
    }
  }
  const { entering, beyond } = admitToQueue(toQueue, stayingIn(world.queue, decisions), policy);
  for (const decision of entering) decisions.push(decision);

  const records = new Map(world.zones.map((record) => [record.zone, record]));
  decisions.push(...decideZones(zones, records, totalDisruption, nowMs, policy));

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
    gate: gateVerdict(world.gate),
    lateNodes: nodes.reduce((sum, node) => sum + Number(node.late), 0),
    // Stryker disable next-line ConditionalExpression,EqualityOperator: saves work in a quiet tick
    accused: testimonies.size === 0 ? [] : accusedNodes(nodes),
    beats: countBeats(nodes, at),
    plannedNodes: countByZone(nodes, ({ planned }) => planned),
    flappingNodes: countByZone(nodes, ({ health }) => isFlapping(health, at)),
    withheldMarks: nodes.reduce((sum, node) => sum + Number(node.withheld), 0),
    beyondQueue: beyond,
  };
}
