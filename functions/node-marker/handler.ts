import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { RESERVE_MS } from '../../shared/aws/wake-up.ts';
import { systemClock } from '../../shared/clock.ts';
import { log, logger } from '../../shared/observability/logger.ts';
import { publishMetrics } from '../../shared/observability/meter.ts';
import { composeNodeMarker } from './compose.ts';
import { handleParts } from './part-messages.ts';

const { onMarkPart, queue } = composeNodeMarker(process.env);

export const handler = middy<SQSEvent, SQSBatchResponse>()
  .use(injectLambdaContext(logger, { resetKeys: true }))
  .use(publishMetrics())
  .handler((event, context) =>
    handleParts(event, {
      log,
      clock: systemClock,
      queue,
      onPart: (part) => onMarkPart({ ...part, budgetMs: context.getRemainingTimeInMillis() - RESERVE_MS }),
    }),
  );
