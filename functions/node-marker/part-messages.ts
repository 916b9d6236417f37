/** Messages of the queue of node-marker, as Lambda delivers them, and the response that lists those that stay there. */
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import type { Clock } from '../../shared/clock.ts';
import type { PartQueue } from '../../shared/fleet/mark-parts.ts';
import type { Log } from '../../shared/observability/log.ts';

type Outcome =
  | { readonly kind: 'done' | 'dropped' | 'malformed' }
  | { readonly kind: 'failed'; readonly faults: readonly unknown[]; readonly retrySeconds: number | undefined };

const LOGGED_CAUSES_MAX = 5;

export interface PartHandling {
  readonly log: Log;
  readonly clock: Clock;
  readonly queue: Pick<PartQueue, 'postpone'>;
  /** Never rejects. */
  onPart(part: { readonly body: string; readonly receives: number }): Promise<Outcome>;
}

/**
 * Handles all messages of a batch concurrently: one that fails delays no other. A message that is to be repeated is
 * hidden for some seconds and listed as failed: Lambda does not delete it. If it cannot be hidden, it returns after the
 * visibility timeout of the queue. A malformed message is logged and deleted. Source: AWS Lambda Developer Guide,
 * "Implementing partial batch responses".
 */
export async function handleParts(event: SQSEvent, handling: PartHandling): Promise<SQSBatchResponse> {
  const { log, clock, queue } = handling;
  const batchItemFailures: SQSBatchResponse['batchItemFailures'] = [];
  await Promise.all(
    event.Records.map(async ({ messageId, receiptHandle, body, attributes }) => {
      const receives = Number(attributes.ApproximateReceiveCount);
      const outcome = await handling.onPart({ body, receives: Number.isFinite(receives) ? receives : 1 });
      if (outcome.kind === 'malformed') log.error('a part cannot be read', { messageId, body: body.slice(0, 200) });
      if (outcome.kind !== 'failed') return;
      const { faults, retrySeconds } = outcome;
      log.error('a part of a mass failure failed', {
        receives,
        isRepeated: retrySeconds !== undefined,
        causes: faults.slice(0, LOGGED_CAUSES_MAX).map(String),
      });
      if (retrySeconds === undefined) return;
      batchItemFailures.push({ itemIdentifier: messageId });
      try {
        await queue.postpone(receiptHandle, { delaySeconds: retrySeconds, nowMs: clock.nowMs() });
      } catch (error) {
        log.error('a part returns only after its visibility timeout', { error });
      }
    }),
  );
  return { batchItemFailures };
}
