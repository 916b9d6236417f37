import { lambdaConnectionFrom, lambdaWaker } from '../../shared/adapters/lambda/function-waker.ts';
import { loadConfig, objectStreamConfig } from '../../shared/config/environment.ts';
import { composeControllers, type Environment } from '../controllers.ts';
import { composeEventBus } from '../event-bus.ts';

export function composeObjectStream(environment: Environment) {
  const config = loadConfig(objectStreamConfig, environment);
  return composeControllers(environment, config, () => ({
    ...composeEventBus(environment, config),
    waker: lambdaWaker(lambdaConnectionFrom(environment), config.wakeFunctions),
  })).onObjectRecords;
}
