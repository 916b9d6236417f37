/** The handler of a function that ticks by wake-ups of node-monitor and by the sweep of a schedule. */
import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import middy from '@middy/core';
import { systemClock } from '../clock.ts';
import { log, logger } from '../observability/logger.ts';
import { meter } from '../observability/meter.ts';
import { publishMetrics } from '../observability/publish-metrics.ts';
import { handleWakeUp } from './wake-up-event.ts';

/** Reserved for the response. Milliseconds. */
export const RESERVE_MS = 2_000;

/** `reportsSweeps`: for an alarm on the silence of this function alone. */
export const tickHandler = (
  periodSeconds: number,
  tick: (slot: number, budgetMs: number) => Promise<unknown>,
  { reportsSweeps = false } = {},
) =>
  middy<unknown, void>()
    .use(injectLambdaContext(logger, { resetKeys: true }))
    .use(publishMetrics())
    .handler((event, context) =>
      handleWakeUp(event, {
        periodSeconds,
        log,
        meter,
        clock: systemClock,
        reportsSweeps,
        runTick: (slot) => tick(slot, context.getRemainingTimeInMillis() - RESERVE_MS),
      }),
    );
