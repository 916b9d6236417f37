import { lambdaConnectionFrom, lambdaWaker } from '../../shared/adapters/lambda/function-waker.ts';
import { loadConfig, objectStreamConfig } from '../../shared/config/environment.ts';
import { cidrAllocator } from '../../shared/controllers/cidr-allocator/reconcile.ts';
import type { ItemChangeRecord } from '../../shared/controllers/framework/item-change.ts';
import { onObjectChange } from '../../shared/controllers/object-stream/reconcile.ts';
import { composeDependencies, type Environment } from '../controllers.ts';
import { composeEventBus } from '../event-bus.ts';

export function composeObjectStream(environment: Environment) {
  const config = loadConfig(objectStreamConfig, environment);
  const dependencies = composeDependencies(environment, config, () => ({
    ...composeEventBus(environment, config),
    waker: lambdaWaker(lambdaConnectionFrom(environment), config.wakeFunctions),
  }));
  const cidrs = cidrAllocator(dependencies);
  return (records: readonly ItemChangeRecord[]) => onObjectChange({ ...dependencies, cidrs }, records);
}
