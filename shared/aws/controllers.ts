/**
 * What controllers run with, over the account's tables. Every function that runs a controller uses it, and imports that
 * controller alone: a bundle with all of them would load twice as much code at each cold start.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { systemClock, systemRandom } from '../clock.ts';
import type { EvictorConfig } from '../config/environment.ts';
import { log } from '../observability/logger.ts';
import { meter } from '../observability/meter.ts';
import { type WorkDependencies, workDependencies } from '../ticks/dependencies.ts';
import { clientOptionsFrom, dynamoDbClient } from './dynamodb-client.ts';
import { unitCounter } from './dynamodb-request.ts';
import { dynamoDbItemStore } from './dynamodb-store.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface MeteredDependencies extends WorkDependencies {
  readonly pause: (milliseconds: number) => Promise<unknown>;
  /** Returns and resets the capacity units that the tables reported as consumed. */
  readonly takeUnits: () => { readonly readUnits: number; readonly writeUnits: number };
}

export function composeDependencies(
  environment: Environment,
  { tables, policy }: Pick<EvictorConfig, 'tables' | 'policy'>,
): MeteredDependencies {
  const { onConsumed, takeUnits } = unitCounter();
  const items = dynamoDbItemStore({
    client: dynamoDbClient(clientOptionsFrom(environment)),
    tables,
    onConsumed,
    random: systemRandom.fraction,
  });
  const common = workDependencies({ items, clock: systemClock, random: systemRandom, pause, policy, log, meter });
  return { ...common, pause, takeUnits };
}
