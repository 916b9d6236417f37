/** What a tick reports: metrics, silences that have ended, heartbeats that are too rare, transitions of the gate. */

import { COST_PERIOD_SECONDS, runningDollarsPerDay } from '../../shared/cost/running-cost.ts';
import { type ClusterEvent, publishEvents } from '../../shared/events/cluster-event.ts';
import { beatIntervalTooLong, gateClosed, gateOpened } from '../../shared/events/event-text.ts';
import { recordEvents } from '../../shared/events/record-event.ts';
import type { FleetRecords } from '../../shared/fleet/fleet-store.ts';
import { gateOf } from '../../shared/fleet/gate.ts';
import * as metric from '../../shared/fleet/mark-metrics.ts';
import type { NodeHealth } from '../../shared/fleet/nodes/health.ts';
import { zoneDimension } from '../../shared/fleet/nodes/node-digest.ts';
import { policyOf, profileNames } from '../../shared/fleet/nodes/node-profile.ts';
import { silenceHourWrite } from '../../shared/fleet/silences/silence-store.ts';
import { fleetMetricsOf } from '../../shared/fleet/zone-state.ts';
import { LEASE_NAMESPACE } from '../../shared/kinds/leases/resource.ts';
import { rfc3339 } from '../../shared/kubernetes/rfc3339.ts';
import { UNBOUNDED, workThrough } from '../../shared/ticks/bounded-work.ts';
import { slotStartMs } from '../../shared/ticks/tick.ts';
import { APPLY_CONCURRENCY_MAX } from './apply-decisions.ts';
import { dayOf, rareBeats } from './beat-interval.rule.ts';
import { type Decided, gateTransition, limitsByProfile, type MonitorWorld } from './decide-tick.ts';
import type { MonitorDependencies } from './dependencies.ts';
import type { ObservedTick } from './silence-watch.ts';

/** A flag that ended is emitted as 0 for this long: its alarm evaluates up to four minutes. */
const ENDED_FLAG_EMITTED_MS = 300_000;

/**
 * Age from which a zone has metrics of its own. CloudWatch bills each zone name by the hour, and a machine may change
 * its zone label with every request: zones that last for seconds must cost nothing. Milliseconds.
 */
const MEASURED_ZONE_AGE_MS = 60_000;

/** One event per node and day; the store refuses a second one. */
export async function reportRareBeats(
  dependencies: MonitorDependencies,
  { nodes }: Pick<MonitorWorld, 'nodes'>,
  nowMs: number,
): Promise<readonly unknown[]> {
  const events = rareBeats(nodes, dependencies.policy, nowMs).map(({ nodeName: name, uid, message }) => ({
    ...beatIntervalTooLong(message),
    about: { kind: 'Node', namespace: '', name, uid } as const,
    once: dayOf(nowMs),
  }));
  return recordEvents(dependencies, events, nowMs).then(
    () => [],
    (fault: unknown) => [fault],
  );
}

/**
 * Counts the silences that have ended, and writes the hours that are over: one item per hour, zone and profile. An item
 * that cannot be written is written by a later tick.
 */
export async function recordSilences(
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

/** A metric is billed for each hour in which it is emitted, so a quiet tick emits few. An absent metric means none. */
export function measure(
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
  // It outlasts the last Node: without nodes nothing is disrupted, and no one needs a page.
  const isDisrupted = disruption.total && outcome.zoneMetrics.some(({ size }) => size > 0);
  emitFlag(metric.TOTAL_DISRUPTION, isDisrupted, disruption.sinceMs);
}

/** From the units that this tick consumed to read, decide and claim. A quiet tick does nothing after that. */
export function measureCost(
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
export async function reportGate(
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
  // Other reasons are another occurrence: the gate closed at the same time as before.
  const once = [gate.sinceMs, ...gate.reasons].join();
  await recordEvents(dependencies, [{ ...text, about: LEASE_NAMESPACE_SUBJECT, once }], nowMs).catch((fault: unknown) =>
    faults.push(fault),
  );
  if (transition === 'reasons') return faults;
  const { reasons, sinceMs, freshSinceMs } = gate;
  const event: ClusterEvent = isClosed
    ? { type: 'GateClosed', id: `GateClosed/${sinceMs}`, reasons }
    : { type: 'GateOpened', id: `GateOpened/${sinceMs}`, freshSince: rfc3339(freshSinceMs) };
  await publishEvents(dependencies, [event], nowMs);
  return faults;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** Whether this tick looks for heartbeats that are too rare: the first of an hour. */
export const evaluatesIntervals = (nowMs: number, periodSeconds: number): boolean =>
  nowMs % HOUR_MS < periodSeconds * 1_000;

/** Every tick in these first minutes of an interval reports the cost, in case one is lost. All are in one hour. */
const COST_MINUTES = 5;

/** Whether the tick of the slot with this start reports the cost. */
export const reportsCost = (slotStartMs: number): boolean =>
  slotStartMs % MINUTE_MS === 0 && slotStartMs % (COST_PERIOD_SECONDS * 1_000) < COST_MINUTES * MINUTE_MS;

/** Time after the end of a minute until its refusals are read: a slow write, and clocks that differ. Milliseconds. */
const WRITTEN_AFTER_MS = 10_000;
/** A tick after a long gap. Earlier minutes are not reported. */
const MINUTES_MAX = 5;

/**
 * The minutes of refused requests that a tick reports: each once, when the environments have written what they refused.
 *
 * @param slotStartMs start of the slot of this tick
 * @param slotBeforeStartMs the same of the tick before; undefined for the first one of a cluster
 * @returns starts of minutes, in order; usually none. Epoch milliseconds
 */
export function minutesToReport(slotStartMs: number, slotBeforeStartMs: number | undefined): number[] {
  const endedBy = (atMs: number): number => Math.floor((atMs - WRITTEN_AFTER_MS) / MINUTE_MS);
  const last = endedBy(slotStartMs);
  const first = slotBeforeStartMs === undefined ? last : endedBy(slotBeforeStartMs);
  const count = Math.min(MINUTES_MAX, Math.max(0, last - first));
  return Array.from({ length: count }, (_, index) => (last - count + index) * MINUTE_MS);
}
