/** Tick messages from SQS, and the response that lists those to deliver again. */
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { ALL_FUNCTIONS, FAILED_TICKS } from '../../domain/functions/tick-metrics.ts';
import { parseRfc3339 } from '../../domain/rfc3339.ts';
import { slotOf } from '../../domain/tick.ts';
import type { Log, Meter } from '../../ports/log.ts';

export interface TickHandling {
  readonly periodSeconds: number;
  readonly log: Log;
  readonly meter: Meter;
  readonly runTick: (slot: number) => Promise<unknown>;
}

const LOGGED_CAUSES_MAX = 5;

/**
 * Runs the tick of each message in sequence. A malformed message is logged and dropped, because a retry cannot succeed.
 * If a tick fails, its message is delivered again: the tick may have failed before it claimed its slot.
 */
export async function handleTicks(event: SQSEvent, handling: TickHandling): Promise<SQSBatchResponse> {
  const batchItemFailures: SQSBatchResponse['batchItemFailures'] = [];
  for (const { messageId, body } of event.Records) {
    const slot = slotOfMessage(body, handling.periodSeconds);
    if (slot === undefined) {
      handling.log.error('a tick message cannot be read', { messageId, body: body.slice(0, 200) });
      continue;
    }
    try {
      await handling.runTick(slot);
    } catch (error) {
      handling.meter.add(FAILED_TICKS, 1, 'Count', ALL_FUNCTIONS);
      handling.log.error('a tick failed', { slot, error, causes: causesOf(error) });
      batchItemFailures.push({ itemIdentifier: messageId });
    }
  }
  return { batchItemFailures };
}

/** The slot of a message: its scheduled minute plus the offset within it. undefined for a malformed message. */
export function slotOfMessage(body: string, periodSeconds: number): number | undefined {
  let message: unknown;
  try {
    message = JSON.parse(body);
  } catch {
    return undefined;
  }
  if (typeof message !== 'object' || message === null) return undefined;
  const { scheduledAt, offsetSeconds } = message as Record<string, unknown>;
  if (typeof scheduledAt !== 'string' || typeof offsetSeconds !== 'number' || !Number.isFinite(offsetSeconds)) {
    return undefined;
  }
  const minuteMs = parseRfc3339(scheduledAt);
  return minuteMs === undefined ? undefined : slotOf(minuteMs + offsetSeconds * 1_000, periodSeconds);
}

const causesOf = (error: unknown): string[] =>
  error instanceof AggregateError ? error.errors.slice(0, LOGGED_CAUSES_MAX).map(String) : [];
