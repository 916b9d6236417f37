/** The controllers over the tables of the account: what the functions that run them plug in, once for all of them. */
import { setTimeout as pause } from 'node:timers/promises';
import { clientOptionsFrom, dynamoDbClient } from '../shared/adapters/dynamodb/client.ts';
import { dynamoDbItemStore } from '../shared/adapters/dynamodb/item-store.ts';
import { systemClock, systemRandom } from '../shared/adapters/system/clock.ts';
import type { EvictorConfig } from '../shared/config/environment.ts';
import { type ControllerOptions, type FleetControllers, fleetControllers } from '../shared/controllers/index.ts';
import { log } from '../shared/observability/logger.ts';
import { meter } from '../shared/observability/meter.ts';
import type { ConsumedUnits, ItemStore } from '../shared/ports/item-store.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/** Of this process; it works on one event at a time. */
function unitCounter() {
  let taken = { readUnits: 0, writeUnits: 0 };
  return {
    onConsumed({ readUnits, writeUnits }: ConsumedUnits): void {
      taken = { readUnits: taken.readUnits + readUnits, writeUnits: taken.writeUnits + writeUnits };
    },
    takeUnits() {
      const units = taken;
      taken = { readUnits: 0, writeUnits: 0 };
      return units;
    },
  };
}

export const composeControllers = (
  environment: Environment,
  { tables, policy }: Pick<EvictorConfig, 'tables' | 'policy'>,
  /** What only some of them need, over the same tables: node-monitor's own beats, EC2. */
  more: (items: ItemStore) => Partial<ControllerOptions> = () => ({}),
): FleetControllers => {
  const { onConsumed, takeUnits } = unitCounter();
  const items = dynamoDbItemStore({
    client: dynamoDbClient(clientOptionsFrom(environment)),
    tables,
    onConsumed,
    random: systemRandom.fraction,
  });
  return fleetControllers({
    items,
    clock: systemClock,
    random: systemRandom,
    pause,
    policy,
    log,
    meter,
    takeUnits,
    ...more(items),
  });
};
