import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { handleTicks } from '../../shared/adapters/sqs/tick-event.ts';
import { log, logger } from '../../shared/observability/logger.ts';
import { meter } from '../../shared/observability/meter.ts';
import { publishMetrics } from '../../shared/observability/publish-metrics.ts';
import { composePodGc } from './compose.ts';

/** Kept for the answer. Milliseconds. */
const RESERVE_MS = 2_000;
const { policy, tick } = composePodGc(process.env);

export const handler = middy<SQSEvent, SQSBatchResponse>()
  .use(injectLambdaContext(logger, { resetKeys: true }))
  .use(publishMetrics())
  .handler((event, context) =>
    handleTicks(event, {
      periodSeconds: policy.podGcPeriodSeconds,
      log,
      meter,
      runTick: (slot) => tick(slot, context.getRemainingTimeInMillis() - RESERVE_MS),
    }),
  );
