/**
 * The ticks of the controllers in one process. Timers count on the monotonic clock; slots are of the wall clock, as
 * everywhere, and the claim of a slot decides whether a tick acts.
 *
 * node-monitor ticks at the start of each slot. The others tick when it, or a change, finds work for them, and once per
 * minute, as on AWS. A function that still works when it is woken runs once more afterwards, for the newest slot.
 *
 * A process that was suspended ticks late: the gate then sees a gap, and every node has a full grace period.
 */
import type { TickingFunction } from '../functions/function-list.ts';
import type { Clock } from '../shared/clock.ts';
import type { Policy } from '../shared/fleet/policy.ts';
import { ALL_FUNCTIONS, FAILED_TICKS, TICK_AGE } from '../shared/functions/tick-metrics.ts';
import type { Log, Meter } from '../shared/observability/log.ts';
import { currentSlot, ranNevertheless, slotOf, slotStartMs, type Waker } from '../shared/ticks/tick.ts';
import type { FleetControllers } from './fleet-controllers.ts';

const SWEEP_MS = 60_000;
/** Time of one tick, as long as a function has on AWS. Milliseconds. */
const BUDGET_MS = 28_000;
const LOGGED_CAUSES_MAX = 5;
const MONITOR = 'node-monitor';

type Ticks = FleetControllers['ticks'];

export interface TickOptions {
  readonly policy: Policy;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
}

export interface TickTimers extends Waker {
  /** Without effect while it ticks. */
  start(ticks: Ticks): void;
  /** Ends after the ticks that run. */
  stop(): Promise<void>;
  /**
   * Since node-monitor last ran a tick, or since the start. Milliseconds, of the monotonic clock.
   * A clock that was set back makes every slot a claimed one: nothing is decided until it reaches the last of them.
   */
  silentMs(): number;
}

interface Turn {
  running: Promise<void> | undefined;
  /** The slot of a wake-up that came meanwhile. */
  next: number | undefined;
}

export function tickTimers({ policy, clock, log, meter }: TickOptions): TickTimers {
  const turns = new Map<TickingFunction, Turn>();
  let ticks: Ticks | undefined;
  let monitorTimer: NodeJS.Timeout | undefined;
  let sweepTimer: NodeJS.Timeout | undefined;
  let lastAheadMs: number | undefined;
  let lastTickMs = performance.now();

  const periodOf = (name: TickingFunction): number =>
    name === 'pod-gc' ? policy.podGcPeriodSeconds : policy.nodeMonitorPeriodSeconds;

  function wake(name: TickingFunction, slot: number): void {
    if (ticks === undefined) return;
    const turn = turns.get(name) ?? { running: undefined, next: undefined };
    turns.set(name, turn);
    if (turn.running !== undefined) {
      turn.next = Math.max(turn.next ?? slot, slot);
      return;
    }
    turn.running = run(name, slot).finally(() => {
      turn.running = undefined;
      const { next } = turn;
      turn.next = undefined;
      if (next !== undefined) wake(name, next);
    });
  }

  async function run(name: TickingFunction, slot: number): Promise<void> {
    try {
      const report = await ticks?.[name](slot, BUDGET_MS);
      if (name === MONITOR && report?.kind === 'ran') lastTickMs = performance.now();
    } catch (error) {
      if (name === MONITOR && ranNevertheless(error)) lastTickMs = performance.now();
      meter.add(FAILED_TICKS, 1, 'Count', ALL_FUNCTIONS);
      const causes = error instanceof AggregateError ? error.errors.slice(0, LOGGED_CAUSES_MAX).map(String) : [];
      log.error('a tick failed', { function: name, slot, error, causes });
    }
  }

  function monitor(): void {
    const nowMs = clock.nowMs();
    const periodSeconds = policy.nodeMonitorPeriodSeconds;
    noteStep(nowMs, periodSeconds);
    const slot = slotOf(nowMs, periodSeconds);
    const nextMs = slotStartMs(slot + 1, periodSeconds);
    // The wall clock may step: at most one period passes until the next look at it.
    monitorTimer = setTimeout(monitor, Math.min(periodSeconds * 1_000, nextMs - nowMs));
    meter.add(TICK_AGE, Math.max(0, nowMs - slotStartMs(slot, periodSeconds)) / 1_000, 'Seconds');
    wake(MONITOR, slot);
  }

  /** Timers count the time that passes; what the wall clock adds to it, it was set by, or the machine slept. */
  function noteStep(nowMs: number, periodSeconds: number): void {
    const aheadMs = nowMs - performance.now();
    const stepMs = aheadMs - (lastAheadMs ?? aheadMs);
    lastAheadMs = aheadMs;
    if (Math.abs(stepMs) < periodSeconds * 1_000) return;
    log.warn('the clock of this machine was set, or the machine slept', { bySeconds: Math.round(stepMs / 1_000) });
  }

  function sweep(): void {
    if (ticks === undefined) return;
    for (const name of Object.keys(ticks) as TickingFunction[]) {
      if (name !== MONITOR) wake(name, currentSlot(clock.nowMs(), periodOf(name)));
    }
  }

  const isTicking = (name: string): name is TickingFunction => ticks !== undefined && Object.hasOwn(ticks, name);

  return {
    async wake(names, atMs) {
      for (const name of names) if (isTicking(name)) wake(name, slotOf(atMs, periodOf(name)));
      return [];
    },
    start(started) {
      // Each monitor arms the next one: a second chain would outlive its timer here.
      if (ticks !== undefined) return;
      ticks = started;
      sweepTimer = setInterval(sweep, SWEEP_MS);
      monitor();
      sweep();
    },
    async stop() {
      clearTimeout(monitorTimer);
      clearInterval(sweepTimer);
      ticks = undefined;
      await Promise.all([...turns.values()].map(({ running }) => running));
    },
    silentMs: () => performance.now() - lastTickMs,
  };
}
