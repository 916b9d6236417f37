/** The handler of a function that only ticks invoke. */
import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { handleTicks } from '../shared/adapters/sqs/tick-event.ts';
import { log, logger } from '../shared/observability/logger.ts';
import { meter } from '../shared/observability/meter.ts';
import { publishMetrics } from '../shared/observability/publish-metrics.ts';

/** Reserved for the response. Milliseconds. */
export const RESERVE_MS = 2_000;

export const tickHandler = (periodSeconds: number, tick: (slot: number, budgetMs: number) => Promise<unknown>) =>
  middy<SQSEvent, SQSBatchResponse>()
    .use(injectLambdaContext(logger, { resetKeys: true }))
    .use(publishMetrics())
    .handler((event, context) =>
      handleTicks(event, {
        periodSeconds,
        log,
        meter,
        runTick: (slot) => tick(slot, context.getRemainingTimeInMillis() - RESERVE_MS),
      }),
    );
