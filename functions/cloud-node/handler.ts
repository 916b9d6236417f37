import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import middy from '@middy/core';
import { handleWakeUp, RESERVE_MS } from '../../shared/aws/wake-up.ts';
import { systemClock } from '../../shared/clock.ts';
import { log, logger } from '../../shared/observability/logger.ts';
import { meter, publishMetrics } from '../../shared/observability/meter.ts';
import { composeCloudNode } from './compose.ts';
import { isInstanceChange } from './instance-change.ts';

const { policy, tick, onInstanceChange } = composeCloudNode(process.env);

/** Receives wake-ups and sweeps, and changes of instances from EventBridge, which do not wait for the next tick. */
export const handler = middy<unknown, void>()
  .use(injectLambdaContext(logger, { resetKeys: true }))
  .use(publishMetrics())
  .handler(async (event, context) => {
    const budgetMs = (): number => context.getRemainingTimeInMillis() - RESERVE_MS;
    if (isInstanceChange(event)) {
      await onInstanceChange(event.detail['instance-id'], budgetMs());
      return;
    }
    const { nodeMonitorPeriodSeconds: periodSeconds } = policy;
    const runTick = (slot: number) => tick(slot, budgetMs());
    await handleWakeUp(event, { periodSeconds, log, meter, clock: systemClock, runTick });
  });
