import { controllerConfig, loadConfig } from '../../shared/config/environment.ts';
import { composeControllers, type Environment } from '../controllers.ts';

export function composeScheduler(environment: Environment) {
  const config = loadConfig(controllerConfig, environment);
  return { policy: config.policy, tick: composeControllers(environment, config).ticks.scheduler };
}
