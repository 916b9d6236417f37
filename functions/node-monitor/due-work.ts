/**
 * Who has work. Evictor, cloud-node, pod-gc, scheduler and workloads cost nothing at rest: their due work is rows
 * (shared/ticks/due-rows.ts), and node-monitor's tick reads whether one is due, and wakes its function. The schedule of
 * each minute invokes them too, so nothing depends on a wake-up that was lost.
 *
 * Cost of a tick without work: queries of half a read unit, and one more per period of pod-gc.
 */
import { TIMERS_DUE } from '../../shared/fleet/eviction-timer-store.ts';
import type { FleetRecords } from '../../shared/fleet/fleet-store.ts';
import { WATCHED_DUE } from '../../shared/fleet/instances/watch-list-store.ts';
import { hasWork } from '../../shared/kinds/pods/collection.rule.ts';
import { podGcStore } from '../../shared/kinds/pods/work-list-store.ts';
import { TURN } from '../../shared/scheduling/queue-store.ts';
import { hasDueRow, isWanted, peekTurn, WORKLOADS_DUE } from '../../shared/ticks/due-rows.ts';
import { RETRIES_DUE } from '../../shared/ticks/parked-store.ts';
import { slotOf, wake } from '../../shared/ticks/tick.ts';
import type { MonitorDependencies } from './dependencies.ts';

/** The tick that looks. */
export interface WakeUpTick {
  /** When it began. Epoch milliseconds. */
  readonly nowMs: number;
  /** Start of its slot, and of the slot claimed before it; undefined before the first. Epoch milliseconds. */
  readonly slotStartMs: number;
  readonly slotBeforeStartMs: number | undefined;
  /** Read before its claim. */
  readonly records: FleetRecords;
}

/** Whether a function has work at this tick. */
type DueCheck = (dependencies: MonitorDependencies, tick: WakeUpTick) => Promise<boolean>;

/** By the name of the function that is woken. A function without a check is only swept. */
const DUE_CHECKS: Readonly<Record<string, DueCheck>> = {
  /**
   * While a node waits or a zone has a recorded hold; when a timer or a retry is due. What becomes due before the next
   * tick is found by that tick.
   */
  async evictor({ items }, { nowMs, records: { queue, zones } }) {
    if (queue.length > 0 || zones.some(({ hold }) => hold !== undefined)) return true;
    return hasDueRow(items, [TIMERS_DUE, RETRIES_DUE], nowMs);
  },
  /** While a node is on the list. */
  'cloud-node': ({ items }, { nowMs }) => hasDueRow(items, [WATCHED_DUE], nowMs),
  /** Once per period of pod-gc. A long list counts as work without being read. */
  async 'pod-gc'({ items, policy }, { nowMs, slotStartMs, slotBeforeStartMs }) {
    const slotAt = (atMs: number): number => slotOf(atMs, policy.podGcPeriodSeconds);
    if (slotBeforeStartMs !== undefined && slotAt(slotStartMs) === slotAt(slotBeforeStartMs)) return false;
    const list = await podGcStore(items).readShort();
    return list === undefined || hasWork(list, { nowMs, policy });
  },
  async scheduler({ items, policy }, { nowMs }) {
    if (policy.scheduling === 'off') return false;
    const turn = await peekTurn(items, TURN);
    return turn.busyUntilMs <= nowMs && isWanted(turn, nowMs);
  },
  workloads: ({ items }, { nowMs }) => hasDueRow(items, [WORKLOADS_DUE], nowMs),
};

/**
 * Wakes the functions that have work. A check that fails wakes its function, which meets the same fault and reports it.
 * Returns the names of those that were woken. Never rejects.
 */
export async function wakeFunctionsWithWork(
  dependencies: MonitorDependencies,
  tick: WakeUpTick,
): Promise<readonly string[]> {
  if (dependencies.waker === undefined) return [];
  const found = await Promise.all(
    Object.entries(DUE_CHECKS).map(async ([name, check]) =>
      (await check(dependencies, tick).catch(() => true)) ? [name] : [],
    ),
  );
  const names = found.flat();
  if (names.length > 0) await wake(dependencies, names, tick.slotStartMs);
  return names;
}
