/**
 * Events that start a tick of a function: a wake-up of node-monitor, or the sweep of a schedule.
 *
 * Wakes functions by asynchronous invocations: Lambda queues the event and answers at once.
 * Source: AWS Lambda API Reference, Invoke (InvocationType `Event`).
 */

import { injectLambdaContext } from '@aws-lambda-powertools/logger/middleware';
import { InvokeCommand, LambdaClient, type LambdaClientConfig } from '@aws-sdk/client-lambda';
import middy from '@middy/core';
import { type Clock, systemClock } from '../clock.ts';
import { defined } from '../defined.ts';
import { ALL_FUNCTIONS, FAILED_TICKS, TICK_AGE } from '../functions/tick-metrics.ts';
import type { Log, Meter } from '../observability/log.ts';
import { log, logger } from '../observability/logger.ts';
import { meter, publishMetrics } from '../observability/meter.ts';
import { currentSlot, type FailedWakeUp, ranNevertheless, slotOf, slotStartMs, type Waker } from '../ticks/tick.ts';
import { type AwsConnection, awsConnectionFrom } from './connection.ts';

export interface WakeUpEvent {
  /** Start of the tick of node-monitor that found work. Epoch milliseconds. */
  readonly wakeUpAtMs: number;
}

export const wakeUpEvent = (atMs: number): WakeUpEvent => ({ wakeUpAtMs: atMs });

export interface WakeUpHandling {
  readonly periodSeconds: number;
  readonly log: Log;
  readonly meter: Meter;
  readonly clock: Clock;
  /** Whether each sweep emits the age of its tick, for an alarm on the silence of this function. */
  readonly reportsSweeps?: boolean;
  runTick(slot: number): Promise<unknown>;
}

const LOGGED_CAUSES_MAX = 5;

/**
 * Runs the tick of an event. A wake-up has the slot of the tick that sent it. By its time of arrival, the wake-ups of
 * two ticks could fall into one slot. A sweep has the slot of this moment. The claim of the
 * slot decides whether it acts. A tick that fails is not repeated: the next wake-up or sweep does its work.
 */
export async function handleWakeUp(event: unknown, handling: WakeUpHandling): Promise<void> {
  const { periodSeconds, log, meter, clock } = handling;
  const nowMs = clock.nowMs();
  const wakeUpAtMs = wakeUpTime(event);
  const slot = wakeUpAtMs === undefined ? currentSlot(nowMs, periodSeconds) : slotOf(wakeUpAtMs, periodSeconds);
  try {
    await handling.runTick(slot);
  } catch (error) {
    meter.add(FAILED_TICKS, 1, 'Count', ALL_FUNCTIONS);
    log.error('a tick failed', { slot, error, causes: causesOf(error) });
    if (!ranNevertheless(error)) return;
  }
  if (wakeUpAtMs !== undefined || handling.reportsSweeps !== true) return;
  meter.add(TICK_AGE, Math.max(0, nowMs - slotStartMs(slot, periodSeconds)) / 1_000, 'Seconds');
}

function wakeUpTime(event: unknown): number | undefined {
  if (typeof event !== 'object' || event === null) return undefined;
  const { wakeUpAtMs } = event as Partial<WakeUpEvent>;
  return typeof wakeUpAtMs === 'number' && Number.isFinite(wakeUpAtMs) ? wakeUpAtMs : undefined;
}

const causesOf = (error: unknown): string[] =>
  error instanceof AggregateError ? error.errors.slice(0, LOGGED_CAUSES_MAX).map(String) : [];

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

/** A tick does not wait longer for the answers. Milliseconds. */
const REQUEST_TIMEOUT_MS = 1_000;
const CONNECTION_TIMEOUT_MS = 500;
/** A wake-up that is sent twice acts once. */
const ATTEMPTS_MAX = 2;

/** @throws RangeError that names every missing variable at once */
export const lambdaConnectionFrom = (environment: Readonly<Record<string, string | undefined>>): AwsConnection =>
  awsConnectionFrom(environment, 'AWS_ENDPOINT_URL_LAMBDA');

function lambdaClient({ region, endpoint, credentials }: AwsConnection): LambdaClient {
  const config: LambdaClientConfig = {
    region,
    credentials: { ...credentials },
    maxAttempts: ATTEMPTS_MAX,
    retryMode: 'standard',
    defaultsMode: 'standard',
    authSchemePreference: [],
    useDualstackEndpoint: false,
    useFipsEndpoint: false,
    userAgentAppId: async () => undefined,
    requestHandler: {
      connectionTimeout: CONNECTION_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      throwOnRequestTimeout: true,
    },
    ...defined({ endpoint }),
  };
  return new LambdaClient(config);
}

/** @param functionNames name of the deployed function, by its name in the cluster */
export function lambdaWaker(connection: AwsConnection, functionNames: Readonly<Record<string, string>>): Waker {
  const client = lambdaClient(connection);
  async function wakeOne(name: string, atMs: number): Promise<FailedWakeUp | undefined> {
    const functionName = functionNames[name];
    if (functionName === undefined) return { name, reason: 'the function is not deployed' };
    try {
      const Payload = JSON.stringify(wakeUpEvent(atMs));
      await client.send(new InvokeCommand({ FunctionName: functionName, InvocationType: 'Event', Payload }));
      return undefined;
    } catch (error) {
      return { name, reason: String(error) };
    }
  }
  return {
    async wake(names, atMs) {
      const outcomes = await Promise.all(names.map((name) => wakeOne(name, atMs)));
      return outcomes.filter((outcome) => outcome !== undefined);
    },
  };
}
