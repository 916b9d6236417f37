import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import middy from '@middy/core';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { type InstanceChangeEvent, isInstanceChange } from '../../shared/adapters/eventbridge/instance-change.ts';
import { handleTicks } from '../../shared/adapters/sqs/tick-event.ts';
import { log, logger } from '../../shared/observability/logger.ts';
import { meter } from '../../shared/observability/meter.ts';
import { publishMetrics } from '../../shared/observability/publish-metrics.ts';
import { RESERVE_MS } from '../tick-handler.ts';
import { composeCloudNode } from './compose.ts';

const { policy, tick, onInstanceChange } = composeCloudNode(process.env);

/** Receives ticks from their queue, and changes of instances from EventBridge, which do not wait for the next tick. */
export const handler = middy<SQSEvent | InstanceChangeEvent, SQSBatchResponse>()
  .use(injectLambdaContext(logger, { resetKeys: true }))
  .use(publishMetrics())
  .handler(async (event, context) => {
    const budgetMs = (): number => context.getRemainingTimeInMillis() - RESERVE_MS;
    if (isInstanceChange(event)) {
      await onInstanceChange(event.detail['instance-id'], budgetMs());
      return { batchItemFailures: [] };
    }
    const { nodeMonitorPeriodSeconds: periodSeconds } = policy;
    return handleTicks(event, { periodSeconds, log, meter, runTick: (slot) => tick(slot, budgetMs()) });
  });
