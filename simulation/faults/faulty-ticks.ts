/** The ticks of the controllers, as their queues deliver them: one message per slot and controller, with faults. */

import type { Policy } from '../../shared/domain/policy.ts';
import { slotOf } from '../../shared/domain/tick.ts';
import { type TickingFunction, tickingFunctions } from '../../shared/function-list.ts';
import type { VirtualTime } from '../virtual-time.ts';
import type { FaultPlan } from './catalogue.ts';
import type { Functions } from './processes.ts';

/** A message comes this much after its slot begins. Milliseconds. */
const DELIVERED_MAX_MS = 250;
const LATE_MAX_MS = 70_000;
const TWICE_AFTER_MAX_MS = 8_000;
/** The work of a function. */
const BUDGET_MS = 25_000;

export interface TickReport {
  readonly name: TickingFunction;
  readonly kind: string;
  readonly holds: readonly string[];
  /** When it was delivered. True time. */
  readonly beganAtMs: number;
}

export function faultyTicks(options: {
  readonly functions: Functions;
  readonly time: VirtualTime;
  readonly plan: FaultPlan;
  readonly fraction: () => number;
  readonly policy: Policy;
  readonly startMs: number;
  readonly onFault: (name: TickingFunction, faults: readonly unknown[]) => void;
  readonly onReport: (report: TickReport) => void;
}): void {
  const { functions, time, plan, fraction, policy, onFault, onReport } = options;

  async function run(name: TickingFunction, slot: number): Promise<void> {
    const beganAtMs = time.nowMs();
    const outcome = await functions.invoke(name, '', async ({ controllers }): Promise<TickReport> => {
      const { kind, holds = new Map() } = await controllers.ticks[name](slot, BUDGET_MS);
      const reasons = [...holds.values()].flatMap((hold) =>
        hold.kind === 'gate' ? ['gate', ...hold.reasons] : [hold.kind],
      );
      return { name, kind, holds: reasons, beganAtMs };
    });
    if (outcome.kind === 'done') onReport(outcome.value);
    else if (outcome.kind === 'failed') onFault(name, [outcome.error]);
  }

  function send(name: TickingFunction, periodSeconds: number): void {
    if (plan.severity('tickOutage') > 0) {
      plan.count('tickOutage');
      return;
    }
    if (plan.strikes('lostTicks', 0.6)) return;
    const slot = slotOf(time.nowMs(), periodSeconds);
    let delayMs = fraction() * DELIVERED_MAX_MS;
    if (plan.strikes('lateTicks', 0.7)) {
      // Half of them within their period, half of them far out of it.
      const most = plan.fraction('lateTicks') < 0.5 ? periodSeconds * 1_000 : LATE_MAX_MS;
      delayMs += plan.fraction('lateTicks') * most;
    }
    const deliver = (afterMs: number): void => time.after(afterMs, () => void run(name, slot));
    deliver(delayMs);
    if (plan.strikes('twice', 0.6)) deliver(delayMs + plan.fraction('twice') * TWICE_AFTER_MAX_MS);
    if (plan.strikes('atOnce', 0.6)) deliver(delayMs);
  }

  const every = (name: TickingFunction, periodSeconds: number): void => {
    const beat = (): void => {
      send(name, periodSeconds);
      time.after(periodSeconds * 1_000, beat);
    };
    time.after(options.startMs - time.nowMs(), beat);
  };
  for (const { name, period } of tickingFunctions) every(name, policy[period]);
}
