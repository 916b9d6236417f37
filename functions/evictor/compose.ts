import { evictorConfig, loadConfig } from '../../shared/config/environment.ts';
import { composeControllers, type Environment } from '../controllers.ts';

export function composeEvictor(environment: Environment) {
  const config = loadConfig(evictorConfig, environment);
  return { policy: config.policy, tick: composeControllers(environment, config).ticks.evictor };
}
