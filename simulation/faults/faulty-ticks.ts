/**
 * How ticks start, and the faults of it: the queue of node-monitor's chain, its wake-ups of other functions, and the
 * schedules of each minute. As in AWS, a message is delivered at least once, and hidden while it is handled; a schedule
 * fires at any second of its minute.
 */
import type { TickMessageKind } from '../../shared/controllers/index.ts';
import type { Policy } from '../../shared/domain/policy.ts';
import { currentSlot, slotOf } from '../../shared/domain/tick.ts';
import { type TickingFunction, tickingFunctions } from '../../shared/function-list.ts';
import type { TickQueue } from '../../shared/ports/tick-queue.ts';
import type { Waker } from '../../shared/ports/waker.ts';
import { never, type VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';
import type { Functions, Process } from './processes.ts';

/** From the moment at which a message or event is due to its delivery. Milliseconds. */
const DELIVERED_MAX_MS = 250;
const LATE_MAX_MS = 70_000;
const TWICE_AFTER_MAX_MS = 8_000;
/** Of the queue and of its receives (cdk/lib/tick.ts). */
const VISIBILITY_MS = 40_000;
const RECEIVES_MAX = 12;
const MINUTE_MS = 60_000;
/** A schedule has an offset of its own within the minute, and varies a little around it. Milliseconds. */
const OFFSET_MAX_MS = 59_000;
const JITTER_MAX_MS = 4_000;
/** Time limit of an invocation. Milliseconds. */
const BUDGET_MS = 25_000;

const CHAIN: TickingFunction = 'node-monitor';

export interface TickReport {
  readonly name: TickingFunction;
  readonly kind: string;
  readonly holds: readonly string[];
  /** When it was delivered. True time. */
  readonly beganAtMs: number;
}

export interface FaultyTicks {
  /** The queue and the wake-ups as one process uses them. */
  queueOf(process: Process): TickQueue;
  wakerOf(process: Process): Waker;
  start(functions: Functions): void;
}

export interface FaultyTicksOptions {
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  readonly policy: Policy;
  readonly startMs: number;
  readonly onFault: (name: TickingFunction, faults: readonly unknown[]) => void;
  readonly onReport: (report: TickReport) => void;
  /** The chain was sent the message of its next tick. */
  readonly onSent: () => void;
}

type Deliver = (delayMs: number, run: () => void) => void;

export function faultyTicks(options: FaultyTicksOptions): FaultyTicks {
  const { time, plan, fraction, policy, onFault, onReport, onSent } = options;
  let functions: Functions | undefined;

  /** Late, lost or doubled by faults. */
  const deliver: Deliver = (delayMs, run) => {
    if (plan.strikes('lostTicks', 0.3)) return;
    let totalMs = delayMs + fraction() * DELIVERED_MAX_MS;
    if (plan.strikes('lateTicks', 0.7)) {
      // Half of them within their period, half of them far out of it.
      const most = plan.fraction('lateTicks') < 0.5 ? policy.nodeMonitorPeriodSeconds * 1_000 : LATE_MAX_MS;
      totalMs += plan.fraction('lateTicks') * most;
    }
    const unlessOut = (): void => {
      if (plan.severity('tickOutage') > 0) plan.count('tickOutage');
      else run();
    };
    time.after(totalMs, unlessOut);
    if (plan.strikes('twice', 0.6)) time.after(totalMs + plan.fraction('twice') * TWICE_AFTER_MAX_MS, unlessOut);
    if (plan.strikes('atOnce', 0.6)) time.after(totalMs, unlessOut);
  };

  async function receive(kind: TickMessageKind, receives = 1): Promise<void> {
    const beganAtMs = time.nowMs();
    const again = (afterMs: number): void => {
      if (receives < RECEIVES_MAX) time.after(afterMs, () => void receive(kind, receives + 1));
    };
    const invocation = await functions!.invoke(CHAIN, '', ({ controllers }) =>
      controllers.onTickMessage(kind, BUDGET_MS),
    );
    if (invocation.kind !== 'done') {
      if (invocation.kind === 'failed') onFault(CHAIN, [invocation.error]);
      return again(Math.max(0, VISIBILITY_MS - (time.nowMs() - beganAtMs)));
    }
    const outcome = invocation.value;
    if (outcome.kind === 'alive') return onReport({ name: CHAIN, kind: 'alive', holds: [], beganAtMs });
    if (outcome.kind === 'failed') {
      onFault(CHAIN, [outcome.fault]);
      if (outcome.returnSeconds === undefined) return;
      onReport({ name: CHAIN, kind: 'returned', holds: [], beganAtMs });
      return again(outcome.returnSeconds * 1_000);
    }
    if (kind === 'watchdog' && outcome.report.kind === 'ran') {
      onReport({ name: CHAIN, kind: 'restarted', holds: [], beganAtMs });
    }
    onReport({ name: CHAIN, kind: outcome.report.kind, holds: [], beganAtMs });
  }

  /** `wakeUpAtMs`: of a wake-up; absent for a sweep. */
  async function tick(name: TickingFunction, wakeUpAtMs?: number): Promise<void> {
    const beganAtMs = time.nowMs();
    const { period } = tickingFunctions.find((each) => each.name === name)!;
    const invocation = await functions!.invoke(name, '', async ({ controllers, clock }): Promise<TickReport> => {
      const slot =
        wakeUpAtMs === undefined ? currentSlot(clock.nowMs(), policy[period]) : slotOf(wakeUpAtMs, policy[period]);
      const { kind, holds = new Map() } = await controllers.ticks[name](slot, BUDGET_MS);
      const reasons = [...holds.values()].flatMap((hold) =>
        hold.kind === 'gate' ? ['gate', ...hold.reasons] : [hold.kind],
      );
      return { name, kind, holds: reasons, beganAtMs };
    });
    if (invocation.kind === 'done') onReport(invocation.value);
    else if (invocation.kind === 'failed') onFault(name, [invocation.error]);
  }

  const call = (name: TickingFunction): void => {
    if (name === CHAIN) deliver(0, () => void receive('watchdog'));
    else deliver(0, () => void tick(name));
  };

  /** Fires in each minute, from the first one on. */
  function schedule(name: TickingFunction): void {
    const offsetMs = fraction() * OFFSET_MAX_MS;
    const minute = (): void => {
      time.after(MINUTE_MS, minute);
      if (plan.strikes('scheduleMissing', 0.8)) return;
      let afterMs = Math.min(OFFSET_MAX_MS, Math.max(0, offsetMs + (2 * fraction() - 1) * JITTER_MAX_MS));
      if (plan.strikes('scheduleLate', 0.8)) afterMs += plan.fraction('scheduleLate') * MINUTE_MS;
      time.after(afterMs, () => call(name));
      if (plan.strikes('scheduleTwice', 0.8)) {
        time.after(afterMs + plan.fraction('scheduleTwice') * TWICE_AFTER_MAX_MS, () => call(name));
      }
    };
    call(name);
    time.after(MINUTE_MS, minute);
  }

  /** One call of the process to a service: `run` happens, unless it dies before. */
  async function calls(process: Process, run: () => void): Promise<void> {
    const death = process.isDead() ? 'before' : process.beforeCall();
    if (death === 'before') return never();
    run();
    if (death === 'after') return never();
  }

  return {
    queueOf: (process) => ({
      send: (_slot, { delaySeconds }) =>
        calls(process, () => {
          onSent();
          deliver(delaySeconds * 1_000, () => void receive('tick'));
        }),
      postpone: () => Promise.resolve(),
    }),
    wakerOf: (process) => ({
      async wake(names, atMs) {
        for (const name of names as readonly TickingFunction[]) {
          await calls(process, () => {
            if (plan.strikes('wakeLost', 0.8)) return;
            deliver(0, () => void tick(name, atMs));
            if (plan.strikes('wakeTwice', 0.8)) {
              deliver(plan.fraction('wakeTwice') * TWICE_AFTER_MAX_MS, () => void tick(name, atMs));
            }
          });
        }
        return [];
      },
    }),
    start(started) {
      functions = started;
      time.after(options.startMs - time.nowMs(), () => {
        for (const { name } of tickingFunctions) schedule(name);
      });
    },
  };
}
