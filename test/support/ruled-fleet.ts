/**
 * A model of the fleet for properties of the rules alone: applies what decideMonitor and decideEvictions decide, by
 * thousands a second. It says nothing of the controllers; conformance cases run those (monitored-fleet.ts). Times are
 * in milliseconds.
 */
import { decideEvictions, type EvictionDecision } from '../../functions/evictor/rule.ts';
import { defined } from '../../shared/defined.ts';
import type { EventText } from '../../shared/events/event-text.ts';
import type { QueuedNode, ZoneRecord } from '../../shared/fleet/fleet-records.ts';
import { decideGate, gateVerdict, gateVerdictFor, type Probe, UNTRIED_GATE } from '../../shared/fleet/gate.ts';
import {
  decideMonitor,
  type MonitorDecision,
  type MonitorOutcome,
  type MonitorWorld,
} from '../../shared/fleet/marks.rule.ts';
import { isSuspect, type NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { decideNoExecute } from '../../shared/fleet/nodes/node-taints.ts';
import { defaultPolicy, type Policy } from '../../shared/fleet/policy.ts';
import { flapHistoryOf, packedFlaps } from '../../shared/fleet/silences/flapping.ts';
import { NO_DISRUPTION } from '../../shared/fleet/zone-state.ts';
import type { ConditionStatus } from '../../shared/kubernetes/kubernetes.ts';
import { changeRate, fullLimiter, takeToken } from './token-bucket.ts';

export function aNode(overrides: Partial<NodeHealth> & { readonly nodeName: string }): NodeHealth {
  return {
    uid: `uid-${overrides.nodeName}`,
    zone: '',
    ready: 'True',
    excluded: false,
    suspect: false,
    noExecute: { notReady: false, unreachable: false },
    createdAtMs: 0,
    renewedAtMs: undefined,
    statusAtMs: undefined,
    ...overrides,
  };
}

/** An empty world with a gate that was never closed. */
export const anEmptyWorld = (overrides: Partial<MonitorWorld> = {}): MonitorWorld => ({
  nodes: [],
  zones: [],
  queue: [],
  disruption: NO_DISRUPTION,
  gate: UNTRIED_GATE,
  ...overrides,
});

const withNode = (world: MonitorWorld, nodeName: string, change: Partial<NodeHealth>): MonitorWorld => ({
  ...world,
  nodes: world.nodes.map((health) => {
    if (health.nodeName !== nodeName) return health;
    const changed = { ...health, ...change };
    return { ...changed, suspect: isSuspect(changed) };
  }),
});

const withoutItem = (world: MonitorWorld, item: { nodeName: string; uid: string; zone: string }): MonitorWorld => ({
  ...world,
  queue: world.queue.filter(
    (queued) => queued.nodeName !== item.nodeName || queued.uid !== item.uid || queued.zone !== item.zone,
  ),
});

const withZone = (world: MonitorWorld, zone: string, change: (record: ZoneRecord) => ZoneRecord): MonitorWorld => ({
  ...world,
  zones: world.zones.map((record) => (record.zone === zone ? change(record) : record)),
});

/** The world after one decision of node-monitor. */
export function applyMonitorDecision(world: MonitorWorld, decision: MonitorDecision, nowMs: number): MonitorWorld {
  switch (decision.kind) {
    case 'lift':
      return withNode(world, decision.nodeName, { noExecute: { notReady: false, unreachable: false } });
    case 'dequeue':
      return withoutItem(world, decision);
    case 'markUnknown':
      return withNode(world, decision.nodeName, {
        ready: 'Unknown',
        markedAtMs: nowMs,
        ...defined({ flaps: decision.flaps }),
        ...(decision.markPods ? { podsToMark: undefined } : {}),
      });
    case 'setFlapping': {
      const { flaps } = world.nodes.find(({ nodeName }) => nodeName === decision.nodeName) ?? {};
      const { marksSeconds } = flapHistoryOf(flaps, nowMs, defaultPolicy);
      const isFlapping = decision.verdict.kind === 'begin';
      return withNode(world, decision.nodeName, { flaps: packedFlaps({ isFlapping, marksSeconds }, defaultPolicy) });
    }
    case 'endSilence':
      return withNode(world, decision.nodeName, {
        plannedUntilMs: undefined,
        silenceEndedAtMs: decision.plannedUntilMs,
      });
    case 'markPods':
    case 'dropPodsToMark':
      return withNode(world, decision.nodeName, { podsToMark: undefined });
    case 'createZone': {
      const { zone, state, ratePerSecond } = decision;
      return { ...world, zones: [...world.zones, { zone, state, limiter: fullLimiter(ratePerSecond) }] };
    }
    case 'setZoneState':
      return withZone(world, decision.zone, (record) => ({ ...record, state: decision.to }));
    case 'setZoneRate':
      return withZone(world, decision.zone, (record) => ({
        ...record,
        limiter: changeRate(record.limiter, decision.toPerSecond, nowMs),
      }));
    case 'dropZone':
      return { ...world, zones: world.zones.filter((record) => record.zone !== decision.zone) };
    case 'enterTotalDisruption':
    case 'leaveTotalDisruption':
      return { ...world, disruption: decision.disruption };
    case 'swap':
      return withNode(world, decision.nodeName, {
        noExecute: { notReady: decision.to === 'notReady', unreachable: decision.to === 'unreachable' },
      });
    case 'enqueue': {
      const { nodeName, uid, zone, addedAtMs } = decision;
      return { ...world, queue: [...world.queue, { nodeName, uid, zone, addedAtMs }] };
    }
  }
}

export const applyMonitor = (world: MonitorWorld, decisions: readonly MonitorDecision[], nowMs: number): MonitorWorld =>
  decisions.reduce((applied, decision) => applyMonitorDecision(applied, decision, nowMs), world);

export interface Tainting {
  readonly atMs: number;
  readonly nodeName: string;
  readonly zone: string;
  readonly taint: 'notReady' | 'unreachable';
}

/** Nodes, what befalls them, and passes of the rules. */
export class RuledFleet {
  world: MonitorWorld;
  readonly policy: Policy;
  readonly events: { readonly atMs: number; readonly event: EventText }[] = [];
  readonly taintings: Tainting[] = [];
  readonly decisions: { readonly atMs: number; readonly decision: MonitorDecision }[] = [];
  /** Instant swaps of NoExecute taints. */
  swaps = 0;

  constructor(nodes: readonly NodeHealth[], policy: Partial<Policy> = {}, world: Partial<MonitorWorld> = {}) {
    // The gate has stories of its own; here it is off unless asked for.
    this.policy = { ...defaultPolicy, tickGate: 'off', ingestGate: 'off', ...policy };
    this.world = anEmptyWorld({ nodes, ...world });
  }

  node(nodeName: string): NodeHealth {
    const found = this.world.nodes.find((health) => health.nodeName === nodeName);
    if (found === undefined) throw new Error(`no node ${nodeName}`);
    return found;
  }

  zone(zone: string): ZoneRecord | undefined {
    return this.world.zones.find((record) => record.zone === zone);
  }

  queued(zone?: string): QueuedNode[] {
    return this.world.queue.filter((item) => zone === undefined || item.zone === zone);
  }

  change(nodeName: string, change: Partial<NodeHealth>): void {
    this.world = withNode(this.world, nodeName, change);
  }

  /** The node posts status. */
  post(nodeName: string, ready: ConditionStatus, atMs: number): void {
    this.change(nodeName, { ready, statusAtMs: atMs, markedAtMs: undefined });
  }

  /** The node renews its lease. */
  renew(nodeName: string, atMs: number): void {
    this.change(nodeName, { renewedAtMs: atMs });
  }

  add(health: NodeHealth): void {
    this.world = { ...this.world, nodes: [...this.world.nodes, health] };
  }

  /** The Node is deleted, its digest with it. */
  remove(nodeName: string): void {
    this.world = { ...this.world, nodes: this.world.nodes.filter((health) => health.nodeName !== nodeName) };
  }

  /** One pass of node-monitor. */
  pass(nowMs: number, probes: readonly Probe[] = []): MonitorOutcome {
    this.world = { ...this.world, gate: decideGate(this.world.gate, { nowMs, probes, policy: this.policy }) };
    const outcome = decideMonitor(this.world, { nowMs, policy: this.policy });
    this.world = applyMonitor(this.world, outcome.decisions, nowMs);
    for (const decision of outcome.decisions) {
      this.decisions.push({ atMs: nowMs, decision });
      if (decision.kind === 'swap') this.swaps += 1;
      if ('event' in decision && decision.event !== undefined) this.events.push({ atMs: nowMs, event: decision.event });
    }
    return outcome;
  }

  /** One pass of the evictor over every zone that has a queue. */
  evict(nowMs: number): EvictionDecision[] {
    const made: EvictionDecision[] = [];
    for (const zone of new Set(this.world.queue.map((item) => item.zone))) {
      const { decisions } = decideEvictions(
        {
          items: this.queued(zone),
          nodes: new Map(this.world.nodes.map((health) => [health.nodeName, health])),
          limiter: this.zone(zone)?.limiter ?? fullLimiter(0),
        },
        {
          nowMs,
          gate: gateVerdictFor(this.world.gate, { nowMs, policy: this.policy }),
          totalDisruption: this.world.disruption.total,
          policy: this.policy,
          freshSinceMs: Math.max(this.world.gate.freshSinceMs, this.world.disruption.freshSinceMs),
        },
      );
      for (const decision of decisions) this.#applyEviction(decision, nowMs);
      made.push(...decisions);
    }
    return made;
  }

  #applyEviction(decision: EvictionDecision, nowMs: number): void {
    const { nodeName, zone } = decision;
    if (decision.kind === 'taint') {
      const record = this.zone(zone);
      const limiter = takeToken(record?.limiter ?? fullLimiter(0), nowMs);
      if (limiter === undefined) return;
      this.world = withZone(this.world, zone, (present) => ({ ...present, limiter }));
      this.change(nodeName, {
        noExecute: { notReady: decision.taint === 'notReady', unreachable: decision.taint === 'unreachable' },
      });
      this.taintings.push({ atMs: nowMs, nodeName, zone, taint: decision.taint });
    } else if (decision.kind === 'swap') {
      this.change(nodeName, {
        noExecute: { notReady: decision.to === 'notReady', unreachable: decision.to === 'unreachable' },
      });
      this.swaps += 1;
    }
    this.world = withoutItem(this.world, decision);
  }

  /** Passes from one moment to another, both included: monitor, then evictor, each `everyMs` (the period). */
  run(fromMs: number, toMs: number, everyMs = this.policy.nodeMonitorPeriodSeconds * 1_000): void {
    for (let nowMs = fromMs; nowMs <= toMs; nowMs += everyMs) {
      this.pass(nowMs);
      this.evict(nowMs);
    }
  }

  /** NoExecute taints of ours on a node. */
  taints(nodeName: string): string[] {
    const { noExecute } = this.node(nodeName);
    return [...(noExecute.notReady ? ['notReady'] : []), ...(noExecute.unreachable ? ['unreachable'] : [])];
  }

  /** Whether a node's taints are as its Ready status asks, or it waits for them. */
  isSettled(nodeName: string): boolean {
    const { ready, noExecute } = this.node(nodeName);
    const { kind } = decideNoExecute(ready, noExecute);
    return kind === 'none' || (kind === 'enqueue' && this.queued().some((item) => item.nodeName === nodeName));
  }

  gateKind(): 'open' | 'holding' {
    return gateVerdict(this.world.gate).kind;
  }
}
