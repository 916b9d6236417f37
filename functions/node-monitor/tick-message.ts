/** What follows from a message of the tick queue (chain.ts has the reasons). */
import { defined } from '../../shared/defined.ts';
import { currentSlot, isTicking, secondsToSlot } from '../../shared/ticks/tick.ts';
import { keepsChain } from './chain.ts';
import type { MonitorDependencies } from './dependencies.ts';
import { type MonitorReport, runNodeMonitor } from './work.ts';

/** `tick`: of the tick before. `watchdog`: of the schedule, which restarts a chain that ended. */
export type TickMessageKind = 'tick' | 'watchdog';

export type TickMessageOutcome =
  /** The chain needs no restart. */
  | { readonly kind: 'alive' }
  | { readonly kind: 'over'; readonly report: MonitorReport }
  /** `returnSeconds`: the message has no successor, and returns to the queue for this time. */
  | { readonly kind: 'failed'; readonly fault: unknown; readonly returnSeconds: number | undefined };

/** The slot is that of this moment, whatever the message says. */
export async function onTickMessage(
  dependencies: MonitorDependencies,
  message: TickMessageKind,
  budgetMs?: number,
): Promise<TickMessageOutcome> {
  const { clock, fleet, policy } = dependencies;
  const periodSeconds = policy.nodeMonitorPeriodSeconds;
  try {
    if (message === 'watchdog') {
      const { claimedAtMs } = await fleet.readState();
      if (isTicking({ claimedAtMs, nowMs: clock.nowMs(), periodSeconds })) return { kind: 'alive' };
      if (claimedAtMs !== undefined) dependencies.log.warn('the chain of ticks has ended: restarted', { claimedAtMs });
    }
    const slot = currentSlot(clock.nowMs(), periodSeconds);
    const report = await runNodeMonitor(dependencies, { slot, ...defined({ budgetMs }) });
    return { kind: 'over', report };
  } catch (fault) {
    if (keepsChain(fault)) return { kind: 'failed', fault, returnSeconds: undefined };
    const nowMs = clock.nowMs();
    return {
      kind: 'failed',
      fault,
      returnSeconds: secondsToSlot(currentSlot(nowMs, periodSeconds) + 1, nowMs, periodSeconds),
    };
  }
}
