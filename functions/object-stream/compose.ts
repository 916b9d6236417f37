import { composeDependencies, type Environment } from '../../shared/aws/controllers.ts';
import { composeEventBus } from '../../shared/aws/event-bus.ts';
import { lambdaConnectionFrom, lambdaWaker } from '../../shared/aws/wake-up.ts';
import { loadConfig, objectStreamConfig } from '../../shared/config/environment.ts';
import type { ItemChangeRecord } from '../../shared/ticks/item-change.ts';
import { objectStreamDependencies } from './dependencies.ts';
import { onObjectChange } from './work.ts';

export function composeObjectStream(environment: Environment) {
  const config = loadConfig(objectStreamConfig, environment);
  const dependencies = objectStreamDependencies(composeDependencies(environment, config), {
    ...composeEventBus(environment, config),
    waker: lambdaWaker(lambdaConnectionFrom(environment), config.wakeFunctions),
  });
  return (records: readonly ItemChangeRecord[]) => onObjectChange(dependencies, records);
}
