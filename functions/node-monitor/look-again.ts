/**
 * Looks at accused nodes again between two ticks: a shortened grace period ends at any moment of a period, and the next
 * tick would add up to one period to it. It waits within the invocation of its tick, only while an accusation stands.
 *
 *   tick ── an accused node is due before the next tick ── wait ── read it, and the reports ── decide ── mark it
 *
 * Each look decides on what it reads, by the rule of the tick and for its own moment. It needs no claim: a mark carries
 * its own condition, as those of node-marker do. Zones and evictions follow with the next tick.
 *
 * A look sends a heartbeat of its own first: that of the tick is up to a period old, and one lost heartbeat is all that
 * separates an accused machine from its mark. If it fails, nothing is marked, and the next ticks know.
 */

import { testimoniesOf } from '../../shared/fleet/accusation.rule.ts';
import { gateVerdictOf, pathFailedAtMs } from '../../shared/fleet/gate.ts';
import type { MarkToDo } from '../../shared/fleet/mark-nodes.ts';
import { decideMark } from '../../shared/fleet/marks.rule.ts';
import { readHealth } from '../../shared/fleet/nodes/health-store.ts';
import type { SilenceReport } from '../../shared/fleet/silent-machines.ts';
import { readReports } from '../../shared/fleet/witness-report-store.ts';
import type { ZoneMetrics } from '../../shared/fleet/zone-state.ts';
import { PERIOD_RESERVE_MS, type RunningTick, secondsToSlot } from '../../shared/ticks/tick.ts';
import { markHere } from './apply-decisions.ts';
import type { Decided, MonitorWorld } from './decide-tick.ts';
import type { MonitorDependencies } from './dependencies.ts';

/** Looks of one tick, each at the nodes that are due then. */
const LOOKS_MAX = 8;
/** A node that is due within this time of another one is looked at with it. Milliseconds. */
const TOGETHER_MS = 50;

interface LookedAt {
  readonly nodes: MonitorWorld['nodes'];
  readonly decided: Decided;
}

/** Returns the number of marked nodes. Faults are added to those of the tick. */
export async function lookAgain(
  dependencies: MonitorDependencies,
  { nodes, decided }: LookedAt,
  running: RunningTick,
): Promise<number> {
  const { clock, pause, policy } = dependencies;
  if (pause === undefined) return 0;
  const { nowMs, slot } = running;
  const { nodeMonitorPeriodSeconds: periodSeconds } = policy;
  // The message of the next tick is delayed by whole seconds.
  const nextAfterSeconds = Math.min(periodSeconds, secondsToSlot(slot + 1, nowMs, periodSeconds));
  const untilMs = nowMs + nextAfterSeconds * 1_000 - PERIOD_RESERVE_MS;
  let waiting = decided.outcome.accused.filter(({ deadlineMs }) => deadlineMs < untilMs);
  let marked = 0;
  for (let looks = 0; looks < LOOKS_MAX && waiting.length > 0; looks += 1) {
    const firstMs = Math.min(...waiting.map(({ deadlineMs }) => deadlineMs));
    const dueMs = Math.min(untilMs, firstMs + TOGETHER_MS);
    await pause(Math.max(0, dueMs - clock.nowMs()));
    // Somebody else keeps the time, or no time is left.
    if (clock.nowMs() <= firstMs || !running.budget().hasTime()) return marked;
    const due = new Set(waiting.filter(({ deadlineMs }) => deadlineMs < dueMs).map(({ nodeName }) => nodeName));
    waiting = waiting.filter(({ nodeName }) => !due.has(nodeName));
    marked += await look(dependencies, { nodes, decided }, due, running).catch((fault: unknown) => {
      running.faults.push(fault);
      return 0;
    });
  }
  return marked;
}

async function look(
  dependencies: MonitorDependencies,
  { nodes, decided }: LookedAt,
  due: ReadonlySet<string>,
  { slot, budget, faults }: RunningTick,
): Promise<number> {
  const { clock, policy, fleet, items } = dependencies;
  const nowMs = clock.nowMs();
  const [{ gate, disruption, lookFailedAtMs }, reports, isAccepted] = await Promise.all([
    fleet.readState(),
    readReports(items),
    probeIsAccepted(dependencies),
  ]);
  if (!isAccepted) {
    await fleet.noteFailedLook(nowMs);
    return 0;
  }
  const reportsDue = ({ sinceMs }: SilenceReport): boolean => [...due].some((name) => sinceMs.has(name));
  const current = await readHealth(items, [...due, ...reports.filter(reportsDue).map(({ reporter }) => reporter)]);
  const now = nodes.map((health) => current.get(health.nodeName) ?? health);
  const testimonies = testimoniesOf(now, reports, {
    nowMs,
    policy,
    pathFailedAtMs: pathFailedAtMs(gate, lookFailedAtMs),
  });
  const todo = [...due].flatMap((name): MarkToDo[] => {
    const seen = current.get(name);
    if (seen === undefined || gateVerdictOf(gate, seen.profile, { nowMs, policy }).kind === 'holding') return [];
    const decision = decideMark(seen, { nowMs, policy, gate, disruption, testimonies });
    return decision === undefined ? [] : [{ decision, seen }];
  });
  if (todo.length === 0) return 0;
  const applied = await markHere(dependencies, todo, {
    nowMs,
    budget: budget(),
    tick: { slot, fence: decided.before.fence + 1 },
    zones: zonesAfter(decided.outcome.zoneMetrics, todo),
  });
  faults.push(...applied.faults);
  return applied.marked;
}

/** True where no probe is configured. */
async function probeIsAccepted({ probe, policy, log }: MonitorDependencies): Promise<boolean> {
  if (probe === undefined || policy.ingestGate === 'off') return true;
  const outcome = await probe.beat();
  if (outcome.kind === 'failed') log.warn('probe heartbeat failed', { reason: outcome.reason });
  return outcome.kind === 'accepted';
}

/** For decision records: the zones after these marks. */
function zonesAfter(before: readonly ZoneMetrics[], todo: readonly MarkToDo[]): ReadonlyMap<string, ZoneMetrics> {
  const zones = new Map(before.map((zone) => [zone.zone, zone]));
  for (const { decision, seen } of todo) {
    const zone = zones.get(decision.zone);
    const counts = decision.from === 'True' && !seen.excluded;
    if (zone !== undefined && counts) zones.set(zone.zone, { ...zone, unhealthy: zone.unhealthy + 1 });
  }
  return zones;
}
