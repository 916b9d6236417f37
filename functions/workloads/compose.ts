import { evictorConfig, loadConfig } from '../../shared/config/environment.ts';
import { composeControllers, type Environment } from '../controllers.ts';

export function composeWorkloads(environment: Environment) {
  const config = loadConfig(evictorConfig, environment);
  const { tickWorkloads, onWorkloadRecords } = composeControllers(environment, config);
  return { policy: config.policy, tick: tickWorkloads, onRecords: onWorkloadRecords };
}
