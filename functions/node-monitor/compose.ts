import { setTimeout as pause } from 'node:timers/promises';
import { clientOptionsFrom, dynamoDbClient } from '../../shared/adapters/dynamodb/client.ts';
import { dynamoDbItemStore } from '../../shared/adapters/dynamodb/item-store.ts';
import { leaseProbe } from '../../shared/adapters/probe/lease-probe.ts';
import { systemClock, systemRandom } from '../../shared/adapters/system/clock.ts';
import { fleetControllers } from '../../shared/app/controllers/index.ts';
import { loadConfig, monitorConfig } from '../../shared/config/environment.ts';
import { log } from '../../shared/observability/logger.ts';
import { meter } from '../../shared/observability/meter.ts';

type Environment = Readonly<Record<string, string | undefined>>;

export function composeNodeMonitor(environment: Environment) {
  const { tables, policy, probe } = loadConfig(monitorConfig, environment);
  if (probe === undefined && policy.ingestGate === 'on') {
    log.warn('no probe is configured: the gate cannot see a failing heartbeat path');
  }
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
    ...(probe === undefined ? {} : { probe: leaseProbe({ ...probe, clock: systemClock }) }),
  });
  return { policy, tick: controllers.tickNodeMonitor };
}
