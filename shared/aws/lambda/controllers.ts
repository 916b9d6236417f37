/**
 * What controllers run with, over the account's tables. Every function that runs a controller uses it, and imports that
 * controller alone: a bundle with all of them would load twice as much code at each cold start.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { EvictorConfig } from '../../config/environment.ts';
import { log } from '../../observability/logger.ts';
import { meter } from '../../observability/meter.ts';
import type { ConsumedUnits, ItemStore } from '../../store/item-store.ts';
import {
  type ControllerDependencies,
  type ControllerOptions,
  controllerDependencies,
} from '../../ticks/dependencies.ts';
import { clientOptionsFrom, dynamoDbClient } from '../dynamodb/client.ts';
import { dynamoDbItemStore } from '../dynamodb/item-store.ts';
import { systemClock, systemRandom } from './system-clock.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Counts the units of an event. A process handles one event at a time. */
function unitCounter() {
  let consumed = { readUnits: 0, writeUnits: 0 };
  return {
    onConsumed({ readUnits, writeUnits }: ConsumedUnits): void {
      consumed = { readUnits: consumed.readUnits + readUnits, writeUnits: consumed.writeUnits + writeUnits };
    },
    takeUnits() {
      const units = consumed;
      consumed = { readUnits: 0, writeUnits: 0 };
      return units;
    },
  };
}

export const composeDependencies = (
  environment: Environment,
  { tables, policy }: Pick<EvictorConfig, 'tables' | 'policy'>,
  /** Options of some functions only, such as the probe of node-monitor, or EC2. */
  additionalOptions: (items: ItemStore) => Partial<ControllerOptions> = () => ({}),
): ControllerDependencies => {
  const { onConsumed, takeUnits } = unitCounter();
  const items = dynamoDbItemStore({
    client: dynamoDbClient(clientOptionsFrom(environment)),
    tables,
    onConsumed,
    random: systemRandom.fraction,
  });
  return controllerDependencies({
    items,
    clock: systemClock,
    random: systemRandom,
    pause,
    policy,
    log,
    meter,
    takeUnits,
    ...additionalOptions(items),
  });
};
