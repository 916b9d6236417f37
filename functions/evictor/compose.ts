import { setTimeout as pause } from 'node:timers/promises';
import { clientOptionsFrom, dynamoDbClient } from '../../shared/adapters/dynamodb/client.ts';
import { dynamoDbItemStore } from '../../shared/adapters/dynamodb/item-store.ts';
import { systemClock, systemRandom } from '../../shared/adapters/system/clock.ts';
import { fleetControllers } from '../../shared/app/controllers/index.ts';
import { evictorConfig, loadConfig } from '../../shared/config/environment.ts';
import { log } from '../../shared/observability/logger.ts';
import { meter } from '../../shared/observability/meter.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export function composeEvictor(environment: Environment) {
  const { tables, policy } = loadConfig(evictorConfig, environment);
  const controllers = fleetControllers({
    items: dynamoDbItemStore({
      client: dynamoDbClient(clientOptionsFrom(environment)),
      tables,
      random: systemRandom.fraction,
    }),
    clock: systemClock,
    random: systemRandom,
    pause,
    policy,
    log,
    meter,
  });
  return { policy, tick: controllers.runEvictorSlot };
}
