/**
 * How ticks start, and the faults of it: the queue of node-monitor's chain, its wake-ups of other functions, and the
 * schedules of each minute. As in AWS, a message is delivered at least once, and hidden while it is handled; a schedule
 * fires at any second of its minute.
 */
import { type TickingFunction, tickingFunctions } from '../../functions/function-list.ts';
import type { TickQueue } from '../../functions/node-monitor/chain.ts';
import type { MonitorReport, TickMessageKind } from '../../server/fleet-controllers.ts';
import type { Policy } from '../../shared/fleet/policy.ts';
import { currentSlot, slotOf, type Waker } from '../../shared/ticks/tick.ts';
import { never, type VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';
import type { Functions, Process } from './processes.ts';

/** From the moment at which a message or event is due to its delivery. Milliseconds. */
const DELIVERED_MAX_MS = 250;
const LATE_MAX_MS = 70_000;
const TWICE_AFTER_MAX_MS = 8_000;
/** The visibility time of the queue and of its receives (cdk/lib/tick.ts). */
const VISIBILITY_MS = 40_000;
const RECEIVES_MAX = 12;
const MINUTE_MS = 60_000;
/** A schedule has an offset of its own within the minute, and varies a little around it. Milliseconds. */
const OFFSET_MAX_MS = 59_000;
const JITTER_MAX_MS = 4_000;
/**
 * An asynchronous invocation that Lambda throttled is repeated after a second, then after twice the wait, up to the age
 * of the oldest event (cdk/lib/tick.ts). Source: AWS Lambda Developer Guide, "How Lambda handles errors and retries
 * with asynchronous invocation".
 */
const THROTTLED_WAIT_MS = 1_000;
const EVENT_AGE_MAX_MS = 60_000;
const THROTTLED_SHARE = 0.6;
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

export function faultyTicks(options: FaultyTicksOptions): FaultyTicks {
  const ticks = new TickSource(options);
  return {
    queueOf: (process) => ticks.queueOf(process),
    wakerOf: (process) => ticks.wakerOf(process),
    start: (functions) => ticks.start(functions),
  };
}

class TickSource implements FaultyTicks {
  readonly #options: FaultyTicksOptions;
  #functions: Functions | undefined;

  constructor(options: FaultyTicksOptions) {
    this.#options = options;
  }

  queueOf(process: Process): TickQueue {
    return {
      send: (_slot, { delaySeconds }) =>
        callOf(process, () => {
          this.#options.onSent();
          this.#deliver(delaySeconds * 1_000, () => void this.#receive('tick'));
        }),
      postpone: () => Promise.resolve(),
    };
  }

  wakerOf(process: Process): Waker {
    return {
      wake: async (names, atMs) => {
        for (const name of names as readonly TickingFunction[]) {
          await callOf(process, () => this.#wake(name, atMs));
        }
        return [];
      },
    };
  }

  start(functions: Functions): void {
    const { time, startMs } = this.#options;
    this.#functions = functions;
    time.after(startMs - time.nowMs(), () => {
      for (const { name } of tickingFunctions) this.#schedule(name);
    });
  }

  #wake(name: TickingFunction, atMs: number): void {
    const { plan } = this.#options;
    if (plan.strikes('wakeLost', 0.8)) return;
    this.#deliver(0, () => void this.#tick(name, atMs));
    if (plan.strikes('wakeTwice', 0.8)) {
      this.#deliver(plan.fraction('wakeTwice') * TWICE_AFTER_MAX_MS, () => void this.#tick(name, atMs));
    }
  }

  /** Late, lost or doubled by faults. */
  #deliver(delayMs: number, run: () => void): void {
    const { time, plan, fraction, policy } = this.#options;
    if (plan.strikes('lostTicks', 0.3)) return;
    let totalMs = delayMs + fraction() * DELIVERED_MAX_MS;
    if (plan.strikes('lateTicks', 0.7)) {
      // Half of them arrive within their period, the other half long after it.
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
  }

  /** One receive of a message of the chain. */
  async #receive(kind: TickMessageKind, receives = 1): Promise<void> {
    const { time, plan, onFault, onReport } = this.#options;
    const beganAtMs = time.nowMs();
    const report = (what: string): void => onReport({ name: CHAIN, kind: what, holds: [], beganAtMs });
    const again = (afterMs: number): void => {
      if (receives < RECEIVES_MAX) time.after(afterMs, () => void this.#receive(kind, receives + 1));
    };
    // A throttled message stays hidden until its visibility timeout.
    if (plan.strikes('throttledInvocation', THROTTLED_SHARE)) return again(VISIBILITY_MS);
    const invocation = await this.#functions!.invoke(CHAIN, '', ({ controllers }) =>
      controllers.onTickMessage(kind, BUDGET_MS),
    );
    if (invocation.kind !== 'done') {
      if (invocation.kind === 'failed') onFault(CHAIN, [invocation.error]);
      return again(Math.max(0, VISIBILITY_MS - (time.nowMs() - beganAtMs)));
    }
    const outcome = invocation.value;
    if (outcome.kind === 'alive') return report('alive');
    if (outcome.kind === 'failed') {
      onFault(CHAIN, [outcome.fault]);
      if (outcome.returnSeconds === undefined) return;
      report('returned');
      return again(outcome.returnSeconds * 1_000);
    }
    if (kind === 'watchdog' && outcome.report.kind === 'ran') report('restarted');
    report(isDistributed(outcome.report) ? 'distributed' : outcome.report.kind);
  }

  /** `wakeUpAtMs`: of a wake-up; absent for a sweep. */
  async #tick(name: TickingFunction, wakeUpAtMs?: number): Promise<void> {
    const { time, plan, policy, onFault, onReport } = this.#options;
    for (let waitMs = THROTTLED_WAIT_MS; plan.strikes('throttledInvocation', THROTTLED_SHARE); waitMs *= 2) {
      if (2 * waitMs > EVENT_AGE_MAX_MS) return;
      await time.sleep(waitMs);
    }
    const beganAtMs = time.nowMs();
    const { period } = tickingFunctions.find((each) => each.name === name)!;
    const invocation = await this.#functions!.invoke(name, '', async ({ controllers, clock }): Promise<TickReport> => {
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

  #sweep(name: TickingFunction): void {
    if (name === CHAIN) this.#deliver(0, () => void this.#receive('watchdog'));
    else this.#deliver(0, () => void this.#tick(name));
  }

  /** Fires in each minute, from the first one on. */
  #schedule(name: TickingFunction): void {
    const { time, plan, fraction } = this.#options;
    const offsetMs = fraction() * OFFSET_MAX_MS;
    const minute = (): void => {
      time.after(MINUTE_MS, minute);
      if (plan.strikes('scheduleMissing', 0.8)) return;
      let afterMs = Math.min(OFFSET_MAX_MS, Math.max(0, offsetMs + (2 * fraction() - 1) * JITTER_MAX_MS));
      if (plan.strikes('scheduleLate', 0.8)) afterMs += plan.fraction('scheduleLate') * MINUTE_MS;
      time.after(afterMs, () => this.#sweep(name));
      if (plan.strikes('scheduleTwice', 0.8)) {
        time.after(afterMs + plan.fraction('scheduleTwice') * TWICE_AFTER_MAX_MS, () => this.#sweep(name));
      }
    };
    this.#sweep(name);
    time.after(MINUTE_MS, minute);
  }
}

/** A part of its decisions is left to node-marker. */
const isDistributed = (report: MonitorReport): boolean => report.kind === 'ran' && report.sent + report.awaited > 0;

/** One call of the process to a service. `run` happens, unless the process dies before it. */
export async function callOf(process: Process, run: () => void): Promise<void> {
  const death = process.isDead() ? 'before' : process.beforeCall();
  if (death === 'before') return never();
  run();
  if (death === 'after') return never();
}
