import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { RESERVE_MS } from '../../shared/aws/wake-up.ts';
import { systemClock } from '../../shared/clock.ts';
import { log, logger } from '../../shared/observability/logger.ts';
import { meter, publishMetrics } from '../../shared/observability/meter.ts';
import { composeNodeMonitor } from './compose.ts';
import { handleTickMessages, onTickMessage } from './tick-message.ts';

const { dependencies, queue } = composeNodeMonitor(process.env);

export const handler = middy<SQSEvent, SQSBatchResponse>()
  .use(injectLambdaContext(logger, { resetKeys: true }))
  .use(publishMetrics())
  .handler((event, context) =>
    handleTickMessages(event, {
      log,
      meter,
      clock: systemClock,
      queue,
      onMessage: (kind) => onTickMessage(dependencies, kind, context.getRemainingTimeInMillis() - RESERVE_MS),
    }),
  );
