/**
 * Messages of the tick queue, as Lambda delivers them: what follows from each (chain.ts has the reasons), and the
 * response that lists those that stay in the queue.
 */
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import type { Clock } from '../../shared/clock.ts';
import { defined } from '../../shared/defined.ts';
import { ALL_FUNCTIONS, FAILED_TICKS } from '../../shared/functions/tick-metrics.ts';
import type { Log, Meter } from '../../shared/observability/log.ts';
import { currentSlot, isTicking, secondsToSlot } from '../../shared/ticks/tick.ts';
import { keepsChain, type TickQueue } from './chain.ts';
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

const LOGGED_CAUSES_MAX = 5;

export interface TickMessageHandling {
  readonly log: Log;
  readonly meter: Meter;
  readonly clock: Clock;
  readonly queue: Pick<TickQueue, 'postpone'>;
  onMessage(kind: TickMessageKind): Promise<TickMessageOutcome>;
}

/**
 * Handles each message in sequence. A malformed message is logged and deleted, because a retry cannot succeed. A
 * message that must return to the queue is hidden until the next slot and listed as failed: Lambda does not delete it.
 * If it cannot be hidden, it returns after the visibility timeout of the queue. Source: AWS Lambda Developer Guide,
 * "Implementing partial batch responses".
 */
export async function handleTickMessages(event: SQSEvent, handling: TickMessageHandling): Promise<SQSBatchResponse> {
  const { log, meter, clock, queue } = handling;
  const batchItemFailures: SQSBatchResponse['batchItemFailures'] = [];
  for (const { messageId, receiptHandle, body } of event.Records) {
    const kind = kindOfMessage(body);
    if (kind === undefined) {
      log.error('a tick message cannot be read', { messageId, body: body.slice(0, 200) });
      continue;
    }
    const outcome = await handling.onMessage(kind);
    if (outcome.kind !== 'failed') continue;
    const { fault, returnSeconds } = outcome;
    meter.add(FAILED_TICKS, 1, 'Count', ALL_FUNCTIONS);
    log.error('a tick failed', { error: fault, causes: causesOf(fault) });
    if (returnSeconds === undefined) continue;
    batchItemFailures.push({ itemIdentifier: messageId });
    try {
      await queue.postpone(receiptHandle, { delaySeconds: returnSeconds, nowMs: clock.nowMs() });
    } catch (error) {
      log.error('a tick message returns only after its visibility timeout', { error });
    }
  }
  return { batchItemFailures };
}

/** undefined for a malformed message. */
export function kindOfMessage(body: string): TickMessageKind | undefined {
  let message: unknown;
  try {
    message = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (typeof message !== 'object' || message === null) return undefined;
  if ('watchdog' in message) return 'watchdog';
  return 'slot' in message ? 'tick' : undefined;
}

const causesOf = (error: unknown): string[] =>
  error instanceof AggregateError ? error.errors.slice(0, LOGGED_CAUSES_MAX).map(String) : [];
